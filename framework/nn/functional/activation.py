"""Activations with Paddle's names, defaults and gradients at the corners.

Where a function has a kink its gradient there is Paddle's: zero at both ends of a clamp, never one half.
Source: paddle.nn.functional.activation.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from framework.core.errors import ShapeError
from framework.core.rng import next_key
from framework.nn.functional import slopes
from framework.nn.functional.lowering import jitted


def _clamp(x: jax.Array, low: float, high: float) -> jax.Array:
    return lax.clamp(jnp.asarray(low, x.dtype), x, jnp.asarray(high, x.dtype))


@jitted()
def relu(x: jax.Array) -> jax.Array:
    """max(x, 0)."""
    return jax.nn.relu(x)


@jitted()
def relu6(x: jax.Array) -> jax.Array:
    """x clamped to [0, 6]."""
    return _clamp(x, 0.0, 6.0)


@jitted()
def sigmoid(x: jax.Array) -> jax.Array:
    """1 / (1 + exp(-x))."""
    return slopes.rounded_once(jax.nn.sigmoid)(x)


@jitted()
def log_sigmoid(x: jax.Array) -> jax.Array:
    """log(sigmoid(x)) without overflow."""
    return slopes.rounded_once(jax.nn.log_sigmoid)(x)


@jitted()
def tanh(x: jax.Array) -> jax.Array:
    """Hyperbolic tangent."""
    return slopes.rounded_once(jnp.tanh)(x)


@jitted()
def silu(x: jax.Array) -> jax.Array:
    """x * sigmoid(x)."""
    return slopes.rounded_once(lambda x: x * jax.nn.sigmoid(x))(x)


swish = silu


@jitted()
def mish(x: jax.Array) -> jax.Array:
    """x * tanh(log(1 + exp(x)))."""
    return slopes.rounded_once(lambda x: x * jnp.tanh(jax.nn.softplus(x)))(x)


@jitted()
def hardswish(x: jax.Array) -> jax.Array:
    """x * relu6(x + 3) / 6."""
    return slopes.rounded_once(lambda x: x * (_clamp(x + 3, 0.0, 6.0) / 6))(x)


@jitted()
def softsign(x: jax.Array) -> jax.Array:
    """x / (1 + |x|)."""
    return slopes.rounded_once(slopes.softsign)(x)


@jitted()
def tanhshrink(x: jax.Array) -> jax.Array:
    """x - tanh(x)."""
    return slopes.rounded_once(slopes.tanhshrink)(x)


@jitted("slope", "offset")
def hardsigmoid(x: jax.Array, slope: float = 1 / 6, offset: float = 0.5) -> jax.Array:
    """slope * x + offset clamped to [0, 1]. Old graphs say slope 0.2: pass what they say."""
    return slopes.rounded_once(lambda x: _clamp(x * float(slope) + float(offset), 0.0, 1.0))(x)


@jitted("min", "max")
def hardtanh(x: jax.Array, min: float = -1.0, max: float = 1.0) -> jax.Array:
    """x clamped to [min, max]."""
    return _clamp(x, min, max)


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


def _tanh_gelu(x: jax.Array) -> jax.Array:
    return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@jitted("approximate")
def gelu(x: jax.Array, approximate: bool = False) -> jax.Array:
    """x * Phi(x), exact by default; `approximate` takes the tanh form."""
    if approximate:
        return slopes.rounded_once(_tanh_gelu)(x)
    return _low_gelu(x) if x.dtype in (jnp.bfloat16, jnp.float16) else _exact_gelu(x)


@jitted("negative_slope")
def leaky_relu(x: jax.Array, negative_slope: float = 0.01) -> jax.Array:
    """x where positive, negative_slope * x elsewhere."""
    return jnp.where(x < 0, x * float(negative_slope), x)


def _expm1_below(x: jax.Array) -> jax.Array:
    """exp(x) - 1 where x is negative; the inner where keeps the gradient finite at large x."""
    return slopes.expm1(jnp.where(x > 0, 0, x))


@jitted("alpha")
def elu(x: jax.Array, alpha: float = 1.0) -> jax.Array:
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    return slopes.rounded_once(lambda x: jnp.where(x > 0, x, float(alpha) * _expm1_below(x)))(x)


@jitted("alpha")
def celu(x: jax.Array, alpha: float = 1.0) -> jax.Array:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere."""
    alpha = float(alpha)
    below = slopes.rounded_once(lambda x: alpha * slopes.expm1(jnp.where(x > 0, 0, x) / alpha))
    return jnp.where(x > 0, x, below(x))


@jitted("scale", "alpha")
def selu(x: jax.Array, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> jax.Array:
    """Self-normalising ELU. Source: Klambauer et al. 2017."""
    return slopes.rounded_once(lambda x: float(scale) * jnp.where(x > 0, x, float(alpha) * _expm1_below(x)))(
        x
    )


@jitted("beta", "threshold")
def softplus(x: jax.Array, beta: float = 1.0, threshold: float = 20.0) -> jax.Array:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`."""
    beta = float(beta)
    return slopes.rounded_once(
        lambda x: jnp.where(x * beta > threshold, x, jax.nn.softplus(x * beta) / beta)
    )(x)


@jitted("threshold")
def softshrink(x: jax.Array, threshold: float = 0.5) -> jax.Array:
    """x moved towards zero by `threshold`, zero within it."""
    threshold = float(threshold)
    # Compared so that NaN, which compares with nothing, stays NaN: here and in the two below.
    moved = jnp.where(x < 0, x + threshold, x - threshold)
    return jnp.where(jnp.abs(x) <= threshold, jnp.zeros_like(x), moved)


@jitted("threshold")
def hardshrink(x: jax.Array, threshold: float = 0.5) -> jax.Array:
    """x where |x| exceeds `threshold`, zero elsewhere."""
    return jnp.where(jnp.abs(x) <= float(threshold), jnp.zeros_like(x), x)


@jitted("threshold")
def thresholded_relu(x: jax.Array, threshold: float = 1.0) -> jax.Array:
    """x where it exceeds `threshold`, zero elsewhere."""
    return jnp.where(x <= float(threshold), jnp.zeros_like(x), x)


@jitted()
def prelu(x: jax.Array, weight: jax.Array) -> jax.Array:
    """x where positive, weight * x elsewhere; weight has one value or one for each channel (the last axis)."""
    if weight.size not in (1, x.shape[-1]):
        raise ShapeError(
            "prelu: the weight has one value or one for each channel",
            received=f"x {x.shape}, weight {weight.shape}",
            allowed=f"1 or {x.shape[-1]} values; activations are channels-last",
        )
    return jnp.where(x > 0, x, x * weight.reshape(-1).astype(x.dtype))


@jitted("lower", "upper")
def _rrelu(x: jax.Array, key: jax.Array, lower: float, upper: float) -> jax.Array:
    return jnp.where(x < 0, x * jax.random.uniform(key, x.shape, x.dtype, lower, upper), x)


def rrelu(
    x: jax.Array,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = True,
    key: jax.Array | None = None,
) -> jax.Array:
    """x where positive, elsewhere x times a slope that training draws from [lower, upper] and inference takes as its
    mean. Source: Xu et al. 2015. `key` defaults to `next_key()`."""
    if not 0 <= lower <= upper <= 1:
        raise ShapeError(
            "rrelu: the slopes are out of order",
            received=f"{lower} to {upper}",
            allowed="0 <= lower <= upper <= 1",
        )
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    return _rrelu(x, next_key() if key is None else key, float(lower), float(upper))


@jitted("groups", "axis")
def maxout(x: jax.Array, groups: int, axis: int = -1) -> jax.Array:
    """The maximum of each run of `groups` neighbouring channels; the axis shrinks to size / groups."""
    axis %= x.ndim
    if x.shape[axis] % groups:
        raise ShapeError(
            "maxout: channels divide into groups", received=x.shape[axis], allowed=f"a multiple of {groups}"
        )
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    return x.reshape(shape).max(axis + 1)


@jitted("axis")
def glu(x: jax.Array, axis: int = -1) -> jax.Array:
    """The first half of `axis` times the sigmoid of the second."""
    if x.shape[axis] % 2:
        raise ShapeError(
            "glu: the axis splits into two halves", received=x.shape[axis], allowed="an even size"
        )
    left, right = jnp.split(x, 2, axis)
    return left * jax.nn.sigmoid(right)


@jitted()
def swiglu(x: jax.Array, y: jax.Array | None = None) -> jax.Array:
    """silu(x) * y; without `y` x is the first half of its last axis and y the second. Source: Shazeer 2020."""
    if y is None:
        if x.shape[-1] % 2:
            raise ShapeError("swiglu: the last axis has two halves", received=x.shape, allowed="an even size")
        x, y = jnp.split(x, 2, -1)
    return x * jax.nn.sigmoid(x) * y


@jitted("axis", "dtype")
def softmax(x: jax.Array, axis: int = -1, dtype: DTypeLike | None = None) -> jax.Array:
    """exp(x) normalised to sum 1 over `axis`, computed in `dtype` when given."""
    return jax.nn.softmax(x if dtype is None else x.astype(dtype), axis)


@jitted("axis", "dtype")
def log_softmax(x: jax.Array, axis: int = -1, dtype: DTypeLike | None = None) -> jax.Array:
    """log of softmax over `axis`, computed in `dtype` when given."""
    return jax.nn.log_softmax(x if dtype is None else x.astype(dtype), axis)


@jitted("temperature", "hard", "axis")
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


@jitted()
def argmax_last(x: jax.Array) -> jax.Array:
    """The first index of the maximum over the last axis, int32.

    Two plain reductions. jnp.argmax is a reduction of pairs, which XLA does not vectorise on a CPU: 4 to 7 ms against
    less than 1 for a batch of 18710 classes (performance.md, section 2).
    """
    size = x.shape[-1]
    index = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    found = jnp.where(x >= x.max(-1, keepdims=True), index, size).min(-1)
    return jnp.minimum(found, size - 1)  # a row of NaN compares with nothing: its last index, within range
