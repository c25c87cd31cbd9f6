"""What programs in Paddle's older style use: sequences of several lengths, descriptions of variables, pruned runs."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.interop.graph.paddle import OPERATORS
from framework.paddle import base
from framework.paddle._kernel.operators import run_operator


@pytest.fixture
def static():
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program()):
        yield
    paddle.disable_static()


def test_lod_tensors_hold_lengths_and_are_no_operands(static: None):
    tensor = base.create_lod_tensor([[1, 2], [3]], [[2, 1]], base.CPUPlace())
    assert tensor.lod() == [[0, 2, 3]] and tensor.recursive_sequence_lengths() == [[2, 1]]
    assert np.array(tensor).tolist() == [[1], [2], [3]]
    with pytest.raises(TypeError):
        paddle.nn.functional.relu(tensor)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="invalid"):
        base.create_lod_tensor(np.zeros([3, 1]), [[1, 1]], base.CPUPlace())


def test_a_run_that_prunes_needs_only_what_is_fetched(static: None):
    x, y = paddle.static.data("x", [2], "float32"), paddle.static.data("y", [2], "float32")
    x.desc.set_need_check_feed(False)  # type: ignore[attr-defined]
    double, _ = x * 2, y * 3
    (result,) = paddle.static.Executor().run(
        feed={"x": np.ones(2, "float32")}, fetch_list=[double], use_prune=True
    )
    assert result.tolist() == [2, 2]


def test_variables_of_dynamic_mode_are_refused_by_operations():
    with pytest.raises(AssertionError, match="enable_static"):
        paddle.static.data("x", [2, 3], "float32")
    paddle.enable_static()
    x = paddle.static.data("x", [2, 3], "float32")
    paddle.disable_static()
    with pytest.raises(TypeError, match="no values in dynamic mode"):
        paddle.nn.functional.relu(x)
    with pytest.raises(ValueError, match="enable_static"):
        paddle.tril(x)


def test_triangles_say_what_they_take():
    x = paddle.ones([3, 3])
    with pytest.raises(TypeError, match="diagonal in tril must be a python Int"):
        paddle.tril(x, "1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="x shape in triu must be at least 2-D"):
        paddle.triu(x[0])


def test_results_of_recorded_operations_take_the_name_that_is_asked_for(static: None):
    x = paddle.static.data("x", [2], "float32")
    y = paddle.add(x, x, name="total")
    assert y.name == "total.tmp_0"
    (result,) = paddle.static.Executor().run(feed={"x": np.ones(2, "float32")}, fetch_list=["total.tmp_0"])
    assert result.tolist() == [2, 2]


def test_shapes_may_be_a_list_with_tensors():
    shape = [paddle.to_tensor([2]), 3]
    assert paddle.uniform(shape).shape == [2, 3]  # type: ignore[arg-type]
    assert paddle.randint(0, 5, shape).shape == [2, 3]  # type: ignore[arg-type]


def test_axes_may_be_a_list_with_tensors():
    x = paddle.to_tensor(np.arange(24.0).reshape(2, 3, 4))
    axes = [0, paddle.to_tensor([1]), paddle.to_tensor([2])]
    assert paddle.min(x, axes).item() == 0  # type: ignore[arg-type]


def _run(
    op: str, attrs: dict[str, object] | None = None, outputs: int = 1, **arrays: np.ndarray
) -> list[list]:
    slots = {slot: [paddle.to_tensor(array)] for slot, array in arrays.items()}
    results = run_operator(op, slots, attrs or {}, {"Out": outputs})
    return [tensor.tolist() for tensor in results["Out"]]


def test_older_operators():
    x = np.array([[1.0, -2.0, 3.0]], "float32")
    assert _run("l1_norm", X=x) == [6]
    assert _run("partial_sum", {"start_index": -2, "length": 1}, X=x) == [[[-2]]]
    assert _run("minus", X=x, Y=x) == [[[0, 0, 0]]]
    assert _run("fake_quantize_abs_max", X=x) == [[[42, -85, 127]]]
    assert _run("iou_similarity", X=np.array([[0.0, 0, 2, 2]]), Y=np.array([[1.0, 1, 3, 3]]))[0][0][0] == (
        pytest.approx(1 / 7)
    )
    assert {"cross_entropy", "bpr_loss", "lrn", "batch_fc", "fsp", "cvm"} <= set(OPERATORS)


def test_operations_in_place_keep_the_shape():
    x = paddle.ones([3])
    with pytest.raises(ValueError, match=r"broadcasts to another shape"):
        x.add_(paddle.ones([2, 3]))
    assert x.add_(paddle.ones([1])).tolist() == [2, 2, 2]


def test_filling_passes_zeros_back():
    x = paddle.to_tensor([1.0, float("inf")], stop_gradient=False)
    y = x * 2
    y.fill_(1)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0]


def test_what_can_be_assigned():
    assert paddle.assign(np.ones(2)).dtype == paddle.float32  # as in Paddle
    with pytest.raises(TypeError, match="uint8"):
        paddle.assign(np.ones(2, np.uint8))
    with pytest.raises(TypeError, match="LoDTensor"):
        paddle.assign(base.create_lod_tensor(np.zeros([1, 1]), [[1]], base.CPUPlace()))


def test_layers_of_a_program_share_a_parameter_by_its_name(static: None):
    x, attr = paddle.static.data("x", [1, 2], "float32"), paddle.ParamAttr(name="shared")
    outputs = [paddle.static.nn.fc(x, 3, weight_attr=attr, bias_attr=False) for _ in range(2)]
    results = paddle.static.Executor().run(feed={"x": np.ones([1, 2], "float32")}, fetch_list=outputs)
    np.testing.assert_array_equal(results[0], results[1])
    with pytest.raises(ValueError, match="another shape is in the program"):
        paddle.static.nn.fc(x, 4, weight_attr=attr)


def test_axes_of_cumulative_sums():
    assert paddle.cumsum(paddle.to_tensor(2.0), 0).item() == 2
    assert paddle.cumsum(paddle.ones([2, 2]), paddle.to_tensor([1])).tolist() == [[1, 2], [1, 2]]  # type: ignore
