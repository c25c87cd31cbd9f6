"""Places, flags, limits, small helpers and the distributed world of one of framework.paddle."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import DeviceError, ShapeError

dist = paddle.distributed


def test_the_device_by_name() -> None:
    assert repr(paddle.CPUPlace()) == "Place(cpu)" and paddle.CPUPlace() == paddle.CPUPlace()
    assert repr(paddle.CUDAPlace(1)) == "Place(gpu:1)"
    kind = paddle.get_device()
    assert paddle.set_device(kind) == paddle.set_device("cpu" if kind == "cpu" else kind)
    assert kind in paddle.device.get_available_device()
    with pytest.raises(DeviceError, match="not there"):
        paddle.set_device("gpu:99")
    with pytest.raises(DeviceError):
        paddle.device.cuda.get_device_name(99)


def test_events_measure_time() -> None:
    start, end = (paddle.device.Event(enable_timing=True) for _ in range(2))
    start.record()
    with paddle.device.stream_guard(paddle.device.Stream()):
        end.record()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError):
        start.elapsed_time(paddle.device.Event())


def test_flags_are_kept_and_unknown_ones_refused() -> None:
    before = paddle.get_flags("FLAGS_eager_delete_tensor_gb")
    paddle.set_flags({"FLAGS_eager_delete_tensor_gb": 1.5})
    assert paddle.get_flags(["FLAGS_eager_delete_tensor_gb"]) == {"FLAGS_eager_delete_tensor_gb": 1.5}
    paddle.set_flags(before)
    for bad in ({"FLAGS_nope": 1}, {"FLAGS_call_stack_level": "high"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            paddle.set_flags(bad)
    with pytest.raises(TypeError):
        paddle.set_flags([("FLAGS_benchmark", True)])


def test_flags_by_their_names_in_core() -> None:
    flags = paddle.base.core.globals()
    before = flags["FLAGS_eager_delete_tensor_gb"]
    flags["FLAGS_eager_delete_tensor_gb"] = -1
    assert paddle.get_flags("FLAGS_eager_delete_tensor_gb") == {"FLAGS_eager_delete_tensor_gb": -1.0}
    flags["FLAGS_eager_delete_tensor_gb"] = before
    assert "FLAGS_apply_pass_to_program" in flags and flags.get("FLAGS_nope", -1) == -1
    assert flags["FLAGS_free_idle_chunk"] is False and not flags.is_public("FLAGS_free_idle_chunk")
    for name, value in (
        ("FLAGS_free_idle_chunk", True),
        ("FLAGS_nope", 1),
        ("FLAGS_call_stack_level", "high"),
    ):
        with pytest.raises(RuntimeError, match=name):
            flags[name] = value
    with pytest.raises(RuntimeError, match="FLAGS_nope"):
        flags["FLAGS_nope"]


def test_limits_of_types() -> None:
    assert repr(paddle.iinfo(paddle.uint8)) == "paddle.iinfo(min=0, max=255, bits=8, dtype=uint8)"
    half = paddle.finfo("bfloat16")
    assert (half.bits, half.eps, half.dtype) == (16, 0.0078125, "bfloat16")
    for call in (lambda: paddle.iinfo("float32"), lambda: paddle.finfo("int8")):
        with pytest.raises(ShapeError):
            call()


def test_nested_structures() -> None:
    utils, nest = paddle.utils, {"b": [1, (2, 3)], "a": 4}
    assert utils.flatten(nest) == [4, 1, 2, 3]
    assert utils.map_structure(lambda x, y: x + y, nest, nest) == {"b": [2, (4, 6)], "a": 8}
    assert utils.pack_sequence_as([1, [2, 3]], [4, 5, 6]) == [4, [5, 6]]
    with pytest.raises(ValueError, match="differ"):
        utils.assert_same_structure([1, [2]], [1, 2])
    with pytest.raises(ValueError, match="3 elements"):
        utils.pack_sequence_as([1, [2, 3]], [4])


def test_versions_and_deprecation() -> None:
    paddle.utils.require_version("2.0", "2.6.2")
    with pytest.raises(RuntimeError):
        paddle.utils.require_version("9.0")
    with pytest.raises(TypeError):
        paddle.utils.require_version(2.0)

    @paddle.utils.deprecated(update_to="paddle.new", level=1)
    def old() -> int:
        return 1

    with pytest.warns(DeprecationWarning, match=r"paddle\.new"):
        assert old() == 1
    with pytest.raises(ImportError, match="no_such_module"):
        paddle.utils.try_import("no_such_module")


def test_dlpack_goes_both_ways() -> None:
    x = paddle.to_tensor([[0.2, 0.3]])
    utils = paddle.utils.dlpack
    np.testing.assert_array_equal(utils.from_dlpack(utils.to_dlpack(x)).numpy(), x.numpy())
    np.testing.assert_array_equal(utils.from_dlpack(np.arange(3)).numpy(), [0, 1, 2])


def test_collectives_of_one_process() -> None:
    dist.init_parallel_env()
    x, gathered = paddle.to_tensor([1.0, 2.0]), []
    dist.all_reduce(x)
    dist.all_gather(gathered, x)
    target = paddle.Tensor(np.zeros(2, np.float32))
    dist.scatter(target, [x])
    np.testing.assert_array_equal(target.numpy(), gathered[0].numpy())
    assert (dist.get_rank(), dist.get_world_size(), dist.ParallelEnv().nranks) == (0, 1, 1)
    assert dist.all_reduce(x, sync_op=False).wait()
    with pytest.raises(DeviceError, match="no such other process"):
        dist.send(x, 1)
    with pytest.raises(ShapeError):
        dist.scatter(target, [x, x])


def test_data_parallel_is_its_layer() -> None:
    layer = paddle.nn.Linear(2, 2)
    model = dist.fleet.init(is_collective=True).distributed_model(layer)
    assert list(model.state_dict()) == ["weight", "bias"]
    with model.no_sync():
        model(paddle.Tensor(np.ones((1, 2), np.float32))).backward()
    assert layer.weight.grad is not None
    strategy = dist.fleet.DistributedStrategy()
    strategy.hybrid_configs = {"mp_degree": 2}
    assert strategy.hybrid_configs["pp_degree"] == 1
    with pytest.raises(DeviceError):
        dist.fleet.init(strategy=strategy)
    with pytest.raises(AttributeError):
        strategy.nonsense = 1


def test_tensors_are_sharded_over_a_mesh() -> None:
    mesh = dist.ProcessMesh([[0]], dim_names=["x", "y"])
    tensor = dist.shard_tensor(np.ones((4, 2), np.float32), mesh, [dist.Shard(1), dist.Replicate()])
    assert tuple(tensor._value.sharding.spec) == (None, "x")
    whole = dist.reshard(tensor, mesh, [dist.Replicate(), dist.Replicate()])
    np.testing.assert_array_equal(whole.numpy(), tensor.numpy())
    layer = dist.shard_layer(paddle.nn.Linear(2, 2), mesh)
    assert layer(whole).shape == [4, 2]
    with pytest.raises(DeviceError):
        dist.shard_tensor(whole, mesh, [dist.Partial()])
    with pytest.raises(DeviceError):
        dist.ProcessMesh([0, 999]).jax_mesh()


def test_names_that_toolkits_read_besides_the_public_ones() -> None:
    assert paddle.paddle is paddle
    assert repr(paddle.device._convert_to_place("cpu")) == "Place(cpu)"
    with pytest.raises(DeviceError, match="not there"):
        paddle.device._convert_to_place("gpu:99")
    assert paddle.to_tensor(1, dtype="uint16").element_size() == 2
    assert paddle.zeros([2], "uint16").dtype == paddle.bfloat16
