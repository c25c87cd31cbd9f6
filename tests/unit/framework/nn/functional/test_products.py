"""Products of 16 bits: what they give, what their gradients give, and in which types both are computed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.dtypes import precision_scope
from framework.inference import compile_options
from framework.nn import functional as F
from framework.nn.functional import lowering, products
from framework.nn.functional.common import kept_share
from framework.nn.functional.products import add_bias, product

RNG = np.random.default_rng(0)
LOW = (jnp.bfloat16, jnp.float16)
# Digits of bfloat16 (8 bits) behind a sum in float32.
NEAR: dict[str, Any] = {"rtol": 0.02, "atol": 0.05}


def draw(*shape: int, dtype: Any = jnp.float32) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), dtype)


def gradients(function: Callable[..., jax.Array], cotangent: jax.Array, *args: jax.Array) -> list[jax.Array]:
    out, pull = jax.vjp(function, *args)
    return [out, *pull(cotangent.astype(out.dtype))]


def check(function: Callable[..., jax.Array], plain: Callable[..., jax.Array], *args: jax.Array) -> None:
    """Values and gradients of both agree, the second in float32 on the same numbers."""
    wide = [arg.astype(jnp.float32) for arg in args]
    out = plain(*wide)
    cotangent = draw(*out.shape, dtype=args[0].dtype)
    found = gradients(function, cotangent, *args)
    for one, other in zip(found, gradients(plain, cotangent.astype(jnp.float32), *wide), strict=True):
        assert one.dtype == args[0].dtype and one.shape == other.shape
        np.testing.assert_allclose(np.asarray(one, np.float32), other, **NEAR)


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(
    ("spec", "x", "y"),
    [
        ("mk,kn->mn", (5, 7), (7, 3)),
        ("mk,kn->mn", (6, 7), (7, 3)),
        ("mk,nk->mn", (6, 7), (3, 7)),
        ("mk,kn->mn", (1, 1), (1, 1)),
        ("nqhd,nkhd->nhqk", (2, 3, 2, 5), (2, 4, 2, 5)),
        ("nhqk,nkhd->nqhd", (2, 2, 3, 4), (2, 4, 2, 5)),
    ],
)
def test_products(spec: str, x: Any, y: Any, dtype: Any) -> None:
    check(
        lambda a, b: product(spec, a, b),
        lambda a, b: jnp.einsum(spec, a, b),
        draw(*x, dtype=dtype),
        draw(*y, dtype=dtype),
    )


@pytest.mark.parametrize("rows", [1, 2, 5, 6])
def test_columns_first(rows: int) -> None:
    x = draw(rows, 3)
    assert np.array_equal(products._columns_first(x), x.T)


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_y", [False, True])
@pytest.mark.parametrize(
    "shapes", [((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 6, 3, 5), (2, 6, 5, 4)), ((2, 3, 5), (1, 5, 4))]
)
def test_matmul(shapes: Any, transpose_x: bool, transpose_y: bool) -> None:
    x, y = (draw(*shape, dtype=jnp.bfloat16) for shape in shapes)
    x = jnp.swapaxes(x, -1, -2) if transpose_x else x
    y = jnp.swapaxes(y, -1, -2) if transpose_y else y

    def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        x = jnp.swapaxes(x, -1, -2) if transpose_x else x
        return x @ (jnp.swapaxes(y, -1, -2) if transpose_y else y)

    check(lambda x, y: F.matmul(x, y, transpose_x, transpose_y), plain, x, y)


def test_a_transposed_matrix_is_read_as_it_is() -> None:
    x, y = draw(1, 64), draw(48, 64)
    np.testing.assert_allclose(F.matmul(x, y, transpose_y=True), np.asarray(x) @ np.asarray(y).T, atol=1e-4)
    program = str(jax.make_jaxpr(lambda x, y: F.matmul(x, y, transpose_y=True))(x, y))
    # XLA would write the matrix anew in every call.
    assert "transpose[permutation=(1, 0)]" not in program.replace(" ", ""), program


def test_vectors() -> None:
    a, b = draw(5), draw(5, 3)
    np.testing.assert_allclose(F.matmul(a, b), np.asarray(a) @ np.asarray(b), rtol=1e-5)


@pytest.mark.parametrize("dtype", LOW)
def test_linear(dtype: Any) -> None:
    def plain(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return x @ w + b

    check(F.linear, plain, *(draw(*shape, dtype=dtype) for shape in ((2, 3, 5), (5, 4), (4,))))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(("on", "has_bfloat16"), [("cpu", True), ("cpu", False), ("other", False)])
def test_the_types_that_gradients_multiply(
    on: Any, has_bfloat16: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "bfloat16_is_fast", lambda device: has_bfloat16)

    def types(spec: str, x: jax.Array, y: jax.Array) -> set[str]:
        def total(x: jax.Array, y: jax.Array) -> jax.Array:
            return product(spec, x, y, out=jnp.float32).sum()

        with lowering.platform_scope(on):
            text = jax.jit(jax.grad(total, (0, 1))).lower(x, y).as_text()
        found = re.findall(
            r"dot_general.*: \(tensor<\w*x(\w+)>, tensor<\w*x(\w+)>\) -> tensor<\w*xf32>", text
        )
        assert len(found) == 2
        return {kind for pair in found for kind in pair}

    own = "bf16" if dtype == jnp.bfloat16 else "f16"
    low = on == "other" or (has_bfloat16 and dtype == jnp.bfloat16)
    assert types("mk,kn->mn", draw(8, 16, dtype=dtype), draw(16, 4, dtype=dtype)) == {own if low else "f32"}
    query, key = (draw(1, 4, 2, 8, dtype=dtype) for _ in range(2))
    assert types("nqhd,nkhd->nhqk", query, key) == {own if on == "other" else "f32"}


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_every_size_compiles_with_the_options_of_the_engine(
    has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "bfloat16_is_fast", lambda device: has_bfloat16)
    options = compile_options(jax.local_devices()[0])
    for m, k, n in itertools.product((1, 17), (1, 33), (1, 16)):
        x, w, b = (draw(*shape, dtype=jnp.bfloat16) for shape in ((m, k), (k, n), (n,)))

        def step(x: jax.Array, w: jax.Array, b: jax.Array) -> Any:
            def total(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
                return add_bias(product("mk,kn->mn", x, w), b).astype(jnp.float32).sum()

            return jax.grad(total, (0, 1, 2))(x, w, b)

        found = jax.jit(step, compiler_options=options)(x, w, b)
        assert np.allclose(
            np.asarray(found[1], np.float32), np.asarray(x, np.float32).sum(0)[:, None], **NEAR
        )


def test_a_low_precision_of_float32() -> None:
    """Inference in bfloat16: float32 in, float32 out, gradients too."""
    x, w = draw(6, 9), draw(9, 4)
    with precision_scope("bfloat16"):
        out, *rest = gradients(F.linear, jnp.ones((6, 4)), x, w)
    assert {value.dtype for value in (out, *rest)} == {jnp.dtype(jnp.float32)}
    np.testing.assert_allclose(out, x @ w, **NEAR)
    np.testing.assert_allclose(rest[1], x.T @ jnp.ones((6, 4)), **NEAR)


def test_a_bias_of_16_bits_sums_in_float32() -> None:
    y, bias = jnp.zeros((40, 50, 3), jnp.bfloat16), jnp.ones(3, jnp.bfloat16)
    gradient = gradients(add_bias, jnp.full(y.shape, 0.01), y, bias)[2]
    assert np.allclose(np.asarray(gradient, np.float32), 20.0, rtol=0.004)
    np.testing.assert_array_equal(
        gradients(add_bias, jnp.ones((2, 3)), jnp.zeros((2, 3)), jnp.ones(3))[2], [2, 2, 2]
    )


@pytest.mark.parametrize("dtype", LOW)
def test_gelu_of_16_bits(dtype: Any) -> None:
    x = jnp.linspace(-6, 6, 101).astype(dtype)
    check(F.gelu, lambda x: jax.nn.gelu(x, approximate=False), x)
    _, tangent = jax.jvp(F.gelu, (jnp.ones(3),), (jnp.ones(3),))  # float32 can be pushed forward
    assert tangent[0] == pytest.approx(1.0833, abs=1e-4)


@pytest.mark.parametrize("shape", [(400, 251), (1,), (), (7, 1), (0, 4), (50, 40, 10)])
def test_what_dropout_keeps(shape: tuple[int, ...]) -> None:
    kept, share = kept_share(jax.random.key(1), 0.1, shape)
    assert kept.shape == shape and kept.dtype == bool
    assert share == 1 - 6554 / 65536
    if kept.size > 10000:
        assert kept.mean() == pytest.approx(0.9, abs=0.005)
        assert kept.reshape(-1, shape[-1]).mean(0).std() < 0.03  # no column is favoured
        assert 0.78 < (kept[..., : shape[-1] // 2] == kept[..., shape[-1] - shape[-1] // 2 :]).mean() < 0.86


@pytest.mark.parametrize("p", [1e-4, 0.9999])
def test_probabilities_near_the_ends_are_exact(p: float) -> None:
    kept, share = kept_share(jax.random.key(0), p, (1000, 100))
    assert share == 1 - p and kept.mean() == pytest.approx(1 - p, abs=3e-4)
