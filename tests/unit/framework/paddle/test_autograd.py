"""PyLayer, Jacobians, recompute and hooks on saved Tensors."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle.autograd import PyLayer, recompute, saved_tensors_hooks
from framework.paddle.incubate import autograd as incubate


class Product(PyLayer):
    """x * y with twice its gradient, to tell it from the operation."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensor()
        return grad * y * 2, grad * x * 2


class Pair(PyLayer):
    seen = ()

    @staticmethod
    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        plain = x + 0
        ctx.mark_non_differentiable(plain)
        return x * 2, x * 3, plain

    @staticmethod
    def backward(ctx, *grads):
        Pair.seen = tuple(None if g is None else g.numpy().tolist() for g in grads)
        return grads[0]


def leaf(*values):
    return paddle.to_tensor(list(values), dtype="float32", stop_gradient=False)


def test_py_layer_runs_its_backward_in_both_orders():
    x, y = leaf(1, 2), leaf(3, 4)
    Product.apply(x, y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [6, 8])
    np.testing.assert_allclose(y.grad.numpy(), [2, 4])
    (first,) = paddle.grad(Product.apply(x, y), [x], create_graph=True)
    np.testing.assert_allclose(paddle.grad(first, [y])[0].numpy(), [2, 2])


@pytest.mark.parametrize(("materialize", "second"), [(True, [0.0]), (False, None)])
def test_py_layer_fills_missing_gradients(materialize, second):
    x = leaf(1)
    first, _, plain = Pair.apply(x, materialize)
    first.backward()
    assert plain.stop_gradient
    assert Pair.seen[:2] == ([1.0], second)


def test_py_layer_refuses_more_gradients_than_inputs():
    class Wrong(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(ValueError, match="2 gradients"):
        Wrong.apply(leaf(1)).backward()


def test_py_layer_returns_an_input_only_where_marked():
    class Same(PyLayer):
        @staticmethod
        def forward(ctx, x, mark):
            if mark:
                ctx.mark_not_inplace(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf(1)
    Same.apply(x, True).backward()
    assert x.grad.numpy().tolist() == [5]
    with pytest.raises(RuntimeError, match="mark_not_inplace"):
        Same.apply(x, False)


def test_recompute_gives_the_same_gradients_and_repeats_dropout():
    weight = leaf(5, 4)
    x, y = leaf(1, 2), leaf(3, 4)

    def run(call):
        for tensor in (weight, x, y):
            tensor.clear_grad()
        paddle.seed(3)
        hidden = x * y
        out, other = call(
            lambda a, b: (paddle.nn.functional.dropout(a * b * weight * weight, 0.5), a + 1), hidden, y
        )
        (out * other).sum().backward()
        return [t.grad.numpy() for t in (weight, x, y)]

    for plain, again in zip(run(lambda f, *a: f(*a)), run(recompute), strict=True):
        np.testing.assert_allclose(plain, again, rtol=1e-6)


def test_saved_tensors_go_through_the_hooks():
    log = []

    def pack(tensor):
        log.append("pack")
        return tensor.numpy()

    def unpack(array):
        log.append("unpack")
        return paddle.to_tensor(array)

    a, b = leaf(2), leaf(3)
    with saved_tensors_hooks(pack, unpack):
        y = a * b
    assert log == ["pack", "pack"]
    y.backward()
    assert log[2:] == ["unpack", "unpack"]
    assert a.grad.numpy().tolist() == [3]


def test_jacobian_and_hessian():
    x = leaf(1, 2, 3)
    y = x * x * x
    jacobian = paddle.autograd.jacobian(y, x)
    np.testing.assert_allclose(jacobian[:].numpy(), np.diag([3, 12, 27]))
    np.testing.assert_allclose(jacobian[1].numpy(), [0, 12, 0])
    assert jacobian.shape == [3, 3]
    hessian = paddle.autograd.hessian((x * x * x).sum(), x)
    np.testing.assert_allclose(hessian[:].numpy(), np.diag([6, 12, 18]))
    batch = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    rows = paddle.autograd.jacobian(batch * batch, batch, batch_axis=0)
    np.testing.assert_allclose(rows[:].numpy(), [np.diag([2, 4]), np.diag([6, 8])])


def test_products_with_vectors():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)

    def square(x):
        return paddle.matmul(x, x)

    x, v = paddle.to_tensor(matrix), paddle.to_tensor(np.array([[0.0, 0.0], [1.0, 0.0]], np.float32))
    _, forward = incubate.jvp(square, x, v)
    np.testing.assert_allclose(forward.numpy(), v.numpy() @ matrix + matrix @ v.numpy())
    _, back = incubate.vjp(square, x, v)
    np.testing.assert_allclose(back.numpy(), v.numpy() @ matrix.T + matrix.T @ v.numpy())


def test_incubate_derivatives_of_a_static_program():
    from framework.paddle.incubate import autograd

    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [3], "float64")
            pulled = autograd.vjp(paddle.square, x)[1]
            pushed = autograd.jvp(paddle.square, x)[1]
            hessian = autograd.Hessian(lambda t: paddle.sum(t**3), x)[:]
        value = np.array([1.0, -2.0, 0.5])
        results = paddle.static.Executor().run(main, feed={"x": value}, fetch_list=[pulled, pushed, hessian])
    finally:
        paddle.disable_static()
    for result, expected in zip(results, (2 * value, 2 * value, np.diag(6 * value)), strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-12)


def test_an_assigned_gradient_is_a_copy() -> None:
    """paddlepaddle 2.6.2: what is added to it later does not reach the assigned Tensor."""
    x, gradient = paddle.to_tensor(1.0, stop_gradient=False), paddle.to_tensor(3.0)
    x.grad = gradient
    assert x.grad is not None and x.grad.stop_gradient  # as the assigned one
    (x * 2).backward()
    assert float(x.grad) == 5 and float(gradient) == 3 and gradient.stop_gradient and x.grad.stop_gradient
    x.grad = paddle.to_tensor(3.0, stop_gradient=False)
    assert not x.grad.stop_gradient


# What 2.6.2 says to the gradients that `backward` returns for two Tensors.
@pytest.mark.parametrize(
    ("stops", "returned", "position"),
    [
        ((False, False), lambda d: d, 1),
        ((False, False), lambda d: None, 1),
        ((True, False), lambda d: (d, d), 0),
        ((True, False), lambda d: 1, 0),
        ((False, True), lambda d: (d, d), 1),
        ((False, True), lambda d: d, None),
        ((False, False), lambda d: (d, None), None),
    ],
)
def test_backward_of_a_py_layer_returns_a_gradient_for_each_tensor_that_wants_one(stops, returned, position):
    class Sum(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, gradient):
            return returned(gradient)

    x, y = (paddle.to_tensor([1.0, 2.0], stop_gradient=stop) for stop in stops)
    total = Sum.apply(x, y).sum()
    if position is None:
        total.backward()
        np.testing.assert_array_equal(x.grad.numpy(), [1, 1])
        assert y.grad is None
        return
    with pytest.raises(ValueError, match=f"position {position}"):
        total.backward()


def test_zeros_of_clear_grad_stop_gradients_where_what_they_replace_did() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x.grad = paddle.to_tensor([3.0, 4.0])
    x.clear_grad()
    assert x.grad.stop_gradient and not x.grad.numpy().any()
    x.clear_grad(False)
    (x * x).sum().backward()
    x.clear_grad()
    assert not x.grad.stop_gradient


def test_numbers_that_are_not_finite_are_runtime_errors_where_the_flag_asks() -> None:
    one, zero = paddle.to_tensor([1.0]), paddle.to_tensor([0.0])
    live = paddle.to_tensor([0.0], stop_gradient=False)
    root = paddle.sqrt(live)
    quotient = paddle.jit.to_static(lambda x: x / zero)
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    try:
        for call in (lambda: one / zero, lambda: zero / zero, root.backward, lambda: quotient(one)):
            with pytest.raises(RuntimeError, match="NaN or infinity"):
                call()
        assert (one / one).item() == 1
    finally:
        paddle.set_flags({"FLAGS_check_nan_inf": False})
    assert np.isinf((one / zero).numpy()).all()


def test_a_gradient_to_start_with_is_a_tensor() -> None:
    with pytest.raises(AssertionError, match="begins with is a Tensor"):
        paddle.ones([2]).backward(np.ones(2, np.float32))


def test_a_copy_to_a_place_is_as_persistable_and_has_no_history() -> None:
    x = paddle.to_tensor([1.0], stop_gradient=False)
    x.persistable = True
    copy = x._copy_to(paddle.CPUPlace(), True)
    assert copy.persistable and copy.stop_gradient and copy.item() == 1
