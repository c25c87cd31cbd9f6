"""Activations. The numerics are the core's."""

from __future__ import annotations

import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.methods import in_place
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.layout import from_last, to_last


@operation
def relu(x: Array, name: str | None = None) -> Array:
    """max(x, 0)."""
    return core.relu(x)


@operation
def relu6(x: Array, name: str | None = None) -> Array:
    """x clamped to [0, 6]."""
    return core.relu6(x)


@operation
def sigmoid(x: Array, name: str | None = None) -> Array:
    """1 / (1 + exp(-x))."""
    return core.sigmoid(x)


@operation
def log_sigmoid(x: Array, name: str | None = None) -> Array:
    """log(sigmoid(x))."""
    return core.log_sigmoid(x)


@operation
def tanh(x: Array, name: str | None = None) -> Array:
    """Hyperbolic tangent."""
    return core.tanh(x)


@operation
def silu(x: Array, name: str | None = None) -> Array:
    """x * sigmoid(x)."""
    return core.silu(x)


@operation
def swish(x: Array, name: str | None = None) -> Array:
    """x * sigmoid(x)."""
    return core.silu(x)


@operation
def mish(x: Array, name: str | None = None) -> Array:
    """x * tanh(softplus(x))."""
    return core.mish(x)


@operation
def hardswish(x: Array, name: str | None = None) -> Array:
    """x * relu6(x + 3) / 6."""
    return core.hardswish(x)


@operation
def softsign(x: Array, name: str | None = None) -> Array:
    """x / (1 + |x|)."""
    return core.softsign(x)


@operation
def tanhshrink(x: Array, name: str | None = None) -> Array:
    """x - tanh(x)."""
    return core.tanhshrink(x)


@operation
def hardsigmoid(x: Array, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None) -> Array:
    """slope * x + offset clamped to [0, 1]."""
    return core.hardsigmoid(x, slope, offset)


@operation
def hardtanh(x: Array, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Array:
    """x clamped to [min, max]."""
    return core.hardtanh(x, min, max)


@operation
def gelu(x: Array, approximate: bool = False, name: str | None = None) -> Array:
    """x * Phi(x), or its tanh form."""
    return core.gelu(x, bool(approximate))


@operation
def leaky_relu(x: Array, negative_slope: float = 0.01, name: str | None = None) -> Array:
    """x where positive, negative_slope * x elsewhere."""
    return core.leaky_relu(x, negative_slope)


@operation
def elu(x: Array, alpha: float = 1.0, name: str | None = None) -> Array:
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    return core.elu(x, alpha)


@operation
def celu(x: Array, alpha: float = 1.0, name: str | None = None) -> Array:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere."""
    if alpha == 0:
        raise ShapeError("celu: alpha is a divisor", received=alpha, allowed="any number but 0")
    return core.celu(x, alpha)


@operation
def selu(
    x: Array,
    scale: float = 1.0507009873554804934193349852946,
    alpha: float = 1.6732632423543772848170429916717,
    name: str | None = None,
) -> Array:
    """Self-normalising ELU."""
    if scale <= 1 or alpha < 0:
        raise ShapeError("selu: its constants", received=f"{scale}, {alpha}", allowed="scale > 1, alpha >= 0")
    return core.selu(x, scale, alpha)


@operation
def softplus(x: Array, beta: float = 1, threshold: float = 20, name: str | None = None) -> Array:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
    return core.softplus(x, beta, threshold)


@operation
def softshrink(x: Array, threshold: float = 0.5, name: str | None = None) -> Array:
    """x moved towards zero by `threshold`."""
    if threshold < 0:
        raise ShapeError("softshrink: the threshold is a distance", received=threshold, allowed="0 or more")
    return core.softshrink(x, threshold)


@operation
def hardshrink(x: Array, threshold: float = 0.5, name: str | None = None) -> Array:
    """x where |x| exceeds `threshold`, else 0."""
    return core.hardshrink(x, threshold)


@operation
def thresholded_relu(x: Array, threshold: float = 1.0, name: str | None = None) -> Array:
    """x where it exceeds `threshold`, else 0."""
    return core.thresholded_relu(x, threshold)


@operation
def prelu(x: Array, weight: Array, data_format: str = "NCHW", name: str | None = None) -> Array:
    """x where positive, weight * x elsewhere; one weight, or one for each channel."""
    if weight.size == 1 or x.ndim < 2:
        return core.prelu(x, weight)
    return from_last(core.prelu(to_last(x, data_format), weight), data_format)


@operation(name="rrelu")
def _rrelu(x: Array, key: Key, lower: float, upper: float) -> Array:
    return core.rrelu(x, lower, upper, True, key)


def rrelu(
    x: Tensor,
    lower: float = 1.0 / 8.0,
    upper: float = 1.0 / 3.0,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """x where positive, elsewhere x times a slope that training draws from [lower, upper]; inference takes its mean."""
    if not 0 <= lower <= upper <= 1:
        raise ShapeError(
            "rrelu: the slopes are out of order",
            received=f"{lower} to {upper}",
            allowed="0 <= lower <= upper <= 1",
        )
    return _rrelu(x, lower, upper) if training else leaky_relu(x, (lower + upper) / 2)


@operation
def maxout(x: Array, groups: int, axis: int = 1, name: str | None = None) -> Array:
    """The maximum of each run of `groups` neighbouring channels."""
    return core.maxout(x, groups, axis)


@operation
def glu(x: Array, axis: int = -1, name: str | None = None) -> Array:
    """The first half of the axis times the sigmoid of the second."""
    return core.glu(x, axis)


@operation
def softmax(x: Array, axis: int = -1, dtype: object = None, name: str | None = None) -> Array:
    """exp(x) normalised to sum 1 over the axis, in `dtype` when given."""
    x = x if dtype is None else x.astype(to_numpy(dtype))
    return core.softmax(x, axis) if x.ndim else jnp.ones_like(x)


@operation
def log_softmax(x: Array, axis: int = -1, dtype: object = None, name: str | None = None) -> Array:
    """log of the softmax over the axis, in `dtype` when given."""
    x = x if dtype is None else x.astype(to_numpy(dtype))
    return core.log_softmax(x, axis) if x.ndim else jnp.zeros_like(x)


@operation
def gumbel_softmax(
    x: Array, key: Key, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Array:
    """A differentiable sample of the categorical distribution with logits x; `hard` rounds it to one-hot."""
    return core.gumbel_softmax(x, temperature, hard, axis, key)


relu_ = in_place(relu, "relu_")
elu_ = in_place(elu, "elu_")
hardtanh_ = in_place(hardtanh, "hardtanh_")
leaky_relu_ = in_place(leaky_relu, "leaky_relu_")
softmax_ = in_place(softmax, "softmax_")
tanh_ = in_place(tanh, "tanh_")
thresholded_relu_ = in_place(thresholded_relu, "thresholded_relu_")
