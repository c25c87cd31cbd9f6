"""Quantised operators of com.microsoft: numbers of 8 bits in and out, and weights of 2, 4 and 8 bits.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md (how bits are packed, defaults)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.interop.graph.layer import apply
from framework.interop.graph.onnx import pool, quantize, recurrent, reduce
from framework.interop.graph.onnx.shapes import concat
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, align, channels_last, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
# Dettmers et al. 2023, appendix E: the values of a code of four bits, as bitsandbytes orders them.
_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_BNB4 = {
    0: (*_FP4, *(-v for v in _FP4)),
    1: (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
        *(0.7229568362236023, 1.0),
    ),
}


def _named(name: str) -> str:
    return f"com.microsoft.{name}"


def _real(x: Array, scale: Array, zero: Array | None) -> Array:
    centred = x.astype(jnp.float32)
    return (centred if zero is None else centred - zero.astype(jnp.float32)) * scale


def _rounded(call: Call, y: Array, scale: Array, zero: Array | None, like: Array) -> Array:
    return quantize.quantize(y, scale, zero, like.dtype if zero is None else zero.dtype, call)


@operator(_named("QLinearAdd"), _named("QLinearMul"), style="values")
def _qlinear_binary(
    call: Call, a: Item, a_scale: Item, a_zero: Item, b: Item, b_scale: Item, b_zero: Item, scale: Item,
    zero: Item = None,
) -> Item:  # fmt: skip
    (x, y), order = align((a, b))
    left = _real(x, to_jax(a_scale), None if a_zero is None else to_jax(a_zero))
    right = _real(y, to_jax(b_scale), None if b_zero is None else to_jax(b_zero))
    result = left + right if call.node.op.endswith("Add") else left * right
    return Value(_rounded(call, result, to_jax(scale), None if zero is None else to_jax(zero), x), order)


@operator(_named("QLinearSigmoid"), _named("QLinearLeakyRelu"), style="elementwise", static=(1, 2, 3, 4))
def _qlinear_unary(
    call: Call, x: Array, x_scale: Item, x_zero: Item, scale: Item, zero: Item = None
) -> Array:
    wide = _real(x, to_jax(x_scale), None if x_zero is None else to_jax(x_zero))
    y = F.sigmoid(wide) if call.node.op.endswith("Sigmoid") else F.leaky_relu(wide, call.attr("alpha", 0.01))
    return _rounded(call, y, to_jax(scale), None if zero is None else to_jax(zero), x)


@operator(_named("QLinearSoftmax"), style="values")
def _qlinear_softmax(call: Call, x: Item, x_scale: Item, x_zero: Item, scale: Item, zero: Item) -> Item:
    v = to_value(x)
    wide = v.keep(_real(v.data, to_jax(x_scale), None if x_zero is None else to_jax(x_zero)))
    if call.attr("opset", 13) < 13 and call.attr("axis", -1) not in (-1, v.ndim - 1):
        raise call.error(
            "a softmax of opset 12 over several axes", fix="quantise the model at opset 13 or newer"
        )
    y = F.softmax(wide.data, v.order[call.axis(call.attr("axis", -1), v.ndim)])
    return v.keep(_rounded(call, y, to_jax(scale), to_jax(zero), v.data))


@operator(_named("QGemm"))
def _qgemm(
    call: Call, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array,
    c: Array | None = None, scale: Array | None = None, zero: Array | None = None,
) -> Array:  # fmt: skip
    a = a.T if call.attr("transA") else a
    # Zero points of b stand for its columns as the product sees it.
    b = b.T if call.attr("transB") else b
    total = quantize.OPERATORS["MatMulInteger"].run(call, a, b, a_zero, b_zero)
    total = total if c is None else total + c
    y = total.astype(jnp.float32) * (a_scale * b_scale) * call.attr("alpha", 1.0)
    return y if scale is None else _rounded(call, y, scale, zero, a)


@operator(_named("QLinearGlobalAveragePool"), style="values")
def _qlinear_mean(call: Call, x: Item, x_scale: Item, x_zero: Item, scale: Item, zero: Item) -> Item:
    v = to_value(x)
    if call.attr("channels_last"):
        v = Value(v.data, (0, v.ndim - 1, *range(1, v.ndim - 1)))
    wide = v.keep(_real(v.data, to_jax(x_scale), to_jax(x_zero)))
    mean = apply(pool.OPERATORS["GlobalAveragePool"], call, [wide])
    y = mean.keep(_rounded(call, mean.data, to_jax(scale), to_jax(zero), v.data))
    return Value.of(y.channels_last()) if call.attr("channels_last") else y


@operator(_named("QLinearConcat"), style="values")
def _qlinear_concat(call: Call, scale: Item, zero: Item, *operands: Item) -> Item:
    wide = []
    for x, x_scale, x_zero in zip(operands[::3], operands[1::3], operands[2::3]):
        v = to_value(x)
        wide.append(v.keep(_real(v.data, to_jax(x_scale), to_jax(x_zero))))
    joined = to_value(concat(call, tuple(wide), call.required("axis")))
    z = to_jax(zero)
    return joined.keep(_rounded(call, joined.data, to_jax(scale), z, z))


@operator(_named("MatMulIntegerToFloat"))
def _matmul_to_float(
    call: Call, a: Array, b: Array, a_scale: Array, b_scale: Array, a_zero: Array | None = None,
    b_zero: Array | None = None, bias: Array | None = None,
) -> Array:  # fmt: skip
    total = quantize.OPERATORS["MatMulInteger"].run(call, a, b, a_zero, b_zero)
    y = total.astype(jnp.float32) * (a_scale * b_scale)
    return y if bias is None else y + bias


@operator(_named("DynamicQuantizeMatMul"))
def _dynamic_matmul(
    call: Call, a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
) -> Array:
    rounded, a_scale, a_zero = quantize.OPERATORS["DynamicQuantizeLinear"].run(call, a)
    return _matmul_to_float(call, rounded, b, a_scale, b_scale, a_zero, b_zero, bias)


@operator(_named("QLinearReduceMean"), style="values")
def _qlinear_reduce(call: Call, x: Item, x_scale: Item, x_zero: Item, scale: Item, zero: Item = None) -> Item:
    v = to_value(x)
    wide = v.keep(_real(v.data, to_jax(x_scale), None if x_zero is None else to_jax(x_zero)))
    mean = to_value(reduce.OPERATORS["ReduceMean"].run(call, wide))
    return mean.keep(_rounded(call, mean.data, to_jax(scale), None if zero is None else to_jax(zero), v.data))


@operator(_named("QLinearWhere"))
def _qlinear_where(
    call: Call, condition: Array, x: Array, x_scale: Array, x_zero: Array, y: Array, y_scale: Array, y_zero: Array,
    scale: Array, zero: Array,
) -> Array:  # fmt: skip
    selection = jnp.where(condition, _real(x, x_scale, x_zero), _real(y, y_scale, y_zero))
    return _rounded(call, selection, scale, zero, x)


@operator(_named("QLinearConv"), style="values")
def _qlinear_conv(call: Call, x: Item, *rest: Item) -> Item:
    if not call.attr("channels_last"):
        return quantize.OPERATORS["QLinearConv"].run(call, x, *rest)
    data = to_jax(x)
    return Value.of(
        quantize.OPERATORS["QLinearConv"]
        .run(call, Value(data, channels_last(data.ndim)), *rest)
        .channels_last()
    )


@operator(_named("QLinearAveragePool"), style="values")
def _qlinear_average(
    call: Call, x: Item, x_scale: Item, x_zero: Item, scale: Item, zero: Item = None
) -> Item:
    v, last = to_value(x), bool(call.attr("channels_last"))
    v = Value(v.logical(), channels_last(v.ndim)) if last else v
    wide = v.keep(_real(v.data, to_jax(x_scale), None if x_zero is None else to_jax(x_zero)))
    mean = to_value(apply(pool.OPERATORS["AveragePool"], call, [wide]))
    y = mean.keep(_rounded(call, mean.data, to_jax(scale), None if zero is None else to_jax(zero), v.data))
    return Value.of(y.channels_last()) if last else y


@operator(_named("NhwcMaxPool"))
def _nhwc_max(call: Call, x: Array) -> Array:
    return apply(pool.OPERATORS["MaxPool"], call, [Value(x, channels_last(x.ndim))]).channels_last()


@operator(_named("DynamicQuantizeLSTM"))
def _dynamic_lstm(call: Call, x: Array, w: Array, r: Array, *rest: Array | None) -> tuple[Array, ...]:
    """Weights [D, in, 4 H] and [D, H, 4 H] of 8 bits; inputs and states are rounded to 8 bits in front of them."""
    *others, w_scale, w_zero, r_scale, r_zero = rest

    def weights(q: Array, scale: Array | None, zero: Array | None) -> Array:
        assert scale is not None and zero is not None
        shape = (q.shape[0], 1, -1)
        wide = (q.astype(jnp.float32) - zero.reshape(shape).astype(jnp.float32)) * scale.reshape(shape)
        return jnp.swapaxes(wide, 1, 2)

    def rounded(a: Array) -> Array:
        codes, scale, zero = quantize.OPERATORS["DynamicQuantizeLinear"].run(call, a)
        return _real(codes, scale, zero)

    w, r = weights(w, w_scale, w_zero), weights(r, r_scale, r_zero)
    return recurrent.run(call, "LSTM", rounded(x), w, r, *others, rounding=rounded)


# -- weights of few bits ----------------------------------------------------------------------------------------------


def _unpack(packed: Array, bits: int) -> Array:
    """Bytes [..., n] as codes [..., n * 8 / bits], the lowest bits first."""
    shifts = jnp.arange(0, 8, bits, dtype=jnp.uint8)
    codes = (packed[..., None] >> shifts) & jnp.uint8((1 << bits) - 1)
    return codes.reshape(*packed.shape[:-1], -1)


@operator(_named("MatMulNBits"))
def _matmul_bits(
    call: Call, a: Array, b: Array, scales: Array, zeros: Array | None = None, order: Array | None = None,
    bias: Array | None = None,
) -> Array:  # fmt: skip
    """b [N, blocks, bytes] has a scale for each block of a row; `order` [K] says of which block each input is."""
    bits, size, rows, depth = (call.attr("bits", 4), *map(call.required, ("block_size", "N", "K")))
    blocks = -(-depth // size)
    codes = _unpack(b.reshape(rows, -1), bits)[:, : blocks * size].astype(a.dtype)
    scale = scales.reshape(rows, blocks)
    if zeros is None:
        zero = jnp.full((rows, blocks), 1 << (bits - 1), a.dtype)
    elif zeros.dtype == jnp.uint8:
        zero = _unpack(zeros.reshape(rows, -1), bits)[:, :blocks].astype(a.dtype)
    else:
        zero = zeros.reshape(rows, blocks)
    block = jnp.repeat(jnp.arange(blocks), size)[:depth] if order is None else order
    weight = (codes[:, :depth] - zero[:, block]) * scale[:, block].astype(a.dtype)
    y = F.matmul(a, weight, transpose_y=True)
    return y if bias is None else y + bias


@operator(_named("MatMulBnb4"))
def _matmul_bnb4(call: Call, a: Array, b: Array, largest: Array) -> Array:
    """Codes of a table, two in a byte, the first in its high bits; each block is scaled by its largest value."""
    kind, size = call.required("quant_type"), call.required("block_size")
    rows, depth = call.required("N"), call.required("K")
    if kind not in _BNB4:
        raise call.error("a kind of four bits that is not known", received=kind, allowed="0 (FP4), 1 (NF4)")
    packed = b.reshape(-1)
    codes = jnp.stack([packed >> 4, packed & 15], -1).reshape(-1)[: rows * depth]
    values = jnp.asarray(_BNB4[kind], a.dtype)[codes]
    scale = jnp.repeat(largest.astype(a.dtype), size)[: rows * depth]
    return F.matmul(a, (values * scale).reshape(rows, depth), transpose_y=True)


@operator(_named("GatherBlockQuantized"))
def _gather_blocks(call: Call, data: Array, index: Array, scales: Array, zeros: Array | None = None) -> Array:
    """Rows of a table of 4 or 8 bits with a scale for each block along `quantize_axis`."""
    bits, size = call.attr("bits", 4), call.attr("block_size", 128)
    packed = data.dtype == jnp.uint8
    codes = _unpack(data, bits) if packed else data
    axis = call.axis(call.attr("quantize_axis", 1), codes.ndim)
    shift = 0
    if zeros is not None:
        shift = _unpack(zeros, bits) if packed and bits < 8 else zeros
        shift = jnp.take(shift, jnp.arange(scales.shape[axis]), axis)
        shift = jnp.repeat(shift.astype(jnp.float32), size, axis, total_repeat_length=codes.shape[axis])
    elif packed:
        shift = 1 << (bits - 1)
    scale = jnp.repeat(scales.astype(jnp.float32), size, axis, total_repeat_length=codes.shape[axis])
    table = (codes.astype(jnp.float32) - shift) * scale
    at = call.axis(call.attr("gather_axis", 0), codes.ndim)
    return jnp.take(table, index, at, mode="wrap").astype(scales.dtype)
