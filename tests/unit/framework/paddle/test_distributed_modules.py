"""paddle.distributed by the modules in which Paddle keeps it, in one process, and names that raise at the call."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import DeviceError, ForeignNameError, ShapeError
from framework.paddle import distributed as dist
from framework.paddle.distributed import fleet, rpc
from framework.paddle.distributed.fleet.meta_parallel.parallel_layers import pp_layers


def imported(module: str):
    return importlib.import_module(f"framework.{module}")


def test_modules_hold_what_is_here_and_leave_objects_of_their_name() -> None:
    assert (
        imported("paddle.distributed.fleet.base.role_maker").PaddleCloudRoleMaker
        is fleet.PaddleCloudRoleMaker
    )
    assert imported("paddle.distributed.fleet.utils.fs").LocalFS is fleet.utils.LocalFS
    assert imported("paddle.distributed.collective")._c_identity is not None
    before = fleet.fleet
    assert imported("paddle.distributed.fleet.fleet").Fleet is type(before)
    assert fleet.fleet is before and callable(dist.spawn)
    assert getattr(dist, "io").is_persistable(  # noqa: B009
        paddle.nn.Linear(1, 1).weight
    )
    assert callable(paddle.static.nn.static_pylayer)  # a function, and a module of its name
    with pytest.raises(AttributeError, match="not here yet"):
        _ = imported("paddle.distributed.elastic").nothing_of_the_kind


@pytest.mark.parametrize(
    "module, name",
    [
        ("paddle.static.quantization", "QuantizationTransformPass"),
        ("paddle.framework", "IrGraph"),
        ("paddle.utils.cpp_extension", "BuildExtension"),
        ("paddle.distributed.ps.coordinator", "FLClient"),
    ],
)
def test_what_cannot_be_here_raises_when_it_is_called(module: str, name: str) -> None:
    refused = getattr(imported(module), name)
    assert isinstance(refused, type) and not isinstance(paddle.ones([1]), refused)
    derived = type("Derived", (refused,), {})
    for one in (refused, derived):
        with pytest.raises(ForeignNameError, match="no counterpart"):
            one(1)


def test_sequence_parallel_layers_of_one_process_are_linear() -> None:
    utils = imported("paddle.distributed.fleet.utils.sequence_parallel_utils")
    fleet.init(is_collective=True)
    columns = utils.ColumnSequenceParallelLinear(4, 6, has_bias=True, gather_output=False)
    rows = utils.RowSequenceParallelLinear(6, 4, input_is_parallel=True)
    x = paddle.randn([3, 2, 4])
    x.stop_gradient = False
    y = utils.GatherOp.apply(utils.ScatterOp.apply(rows(columns(x))))
    expected = (x @ columns.weight + columns.bias) @ rows.weight + rows.bias
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)
    utils.ReduceScatterOp.apply(utils.AllGatherOp.apply(y)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[0, 0], (columns.weight @ rows.weight).sum(1).numpy(), rtol=1e-5)
    utils.mark_as_sequence_parallel_parameter(rows.bias)
    assert utils.is_sequence_parallel_parameter(rows.bias)
    with pytest.raises(AssertionError, match="gather_output"):
        utils.ColumnSequenceParallelLinear(4, 6)
    with pytest.raises(DeviceError, match="fuse_matmul_bias"):
        utils.RowSequenceParallelLinear(6, 4, input_is_parallel=True, fuse_matmul_bias=True)


def test_streams_take_whole_tensors() -> None:
    stream = getattr(dist, "stream")  # noqa: B009
    x, out = paddle.arange(4.0).reshape([2, 2]), paddle.zeros([2, 2])
    stream.all_gather(out, x).wait()
    np.testing.assert_array_equal(out.numpy(), x.numpy())
    parts: list = []
    stream.all_gather(parts, x)
    assert len(parts) == 1
    for call in (stream.reduce_scatter, stream.scatter):
        target = paddle.zeros([2, 2])
        call(target, x)
        np.testing.assert_array_equal(target.numpy(), x.numpy())
    received = paddle.zeros([2, 2])
    stream.alltoall(received, x)
    stream.alltoall_single(received, x)
    np.testing.assert_array_equal(received.numpy(), x.numpy())
    with pytest.raises(DeviceError, match="no such other process"):
        stream.send(x, 0)


def test_numbers_of_reductions() -> None:
    number = imported("paddle.distributed.communication.reduce")._get_reduce_op
    assert number(dist.ReduceOp.MAX, "allreduce") == dist.ReduceOp.MAX
    with pytest.raises(ValueError, match="unknown reduction"):
        number(9, "allreduce")


def test_rpc_of_one_worker() -> None:
    with pytest.raises(RuntimeError, match="init_rpc"):
        rpc.get_current_worker_info()
    with pytest.raises(DeviceError, match="calls between processes"):
        rpc.init_rpc("w", rank=0, world_size=2)
    rpc.init_rpc("w", rank=0, world_size=1, master_endpoint="127.0.0.1:8765")
    try:
        values = [1]
        assert rpc.rpc_sync("w", values.append, args=(2,)) is None and values == [1, 2]
        future = rpc.rpc_async("w", lambda a, b: a + b, args=(2,), kwargs={"b": 3})
        assert future.wait() == 5 and [one.name for one in rpc.get_all_worker_infos()] == ["w"]
        with pytest.raises(ZeroDivisionError):
            rpc.rpc_sync("w", lambda: 1 / 0)
        with pytest.raises(TimeoutError):
            rpc.rpc_sync("w", time.sleep, args=(0.2,), timeout=0.01)
        with pytest.raises(RuntimeError, match="no worker 'v'"):
            rpc.rpc_sync("v", print)
    finally:
        rpc.shutdown()


def test_annotations_of_a_program_place_its_tensors() -> None:
    auto = getattr(fleet, "auto")  # noqa: B009
    mesh = auto.create_mesh([("dp", 1), ("mp", 2)])
    assert auto.get_mesh() is mesh and mesh.shape == [1, 2]
    x = auto.shard_tensor(paddle.ones([4, 6]), mesh, [None, "mp"])
    assert tuple(x._value.sharding.spec) == (None, "mp")
    y = auto.shard_op(paddle.add, mesh, out_shard_specs=[["mp", None]])(x, x)
    assert next(iter(y._value.sharding.spec)) == "mp" and float(y.sum()) == 48
    z = paddle.ones([2])
    z.stop_gradient = False
    auto.recompute(paddle.exp)(z).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), np.exp([1, 1]), rtol=1e-6)
    with pytest.raises(ValueError, match="names an axis"):
        auto.shard_tensor(x, mesh, ["nothing", None])
    strategy = auto.Strategy({"sharding": {"enable": True, "stage": 2}, "seed": 3})
    assert strategy.sharding.enable and strategy.sharding.degree == 8 and strategy.to_dict()["seed"] == 3
    with pytest.raises(ValueError, match="Expected a dictionary"):
        auto.Strategy("a.yaml")


def test_main_gradients_are_added_up_in_float32() -> None:
    utils = imported("paddle.distributed.fleet.utils.mix_precision_utils")
    layer: Any = paddle.nn.Linear(2, 1, bias_attr=False).astype("bfloat16")
    model = utils.MixPrecisionLayer(layer, "bfloat16")
    inner = paddle.optimizer.SGD(0.5, parameters=model.parameters(), multi_precision=True)
    optimizer = utils.MixPrecisionOptimizer(inner)
    start = layer.weight.astype("float32").numpy()
    for _ in range(2):
        model(paddle.to_tensor([[1.0, 2.0]], "bfloat16")).sum().backward()
    assert layer.weight.grad is None
    np.testing.assert_array_equal(layer.weight.main_grad.numpy(), [[2], [4]])
    optimizer.step()
    np.testing.assert_allclose(layer.weight.astype("float32").numpy(), start - [[1], [2]], atol=0.02)
    optimizer.clear_grad()
    assert not layer.weight.main_grad.numpy().any()
    optimizer.clear_grad(set_to_zero=False)
    assert getattr(layer.weight, "main_grad", 0) is None
    scaler = utils.MixPrecisionScaler(paddle.amp.GradScaler(init_loss_scaling=4.0))
    scaled = scaler.scale(model(paddle.to_tensor([[1.0, 2.0]], "bfloat16")).sum())
    scaled.backward()
    scaler.unscale_(optimizer)
    expected = [[1], [2]] if scaler.is_enable() else layer.weight.main_grad.numpy()
    np.testing.assert_array_equal(layer.weight.main_grad.numpy(), expected)


def test_sharding_optimizers_update_their_share() -> None:
    from framework.paddle.distributed.fleet.meta_optimizers import dygraph_optimizer
    from framework.paddle.distributed.fleet.meta_parallel.sharding import (
        group_sharded_optimizer_stage2 as stage2,
    )

    fleet.init(is_collective=True)
    groups = fleet.get_hybrid_communicate_group()
    for make in (
        lambda one: dygraph_optimizer.DygraphShardingOptimizer(one, groups),
        lambda one: dygraph_optimizer.DygraphShardingOptimizerV2(one, groups),
        lambda one: dygraph_optimizer.HybridParallelOptimizer(one, groups, None),
        lambda one: stage2.GroupShardedOptimizerStage2(one._all_parameters(), one),
    ):
        layer = paddle.nn.Linear(2, 1)
        before = layer.weight.numpy()
        optimizer = make(paddle.optimizer.SGD(0.5, parameters=layer.parameters()))
        layer(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        np.testing.assert_allclose(layer.weight.numpy(), before - 0.5, rtol=1e-6)


def test_helpers() -> None:
    launch = imported("paddle.distributed.utils.launch_utils")
    assert len(launch.find_free_ports(3)) == 3
    cluster, pod = launch.get_cluster(["a", "b"], "b", [["a:1", "a:2"], ["b:1", "b:2"]], [0, 1])
    assert cluster.trainers_endpoints() == ["a:1", "a:2", "b:1", "b:2"] and pod.trainers[1].rank == 3
    with pytest.raises(AssertionError, match="endpoints size"):
        launch.get_cluster(["a"], "a", [["a:1"]], [0, 1])
    timers = imported("paddle.distributed.fleet.utils.timer_helper")
    with pytest.raises(AssertionError, match="not initialized"):
        timers.get_timers()
    timers.set_timers()
    timer = timers.get_timers()("step")
    timer.start()
    timer.stop()
    assert timer.elapsed() >= 0 and timer.elapsed_ == 0
    log = imported("paddle.distributed.fleet.utils.log_util")
    assert log.layer_to_str("Linear", 3, bias=True) == "Linear(3, bias=True)" and not log.logger.propagate


def test_rows_of_a_table_that_is_divided() -> None:
    lookup = imported("paddle.distributed.collective")._c_lookup_table
    table = paddle.to_tensor([[1.0], [2.0]])
    rows = lookup(table, paddle.to_tensor([0, 5, 6, 7]), 5)
    np.testing.assert_array_equal(rows.numpy(), [[0], [1], [2], [0]])


@pytest.mark.parametrize(
    ("names", "stages", "method", "expected"),
    [
        ("EBNBNBBN", 2, "layer:Linear", [0, 4, 8]),  # a stage ends with the last layer that is counted
        ("EBNBNBBN", 4, "layer:linear", [0, 2, 4, 6, 8]),
        ("EBBBN", 3, "uniform", [0, 1, 3, 5]),
        ("BBBBBBB", 4, "uniform", [0, 1, 3, 5, 7]),
        ("BBBBBBB", 3, [0, 1, 4], [0, 1, 4, 7]),
        ("BBBBBBB", 2, [0, 3, 7], [0, 3, 7]),
    ],
)
def test_pipelines_are_cut_where_paddle_cuts_them(
    names: str, stages: int, method: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are those of Paddle 2.6.2."""
    parallel = imported("paddle.distributed.fleet.meta_parallel")
    monkeypatch.setattr(pp_layers, "current_groups", lambda: None)  # as before fleet.init
    kinds = {"E": paddle.nn.Embedding, "B": paddle.nn.Linear, "N": paddle.nn.LayerNorm}
    layers = [parallel.LayerDesc(kinds[name], *([2] if name == "N" else [2, 2])) for name in names]
    assert parallel.PipelineLayer(layers, num_stages=stages, seg_method=method).segment_parts == expected
    for wrong in ([0] * (stages + 2), [1] * stages, [0] + [9] * (stages - 1)):
        with pytest.raises(ShapeError, match="layers that stages begin with"):
            parallel.PipelineLayer(layers, num_stages=stages, seg_method=wrong)


def test_parameters_that_are_marked_stay_each_processes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parallel, gradients = imported("paddle.distributed.parallel"), imported("paddle.distributed.gradients")
    sent: list[tuple[Any, int]] = []
    monkeypatch.setattr(gradients, "broadcast", lambda tensor, source, group: sent.append((tensor, source)))
    monkeypatch.setattr(gradients.collectives, "all_reduce", lambda joined, kind, ranks: joined * 0)
    for module in (parallel, imported("paddle.distributed.collective")):
        monkeypatch.setattr(module, "get_world_size", lambda group=None: 2)
    layer: Any = paddle.nn.Linear(2, 2)
    layer.weight.no_sync = True
    parallel.sync_params_buffers(layer, src_rank=1)
    assert [(id(tensor), source) for tensor, source in sent] == [(id(layer.bias), 1)]
    layer.bias.is_distributed = True
    parallel.sync_params_buffers(layer, is_model_parallel=True)
    assert len(sent) == 1
    model: Any = parallel.DataParallel(layer)
    model(paddle.ones([1, 2])).sum().backward()
    assert layer.weight.grad.numpy().all() and not layer.bias.grad.numpy().any()
