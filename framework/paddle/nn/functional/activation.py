"""Activations. The numerics are the core's."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.nn import functional as core
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import ArgumentTypeError, DivisorError, ShapeError
from framework.paddle._kernel.methods import in_place
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.face import channels_first, face

elu = face(core.elu)
gelu = face(core.gelu)
glu = face(core.glu)
hardshrink = face(core.hardshrink)
hardsigmoid = face(core.hardsigmoid, slope=0.1666667)
hardswish = face(core.hardswish)
hardtanh = face(core.hardtanh)
leaky_relu = face(core.leaky_relu)
log_sigmoid = face(core.log_sigmoid)
mish = face(core.mish)
relu = face(core.relu)
relu6 = face(core.relu6)
sigmoid = face(core.sigmoid)
silu = face(core.silu)
softplus = face(core.softplus, beta=1, threshold=20)
softsign = face(core.softsign)
tanh = face(core.tanh)
tanhshrink = face(core.tanhshrink)
thresholded_relu = face(core.thresholded_relu)


@operation
def maxout(x: Array, groups: int, axis: int = 1, name: str | None = None) -> Array:
    """The maximum of each run of `groups` neighbouring channels of images; the axis shrinks to size / groups."""
    if x.ndim != 4 or axis not in (-1, 1, 3) or groups < 2:
        raise ShapeError(
            "maxout takes images, whose channels it groups",
            where="paddle.nn.functional.maxout",
            received=f"shape {list(x.shape)}, axis={axis}, groups={groups}",
            allowed="4 axes; axis 1, 3 or -1; 2 groups or more",
        )
    return core.maxout(x, groups, axis)


@operation
def swish(x: Array, name: str | None = None) -> Array:
    """x * sigmoid(x)."""
    return core.silu(x)


@operation
def celu(x: Array, alpha: float = 1.0, name: str | None = None) -> Array:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere."""
    if alpha == 0:
        raise DivisorError("celu: alpha is a divisor", received=alpha, allowed="any number but 0")
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
def softshrink(x: Array, threshold: float = 0.5, name: str | None = None) -> Array:
    """x moved towards zero by `threshold`."""
    if threshold < 0:
        raise ShapeError("softshrink: the threshold is a distance", received=threshold, allowed="0 or more")
    return core.softshrink(x, threshold)


def _prelu(
    function: Callable[..., jax.Array], x: jax.Array, weight: jax.Array, data_format: str
) -> jax.Array:
    """Channels are the axis that `data_format` says."""
    if weight.size == 1 or x.ndim < 2:
        return function(x, weight)
    return channels_first(function, x, data_format, weight=weight)


@operation(name="rrelu")
def _rrelu(x: Array, key: Key, lower: float, upper: float) -> Array:
    return core.rrelu(x, lower, upper, True, key)


@checked
def rrelu(
    x: Tensor,
    lower: float = 1.0 / 8.0,
    upper: float = 1.0 / 3.0,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """x where positive, elsewhere x times a slope that training draws from [lower, upper]; inference takes its mean."""
    if not (isinstance(lower, float) and isinstance(upper, float)):
        raise ArgumentTypeError(
            "rrelu: the slopes are of type float", received=f"{lower!r} and {upper!r}", allowed="0.1 and 0.3"
        )
    if not 0 <= lower <= upper <= 1:
        raise ShapeError(
            "rrelu: the slopes are out of order",
            received=f"{lower} to {upper}",
            allowed="0 <= lower <= upper <= 1",
        )
    return _rrelu(x, lower, upper) if training else leaky_relu(x, (lower + upper) / 2)


def _over_axis(function: Callable[..., jax.Array], x: jax.Array, axis: int, dtype: object) -> jax.Array:
    x = x if dtype is None else x.astype(to_numpy(dtype))
    return function(x, axis) if x.ndim else function(x.reshape(1), -1).reshape(())


@operation
def gumbel_softmax(
    x: Array, key: Key, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Array:
    """A differentiable sample of the categorical distribution with logits x; `hard` rounds it to one-hot."""
    return core.gumbel_softmax(x, temperature, hard, axis, key)


log_softmax = face(core.log_softmax, _over_axis)
prelu = face(core.prelu, _prelu, data_format="NCHW")
softmax = face(core.softmax, _over_axis)

relu_ = in_place(relu, "relu_")
elu_ = in_place(elu, "elu_")
hardtanh_ = in_place(hardtanh, "hardtanh_")
leaky_relu_ = in_place(leaky_relu, "leaky_relu_")
softmax_ = in_place(softmax, "softmax_")
tanh_ = in_place(tanh, "tanh_")
thresholded_relu_ = in_place(thresholded_relu, "thresholded_relu_")
