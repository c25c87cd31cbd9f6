"""Operators of com.microsoft that ONNX Runtime writes into optimised and quantised models."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from framework.interop.graph.onnx import index, linear, norm, quantize, resize, shapes
from framework.interop.graph.onnx.conv import convolve
from framework.interop.graph.operator import Call, Operator, Run, Table, registrar
from framework.interop.graph.values import Item, Value, channels_last, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array


def _named(name: str) -> str:
    return f"com.microsoft.{name}"


_VERSION = 18  # of the operators of ONNX's own set that are the same


def _as_onnx(entry: Operator) -> Run:
    return lambda call, *items: entry.run(dataclasses.replace(call, version=_VERSION), *items)


for _name, _source in {
    **{"GridSample": resize, "DequantizeLinear": quantize, "QuantizeLinear": quantize, "Range": shapes},
    **{"GatherND": index, "Trilu": shapes, "Pad": shapes},
}.items():
    _entry: Operator = _source.OPERATORS[_name]
    _same = {
        f.name: getattr(_entry, f.name) for f in dataclasses.fields(_entry) if f.name not in ("name", "run")
    }
    operator(_named(_name), **_same)(_as_onnx(_entry))
operator(_named("ExpandDims"), style="values")(_as_onnx(shapes.OPERATORS["Unsqueeze"]))


def _activated(call: Call, x: Array) -> Array:
    """The activation that was fused behind an operator."""
    name, parameters = call.attr("activation", ""), call.attr("activation_params") or ()
    named = [call.attr(f"activation_{letter}") for letter in ("alpha", "beta", "gamma")]
    parameters = parameters or tuple(value for value in named if value is not None)
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
    if name == "Elu":
        return F.elu(x, *(parameters or (1.0,)))
    if name == "Gelu":
        return F.gelu(x)
    if name == "Softmax":
        return F.softmax(x, call.attr("activation_axis", -1))
    raise call.error("an activation that is not known", received=name)


@operator(_named("FusedConv"), style="values", weights=(1, 2))
def _fused_conv(call: Call, x: Item, weight: Item, bias: Item = None, added: Item = None) -> Item:
    y = convolve(call, to_value(x), to_jax(weight), None if bias is None else to_jax(bias))
    data = y.data if added is None else y.data + to_value(added).stored(y.order)
    return y.keep(_activated(call, data))


@operator(_named("FusedGemm"), weights=(1, 2))
def _fused_gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    return _activated(call, linear.OPERATORS["Gemm"].run(call, a, b, c))


@operator(_named("NhwcFusedConv"), _named("NhwcConv"), weights=(1, 2))
def _nhwc_conv(
    call: Call, x: Array, weight: Array, bias: Array | None = None, added: Array | None = None
) -> Array:
    y = convolve(call, Value(x, channels_last(x.ndim)), weight, bias).channels_last()
    return _activated(call, y if added is None else y + added)


@operator(_named("FusedMatMul"), _named("TransposeMatMul"), weights=(0, 1))
def _fused_matmul(call: Call, a: Array, b: Array) -> Array:
    a = jnp.moveaxis(a, 0, -2) if call.attr("transBatchA") and a.ndim > 2 else a
    b = jnp.moveaxis(b, 0, -2) if call.attr("transBatchB") and b.ndim > 2 else b
    a = jnp.swapaxes(a, -1, -2) if call.attr("transA") else a
    b = jnp.swapaxes(b, -1, -2) if call.attr("transB") else b
    return linear.matmul(call, a, b) * call.attr("alpha", 1.0)


@operator(_named("FusedMatMulActivation"), weights=(0, 1))
def _matmul_activation(call: Call, a: Array, b: Array) -> Array:
    return _activated(call, _fused_matmul(call, a, b))


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


@operator(_named("GroupNorm"), _named("SkipGroupNorm"), weights=(1, 2, 4))
def _group_norm(
    call: Call, x: Array, weight: Array, bias: Array, skip: Array | None = None, added: Array | None = None
) -> Array | tuple[Array, ...]:
    """With the channels last, and SiLU behind it where `activation` is 1; a skip and a bias are added in front."""
    for term in (skip, added):
        if term is not None:
            x = x + (term[:, None, None] if term.ndim == 2 else term)
    data = x if call.attr("channels_last", 1) else jnp.moveaxis(x, 1, -1)
    y = F.group_norm(data, call.required("groups"), call.attr("epsilon", 1e-5), weight, bias).astype(x.dtype)
    y = y * F.sigmoid(y) if call.attr("activation", 0) else y
    y = y if call.attr("channels_last", 1) else jnp.moveaxis(y, -1, 1)
    return (y, x) if call.node.op.endswith("SkipGroupNorm") else y


@operator(_named("BiasAdd"), weights=(1,))
def _bias_add(call: Call, x: Array, bias: Array, skip: Array) -> Array:
    return x + bias + skip


@operator(_named("BiasSplitGelu"), weights=(1,))
def _bias_split_gelu(call: Call, x: Array, bias: Array) -> Array:
    value, gate = jnp.split(x + bias, 2, -1)
    return value * F.gelu(gate)


@operator(_named("BiasSoftmax"))
def _bias_softmax(call: Call, x: Array, bias: Array) -> Array:
    """The bias broadcasts over the first axes, or over the ones behind the batch; axes from `axis` on are one."""
    axis = call.axis(call.attr("axis", 1), x.ndim)
    if not call.required("is_inner_broadcast"):
        bias = bias.reshape(bias.shape[0], *(1,) * (x.ndim - bias.ndim), *bias.shape[1:])
    total = x + bias
    return F.softmax(total.reshape(*x.shape[:axis], -1), -1).reshape(x.shape)


@operator(_named("BiasDropout"), weights=(1,))
def _bias_dropout(
    call: Call, x: Array, bias: Array, residual: Array | None = None, *_: Array | None
) -> tuple[Array, Array]:
    y = x + bias if residual is None else x + bias + residual
    return y, jnp.ones(y.shape, bool)


@operator(_named("IsAllFinite"))
def _is_all_finite(call: Call, *arrays: Array) -> Array:
    test = jnp.isnan if call.attr("isnan_only") else jnp.isinf if call.attr("isinf_only") else None
    whole = [jnp.isfinite(a).all() if test is None else ~test(a).any() for a in arrays]
    return jnp.stack(whole).all().reshape(1)


@operator(_named("CDist"))
def _distances(call: Call, a: Array, b: Array) -> Array:
    square = jnp.square(a[:, None] - b[None]).sum(-1)
    return square if call.attr("metric", "sqeuclidean") == "sqeuclidean" else jnp.sqrt(square)
