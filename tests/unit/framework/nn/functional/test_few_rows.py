"""Products of few rows, which CPUs compute with the weight as the first operand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.nn import functional as F
from framework.nn.functional.lowering import platform_scope
from framework.nn.functional.products import weight_first

ROWS = (0, 1, 2, 3, 8, 9, 40)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers in whatever order the tests run."""
    return np.random.default_rng(5)


@pytest.mark.parametrize("rows", ROWS)
def test_whole_numbers_are_exact(rows: int, rng: np.random.Generator) -> None:
    x, weight = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((rows, 70), (33, 70)))
    found = jax.jit(lambda x, y: weight_first(x, y, jnp.int32))(x, weight)
    np.testing.assert_array_equal(found, x.astype(np.int64) @ weight.T.astype(np.int64))


@pytest.mark.parametrize("transpose_y", [False, True])
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-6), ("bfloat16", 1e-2), ("float16", 1e-3)])
@pytest.mark.parametrize("rows", ROWS)
def test_floats(rows: int, dtype: str, limit: float, transpose_y: bool, rng: np.random.Generator) -> None:
    x, y = (jnp.asarray(rng.standard_normal(shape), dtype) for shape in ((rows, 70), (70, 33)))
    wanted = np.asarray(x, np.float64) @ np.asarray(y, np.float64)
    for platform in ("cpu", "other", "any"):
        with platform_scope(platform):
            found = jax.jit(lambda x, y: F.matmul(x, y.T if transpose_y else y, transpose_y=transpose_y))(
                x, y
            )
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=limit, atol=8 * limit)


def test_a_row_of_bfloat16_is_never_alone_on_a_cpu() -> None:
    """XLA's path for one row widens the whole weight first: a model of 0.5 billion wrote 1.5 tokens a second."""
    x, weight = jnp.ones((1, 70), jnp.bfloat16), jnp.ones((70, 33), jnp.bfloat16)
    assert "f32[2,33] = dot_general" in str(jax.make_jaxpr(F.linear)(x, weight))
    assert "f32[33,2] = dot_general" in str(
        jax.make_jaxpr(lambda x, y: F.matmul(x, y, False, True))(x, weight.T)
    )


def test_many_rows_keep_their_axes() -> None:
    """Texts and tokens in one axis could not be divided among devices as the two are."""
    x, weight = jnp.ones((4, 10, 70)), jnp.ones((33, 70))
    assert "reshape" not in str(jax.make_jaxpr(lambda x, y: F.matmul(x, y, False, True))(x, weight))


def test_floats_of_unknown_rows_are_not_copied() -> None:
    (rows,) = jax.export.symbolic_shape("n")
    x, weight = jax.ShapeDtypeStruct((rows, 70), jnp.bfloat16), jnp.ones((70, 33), jnp.bfloat16)
    assert "concatenate" not in jax.export.export(jax.jit(F.linear))(x, weight).mlir_module()


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_gradients_and_mapping(rows: int, rng: np.random.Generator) -> None:
    x, y = (jnp.asarray(0.1 * rng.standard_normal(shape), "float32") for shape in ((3, rows, 70), (33, 70)))

    def loss(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sin(F.matmul(x, y, transpose_y=True)).sum()

    def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sin(x @ y.T).sum()

    for one, other in zip(jax.grad(loss, (0, 1))(x[0], y), jax.grad(plain, (0, 1))(x[0], y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    mapped = jax.vmap(loss, (0, None))(x, y)
    np.testing.assert_allclose(mapped, jax.vmap(plain, (0, None))(x, y), rtol=1e-4, atol=1e-4)
    _, moved = jax.jvp(loss, (x[0], y), (x[0], y))
    np.testing.assert_allclose(moved, jax.jvp(plain, (x[0], y), (x[0], y))[1], rtol=1e-4, atol=1e-4)
