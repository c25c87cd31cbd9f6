from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import autograd
from framework.autograd import PyLayer
from framework.core.errors import ShapeError, TraceError

X = jnp.asarray([1.0, 2.0, 3.0])


class Scaled(PyLayer):
    """x**3 * k with a gradient of its own: ten times the true one."""

    @staticmethod
    def forward(ctx, x, k, power=3):
        ctx.save_for_backward(x)
        ctx.k, ctx.info = k, {"power": power, "ones": jnp.ones_like(x)}
        return x**power * k

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        power = ctx.info["power"]
        return 10 * power * x ** (power - 1) * ctx.k * dy * ctx.info["ones"]


def test_forward_and_backward_with_attributes():
    assert Scaled.apply(X, 2.0).tolist() == [2, 16, 54]
    grad = autograd.grad(lambda x: Scaled.apply(x, 2.0, power=2).sum())
    assert grad(X).tolist() == [40, 80, 120]
    assert jax.jit(grad)(X).tolist() == [40, 80, 120]


def test_higher_order_differentiates_backward():
    second = autograd.grad(autograd.grad(lambda x: Scaled.apply(x, 1.0)))
    assert float(second(2.0)) == 10 * 6 * 2.0


def test_vmap():
    out = jax.vmap(jax.grad(lambda x: Scaled.apply(x, 1.0)))(X)
    assert out.tolist() == [30, 120, 270]


class Pair(PyLayer):
    """Two outputs, two inputs, one of them integer; the second output passes no gradient."""

    seen: tuple = ()

    @staticmethod
    def forward(ctx, x, index, tables):
        ctx.save_for_backward(index, tables[0])
        picked = tables[0][index]
        ctx.mark_non_differentiable(picked)
        return x * 2, picked, index

    @staticmethod
    def backward(ctx, dx, dpicked, dindex):
        Pair.seen = (dpicked, dindex)
        index, table = ctx.saved_tensor()
        return dx * table[index], None, None


def test_several_outputs_integers_and_nested_arguments():
    index, table = jnp.asarray([2, 0, 1]), jnp.asarray([1.0, 10.0, 100.0])

    def loss(x, table):
        y, picked, same = Pair.apply(x, index, [table])
        return y.sum() + (5 * picked).sum() + same.sum().astype(jnp.float32)

    by_x, by_table = autograd.grad(loss, (0, 1))(X, table)
    assert by_x.tolist() == [100, 1, 10] and by_table.tolist() == [0, 0, 0]
    assert Pair.seen[0].tolist() == [0, 0, 0] and Pair.seen[1].tolist() == [0, 0, 0]


def test_complex_gradients_follow_paddle():
    class Square(PyLayer):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, dy):
            (z,) = ctx.saved_tensor()
            return dy * jnp.conj(2 * z)

    z, v = jnp.asarray(1 + 2j), jnp.asarray(1 + 1j)
    assert (
        complex(autograd.vjp(Square.apply, z, v)[1])
        == complex(autograd.vjp(lambda z: z * z, z, v)[1])
        == 6 - 2j
    )


def test_gradients_take_the_type_of_the_input():
    class Same(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy.astype(jnp.float32)

    x = X.astype(jnp.bfloat16)
    assert jax.grad(lambda x: Same.apply(x).sum())(x).dtype == jnp.bfloat16
    assert Same.apply(np.ones(2, np.float32)).tolist() == [1, 1]


def _layer(forward, backward):
    return type("Custom", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def test_errors_name_the_class():
    few = _layer(lambda ctx, a, b: a * b, lambda ctx, dy: dy)
    with pytest.raises(
        ShapeError, match=r"Custom: backward returns one gradient(.|\n)*1 gradients(.|\n)*2, None"
    ):
        jax.grad(lambda x: few.apply(x, x).sum())(X)
    wrong = _layer(lambda ctx, a: a.sum(), lambda ctx, dy: dy)
    with pytest.raises(
        ShapeError, match=r"Custom: gradient 0 of backward has another shape(.|\n)*\(\)(.|\n)*\(3,\)"
    ):
        jax.grad(lambda x: wrong.apply(x))(X)
    with pytest.raises(ShapeError, match=r"Custom: forward of a PyLayer returns arrays(.|\n)*str"):
        _layer(lambda ctx, a: "a", lambda ctx, dy: dy).apply(X)
    with pytest.raises(NotImplementedError, match="static forward"):
        PyLayer.apply(X)

    class Half(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

    with pytest.raises(NotImplementedError, match="static backward"):
        jax.grad(Half.apply)(X)


def test_forward_mode_names_the_class():
    with pytest.raises(TraceError, match=r"received: Scaled\n"):
        autograd.jvp(lambda x: Scaled.apply(x, 1.0), X)
