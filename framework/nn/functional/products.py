"""Matrix products and linear maps. Operands of 16 bits are multiplied as they are and summed in float32, and so they
are in the gradients where the processor is made for it.

A product of bfloat16 that gives float32 has a cotangent of float32, and jax would make both of its gradients products
of float32: twice the time where a processor multiplies bfloat16, and more on a GPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike

from framework.core.device import bfloat16_is_fast
from framework.core.dtypes import precision
from framework.core.errors import ShapeError
from framework.nn.functional.lowering import choose, platform
from framework.nn.mesh_scope import current_mesh

Operands = tuple[jax.Array, jax.Array]  # two arrays, or their gradients

_LOW = (jnp.bfloat16, jnp.float16)
_FEW_ROWS = 8

_Product = Callable[[jax.Array, jax.Array], jax.Array]


def _are_few(rows: object) -> bool:
    """Whether so many rows are worth the weight as first operand; a size that is not known yet is not."""
    return isinstance(rows, int) and rows <= _FEW_ROWS


def _pad_one_row(x: jax.Array) -> jax.Array:
    """x [M, K] with a row of zeros behind it where M is 1; of whole numbers also where it is not known yet. Floats of
    an unknown M stay: they are rarely alone, and would all be copied."""
    rows = x.shape[0]
    is_alone = rows == 1 if isinstance(rows, int) else jnp.issubdtype(x.dtype, jnp.integer)
    return jnp.concatenate([x, jnp.zeros_like(x[:1])]) if is_alone else x


def weight_first(x: jax.Array, weight: jax.Array, out: DTypeLike) -> jax.Array:
    """x [M, K] times weight [N, K] -> [M, N] of the type `out`, which sums are of too, on a CPU.

    For few rows the weight is the first operand: XLA's library of products lays its second one out anew in every call,
    which takes longer than the product (2 rows times 4864 x 896: 0.10 against 0.22 ms of int8, 0.27 against 0.49 of
    bfloat16, 0.55 against 0.85 of float32). The barrier keeps XLA from turning the product around again. One row of
    int8 or bfloat16 has a row of zeros beside it: for one alone XLA first widens the whole weight to float32 (the same
    in bfloat16: 1.5 ms).
    """
    rows, is_wide = x.shape[0], x.dtype == jnp.float32
    x = x if is_wide else _pad_one_row(x)
    few = _are_few(rows) and not (is_wide and rows == 1)
    first, second = (weight, x) if few else (x, weight)
    sums = lax.dot_general(first, second, (((1,), (1,)), ((), ())), preferred_element_type=out)
    return lax.optimization_barrier(sums)[:, :rows].T if few else sums[:rows]


def _forms(spec: str) -> tuple[_Product, _Product]:
    """(for CPUs, for others): products that give float32."""

    def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.einsum(spec, x, y, preferred_element_type=jnp.float32)

    if spec == "mk,nk->mn":
        return lambda x, y: weight_first(x, y, jnp.float32), plain
    if spec == "mk,kn->mn":
        return lambda x, y: plain(_pad_one_row(x), y)[: x.shape[0]], plain
    return plain, plain


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 3))
def _low_product(spec: str, x: jax.Array, y: jax.Array, out: DTypeLike) -> jax.Array:
    return choose(platform(), *_forms(spec), x, y).astype(out)


def _gradient_type(dtype: np.dtype, is_batch: bool) -> DTypeLike:
    """The type that the gradients of a product multiply in; what they multiply has the digits of `dtype` in any case.

    A CPU without instructions for bfloat16 is faster in float32 (1024x768x3072: 90 to 105 ms against 110 to 115), and
    its backend has no product of 16 bits for batches of transposed matrices.
    """
    if platform() == "other":
        return dtype
    is_fast = dtype == jnp.bfloat16 and not is_batch and bfloat16_is_fast(jax.devices("cpu")[0])
    return dtype if is_fast else jnp.float32


def _columns_first(x: jax.Array) -> jax.Array:
    """[M, K] -> [K, M] as an array of its own. XLA's CPU backend would take a plain transposition into the product,
    and its kernels for bfloat16 are half as fast where the first axes of both are summed over (1024x768x3072: 15 ms
    against 6); a transposition of two halves stays outside."""
    rows, columns = x.shape
    return (
        x.reshape(2, rows // 2, columns).transpose(2, 0, 1).reshape(columns, rows) if rows % 2 == 0 else x.T
    )


def _low_product_bwd(spec: str, out: DTypeLike, saved: Operands, cotangent: jax.Array) -> Operands:
    x, y = saved
    operands, _, result = spec.partition("->")
    first, _, second = operands.partition(",")
    kind = _gradient_type(x.dtype, is_batch=len(result) > 2)
    a, b, c = (array.astype(x.dtype).astype(kind) for array in (x, y, cotangent))
    form = {"preferred_element_type": jnp.float32}
    d_x = jnp.einsum(f"{result},{second}->{first}", c, b, **form)
    if kind == jnp.bfloat16 and platform() != "other" and first[0] == result[0]:  # no batch, by the type
        a, first = _columns_first(a), first[::-1]
    d_y = jnp.einsum(f"{first},{result}->{second}", a, c, **form)
    return d_x.astype(x.dtype), d_y.astype(y.dtype)


_low_product.defvjp(lambda spec, x, y, out: (_low_product(spec, x, y, out), (x, y)), _low_product_bwd)


def product(
    spec: str, x: jax.Array, y: jax.Array, low: bool = False, out: DTypeLike | None = None
) -> jax.Array:
    """einsum of two arrays in the type `out`, by default x's; `low` takes float32 as bfloat16.

    Each axis of an operand is also one of the other or of the result, and none stands twice.
    """
    out = jnp.dtype(x.dtype if out is None else out)
    if low and x.dtype == jnp.float32:
        x = x.astype(jnp.bfloat16)
    y = y.astype(x.dtype)
    if x.dtype in _LOW:
        return _low_product(spec, x, y, out)
    return jnp.einsum(spec, x, y).astype(out)


@jax.custom_vjp
def _add_low(y: jax.Array, bias: jax.Array) -> jax.Array:
    return y + bias


def _add_low_bwd(bias: jax.Array, cotangent: jax.Array) -> Operands:
    summed = cotangent.astype(jnp.float32).sum(tuple(range(cotangent.ndim - 1)))
    return cotangent, summed.astype(bias.dtype)


_add_low.defvjp(lambda y, bias: (y + bias, bias), _add_low_bwd)


def add_bias(y: jax.Array, bias: jax.Array) -> jax.Array:
    """y [..., C] + bias [C]. The gradient of the bias sums 16 bits in float32; jax sums them in 16 bits, which takes
    five times as long on a CPU and is 2 % off over a thousand rows."""
    return _add_low(y, bias) if y.dtype in _LOW and bias.dtype == y.dtype else y + bias


@functools.partial(jax.jit, static_argnames=("low", "flatten"))
def _linear(
    x: jax.Array, weight: jax.Array, bias: jax.Array | None, low: bool, flatten: bool = True
) -> jax.Array:
    if not flatten:
        rows = "abcdefgh"[: x.ndim - 1]
        y = product(f"{rows}k,kn->{rows}n", x, weight, low)
        return y if bias is None else add_bias(y, bias)
    flat = x.reshape(-1, x.shape[-1]) if x.ndim != 2 else x
    y = product("mk,kn->mn", flat, weight, low)
    if bias is not None:
        y = add_bias(y, bias)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], weight.shape[1])


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """x [..., in] @ weight [in, out] + bias [out]."""
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        rows = weight.shape[0] if weight.ndim else "in"
        raise ShapeError(
            "linear: last axis of x against rows of the weight",
            received=f"x {x.shape}, weight {weight.shape}",
            allowed=f"x [..., {rows}], weight [in, out]",
            fix="flatten images first: x.reshape(len(x), -1)"
            if x.ndim > 2 and math.prod(x.shape[1:]) == rows
            else "transpose the weight: this one is [out, in], as torch has it"
            if weight.ndim == 2 and x.ndim and x.shape[-1] == weight.shape[1]
            else None,
        )
    # Rows and tokens in one axis cannot be divided among devices as the two are: all would be gathered.
    mesh = current_mesh()
    flatten = mesh is None or mesh.attention is None
    return _linear(x, weight, bias, precision() == "bfloat16", flatten)


@functools.partial(jax.jit, static_argnames=("transpose_x", "transpose_y", "low"))
def _matmul(x: jax.Array, y: jax.Array, transpose_x: bool, transpose_y: bool, low: bool) -> jax.Array:
    x = jnp.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    out = jnp.result_type(x, y)
    if x.ndim > 1 and y.ndim == 2 and x.dtype == y.dtype and (out in _LOW or (low and out == jnp.float32)):
        rows = product("mk,nk->mn" if transpose_y else "mk,kn->mn", x.reshape(-1, x.shape[-1]), y, low)
        return rows.reshape(*x.shape[:-1], rows.shape[-1])
    if low and out == jnp.float32:
        x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    wide = jnp.float32 if x.dtype in _LOW else None
    if transpose_y and y.ndim == 2:
        rows = math.prod(x.shape[:-1])
        if x.dtype == y.dtype == jnp.float32 and _are_few(
            rows
        ):  # many stay as they are divided among devices
            sums = choose(platform(), *_forms("mk,nk->mn"), x.reshape(rows, x.shape[-1]), y)
            return sums.reshape(*x.shape[:-1], y.shape[0])
        # Of one row times a transposed matrix XLA would write the matrix anew on CPUs, in every call (4096 x 12544: 134
        # against 6 ms).
        return jnp.einsum("...k,nk->...n", x, y, preferred_element_type=wide).astype(out)
    y = jnp.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return jnp.matmul(x, y, preferred_element_type=wide).astype(out)


def matmul(x: jax.Array, y: jax.Array, transpose_x: bool = False, transpose_y: bool = False) -> jax.Array:
    """Batched matrix product with Paddle's transpose flags; bfloat16 operands accumulate in float32."""
    inner = x.shape[-2 if transpose_x and x.ndim > 1 else -1]
    if inner != y.shape[-1 if transpose_y or y.ndim == 1 else -2]:
        raise ShapeError(
            "matmul: the inner axes differ",
            received=f"x {x.shape}, y {y.shape}, transpose_x={transpose_x}, transpose_y={transpose_y}",
            allowed="columns of x equal to rows of y",
        )
    return _matmul(x, y, transpose_x, transpose_y, low=precision() == "bfloat16")
