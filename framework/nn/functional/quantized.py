"""Linear maps whose weights are whole numbers of 8 or 4 bits.

On a CPU inputs are rounded to int8 too, by the largest magnitude of each row, and the products are of whole numbers. A
product of one row is never made there (`products.weight_first`). On a GPU weights are widened inside the product and
inputs stay as they are.

Gradients are those of the map with the weights as they are rounded, and of the inputs only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional.lowering import choose, jitted, platform
from framework.nn.functional.products import weight_first

LEVELS = 127
"""Of int8, on each side of zero."""


def quantize_rows(x: jax.Array, axis: int = -1) -> tuple[jax.Array, jax.Array]:
    """(int8 of x's shape, float32 scale without `axis`): x is about the numbers times the scale, which is the largest
    magnitude along `axis` / 127; a row of zeros has a scale of 0."""
    wide = x.astype(jnp.float32)
    scale = jnp.abs(wide).max(axis) / LEVELS
    steps = wide / jnp.expand_dims(jnp.where(scale > 0, scale, 1), axis)
    return jnp.round(steps).astype(jnp.int8), scale


# -- 8 bits -----------------------------------------------------------------------------------------------------------


def _int8_cpu(x: jax.Array, weight: jax.Array, scale: jax.Array) -> jax.Array:
    levels, steps = quantize_rows(x)
    return weight_first(levels, weight, jnp.int32).astype(jnp.float32) * steps[:, None] * scale


def _int8_plain(x: jax.Array, weight: jax.Array, scale: jax.Array) -> jax.Array:
    sums = lax.dot_general(
        x, weight.astype(x.dtype), (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
    )
    return sums * scale


@jax.custom_vjp
def _int8_product(x: jax.Array, weight: jax.Array, scale: jax.Array) -> jax.Array:
    return choose(platform(), _int8_cpu, _int8_plain, x, weight, scale).astype(x.dtype)


def _int8_bwd(saved: tuple[jax.Array, ...], cotangent: jax.Array) -> tuple[jax.Array | None, ...]:
    weight, scale = saved
    steps = cotangent.astype(jnp.float32) * scale
    return (steps @ weight.astype(jnp.float32)).astype(cotangent.dtype), None, None


_int8_product.defvjp(lambda x, weight, scale: (_int8_product(x, weight, scale), (weight, scale)), _int8_bwd)


@jitted()
def _linear_int8(x: jax.Array, weight: jax.Array, scale: jax.Array, bias: jax.Array | None) -> jax.Array:
    y = _int8_product(x.reshape(-1, x.shape[-1]), weight, scale)
    y = y if bias is None else y + bias.astype(y.dtype)
    return y.reshape(*x.shape[:-1], weight.shape[0])


def linear_int8(
    x: jax.Array, weight: jax.Array, scale: jax.Array, bias: jax.Array | None = None
) -> jax.Array:
    """x [..., in] times weight [out, in] int8 and scale [out], plus bias [out] -> [..., out] in x's type.

    Raises:
        ShapeError: the axes do not agree.
    """
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1] or scale.shape != weight.shape[:1]:
        raise ShapeError(
            "linear_int8: last axis of x against columns of the weight, a scale for each row",
            received=f"x {x.shape}, weight {weight.shape}, scale {scale.shape}",
            allowed="x [..., in], weight [out, in], scale [out]",
        )
    return _linear_int8(x, weight, scale, bias)


# -- 4 bits -----------------------------------------------------------------------------------------------------------


def unpack_int4(packed: jax.Array) -> jax.Array:
    """[..., n] uint8 -> [..., 2 n] int8 from 0 to 15: the low halves of all bytes, then the high halves."""
    return jnp.concatenate([(packed & 15).astype(jnp.int8), (packed >> 4).astype(jnp.int8)], -1)


def dequantize_int4(weight: jax.Array, scale: jax.Array, zero: jax.Array) -> jax.Array:
    """[groups, out, size] float32 of packed groups; see `linear_int4`."""
    levels = unpack_int4(weight).astype(jnp.float32)
    return (levels - zero[..., None].astype(jnp.float32)) * scale[..., None].astype(jnp.float32)


def _int4_cpu(x: jax.Array, weight: jax.Array, scale: jax.Array, zero: jax.Array) -> jax.Array:
    """A group after the other, so that no more than one is unpacked: 4864x896 takes 0.6 ms of one core where int8 takes
    0.37 and float32 0.7; all groups in one batched product take 11."""
    rows, groups = x.shape[0], weight.shape[0]
    levels, steps = quantize_rows(x.reshape(rows, groups, -1))
    levels, steps = levels.transpose(1, 0, 2), steps.T  # [groups, rows, size], [groups, rows]

    def add(total: jax.Array, group: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        levels, steps, packed, scale, zero = group
        sums = weight_first(levels, unpack_int4(packed), jnp.int32)
        shift = levels.astype(jnp.int32).sum(-1, keepdims=True).astype(jnp.float32)
        return total + (sums.astype(jnp.float32) - shift * zero) * scale * steps[:, None], None

    start = jnp.zeros((rows, weight.shape[1]), jnp.float32)
    return lax.scan(add, start, (levels, steps, weight, scale, zero.astype(jnp.float32)))[0]


def _int4_plain(x: jax.Array, weight: jax.Array, scale: jax.Array, zero: jax.Array) -> jax.Array:
    values = dequantize_int4(weight, scale, zero).astype(x.dtype)
    grouped = x.reshape(x.shape[0], weight.shape[0], -1)
    return jnp.einsum("mgk,gok->mo", grouped, values, preferred_element_type=jnp.float32)


@jax.custom_vjp
def _int4_product(x: jax.Array, weight: jax.Array, scale: jax.Array, zero: jax.Array) -> jax.Array:
    return choose(platform(), _int4_cpu, _int4_plain, x, weight, scale, zero).astype(x.dtype)


def _int4_bwd(saved: tuple[jax.Array, ...], cotangent: jax.Array) -> tuple[jax.Array | None, ...]:
    weight, scale, zero = saved
    values = dequantize_int4(weight, scale, zero)
    gradient = jnp.einsum("mo,gok->mgk", cotangent.astype(jnp.float32), values)
    return gradient.reshape(len(cotangent), -1).astype(cotangent.dtype), None, None, None


_int4_product.defvjp(
    lambda x, weight, scale, zero: (_int4_product(x, weight, scale, zero), (weight, scale, zero)), _int4_bwd
)


@jitted()
def _linear_int4(
    x: jax.Array, weight: jax.Array, scale: jax.Array, zero: jax.Array, bias: jax.Array | None
) -> jax.Array:
    y = _int4_product(x.reshape(-1, x.shape[-1]), weight, scale, zero)
    y = y if bias is None else y + bias.astype(y.dtype)
    return y.reshape(*x.shape[:-1], weight.shape[1])


def linear_int4(
    x: jax.Array, weight: jax.Array, scale: jax.Array, zero: jax.Array, bias: jax.Array | None = None
) -> jax.Array:
    """x [..., in] times a matrix of 4 bits, plus bias [out] -> [..., out] in x's type.

    Args:
        weight: [groups, out, size / 2] uint8, where in = groups * size: byte j of a group holds number j in its low
            half and number j + size / 2 in the high one, from 0 to 15.
        scale, zero: [groups, out]: what a number q stands for is (q - zero) * scale.

    Raises:
        ShapeError: the axes do not agree.
    """
    inputs = 2 * weight.shape[0] * weight.shape[-1]
    if (
        weight.ndim != 3
        or x.ndim < 1
        or x.shape[-1] != inputs
        or not scale.shape == zero.shape == weight.shape[:2]
    ):
        raise ShapeError(
            "linear_int4: last axis of x against the groups of the weight, a scale and a zero point for each",
            received=f"x {x.shape}, weight {weight.shape}, scale {scale.shape}, zero {zero.shape}",
            allowed="x [..., groups * size], weight [groups, out, size / 2], scale and zero [groups, out]",
        )
    return _linear_int4(x, weight, scale, zero, bias)
