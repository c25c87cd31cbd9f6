"""ONNX quantisation: numbers of 8 and 16 bits with scales, and products of them.

Products of integers are taken in float32 where that is exact or where the operator rounds afterwards; their sums are
exact up to 2^24.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.onnx.conv import convolve
from framework.interop.graph.onnx.elementwise import cast, element_type
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, to_jax, to_value

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array


def spread(call: Call, scale: Array, v: Value, axis: int, block: int = 0) -> Array:
    """A scale or zero point of one number, of one a slice of `axis`, or of one a block, to multiply v's array with."""
    if scale.size == 1:
        return scale.reshape(())
    position = call.axis(axis, v.ndim)
    if block:
        scale = jnp.repeat(scale, block, position, total_repeat_length=v.shape[position])
    elif scale.ndim == 1:
        shape = [1] * v.ndim
        shape[v.order[position]] = scale.shape[0]
        return scale.reshape(shape)
    return Value.of(scale).stored(v.order)


def quantize(x: Array, scale: Array, zero: Array | None, dtype: np.dtype, call: Call) -> Array:
    """x / scale + zero, rounded to even and saturated."""
    y = x / scale.astype(x.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(cast(call, y if zero is None else y + zero.astype(y.dtype), dtype))
    info = jnp.iinfo(dtype)
    y = jnp.round(y) + (0 if zero is None else zero.astype(y.dtype))
    return jnp.clip(y, info.min, info.max).astype(dtype)


@operator("QuantizeLinear", style="values")
def _quantize(call: Call, x: Item, scale: Item, zero: Item = None) -> Item:
    v, s = to_value(x), to_jax(scale)
    code = call.attr("output_dtype", 0)
    dtype = zero.dtype if zero is not None else element_type(call, code) if code else np.dtype(np.uint8)  # type: ignore[union-attr]
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    wide = v.keep(v.data.astype(jnp.float32))
    z = None if zero is None else spread(call, to_jax(zero).astype(jnp.float32), v, axis, block)
    return v.keep(quantize(wide.data, spread(call, s.astype(jnp.float32), v, axis, block), z, dtype, call))


@operator("DequantizeLinear", style="values")
def _dequantize(call: Call, x: Item, scale: Item, zero: Item = None) -> Item:
    v, s = to_value(x), to_jax(scale)
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    wide = v.data.astype(jnp.float32)
    if zero is not None:
        wide = wide - spread(call, to_jax(zero).astype(jnp.float32), v, axis, block)
    code = call.attr("output_dtype", 0)
    dtype = element_type(call, code) if code else s.dtype
    return v.keep((wide * spread(call, s.astype(jnp.float32), v, axis, block)).astype(dtype))


@operator("DynamicQuantizeLinear")
def _dynamic_quantize(call: Call, x: Array) -> tuple[Array, ...]:
    low, high = jnp.minimum(x.min(), 0), jnp.maximum(x.max(), 0)
    scale = (high - low) / 255
    scale = jnp.where(scale == 0, 1, scale)
    zero = jnp.clip(jnp.round(-low / scale), 0, 255)
    return quantize(x, scale, zero, np.dtype(np.uint8), call), scale, zero.astype(jnp.uint8)


def _centred(x: Array, zero: Array | None, axis: int) -> Array:
    """x - zero as integers; a zero point for each row or column stands along `axis`."""
    wide = x.astype(jnp.int32)
    if zero is None:
        return wide
    z = zero.astype(jnp.int32)
    if z.ndim == 1 and z.size > 1:
        shape = [1] * x.ndim
        shape[axis] = z.size
        z = z.reshape(shape)
    return wide - (z.reshape(()) if z.size == 1 else z)


@operator("MatMulInteger")
def _matmul_integer(
    call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    return jnp.matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1), preferred_element_type=jnp.int32)


@operator("QLinearMatMul")
def _qlinear_matmul(
    call: Call, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array,
    y_scale: Array, y_zero: Array,
) -> Array:  # fmt: skip
    total = jnp.matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1), preferred_element_type=jnp.int32)
    rows = a_scale[..., None] if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    factor = rows.astype(jnp.float32) * b_scale.astype(jnp.float32) / y_scale.astype(jnp.float32)
    return quantize(total.astype(jnp.float32) * factor, jnp.ones(()), y_zero, y_zero.dtype, call)


@operator("ConvInteger", style="values")
def _conv_integer(call: Call, x: Item, w: Item, x_zero: Item = None, w_zero: Item = None) -> Item:
    y = _integer_conv(call, x, x_zero, w, w_zero)
    return y.keep(jnp.round(y.data).astype(jnp.int32))


def _integer_conv(call: Call, x: Item, x_zero: Item, w: Item, w_zero: Item) -> Value:
    v = to_value(x)
    data = v.keep(_centred(v.data, None if x_zero is None else to_jax(x_zero), 0).astype(jnp.float32))
    kernel = _centred(to_jax(w), None if w_zero is None else to_jax(w_zero), 0).astype(jnp.float32)
    return convolve(call, data, kernel, None)


@operator("QLinearConv", style="values")
def _qlinear_conv(
    call: Call, x: Item, x_scale: Item, x_zero: Item, w: Item, w_scale: Item, w_zero: Item, y_scale: Item,
    y_zero: Item, bias: Item = None,
) -> Item:  # fmt: skip
    total = _integer_conv(call, x, x_zero, w, w_zero)
    data = total.data if bias is None else total.data + to_jax(bias).astype(jnp.float32)
    zero = to_jax(y_zero)
    factor = to_jax(x_scale).reshape(()) * to_jax(w_scale).reshape(-1) / to_jax(y_scale).reshape(())
    return total.keep(quantize(data * factor, jnp.ones(()), zero.reshape(()), zero.dtype, call))
