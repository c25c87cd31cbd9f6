"""ONNX normalisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.dtypes import wide_type
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, channels_last, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("BatchNormalization", style="values", weights=(1, 2))
def _batch_norm(
    call: Call, x: Item, weight: Item, bias: Item, mean: Item, variance: Item
) -> tuple[Item, ...]:
    """In a layer that trains the statistics are those of the batch, and the buffers follow."""
    v = to_value(x)
    w, b, m, var = (to_jax(item) for item in (weight, bias, mean, variance))
    epsilon, momentum = call.attr("epsilon", 1e-5), call.attr("momentum", 0.9)
    # Before opset 14 a graph that names the statistics of the batch is one that trains.
    if call.attr("training_mode") or (
        call.version < 14 and len(call.node.outputs) > 1 and not call.attr("is_test")
    ):
        y, m, var = F.batch_norm(v.channels_last(), m, var, w, b, True, momentum, epsilon)
        _, mean_of, inverse = standardise(v.logical(), (0, *range(2, v.ndim)), epsilon)
        batch = (Value.of(array.reshape(-1)) for array in (mean_of, inverse))
        return Value(y, channels_last(v.ndim)), Value.of(m), Value.of(var), *batch
    if call.runner.training:
        y, m, var = F.batch_norm(v.channels_last(), m, var, w, b, True, momentum, epsilon)
        call.runner.set_buffer(call.node.inputs[3], m)
        call.runner.set_buffer(call.node.inputs[4], var)
    else:
        y = F.batch_norm(v.channels_last(), m, var, w, b, False, momentum, epsilon)[0]
    return Value(y, channels_last(v.ndim)), *(Value.of(a) for a in (m, var) * 2)


@operator("InstanceNormalization", style="values", weights=(1, 2))
def _instance_norm(call: Call, x: Item, weight: Item, bias: Item) -> Item:
    v = to_value(x)
    y = F.instance_norm(
        v.channels_last(), weight=to_jax(weight), bias=to_jax(bias), eps=call.attr("epsilon", 1e-5)
    )
    return Value(y, channels_last(v.ndim))


@operator("GroupNormalization", style="values", weights=(1, 2))
def _group_norm(call: Call, x: Item, weight: Item, bias: Item) -> Item:
    v, groups = to_value(x), call.required("num_groups")
    w, b = to_jax(weight), to_jax(bias)
    if call.version < 21:  # one scale for each group
        w, b = (jnp.repeat(item, v.shape[1] // groups) for item in (w, b))
    y = F.group_norm(v.channels_last(), groups, call.attr("epsilon", 1e-5), w, b)
    return Value(y, channels_last(v.ndim))


def standardise(x: jax.Array, axes: tuple[int, ...], epsilon: float) -> tuple[jax.Array, ...]:
    """(x with mean 0 and variance 1 over the axes, mean, 1 / standard deviation), in float32 or wider."""
    wide = x.astype(wide_type(x.dtype))
    mean = wide.mean(axes, keepdims=True)
    inverse = lax.rsqrt(jnp.square(wide - mean).mean(axes, keepdims=True) + epsilon)
    return (wide - mean) * inverse, mean, inverse


@operator("LayerNormalization", weights=(1, 2))
def _layer_norm(
    call: Call, x: jax.Array, weight: jax.Array, bias: jax.Array | None = None
) -> tuple[jax.Array, ...] | jax.Array:
    axis, epsilon = call.axis(call.attr("axis", -1), x.ndim), call.attr("epsilon", 1e-5)
    axes = tuple(range(axis, x.ndim))
    is_full = all(array is None or array.shape == x.shape[axis:] for array in (weight, bias))
    if is_full and not (call.wants(1) or call.wants(2)):
        return F.layer_norm(x, x.shape[axis:], weight, bias, epsilon)
    y, mean, inverse = standardise(x, axes, epsilon)
    y = y.astype(x.dtype) * weight
    return (y if bias is None else y + bias), mean, inverse


@operator("RMSNormalization", weights=(1,))
def _rms_norm(call: Call, x: jax.Array, weight: jax.Array) -> jax.Array:
    axis = call.axis(call.attr("axis", -1), x.ndim)
    wide = x.astype(wide_type(x.dtype))
    square = jnp.square(wide).mean(tuple(range(axis, x.ndim)), keepdims=True)
    return (wide * lax.rsqrt(square + call.attr("epsilon", 1e-5))).astype(x.dtype) * weight


@operator("LRN", style="values")
def _lrn(call: Call, x: Item) -> Item:
    v, size = to_value(x), call.required("size")
    data = v.channels_last()
    low = (size - 1) // 2
    window, edges = (1,) * (v.ndim - 1), ((0, 0),) * (v.ndim - 1)
    sums = lax.reduce_window(
        data * data, 0.0, lax.add, (*window, size), (1,) * v.ndim, (*edges, (low, size - 1 - low))
    )
    base = call.attr("bias", 1.0) + call.attr("alpha", 1e-4) / size * sums
    return Value(data / base ** call.attr("beta", 0.75), channels_last(v.ndim))


@operator("MeanVarianceNormalization", style="values")
def _mean_variance(call: Call, x: Item) -> Item:
    v = to_value(x)
    axes = tuple(v.order[call.axis(axis, v.ndim)] for axis in call.ints("axes", (0, 2, 3)) or ())
    mean = v.data.mean(axes, keepdims=True)
    deviation = jnp.sqrt(jnp.square(v.data - mean).mean(axes, keepdims=True))
    return v.keep((v.data - mean) / (deviation + 1e-9))
