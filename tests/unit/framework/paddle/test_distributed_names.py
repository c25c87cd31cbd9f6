"""Names of training in several processes that packages import, with the values of paddlepaddle 2.6.2."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ForeignNameError
from framework.paddle import distributed as dist
from framework.paddle.distributed import collective, point_to_point
from framework.paddle.distributed.auto_parallel.static import utils as specifications
from framework.paddle.distributed.checkpoint import metadata
from framework.paddle.distributed.checkpoint import utils as checkpoints
from framework.paddle.distributed.fleet.base import strategy_group, topology
from framework.paddle.distributed.fleet.base.orthogonal_strategy import OrthogonalStrategy
from framework.paddle.distributed.fleet.base.strategy_group import DPGroup, MPGroup, PPGroup
from framework.paddle.distributed.fleet.layers.mpu.mp_layers import InnerOverlapLinear, MPScale
from framework.paddle.distributed.fleet.meta_parallel.sharding.group_sharded_stage2 import GroupShardedStage2
from framework.paddle.distributed.fleet.utils import tensor_fusion_helper
from framework.paddle.distributed.utils import launch_utils
from framework.paddle.incubate.distributed.models.moe import ClipGradByGlobalNorm, grad_clip


@pytest.fixture
def eight_processes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Groups of eight processes, of which this is number 5; the groups that are made, in order."""
    made: list[list[int]] = []

    def new_group(ranks: list[int]) -> collective.Group:
        made.append(list(ranks))
        return collective.Group(0, len(made), ranks)

    for module in (strategy_group, sys.modules[OrthogonalStrategy.__module__]):
        monkeypatch.setattr(module, "get_rank", lambda: 5)
    monkeypatch.setattr(strategy_group, "new_group", new_group)
    monkeypatch.setattr(strategy_group, "is_initialized", lambda: True)
    monkeypatch.setattr(sys.modules[OrthogonalStrategy.__module__], "get_world_size", lambda: 8)
    return made


def test_messages_of_a_batch_are_taken_in_one_order_by_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, int]] = []

    def isend(tensor: object, dst: int, group: object = None) -> str:
        taken.append(("send", dst))
        return f"to {dst}"

    def irecv(tensor: object, src: int, group: object = None) -> str:
        taken.append(("receive", src))
        return f"from {src}"

    monkeypatch.setattr(point_to_point, "isend", isend)
    monkeypatch.setattr(point_to_point, "irecv", irecv)
    monkeypatch.setattr(point_to_point, "get_rank", lambda: 1)
    x = paddle.ones([2])
    batch = [
        dist.P2POp(isend, x, 2),  # type: ignore[arg-type]
        dist.P2POp(isend, x, 0),  # type: ignore[arg-type]
        dist.P2POp(irecv, x, 0),  # type: ignore[arg-type]
    ]
    assert dist.batch_isend_irecv(batch) == ["to 2", "to 0", "from 0"]
    assert taken == [("receive", 0), ("send", 0), ("send", 2)]
    with pytest.raises(RuntimeError, match="isend or"):
        dist.P2POp(max, x, 0)
    with pytest.raises(RuntimeError, match="a list of"):
        dist.batch_isend_irecv([])


def test_strategies_are_the_axes_of_a_grid(eight_processes: list[list[int]]) -> None:
    axes = [("dp", 2, DPGroup), ("mp", 2, MPGroup), ("pp", 2, PPGroup)]
    strategy = OrthogonalStrategy(axes, fused_strategy_dict={"check": ["mp", "pp"]})
    groups = {name: strategy.strategy_group(name) for name in ("dp", "mp", "pp")}
    assert groups["dp"]._list_of_ranks == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups["mp"]._list_of_ranks == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups["pp"]._list_of_ranks == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups["dp"].group.ranks == [1, 5] and groups["dp"].world_size == 2  # type: ignore[union-attr]
    assert strategy.fused_strategy_group("check")._list_of_ranks == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [strategy.rank_in_strategy(name) for name in groups] == [1, 0, 1]
    stages = groups["pp"]
    assert isinstance(stages, PPGroup) and (stages.rank_of_prev_stage, stages.rank_of_next_stage) == (4, 4)
    assert [group.ranks for group in stages.p2p_groups if group] == [[5, 4], [4, 5], [5, 4], [4, 5]]
    for wrong, message in (
        ({"list_of_strategy": [("dp", 2, DPGroup)]}, "8 ranks"),
        ({"list_of_strategy": [("dp", 8, DPGroup), ("dp", 1, MPGroup)]}, "one name"),
        ({"list_of_strategy": axes, "fused_strategy_dict": {"a": ["xp"]}}, "can be fused"),
    ):
        with pytest.raises(AssertionError, match=message):
            OrthogonalStrategy(**wrong)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="no strategy xp"):
        strategy.strategy_group("xp")


def test_a_stage_in_the_middle_has_two_neighbors(eight_processes: list[list[int]]) -> None:
    stages = PPGroup([[1, 3, 5, 7], [0, 2, 4, 6]])
    assert (stages.rank_of_prev_stage, stages.rank_of_next_stage) == (3, 7)
    assert [group.ranks for group in stages.p2p_groups if group] == [[5, 7], [3, 5], [5, 7], [3, 5]]
    stages.add_random_seed("stage", 3)
    assert stages.get_random_states_tracker().seeds_ == {3}
    with pytest.raises(AssertionError, match="several groups"):
        MPGroup([[5, 1], [5, 2]])


def test_parts_of_a_tensor_over_a_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["x", "y"])
    assert specifications.convert_to_dims_mapping(["x", None, "y"], mesh) == [0, -1, 1]
    assert specifications.convert_to_shard_spec([0, -1, 1], mesh) == ["x", None, "y"]
    assert specifications.convert_to_dims_mapping(["x"], dist.ProcessMesh([[0, 1]], ["x", "y"])) == [-1]
    assert checkpoints.get_coordinator([[0, 1], [2, 3]], 2) == [1, 0]
    assert checkpoints.get_coordinator([[0, 1]], 2) is None
    placed = checkpoints.compute_local_shape_and_global_offset([4, 6], mesh, [1, -1])
    assert placed == ((2, 6), (0, 0))
    with pytest.raises(AssertionError, match="does not divide"):
        checkpoints.compute_local_shape_and_global_offset([3, 6], mesh, [1, -1])
    parts = metadata.Metadata({"w": [metadata.LocalTensorMetadata((0,), (2,))]}, {})
    assert parts.state_dict_metadata == {"w": [metadata.LocalTensorMetadata((0,), (2,))]}
    assert checkpoints.flatten_state_dict({"a": 1}) == {"a": 1}
    for groups in (None, object()):  # before fleet.init, and after it
        monkeypatch.setattr(topology, "current_groups", lambda groups=groups: groups)
        assert topology._HYBRID_PARALLEL_GROUP is groups  # type: ignore[attr-defined]


def test_layers_of_one_process() -> None:
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    y = MPScale.apply(x, 4)
    y.sum().backward()
    assert y.tolist() == [[0.25, 0.5]] and x.grad.tolist() == [[1.0, 1.0]]
    weight = paddle.to_tensor([[1.0], [3.0]], stop_gradient=False)
    out = InnerOverlapLinear.apply(x, weight, None, False, True, False, False, collective.get_group(0))  # type: ignore[arg-type]
    out.backward()
    assert out.item() == 7 and weight.grad.tolist() == [[1.0], [2.0]]
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    assert GroupShardedStage2(layer, optimizer)(x).shape == [1, 1]  # type: ignore[arg-type]
    groups = tensor_fusion_helper.assign_group_by_size([paddle.ones([3]), paddle.ones([2])], 8)
    assert [len(one) for one in groups.values()] == [1, 1]
    assert tensor_fusion_helper.HOOK_ACTION.REDUCE_SCATTER == 2
    with pytest.raises(ForeignNameError, match="share memory"):
        tensor_fusion_helper.fused_parameters([])  # type: ignore[attr-defined]


def test_gradients_of_experts_are_clipped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ClipGradByGlobalNorm is grad_clip.ClipGradForMOEByGlobalNorm
    pairs = [(paddle.ones([1]), paddle.to_tensor([3.0])), (paddle.ones([1]), paddle.to_tensor([4.0]))]
    alone = [one.item() for _, one in ClipGradByGlobalNorm(1.0)(pairs) if one is not None]
    np.testing.assert_allclose(alone, [0.6, 0.8], rtol=1e-6)
    group = collective.Group(0, 3, [0, 1])
    with pytest.raises(AssertionError, match="is_expert_param_func"):
        ClipGradByGlobalNorm(1.0, moe_group=group)
    # The other process has an expert's gradient of the norm 12: all have 13 together.
    monkeypatch.setattr(grad_clip, "all_reduce", lambda total, group: total.set_value(total + 144.0))
    clip = ClipGradByGlobalNorm(1.0, lambda parameter: parameter is pairs[1][0], group)
    both = [one.item() for _, one in clip(pairs) if one is not None]
    np.testing.assert_allclose(both, [3 / 13, 4 / 13], rtol=1e-6)


def test_local_processes_are_started_watched_and_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "import os, sys\nprint('rank', os.environ['PADDLE_TRAINER_ID'], sys.argv[1])\n"
        "sys.exit(3 if sys.argv[1] == 'fail' and os.environ['PADDLE_TRAINER_ID'] == '1' else 0)\n",
        encoding="utf-8",
    )
    cluster, pod = launch_utils.get_cluster(["h"], "h", [["h:1", "h:2"]], [0, 1])
    started = launch_utils.start_local_trainers(cluster, pod, str(script), ["go"], str(tmp_path / "log"))
    while launch_utils.watch_local_trainers(started, 2):
        time.sleep(0.01)
    launch_utils.terminate_local_procs(started)
    launch_utils.pull_worker_log(started[0])
    assert "rank 0 go" in capsys.readouterr().out
    assert "rank 1 go" in (tmp_path / "log" / "workerlog.1").read_text(encoding="utf-8")
    failing = launch_utils.start_local_trainers(cluster, pod, str(script), ["fail"], str(tmp_path / "log2"))
    with pytest.raises(SystemExit):
        while launch_utils.watch_local_trainers(failing, 2):
            time.sleep(0.01)
