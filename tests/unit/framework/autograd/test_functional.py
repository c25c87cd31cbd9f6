from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import autograd, nn
from framework.core import rng
from framework.core.errors import ShapeError, TraceError
from framework.nn import functional as F
from framework.nn.functional.lowering import platform_scope

X = jnp.asarray([1.0, 2.0, 3.0])


def test_grad_of_one_and_of_several_arguments():
    def loss(x, y):
        return (x * x * y).sum()

    np.testing.assert_array_equal(autograd.grad(loss)(X, X), 2 * X * X)
    by_x, by_y = autograd.grad(loss, argnums=(0, -1))(X, jnp.ones(3))
    np.testing.assert_array_equal(by_x, [2, 4, 6])
    np.testing.assert_array_equal(by_y, [1, 4, 9])
    assert float(autograd.grad(lambda x: x**3)(2.0)) == 12.0


def test_value_and_grad_of_a_function_with_a_tree_and_aux():
    def loss(params, x):
        y = params["w"] * x
        return y.sum(), y

    (value, aux), grads = autograd.value_and_grad(loss, has_aux=True)({"w": jnp.asarray(2.0)}, X)
    assert float(value) == 12.0 and aux.tolist() == [2.0, 4.0, 6.0] and float(grads["w"]) == 6.0
    only, aux = autograd.grad(loss, has_aux=True)({"w": jnp.asarray(2.0)}, X)
    assert float(only["w"]) == 6.0 and aux.tolist() == [2.0, 4.0, 6.0]


def test_value_and_grad_of_a_layer_is_that_of_nn():
    rng.seed(0)
    layer = nn.Linear(3, 1)
    loss, grads = autograd.value_and_grad(layer, lambda m, x: m(x).sum())(X[None])
    np.testing.assert_array_equal(grads["weight"][:, 0], X)
    assert grads["bias"].tolist() == [1.0] and loss.shape == ()


def test_the_third_derivative():
    third = autograd.grad(autograd.grad(autograd.grad(lambda x: x**4)))
    assert float(third(2.0)) == 48.0
    assert float(jax.jit(third)(2.0)) == 48.0


def test_complex_gradients_are_not_conjugated():
    """Paddle and torch: the gradient of |z|^2 is 2z."""
    z = jnp.asarray(1 + 2j)
    loss = lambda z: (z * jnp.conj(z)).real  # noqa: E731
    assert complex(autograd.grad(loss)(z)) == 2 + 4j
    assert complex(jax.grad(loss)(z)) == 2 - 4j
    # d Re((3 + 4j) z) = 3 dx - 4 dy
    assert complex(autograd.grad(lambda z: ((3 + 4j) * z).real)(z)) == 3 - 4j


def test_a_complex_parameter_of_a_layer_descends():
    class Phase(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.z = self.create_parameter(
                (1,), nn.initializer.Constant(1.0), dtype="complex64"
            )  # at 1 + 0j, towards 1j

        def forward(self):
            return jnp.square(jnp.abs(self.z - jnp.asarray(1j))).sum()

    _, grads = nn.value_and_grad(Phase(), lambda m: m())()
    assert abs(complex(grads["z"][0]) - (2 - 2j)) < 1e-5


def test_jvp_and_vjp():
    value, tangent = autograd.jvp(lambda a: a**2, X)  # fails in Paddle 3.3
    assert value.tolist() == [1, 4, 9] and tangent.tolist() == [2, 4, 6]
    value, tangent = autograd.jvp(lambda a, b: a * b, (X, 2 * X), (jnp.zeros(3), X))
    assert value.tolist() == [2, 8, 18] and tangent.tolist() == [1, 4, 9]
    value, grads = autograd.vjp(lambda a, b: a * b, [X, 2 * X], jnp.asarray([1.0, 0.0, 2.0]))
    assert grads[0].tolist() == [2, 0, 12] and grads[1].tolist() == [1, 0, 6]
    assert autograd.vjp(lambda a: a**2, X)[1].tolist() == [2, 4, 6]


def test_vjp_of_a_complex_function_is_torchs():
    # torch: grad of z**2 with cotangent v is v * conj(2 z) = (1 + 1j)(2 - 4j) = 6 - 2j
    _, grad = autograd.vjp(lambda z: z * z, jnp.asarray(1 + 2j), jnp.asarray(1 + 1j))
    assert complex(grad) == 6 - 2j


def test_jacobian_shapes_and_values():
    assert autograd.jacobian(lambda x: x**2, X).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    a, b = autograd.jacobian(lambda a, b: a * b.sum(), (jnp.asarray([1.0, 2.0]), X))
    assert a.tolist() == [[6, 0], [0, 6]] and b.tolist() == [[1, 1, 1], [2, 2, 2]]
    outer = autograd.jacobian(lambda x: {"sum": x.sum(), "square": x**2}, X)
    assert outer["sum"].tolist() == [1, 1, 1] and outer["square"].shape == (3, 3)
    assert autograd.jacobian(lambda x: x[:0], X).shape == (0, 3)


def test_jacobian_of_a_batch():
    x = jnp.arange(6.0).reshape(3, 2)
    rows = autograd.jacobian(
        lambda x: jnp.stack([x[:, 0] * x[:, 1], x[:, 0], x[:, 1] ** 2], 1), x, batch_axis=0
    )
    assert rows.shape == (3, 3, 2)
    assert rows[1].tolist() == [[3, 2], [1, 0], [0, 6]]
    first, second = autograd.jacobian(lambda a, b: a.sum(1) * b[:, 0], (x, x[:, :1]), batch_axis=0)
    assert first.shape == (3, 2) and second[:, 0].tolist() == [1, 5, 9]


def test_hessian():
    assert autograd.hessian(lambda x: (x**3).sum(), X).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    blocks = autograd.hessian(lambda a, b: (a * b).sum(), (X, X))
    assert blocks[0][0].tolist() == np.zeros((3, 3)).tolist() and blocks[0][1].tolist() == np.eye(3).tolist()
    batch = autograd.hessian(
        lambda x: (x**3).sum(1, keepdims=True), jnp.arange(4.0).reshape(2, 2), batch_axis=0
    )
    assert batch.tolist() == [[[0, 0], [0, 6]], [[12, 0], [0, 18]]]


def test_hessian_goes_through_operations_with_their_own_vjp():
    image = jnp.asarray(np.random.default_rng(0).standard_normal((1, 3, 3, 1)), jnp.float32)

    def energy(x):
        return jnp.square(F.interpolate(x, (6, 6), mode="bilinear")).sum()

    found = autograd.hessian(energy, image).reshape(9, 9)
    rows = autograd.jacobian(lambda x: F.interpolate(x, (6, 6), mode="bilinear"), image).reshape(36, 9)
    np.testing.assert_allclose(found, 2 * rows.T @ rows, atol=1e-5)


@pytest.mark.parametrize("call", [autograd.grad(lambda x: x.sum()), lambda x: autograd.jvp(jnp.sum, x)])
def test_integers_have_no_derivative(call):
    with pytest.raises(ShapeError, match=r"with respect to integers(.|\n)*int32(.|\n)*astype"):
        call(jnp.arange(3))
    with pytest.raises(ShapeError, match="with respect to integers"):
        call(3)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda x: x * x, r"one real number(.|\n)*\(3,\)(.|\n)*mean"),
        (lambda x: x.sum().astype(jnp.complex64), r"one real number(.|\n)*complex64(.|\n)*real part"),
        (lambda x: (x > 0).sum(), r"one real number(.|\n)*int32"),
    ],
)
def test_a_loss_is_one_real_number(loss, message):
    with pytest.raises(ShapeError, match=message):
        autograd.grad(loss)(X)


def test_other_errors():
    with pytest.raises(
        ShapeError, match=r"grad: what is differentiated is a function(.|\n)*there is no tape"
    ):
        autograd.grad(X)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="needs the loss"):
        autograd.value_and_grad(nn.Linear(1, 1))
    with pytest.raises(ShapeError, match=r"argnums(.|\n)*argnums 1, 1 positional"):
        autograd.grad(jnp.sum, 1)(X)
    with pytest.raises(ShapeError, match=r"another shape(.|\n)*\(2,\)(.|\n)*\(3,\)"):
        autograd.vjp(lambda x: x * 2, X, jnp.ones(2))
    with pytest.raises(ShapeError, match=r"real functions(.|\n)*complex input"):
        autograd.jacobian(lambda x: x.real, X.astype(jnp.complex64))
    with pytest.raises(ShapeError, match=r"real functions(.|\n)*complex64"):
        autograd.jacobian(lambda x: x.astype(jnp.complex64), X)
    with pytest.raises(ShapeError, match=r"unknown batch axis(.|\n)*1"):
        autograd.jacobian(lambda x: x, X, batch_axis=1)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="same number of rows"):
        autograd.jacobian(lambda a, b: a, (X, jnp.ones((2, 3))), batch_axis=0)
    with pytest.raises(ShapeError, match="the output has a batch"):
        autograd.jacobian(lambda x: x.sum(), X, batch_axis=0)
    with pytest.raises(ShapeError, match=r"returns one number(.|\n)*\(3,\)"):
        autograd.hessian(lambda x: x, X)
    with pytest.raises(ShapeError, match=r"returns one number(.|\n)*\[B\] or \[B, 1\]"):
        autograd.hessian(lambda x: x, jnp.ones((2, 3)), batch_axis=0)


IMAGE, KERNEL = jnp.ones((1, 4, 4, 8)), jnp.ones((8, 1, 3, 3))
REVERSE_ONLY = {
    "conv2d": lambda x: F.conv2d(x, KERNEL, None, 1, 1, 1, 8),
    "interpolate": lambda x: F.interpolate(x, (8, 8), mode="bilinear"),
    "batch_norm_train": lambda x: F.batch_norm(x, jnp.zeros(8), jnp.ones(8), training=True)[0],
}


@pytest.mark.parametrize("name", REVERSE_ONLY)
def test_forward_mode_names_the_operation_that_it_cannot_pass(name):
    def function(x):
        return F.relu(REVERSE_ONLY[name](x)).sum()

    with (
        platform_scope("cpu"),
        pytest.raises(TraceError, match=rf"reverse mode only(.|\n)*received: {name}\n"),
    ):
        autograd.jvp(jax.jit(function), IMAGE)


@pytest.mark.parametrize("name", ["conv2d", "batch_norm_train"])
def test_the_way_out_of_forward_mode_works(name):
    function = REVERSE_ONLY[name]
    direction = jnp.asarray(np.random.default_rng(0).standard_normal(IMAGE.shape), jnp.float32)
    with platform_scope("other"):
        _, tangent = autograd.jvp(function, IMAGE, direction)
    dy = jnp.asarray(np.random.default_rng(1).standard_normal(tangent.shape), jnp.float32)
    _, back = autograd.vjp(function, IMAGE, dy)
    np.testing.assert_allclose((tangent * dy).sum(), (direction * back).sum(), rtol=1e-3, atol=1e-3)


def test_other_type_errors_pass_through_jvp():
    with pytest.raises(TypeError, match="unsupported operand"):
        autograd.jvp(lambda x: x + "a", X)
