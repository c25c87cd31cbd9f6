"""Gradients where Paddle has them and jax alone has not: of integers, variables of programs, traced functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from framework import paddle

F = paddle.nn.functional
PROBABILITIES = [[0.2, 0.8], [0.6, 0.4]]
LOSSES = {
    "cross_entropy": lambda x, y: F.cross_entropy(x, y, soft_label=True),
    "smoothed": lambda x, y: F.cross_entropy(x, y, soft_label=True, label_smoothing=0.1),
    "of probabilities": lambda x, y: F.cross_entropy(x, y, soft_label=True, use_softmax=False),
    "softmax_with_cross_entropy": lambda x, y: F.softmax_with_cross_entropy(x, y, soft_label=True).sum(),
    "kl_div": F.kl_div,
    "binary_cross_entropy": F.binary_cross_entropy,
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
    "log_loss": lambda x, y: F.log_loss(x[:, :1], y[:, :1]).sum(),
    "nll_loss": lambda x, w: F.nll_loss(x, paddle.to_tensor([0, 1]), w[0]),
}


@pytest.fixture
def static():
    paddle.enable_static()
    yield
    paddle.disable_static()


def test_integers_have_integer_gradients():
    x = paddle.to_tensor([1, 2, 3], dtype="int32", stop_gradient=False)
    y = x * 2
    y.retain_grads()
    (y**2).sum().backward()
    assert y.grad.dtype == x.grad.dtype == paddle.int32
    assert y.grad.tolist() == [4, 8, 12] and x.grad.tolist() == [8, 16, 24]
    fraction = paddle.grad((x.astype("float32") * 2.5).sum(), x)[0]
    assert fraction is not None and fraction.tolist() == [2, 2, 2]
    assert (x > 1).stop_gradient and paddle.argmax(x).stop_gradient


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_no_gradient_comes_to_the_labels(loss: Callable[..., paddle.Tensor]) -> None:
    """Paddle 2.6.2 answers None for each: in mutual learning the other network is a constant."""
    x = paddle.to_tensor([[0.3, 0.7], [0.9, 0.1]], stop_gradient=False)
    y = paddle.to_tensor(PROBABILITIES, stop_gradient=False)
    loss(x, y).backward()
    assert x.grad.abs().sum().item() > 0.1
    assert y.grad is None or y.grad.abs().sum().item() == 0


def test_no_gradient_comes_through_the_probabilities_of_a_cross_entropy() -> None:
    x = paddle.to_tensor([[0.2, 0.7]], stop_gradient=False)
    loss, probabilities = F.softmax_with_cross_entropy(x, paddle.to_tensor([[1]]), return_softmax=True)
    (loss.sum() + 5 * probabilities[0, 0]).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.37754, -0.37754]], atol=1e-5)  # of Paddle 2.6.2


def test_each_of_equal_extremes_gets_the_gradient_of_an_infinite_norm() -> None:
    x = paddle.to_tensor([1.0, -3.0, 2.0, 3.0, -1.0], stop_gradient=False)
    for p, value, gradient in ((np.inf, 3, [0, -1, 0, 1, 0]), (-np.inf, 1, [1, 0, 0, 0, -1])):
        x.clear_grad()
        norm = paddle.norm(x, p)
        norm.backward()
        assert norm.item() == value and x.grad.tolist() == gradient  # of Paddle 2.6.2
    rows = paddle.to_tensor([[1.0, np.inf], [np.nan, 2.0]])
    assert paddle.norm(rows, np.inf, axis=0, keepdim=True).isnan().tolist() == [[True, False]]
    assert paddle.norm(rows, np.inf, axis=1)[0].item() == np.inf


@pytest.mark.parametrize(
    ("calls", "kept"), [("r2", 4), ("2r", 8), ("2r3", 8), ("r23", 4), ("23r", 24), ("r2r", 4)]
)
def test_a_kept_gradient_is_that_of_its_place_among_the_hooks(calls: str, kept: float) -> None:
    x = paddle.to_tensor([1.0], stop_gradient=False)
    w = x + 1
    for call in calls:
        if call == "r":
            w.retain_grads()
        else:
            w.register_hook(lambda gradient, factor=float(call): gradient * factor)
    (w * w).sum().backward()
    whole = 4 * np.prod([float(call) for call in calls if call != "r"])
    assert w.grad.tolist() == [kept] and x.grad.tolist() == [whole]  # of Paddle 2.6.2


def test_a_median_of_nothing_has_no_gradient() -> None:
    x = paddle.to_tensor([[np.nan, np.nan], [np.nan, 2.0]], stop_gradient=False)
    paddle.nanmedian(x, axis=1).sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 1]]


def test_weights_of_classes_get_gradients_from_cross_entropy() -> None:
    x, weight = paddle.to_tensor([[0.2, 0.7], [0.5, 0.6]]), paddle.to_tensor([0.3, 0.7], stop_gradient=False)
    F.cross_entropy(x, paddle.to_tensor([0, 1]), weight).backward()
    np.testing.assert_allclose(weight.grad.numpy(), [0.23078, -0.0989], atol=1e-5)  # of Paddle 2.6.2


def test_gradients_do_not_pass_numbers_that_are_put_in():
    x = paddle.ones([2, 2])
    x.stop_gradient = False
    y = x * 0.5
    y.retain_grads()
    y.normal_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == x.grad.tolist() == [[0, 0], [0, 0]]


def test_the_gradient_of_any_variable_has_a_name(static: None):
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [2, 3], "float32")
        x.stop_gradient = False
        y = x * 2
        loss = (y * y).sum()
        paddle.static.append_backward(loss)
        names = [name + "@GRAD" for name in (x.name, y.name, loss.name)]
        found = paddle.static.Executor().run(feed={"x": np.ones([2, 3], "float32")}, fetch_list=names)
        block = program.global_block()
        assert block.has_var(names[0]) and block.var(names[1]).shape == (2, 3) and not block.has_var("z@GRAD")
        with pytest.raises(TypeError, match="fetch_list"):
            paddle.static.Executor().run(fetch_list=[23])  # type: ignore[list-item]
    assert [float(np.mean(value)) for value in found] == [8, 4, 1]


def test_gradients_of_a_traced_function_have_a_history():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)

    @paddle.jit.to_static
    def second(x):
        cube = x**3
        (first,) = paddle.grad(cube, x)
        assert first is not None
        (again,) = paddle.grad(first, x)
        (other,) = paddle.grad(cube.sum(), x)
        return again, other

    again, other = second(x)
    again.sum().backward()
    assert again.tolist() == [6, 12] and other.tolist() == [3, 12] and x.grad.tolist() == [6, 6]


def test_parameters_of_programs_have_tuples_as_shapes(static: None):
    with paddle.static.program_guard(paddle.static.Program()):
        weight = paddle.create_parameter([2, 3], "float32")
        assert weight.shape == (2, 3) and isinstance(weight, paddle.static.Variable)
    paddle.disable_static()
    assert weight.shape == [2, 3]


def test_leaves_are_not_changed_in_place():
    def leaf() -> paddle.Tensor:
        return paddle.to_tensor([1.0, 2.0], stop_gradient=False)

    for change in ("exp_", "zero_", "normal_"):
        with pytest.raises(ValueError, match="leaf"):
            getattr(leaf(), change)()
    assert paddle.increment(leaf()[:1]).tolist() == [2]
    assert leaf().exponential_().stop_gradient is False
    matrix = paddle.ones([2, 2])
    assert paddle.addmm_(matrix, x=paddle.ones([2, 2]), y=paddle.ones([2, 2])) is matrix


def test_a_gradient_does_not_use_values_that_were_replaced():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x**2
    z = y**2
    y.exp_()
    with pytest.raises(RuntimeError, match="received tensor_version:1 != wrapper_version_snapshot:0"):
        z.sum().backward()
    y = x * 2
    y.multiply_(y)  # an operation's own change does not count
    (y + y.exp_()).sum().backward()


def test_backward_without_a_history_does_nothing():
    x = paddle.ones([2])
    x.sum().backward()
    assert x.grad is None
    with pytest.raises(AssertionError, match="another shape"):
        (paddle.to_tensor([1.0], stop_gradient=False) * 2).backward(paddle.ones([3]))


class _Several(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2, 5, None, "text", y * 3

    @staticmethod
    def backward(ctx, *gradients):
        assert len(gradients) == 2
        return gradients[0] * 2, gradients[1] * 3


class _OfAList(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, parts):
        return paddle.concat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return paddle.split(gradient, 2)


class _Nothing(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return None

    @staticmethod
    def backward(ctx, gradient):
        return 1


def test_layers_of_python_get_gradients_of_tensors_alone():
    x, y = (paddle.to_tensor([1.0], stop_gradient=False) for _ in range(2))
    first, number, nothing, text, last = _Several.apply(x, y)
    assert (number, nothing, text) == (5, None, "text")
    (first + last).sum().backward()
    assert x.grad.tolist() == [2] and y.grad.tolist() == [3]  # type: ignore[union-attr]
    (_OfAList.apply([x, y]) * paddle.to_tensor([4.0, 5.0])).sum().backward()
    assert x.grad.tolist() == [6] and y.grad.tolist() == [8]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="returns a Tensor"):
        _Nothing.apply(x)


def test_a_leaf_calls_what_waits_for_its_gradient():
    x = paddle.to_tensor([2.0], stop_gradient=False)
    y = x * x
    gradients = []
    x._register_backward_hook(lambda: gradients.append(x.grad.item()))
    paddle.base.core.eager._add_backward_final_hook(lambda: gradients.append("end"))
    paddle.grad(x * x, [x])
    y.backward()
    (x * x).backward()
    assert gradients == [4, "end", 8]
    for other in (y, paddle.ones([1])):
        with pytest.raises(ValueError, match="no leaf that gets a gradient"):
            other._register_backward_hook(print)
    x.grad.stop_gradient = True
    x.grad.scale_(0.5)
    versions = [x.grad._inplace_version()]
    for reset in (False, True):
        x._reset_grad_inplace_version(reset)
        versions.append(x.grad._inplace_version())
    assert versions == [1, 1, 0]


def test_weights_of_depthwise_convolutions_have_gradients_of_float64():
    rng = np.random.default_rng(0)
    x, gradient = rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((2, 3, 4, 3))
    weight = paddle.to_tensor(rng.standard_normal((3, 1, 3, 3)), stop_gradient=False)
    y = paddle.nn.functional.conv2d(paddle.to_tensor(x), weight, groups=3)
    y.backward(paddle.to_tensor(gradient))
    windows = np.lib.stride_tricks.sliding_window_view(x, (4, 3), (2, 3))
    expected = (windows * gradient[:, :, None, None]).sum((0, 4, 5))
    np.testing.assert_allclose(weight.grad.numpy()[:, 0], expected, rtol=1e-12)


class _Whole(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return (x * 2).astype("int64"), x * 3

    @staticmethod
    def backward(ctx, whole, gradient):
        assert (whole.shape, whole.dtype) == ([2], paddle.int64)  # zeros, though nothing was computed of it
        return gradient * 3


class _Forward(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x


def test_layers_of_python_with_whole_numbers_and_without_a_backward():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    whole, product = _Whole.apply(x)
    assert not whole.stop_gradient
    product.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    factor = x * 2
    assert _Forward.apply(factor) is factor and factor.inplace_version == 1
    with pytest.raises(OSError, match="backward"):
        factor.sum().backward()


def test_of_a_larger_gradient_to_start_with_the_first_numbers_are_read():
    x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    paddle.autograd.backward([x * x], [paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])])
    assert x.grad.tolist() == [1.0, 4.0]
    (largest,) = paddle.grad([x.max()], [x], [paddle.to_tensor([7.0, 8.0])])
    assert largest is not None and largest.tolist() == [0.0, 7.0]
    with pytest.raises(AssertionError, match="another shape"):
        paddle.grad([x * x], [x], [paddle.ones([1])])
