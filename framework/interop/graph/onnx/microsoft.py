"""Operators of com.microsoft that ONNX Runtime writes into optimised and quantised models."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.interop.graph.layer import apply
from framework.interop.graph.onnx import linear, norm, pool, quantize, resize
from framework.interop.graph.onnx.conv import convolve
from framework.interop.graph.onnx.shapes import concat
from framework.interop.graph.operator import Call, Operator, Table, registrar
from framework.interop.graph.values import Item, Value, align, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array


def _named(name: str) -> str:
    return f"com.microsoft.{name}"


# What is the same as in ONNX's own set.
for _name, _source in {
    "GridSample": resize,
    "DequantizeLinear": quantize,
    "QuantizeLinear": quantize,
}.items():
    _entry: Operator = _source.OPERATORS[_name]
    operator(_named(_name), style=_entry.style, weights=_entry.weights)(_entry.run)


def _activated(call: Call, x: Array) -> Array:
    """The activation that was fused behind an operator."""
    name, parameters = call.attr("activation", ""), call.attr("activation_params") or ()
    plain = {"Relu": F.relu, "Sigmoid": F.sigmoid, "Tanh": jnp.tanh, "": lambda x: x}
    if name in plain:
        return plain[name](x)
    if name == "LeakyRelu":
        return F.leaky_relu(x, *(parameters or (0.01,)))
    if name == "Clip":
        return jnp.clip(x, *parameters)
    if name == "HardSigmoid":
        return F.hardsigmoid(x, *(parameters or (0.2, 0.5)))
    if name == "HardSwish":
        return F.hardswish(x)
    raise call.error("an activation that is not known", received=name)


@operator(_named("FusedConv"), style="values", weights=(1, 2))
def _fused_conv(call: Call, x: Item, weight: Item, bias: Item = None, added: Item = None) -> Item:
    y = convolve(call, to_value(x), to_jax(weight), None if bias is None else to_jax(bias))
    data = y.data if added is None else y.data + to_value(added).stored(y.order)
    return y.keep(_activated(call, data))


@operator(_named("FusedGemm"), weights=(1, 2))
def _fused_gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    return _activated(call, linear.OPERATORS["Gemm"].run(call, a, b, c))


@operator(_named("FusedMatMul"), weights=(0, 1))
def _fused_matmul(call: Call, a: Array, b: Array) -> Array:
    a = jnp.swapaxes(a, -1, -2) if call.attr("transA") else a
    b = jnp.swapaxes(b, -1, -2) if call.attr("transB") else b
    return linear.matmul(call, a, b) * call.attr("alpha", 1.0)


@operator(_named("Gelu"), style="elementwise")
def _gelu(call: Call, x: Array) -> Array:
    return F.gelu(x)


@operator(_named("QuickGelu"), style="elementwise")
def _quick_gelu(call: Call, x: Array) -> Array:
    return x * F.sigmoid(x * call.attr("alpha", 1.702))


@operator(_named("FastGelu"), _named("BiasGelu"), style="elementwise", weights=(1,))
def _bias_gelu(call: Call, x: Array, bias: Array | None = None) -> Array:
    return F.gelu(x if bias is None else x + bias, call.node.op.endswith("FastGelu"))


@operator(_named("LayerNormalization"), weights=(1, 2))
def _layer_norm(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Array | tuple[Array, ...]:
    return norm.OPERATORS["LayerNormalization"].run(call, x, weight, bias)


@operator("SimplifiedLayerNormalization", weights=(1,))
def _simplified_norm(call: Call, x: Array, weight: Array) -> Array:
    return norm.OPERATORS["RMSNormalization"].run(call, x, weight)


@operator(_named("SkipLayerNormalization"), weights=(2, 3, 4))
def _skip_norm(
    call: Call, x: Array, skip: Array, weight: Array, bias: Array | None = None, added: Array | None = None
) -> tuple[Array | None, ...]:
    total = x + skip if added is None else x + skip + added
    y = F.layer_norm(total, total.shape[-1:], weight, bias, call.attr("epsilon", 1e-12))
    return y, None, None, total


@operator(_named("SkipSimplifiedLayerNormalization"), weights=(2, 3))
def _skip_rms(
    call: Call, x: Array, skip: Array, weight: Array, added: Array | None = None
) -> tuple[Array | None, ...]:
    total = x + skip if added is None else x + skip + added
    return F.rms_norm(total, total.shape[-1:], weight, call.attr("epsilon", 1e-12)), None, None, total


@operator(_named("Inverse"))
def _inverse(call: Call, x: Array) -> Array:
    return jnp.linalg.inv(x)


# -- quantised operators: numbers of 8 bits in and out --------------------------------------------------------------


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
