"""Programs for Paddle in two processes: collectives, data-parallel, sharded, tensor-parallel and pipeline training."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json
import sys

import numpy as np
import paddle
import paddle.distributed as dist
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.distributed import fleet
from paddle.distributed.fleet.meta_parallel import (
    ColumnParallelLinear,
    LayerDesc,
    ParallelCrossEntropy,
    PipelineLayer,
    RowParallelLinear,
    SharedLayerDesc,
    VocabParallelEmbedding,
)

world = dist.get_world_size()
X = np.random.RandomState(1).randint(0, 8, (6, 8))
Y = (X * 3 + 1) % 8
values = np.random.RandomState(2)
E, A, B = (values.randn(*shape).astype("float32") * 0.3 for shape in ((8, 6), (6, 8), (8, 6)))


def part(array, axis):
    rank, size = hcg.get_model_parallel_rank(), hcg.get_model_parallel_world_size()
    return np.split(array, size, axis)[rank]


def start(**degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = degrees
    strategy.pipeline_configs = {"accumulate_steps": 2}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()


class Plain(nn.Layer):
    def __init__(self):
        super().__init__()
        self.e, self.a, self.b = nn.Embedding(8, 6), nn.Linear(6, 8), nn.Linear(8, 6)
        for layer, array in ((self.e, E), (self.a, A), (self.b, B)):
            layer.weight.set_value(array)

    def forward(self, x):
        return F.linear(self.b(F.gelu(self.a(self.e(x)))), self.e.weight.T)


class Divided(nn.Layer):
    def __init__(self):
        super().__init__()
        self.e = VocabParallelEmbedding(8, 6)
        self.a = ColumnParallelLinear(6, 8, has_bias=True, gather_output=False)
        self.b = RowParallelLinear(8, 6, input_is_parallel=True)
        for layer, array, axis in ((self.e, E, 0), (self.a, A, 1), (self.b, B, 0)):
            layer.weight.set_value(part(array, axis))

    def forward(self, x):
        hidden = dist.fleet.layers.mpu.mp_ops._c_identity(self.b(F.gelu(self.a(self.e(x)))))
        return F.linear(hidden, self.e.weight.T)


class Hidden(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 6)
        self.a.weight.set_value(A)
        self.b.weight.set_value(B)

    def forward(self, x):
        return self.b(F.gelu(self.a(x)))


def train(model, optimizer, loss_of, rows):
    losses = []
    for x, y in zip(X, Y):
        loss = loss_of(model(paddle.to_tensor(x[rows])), paddle.to_tensor(y[rows]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        whole = loss.detach().clone()
        dist.all_reduce(whole, dist.ReduceOp.AVG)
        losses.append(float(whole))
    return losses


def adam(model):
    return paddle.optimizer.AdamW(0.05, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.3))


mine = slice(dist.get_rank() * 8 // world, (dist.get_rank() + 1) * 8 // world)


def run_collectives():
    said = {}
    rank = dist.get_rank()
    x = paddle.to_tensor([1 + rank, 2**40 + rank])
    dist.all_reduce(x)
    said["sum"] = x.tolist()
    boolean = paddle.to_tensor([rank == 1, False])
    dist.all_reduce(boolean, dist.ReduceOp.MAX)
    gathered, objects = [], []
    dist.all_gather(gathered, paddle.to_tensor([float(rank)]))
    dist.all_gather_object(objects, {"rank": rank})
    said |= {"any": boolean.tolist(), "gathered": [one.tolist() for one in gathered], "objects": objects}
    own = paddle.zeros([2])
    dist.scatter(own, [paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0])] if rank == 0 else None, src=0)
    said["scattered"] = own.tolist()
    out = paddle.zeros([4], "int64")
    dist.alltoall_single(paddle.to_tensor([10 * rank + n for n in range(4)]), out)
    said["all_to_all"] = out.tolist()
    message = paddle.to_tensor([7.0]) if rank == 0 else paddle.zeros([1])
    dist.send(message, 1) if rank == 0 else dist.recv(message, 0)
    said["received"] = message.tolist()
    alone = dist.new_group([1])
    said["group_rank"] = dist.get_rank(alone)
    dist.barrier()
    model = paddle.DataParallel(nn.Linear(2, 2))  # starts with the values of process 0
    paddle.seed(rank)
    with model.no_sync():
        model(paddle.full([1, 2], float(rank))).sum().backward()
    before = model._layers.weight.grad.tolist()
    model(paddle.full([1, 2], 1.0)).sum().backward()
    said["gradient"] = [before, model._layers.weight.grad.tolist()]
    return said


def run_data():
    said = {}
    model = fleet.init(is_collective=True).distributed_model(Plain())
    said["losses"] = train(model, fleet.distributed_optimizer(adam(model)), F.cross_entropy, mine)
    return said


def run_sharded():
    said = {}
    dist.init_parallel_env()
    model = Plain()
    model, optimizer, _ = dist.sharding.group_sharded_parallel(model, adam(model), "os_g")
    said["losses"] = train(model, optimizer, F.cross_entropy, mine)
    said["kept"] = sorted(optimizer._accumulators["moment1"])
    return said


def run_tensor():
    global hcg
    said = {}
    hcg = start(dp_degree=1, mp_degree=world)
    loss = ParallelCrossEntropy()
    model = fleet.distributed_model(Divided())
    optimizer = fleet.distributed_optimizer(adam(model))
    said["losses"] = train(model, optimizer, lambda out, y: loss(out, y).mean(), slice(None))
    return said


def run_pipeline():
    global hcg
    said = {}
    hcg = start(dp_degree=1, pp_degree=world)
    tied = ("embed", nn.Embedding)
    layers = [
        SharedLayerDesc(*tied, None, "weight", 8, 6),
        LayerDesc(Hidden),
        SharedLayerDesc(*tied, lambda layer, x: F.linear(x, layer.weight.T), "weight", 8, 6),
    ]
    model = PipelineLayer(layers, loss_fn=nn.CrossEntropyLoss())
    for layer in model.shared_layers.values():
        layer.weight.set_value(E)
    optimizer = fleet.distributed_optimizer(adam(model))
    model = fleet.distributed_model(model)
    said["losses"] = [
        float(model.train_batch([paddle.to_tensor(x), paddle.to_tensor(y)], optimizer)) for x, y in zip(X, Y)
    ]
    return said


def run_plain():
    said = {}
    model = Plain()
    said["losses"] = train(model, adam(model), F.cross_entropy, slice(None))
    return said


kinds = ("collectives", "plain", "data", "sharded", "tensor", "pipeline")
said = {kind: globals()[f"run_{kind}"]() for kind in kinds}
with open(f"{sys.argv[1]}.{dist.get_rank()}.json", "w") as file:
    json.dump(said, file)
"""


Said = dict[str, dict]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    """What each of two processes has found, by the function of the program."""
    folder = tmp_path_factory.mktemp("processes")
    script = folder / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    launch = [sys.executable, "-m", "framework", "launch", "--nproc_per_node", "2", "--max_restart", "0"]
    command = [*launch, "--log_dir", str(folder / "log"), str(script), str(folder / "said")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [json.loads((folder / f"said.{rank}.json").read_text("utf-8")) for rank in range(2)]


def test_collectives(processes: list[Said]) -> None:
    first, second = (said["collectives"] for said in processes)
    assert first["sum"] == second["sum"] == [3, 2**41 + 1]
    assert first["any"] == [True, False] and first["gathered"] == second["gathered"] == [[0.0], [1.0]]
    assert first["objects"] == second["objects"] == [{"rank": 0}, {"rank": 1}]
    assert (first["scattered"], second["scattered"]) == ([1.0, 2.0], [3.0, 4.0])
    assert (first["all_to_all"], second["all_to_all"]) == ([0, 1, 10, 11], [2, 3, 12, 13])
    assert second["received"] == [7.0] and (first["group_rank"], second["group_rank"]) == (-1, 0)
    assert first["gradient"][0] == [[0.0, 0.0]] * 2 and second["gradient"][0] == [[1.0, 1.0]] * 2
    assert first["gradient"][1] == second["gradient"][1] == [[1.5, 1.5]] * 2  # (0 + 1 + 1 + 1) / 2


@pytest.mark.parametrize("kind", ["data", "sharded", "tensor", "pipeline"])
def test_two_processes_train_as_one(kind: str, processes: list[Said]) -> None:
    first, second = (said[kind] for said in processes)
    plain = processes[0]["plain"]["losses"]
    np.testing.assert_allclose(first["losses"], plain, rtol=2e-5)
    assert plain[-1] < plain[0]
    if kind == "sharded":  # each keeps the moments of its own share
        assert first["kept"] and second["kept"] and not set(first["kept"]) & set(second["kept"])
