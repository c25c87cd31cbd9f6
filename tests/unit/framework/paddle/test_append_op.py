"""`Block.append_op`: operators by their names in static programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle import inference, static
from framework.paddle.ops.indexing import setitem


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def test_operators_compute_declared_variables() -> None:
    block = static.default_main_program().global_block()
    x = static.data("x", [-1, 3])
    weight = block.create_parameter(
        [3, 2], "float32", "mul_weight", initializer=paddle.nn.initializer.Constant(2.0)
    )
    assert weight is not None
    product = block.create_var("product")
    block.append_op("mul", {"X": [x], "Y": [weight]}, {"Out": product}, {"x_num_col_dims": 1})
    half = block.create_var("half", dtype="float32")
    op = block.append_op("scale", {"X": "product"}, {"Out": half}, {"scale": 0.5})
    assert product.shape == (-1, 2) and half.shape == (-1, 2)
    assert op.input("X") == ["product"] and op.attr("scale") == 0.5 and op.output_names == ["Out"]
    (pair,) = static.append_backward(half.mean())
    values, gradient = static.Executor().run(
        feed={"x": np.ones((4, 3), np.float32)}, fetch_list=[half, pair[1]]
    )
    np.testing.assert_array_equal(values, np.full((4, 2), 3.0))
    np.testing.assert_array_equal(gradient, np.full((3, 2), 0.25))


def test_a_setting_given_by_a_tensor_is_read() -> None:
    block = static.default_main_program().global_block()
    x, limits = static.data("x", [2, 3, 3]), static.data("limits", [2])
    ranks = block.create_var("ranks", dtype="int64")
    block.append_op("matrix_rank", {"X": x, "TolTensor": limits}, {"Out": ranks}, {"use_default_tol": False})
    feed = {"x": np.stack([np.diag(np.float32([3, 2, 1]))] * 2), "limits": np.float32([0.5, 2.5])}
    assert static.Executor().run(feed=feed, fetch_list=[ranks])[0].tolist() == [3, 1]


def test_layer_helper_records_an_operator() -> None:
    from framework.paddle.base.layer_helper import LayerHelper

    helper = LayerHelper("relu")
    x = static.data("x", [2], "float64")
    out = helper.create_variable_for_type_inference("float64")
    helper.append_op(type="relu", inputs={"X": x}, outputs={"Out": out})
    assert out.shape == (2,)
    values = static.Executor().run(feed={"x": np.array([-1.0, 2.0])}, fetch_list=[out])[0]
    assert values.tolist() == [0.0, 2.0] and values.dtype == np.float64


def test_a_persistent_tensor_gets_the_result() -> None:
    block = static.default_main_program().global_block()
    count = static.create_global_var([1], 1.0, "float32", persistable=True)
    block.append_op("increment", {"X": count}, {"Out": count}, {"step": 2.0})
    for _ in range(2):
        static.Executor().run(fetch_list=[])
    assert count.numpy().tolist() == [5.0]


def test_errors_are_paddles() -> None:
    block = static.default_main_program().global_block()
    with pytest.raises(ValueError, match="`type` to initialized an Operator can not be None"):
        block.append_op()
    with pytest.raises(ValueError, match='Operator "no_such_op" has not been registered'):
        block.append_op(type="no_such_op")


def test_gradients_of_any_variable_are_there_by_name_and_bounds_of_slices_may_be_variables():
    x = static.data("x", [2, 3], "float32")
    x.stop_gradient = False
    y = x * x
    first, last = paddle.full([], 0, "int32"), paddle.full([], 1, "int32")
    z = setitem(y, (0, slice(first, last)), 0.0)
    static.append_backward(z.sum())
    block = static.default_main_program().global_block()
    fetches = [block.var(f"{y.name}@GRAD"), "x@GRAD", z]
    results = static.Executor().run(feed={"x": np.ones([2, 3], "float32")}, fetch_list=fetches)
    assert results[0].tolist() == [[0, 1, 1], [1, 1, 1]] and results[1].tolist() == [[0, 2, 2], [2, 2, 2]]
    assert results[2].tolist() == [[0, 1, 1], [1, 1, 1]]
    with pytest.raises(ValueError, match="not in this block"):
        block.var("nothing@GRAD")


def test_results_have_the_name_that_the_caller_gives():
    results = paddle.linspace(0, 1, 5, name="line"), paddle.logspace(0, 1, 5, name="log")
    assert [result.name for result in results] == ["line.tmp_0", "log.tmp_0"]


def test_an_exported_program_may_hold_64_bit_constants(tmp_path: Path):
    x = static.data("x", [2, 3, 4], "float32")
    out = paddle.sum(paddle.nn.Linear(4, 5)(x), paddle.assign(np.array([1, 2])))
    executor = static.Executor()
    executor.run(static.default_startup_program())
    array = np.ones([2, 3, 4], "float32")
    expected = executor.run(feed={"x": array}, fetch_list=[out])[0]
    static.save_inference_model(str(tmp_path / "model"), [x], [out], executor)
    config = inference.Config(str(tmp_path / "model.pdmodel"), str(tmp_path / "model.pdiparams"))
    predictor = inference.create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(array)
    predictor.run()
    result = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_suppression_of_boxes_has_the_rows_that_stay() -> None:
    """paddlepaddle 2.6.2: shapes (-1, 6) and (-1,) in the program; PaddleDetection appends it so to export."""
    boxes, scores = static.data("boxes", [1, 3, 4]), static.data("scores", [1, 2, 3])
    block = static.default_main_program().global_block()
    rows, index, count = (block.create_var(name, dtype="int32") for name in ("rows", "index", "count"))
    settings = {"score_threshold": 0.3, "nms_top_k": 3, "keep_top_k": 5, "nms_threshold": 0.5}
    block.append_op(
        "multiclass_nms3",
        {"BBoxes": boxes, "Scores": scores},
        {"Out": rows, "Index": index, "NmsRoisNum": count},
        {**settings, "background_label": -1, "normalized": True, "nms_eta": 1.0},
    )
    assert rows.shape == (-1, 6) and index.shape == (-1, 1) and count.shape == (-1,)
    corners = np.array([[[0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]]], np.float32)
    values = np.array([[[0.9, 0.8, 0.1], [0.2, 0.1, 0.7]]], np.float32)
    results = static.Executor().run(
        feed={"boxes": corners, "scores": values}, fetch_list=[rows, index, count]
    )
    np.testing.assert_allclose(results[0], [[0, 0.9, 0, 0, 2, 2], [1, 0.7, 5, 5, 6, 6]])
    assert results[1].tolist() == [[0], [2]] and results[2].tolist() == [2]


def test_prune_leaves_what_the_targets_come_from() -> None:
    used, unused = static.data("used", [2]), static.data("unused", [2])
    result = used * 2
    paddle.add(unused, used)
    program = static.default_main_program().clone()._prune(targets=[result])
    assert len(program.ops) == 1 and len(static.default_main_program().ops) == 2
    assert program.global_block().has_var("used") and not program.global_block().has_var("unused")
    feed = {"used": np.ones(2, np.float32)}
    assert static.Executor().run(program, feed, [result])[0].tolist() == [2, 2]


def test_layer_helper_runs_an_operator_at_once_in_dynamic_mode() -> None:
    paddle.disable_static()
    layer = paddle.nn.Linear(2, 3)
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    product = layer._helper.create_variable_for_type_inference("float32")
    slots = {"X": x, "Y": layer.weight}
    layer._helper.append_op(type="mul", inputs=slots, outputs={"Out": product}, attrs={"x_num_col_dims": 1})
    np.testing.assert_allclose(product.numpy(), x.numpy() @ layer.weight.numpy(), rtol=1e-6)
    product.sum().backward()
    assert x.grad is not None and layer.weight.grad.tolist() == [[1, 1, 1], [2, 2, 2]]
    x.clear_grad()
    assert x.grad is not None and not x.grad.stop_gradient  # zeros
    with pytest.raises(ValueError, match="operands are Tensors"):
        layer._helper.append_op(type="relu", inputs={"X": "x"}, outputs={"Out": product})
    paddle.enable_static()
    assert static.data("y", [2]).cpu().cuda().shape == (2,)
