"""Names of layers in static programs, gradients that stop at variables, and Python functions of values: as
paddlepaddle 2.6.2 has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import TraceError
from framework.paddle import static
from framework.paddle.nn import functional as F
from framework.paddle.utils import unique_name

X = {"x": np.ones((2, 3), np.float32)}


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()), unique_name.guard():
        yield
    paddle.disable_static()


def parameter_names() -> list[str]:
    return [parameter.name for parameter in static.default_main_program().all_parameters()]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (None, ["conv2d_0.w_0", "conv2d_0.b_0", "conv2d_1.w_0", "conv2d_1.b_0", "fc_0.w_0", "fc_0.b_0"]),
        ("my", ["my.w_0", "my.b_0", "my.w_1", "my.b_1", "my.w_2", "my.b_2"]),
    ],
)
def test_parameters_are_called_after_their_layer(name: str | None, names: list[str]) -> None:
    image = static.data("image", [1, 3, 4, 4])
    hidden = static.nn.conv2d(static.nn.conv2d(image, 2, 3, name=name), 2, 2, name=name)
    out = static.nn.fc(hidden, 2, name=name)
    assert parameter_names() == names
    assert hidden.name.startswith("my.tmp_" if name else "conv2d_1.tmp_")
    assert out.name.startswith("my.tmp_" if name else "fc_0.tmp_")
    assert paddle.nn.Linear(2, 2).full_name() == "linear_0"


def test_gradients_stop_at_the_variables_of_no_grad_set() -> None:
    x = static.data("x", [2, 3])
    hidden = static.nn.fc(x, 4, bias_attr=False)
    loss = paddle.mean(static.nn.fc(hidden, 1, bias_attr=False)) + paddle.mean(hidden * hidden)
    pairs = static.append_backward(loss, no_grad_set={hidden.name})
    assert [parameter.name for parameter, _ in pairs] == ["fc_1.w_0"]
    y = static.data("y", [3])
    y.stop_gradient = False
    double = y * 2
    (gradient,) = static.gradients([(double * double * y).sum()], [y], no_grad_set={double})
    feed = {"y": np.array([1, 2, 3], np.float32), **X}
    assert static.Executor().run(feed=feed, fetch_list=[gradient])[0].tolist() == [4, 16, 36]


def test_python_functions_give_results_of_their_own_shapes() -> None:
    x = static.data("x", [2, 3])
    out = static.default_main_program().current_block().create_var("out", [3, 1], "int32")
    static.py_func(lambda value: np.array(value).astype(np.int32) + 1, x, out)
    assert static.Executor().run(feed=X, fetch_list=["out"])[0].tolist() == [[2] * 3] * 2


@pytest.mark.parametrize("skip", [False, True])
def test_python_functions_with_a_gradient(skip: bool) -> None:
    x = static.data("x", [2, 3])
    x.stop_gradient = False
    out = static.default_main_program().current_block().create_var("out", [2, 3], "float32")

    def backward(*values: object) -> np.ndarray:
        assert len(values) == (2 if skip else 3)
        result, gradient = values[-2:]
        return np.array(gradient) * (1 - np.square(result))

    static.py_func(lambda value: np.tanh(value), x, out, backward, x if skip else None)
    (gradient,) = static.gradients([out.sum()], [x])
    values = static.Executor().run(feed=X, fetch_list=[out, gradient])
    np.testing.assert_allclose(values[0], np.tanh(X["x"]), rtol=1e-6)
    np.testing.assert_allclose(values[1], 1 - np.tanh(X["x"]) ** 2, rtol=1e-5)


def test_programs_with_python_functions_are_not_saved(tmp_path: Path) -> None:
    x = static.data("x", [2, 3])
    out = static.default_main_program().current_block().create_var("out", [2, 3], "float32")
    static.py_func(np.tanh, x, out)
    with pytest.raises(TraceError, match="py_func needs values"):
        static.save_inference_model(str(tmp_path / "model"), [x], [out], static.Executor())


@pytest.mark.parametrize(
    ("padding", "stride", "dilation", "kernel"),
    [(0, 1, 1, [9, 10]), ([1, 2], 2, 1, [7, 10]), ([1, 1, 2, 2], 2, 2, [4, 5]), ("VALID", 2, 2, [3, 3])],
)
def test_a_transposed_convolution_finds_its_kernel(
    padding: Any, stride: int, dilation: int, kernel: list[int]
) -> None:
    """Sizes of Paddle 2.6.2."""
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [2, 3, 5, 5], "float32")
        out = static.nn.conv2d_transpose(x, 6, [13, 14], None, padding, stride, dilation)
        (weight, _) = static.default_main_program().all_parameters()
        assert list(weight.shape) == [3, 6, *kernel] and list(out.shape) == [2, 6, 13, 14]


def test_batch_and_channels_have_no_padding() -> None:
    """It was left out without a word."""
    paddle.disable_static()
    x, weight = paddle.ones([1, 2, 4, 4]), paddle.ones([2, 2, 3, 3])
    for padding in ([[1, 1], [0, 0], [1, 1], [1, 1]], [[0, 0], [0, 2], [1, 1], [1, 1]]):
        for function in (F.conv2d, F.conv2d_transpose):
            with pytest.raises(ValueError, match="padding is of spatial axes alone"):
                function(x, weight, padding=padding)
        with pytest.raises(ValueError, match="padding is of spatial axes alone"):
            F.max_pool2d(x, 2, padding=padding)
    assert F.conv2d(x, weight, padding=[[0, 0], [0, 0], [1, 1], [0, 2]]).shape == [1, 2, 4, 4]


def test_true_classes_are_told_from_sampled_ones() -> None:
    """The values of paddlepaddle 2.6.2 with a sampler that draws the class 3 alone."""
    x = np.random.RandomState(0).randn(6, 4).astype("float32")
    labels = np.array([[1, 4], [4, 2], [2, 2], [0, 1], [1, 0], [3, 3]], np.int64)
    rows, true = static.data("x", [None, 4]), static.data("y", [None, 2], "int64")
    constant = paddle.nn.initializer.Constant
    weight, bias = (paddle.ParamAttr(initializer=constant(value)) for value in (0.1, -0.2))
    cost = static.nn.nce(
        rows, true, 5, None, weight, bias, 3, sampler="custom_dist", custom_dist=[0, 0, 0, 1, 0]
    )
    paddle.optimizer.SGD(0.5).minimize(cost.mean())
    main = static.default_main_program()
    assert list(cost.shape) == [-1, 1]
    executor = static.Executor()
    found = executor.run(main, {"x": x, "y": labels}, [cost])[0]
    output = 1 / (1 + np.exp(-(0.1 * x.sum(1) - 0.2)))
    noise = np.where(labels == 3, 3.0, 0.0)
    loss = -np.log(output[:, None] / (output[:, None] + noise)).sum(1) - 3 * np.log(3 / (output + 3))
    np.testing.assert_allclose(found.ravel(), loss / 4, rtol=1e-5)
    moved = next(one for one in main.all_parameters() if one.name.endswith("b_0")).numpy().ravel()
    assert moved[3] < -0.2 and moved[0] == np.float32(-0.2)  # nothing tells the others from what is drawn
    for setting in ({"sampler": "x"}, {"sampler": "custom_dist"}):
        with pytest.raises(ValueError, match="custom_dist"):
            static.nn.nce(rows, true, 5, **setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("use", [True, False])
def test_counts_of_shows_and_clicks(use: bool) -> None:
    x = np.array([[3.0, 1.0, 0.5]], np.float32)
    rows, counts = static.data("x", [None, 3]), static.data("c", [None, 2])
    rows.stop_gradient = False
    out = static.nn.continuous_value_model(rows, counts, use)
    gradient = static.gradients([(out * out).sum()], [rows])
    executor = static.Executor()
    values = executor.run(
        static.default_main_program(), {"x": x, "c": np.array([[7.0, 9.0]], np.float32)}, [out, *gradient]
    )
    kept = [np.log(4), np.log(2) - np.log(4), 0.5] if use else [0.5]
    np.testing.assert_allclose(values[0], [kept], rtol=1e-6)
    np.testing.assert_allclose(values[1], [[7.0, 9.0, 1.0]], rtol=1e-6)
