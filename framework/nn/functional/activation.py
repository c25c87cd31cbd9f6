"""Activations with Paddle's names, defaults and gradients at the corners.

Where a function has a kink its gradient there is Paddle's: zero at both ends of a clamp, never one half.
Source: paddle.nn.functional.activation.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from framework.core.errors import ShapeError
from framework.core.rng import next_key


def _clamp(x: jax.Array, low: float, high: float) -> jax.Array:
    return lax.clamp(jnp.asarray(low, x.dtype), x, jnp.asarray(high, x.dtype))


@jax.jit
def relu(x: jax.Array) -> jax.Array:
    """max(x, 0)."""
    return jax.nn.relu(x)


@jax.jit
def relu6(x: jax.Array) -> jax.Array:
    """x clamped to [0, 6]."""
    return _clamp(x, 0.0, 6.0)


@jax.jit
def sigmoid(x: jax.Array) -> jax.Array:
    """1 / (1 + exp(-x))."""
    return jax.nn.sigmoid(x)


@jax.jit
def log_sigmoid(x: jax.Array) -> jax.Array:
    """log(sigmoid(x)) without overflow."""
    return jax.nn.log_sigmoid(x)


@jax.jit
def tanh(x: jax.Array) -> jax.Array:
    """Hyperbolic tangent."""
    return jnp.tanh(x)


@jax.jit
def silu(x: jax.Array) -> jax.Array:
    """x * sigmoid(x)."""
    return x * jax.nn.sigmoid(x)


swish = silu


@jax.jit
def mish(x: jax.Array) -> jax.Array:
    """x * tanh(log(1 + exp(x)))."""
    return x * jnp.tanh(jax.nn.softplus(x))


@jax.jit
def hardswish(x: jax.Array) -> jax.Array:
    """x * relu6(x + 3) / 6."""
    return x * (_clamp(x + 3, 0.0, 6.0) / 6)


@jax.jit
def softsign(x: jax.Array) -> jax.Array:
    """x / (1 + |x|)."""
    return x / (1 + jnp.abs(x))


@jax.jit
def tanhshrink(x: jax.Array) -> jax.Array:
    """x - tanh(x)."""
    return x - jnp.tanh(x)


@functools.partial(jax.jit, static_argnames=("slope", "offset"))
def _hardsigmoid(x: jax.Array, slope: float, offset: float) -> jax.Array:
    return _clamp(x * slope + offset, 0.0, 1.0)


def hardsigmoid(x: jax.Array, slope: float = 1 / 6, offset: float = 0.5) -> jax.Array:
    """slope * x + offset clamped to [0, 1]. Old graphs and the OCR necks say slope 0.2: pass what they say."""
    return _hardsigmoid(x, float(slope), float(offset))


@functools.partial(jax.jit, static_argnames=("min", "max"))
def _hardtanh(x: jax.Array, min: float, max: float) -> jax.Array:
    return _clamp(x, min, max)


def hardtanh(x: jax.Array, min: float = -1.0, max: float = 1.0) -> jax.Array:
    """x clamped to [min, max]."""
    return _hardtanh(x, float(min), float(max))


def _exact_gelu(x: jax.Array) -> jax.Array:
    # erf and not erfc, a polynomial or tanh: the fastest of the four on a CPU (performance.md, section 1).
    return 0.5 * x * (1 + lax.erf(x * math.sqrt(0.5)))


@jax.custom_vjp
def _low_gelu(x: jax.Array) -> jax.Array:
    """Of 16 bits: computed in float32 and rounded once. Only x is kept for the gradient: on a CPU forward and backward
    of [1024, 3072] take 16 ms and keep 6 MB; jax's own derivative takes 21 ms and keeps 19 MB."""
    return _exact_gelu(x.astype(jnp.float32)).astype(x.dtype)


def _low_gelu_bwd(x: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    wide = x.astype(jnp.float32)
    density = jnp.exp(-0.5 * wide * wide) * (1 / math.sqrt(2 * math.pi))
    slope = 0.5 * (1 + lax.erf(wide * math.sqrt(0.5))) + wide * density
    return ((cotangent.astype(jnp.float32) * slope).astype(x.dtype),)


_low_gelu.defvjp(lambda x: (_low_gelu(x), x), _low_gelu_bwd)


@functools.partial(jax.jit, static_argnames=("approximate",))
def _gelu(x: jax.Array, approximate: bool) -> jax.Array:
    if approximate:
        return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return _low_gelu(x) if x.dtype in (jnp.bfloat16, jnp.float16) else _exact_gelu(x)


def gelu(x: jax.Array, approximate: bool = False) -> jax.Array:
    """x * Phi(x), exact by default; `approximate` takes the tanh form."""
    return _gelu(x, approximate)


@functools.partial(jax.jit, static_argnames=("negative_slope",))
def _leaky_relu(x: jax.Array, negative_slope: float) -> jax.Array:
    return jnp.where(x < 0, x * negative_slope, x)


def leaky_relu(x: jax.Array, negative_slope: float = 0.01) -> jax.Array:
    """x where positive, negative_slope * x elsewhere."""
    return _leaky_relu(x, float(negative_slope))


@functools.partial(jax.jit, static_argnames=("alpha",))
def _elu(x: jax.Array, alpha: float) -> jax.Array:
    negative = alpha * jnp.expm1(
        jnp.where(x > 0, 0, x)
    )  # the inner where keeps the gradient finite at large x
    return jnp.where(x > 0, x, negative)


def elu(x: jax.Array, alpha: float = 1.0) -> jax.Array:
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    return _elu(x, float(alpha))


@functools.partial(jax.jit, static_argnames=("alpha",))
def _celu(x: jax.Array, alpha: float) -> jax.Array:
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) / alpha))


def celu(x: jax.Array, alpha: float = 1.0) -> jax.Array:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere."""
    return _celu(x, float(alpha))


@functools.partial(jax.jit, static_argnames=("scale", "alpha"))
def _selu(x: jax.Array, scale: float, alpha: float) -> jax.Array:
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x)))


def selu(x: jax.Array, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> jax.Array:
    """Self-normalising ELU. Source: Klambauer et al. 2017."""
    return _selu(x, float(scale), float(alpha))


@functools.partial(jax.jit, static_argnames=("beta", "threshold"))
def _softplus(x: jax.Array, beta: float, threshold: float) -> jax.Array:
    return jnp.where(x * beta > threshold, x, jax.nn.softplus(x * beta) / beta)


def softplus(x: jax.Array, beta: float = 1.0, threshold: float = 20.0) -> jax.Array:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`."""
    return _softplus(x, float(beta), float(threshold))


@functools.partial(jax.jit, static_argnames=("threshold",))
def _softshrink(x: jax.Array, threshold: float) -> jax.Array:
    return jnp.where(
        x > threshold, x - threshold, jnp.where(x < -threshold, x + threshold, jnp.zeros_like(x))
    )


def softshrink(x: jax.Array, threshold: float = 0.5) -> jax.Array:
    """x moved towards zero by `threshold`, zero within it."""
    return _softshrink(x, float(threshold))


@functools.partial(jax.jit, static_argnames=("threshold",))
def _hardshrink(x: jax.Array, threshold: float) -> jax.Array:
    return jnp.where(jnp.abs(x) > threshold, x, jnp.zeros_like(x))


def hardshrink(x: jax.Array, threshold: float = 0.5) -> jax.Array:
    """x where |x| exceeds `threshold`, zero elsewhere."""
    return _hardshrink(x, float(threshold))


@functools.partial(jax.jit, static_argnames=("threshold",))
def _thresholded_relu(x: jax.Array, threshold: float) -> jax.Array:
    return jnp.where(x > threshold, x, jnp.zeros_like(x))


def thresholded_relu(x: jax.Array, threshold: float = 1.0) -> jax.Array:
    """x where it exceeds `threshold`, zero elsewhere."""
    return _thresholded_relu(x, float(threshold))


@jax.jit
def _prelu(x: jax.Array, weight: jax.Array) -> jax.Array:
    return jnp.where(x > 0, x, x * weight.astype(x.dtype))


def prelu(x: jax.Array, weight: jax.Array) -> jax.Array:
    """x where positive, weight * x elsewhere; weight has one value or one for each channel (the last axis)."""
    if weight.size not in (1, x.shape[-1]):
        raise ShapeError(
            "prelu: the weight has one value or one for each channel",
            received=f"x {x.shape}, weight {weight.shape}",
            allowed=f"1 or {x.shape[-1]} values; activations are channels-last",
        )
    return _prelu(x, weight.reshape(-1))


@functools.partial(jax.jit, static_argnames=("groups", "axis"))
def _maxout(x: jax.Array, groups: int, axis: int) -> jax.Array:
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    return x.reshape(shape).max(axis + 1)


def maxout(x: jax.Array, groups: int, axis: int = -1) -> jax.Array:
    """The maximum of each run of `groups` neighbouring channels; the axis shrinks to size / groups."""
    axis %= x.ndim
    if x.shape[axis] % groups:
        raise ShapeError(
            "maxout: channels divide into groups", received=x.shape[axis], allowed=f"a multiple of {groups}"
        )
    return _maxout(x, groups, axis)


@functools.partial(jax.jit, static_argnames=("axis",))
def _glu(x: jax.Array, axis: int) -> jax.Array:
    left, right = jnp.split(x, 2, axis)
    return left * jax.nn.sigmoid(right)


def glu(x: jax.Array, axis: int = -1) -> jax.Array:
    """The first half of `axis` times the sigmoid of the second."""
    if x.shape[axis] % 2:
        raise ShapeError(
            "glu: the axis splits into two halves", received=x.shape[axis], allowed="an even size"
        )
    return _glu(x, axis)


@functools.partial(jax.jit, static_argnames=("axis",))
def _softmax(x: jax.Array, axis: int) -> jax.Array:
    return jax.nn.softmax(x, axis)


def softmax(x: jax.Array, axis: int = -1, dtype: DTypeLike | None = None) -> jax.Array:
    """exp(x) normalised to sum 1 over `axis`, computed in `dtype` when given."""
    return _softmax(x if dtype is None else x.astype(dtype), axis)


@functools.partial(jax.jit, static_argnames=("axis",))
def _log_softmax(x: jax.Array, axis: int) -> jax.Array:
    return jax.nn.log_softmax(x, axis)


def log_softmax(x: jax.Array, axis: int = -1, dtype: DTypeLike | None = None) -> jax.Array:
    """log of softmax over `axis`, computed in `dtype` when given."""
    return _log_softmax(x if dtype is None else x.astype(dtype), axis)


@functools.partial(jax.jit, static_argnames=("temperature", "hard", "axis"))
def _gumbel_softmax(x: jax.Array, key: jax.Array, temperature: float, hard: bool, axis: int) -> jax.Array:
    soft = jax.nn.softmax((x + jax.random.gumbel(key, x.shape, x.dtype)) / temperature, axis)
    if not hard:
        return soft
    one = jax.nn.one_hot(soft.argmax(axis), x.shape[axis], axis=axis, dtype=x.dtype)
    return one + soft - lax.stop_gradient(soft)


def gumbel_softmax(
    x: jax.Array, temperature: float = 1.0, hard: bool = False, axis: int = -1, key: jax.Array | None = None
) -> jax.Array:
    """A differentiable sample of the categorical with logits `x`; `hard` rounds it and keeps the soft gradient.

    Source: Jang et al. 2017. `key` defaults to `next_key()`.
    """
    return _gumbel_softmax(x, next_key() if key is None else key, float(temperature), hard, axis)


@jax.jit
def _argmax_last(x: jax.Array) -> jax.Array:
    size = x.shape[-1]
    index = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    found = jnp.where(x >= x.max(-1, keepdims=True), index, size).min(-1)
    return jnp.minimum(found, size - 1)  # a row of NaN compares with nothing: its last index, within range


def argmax_last(x: jax.Array) -> jax.Array:
    """The first index of the maximum over the last axis, int32.

    Two plain reductions. jnp.argmax is a reduction of pairs, which XLA does not vectorise on a CPU: 4 to 7 ms against
    less than 1 for the 18710 characters of a batch of text lines (performance.md, section 2).
    """
    return _argmax_last(x)
