"""Normalisation on channels-last arrays with Paddle's numerics; statistics are float32, or float64 of float64.

BatchNorm's momentum weighs the old value, and its running variance takes the biased variance of the batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.nn.functional import lowering
from framework.nn.functional.channel_sums import channel_sums, channels_first_sums
from framework.nn.functional.common import check_data_format, transpose_hint
from framework.nn.functional.lowering import Platform, choose, jitted
from framework.nn.functional.slopes import absolute


def _check_channels(name: str, x: jax.Array, *vectors: jax.Array | None, first: bool = False) -> None:
    given = [v.shape for v in vectors if v is not None]
    if first and x.ndim > 1 and all(shape == (x.shape[1],) for shape in given):
        return
    if x.ndim < 2 or any(shape != (x.shape[-1],) for shape in given):
        channels = given[0][0] if given and len(set(given)) == len(given[0]) == 1 else None
        raise ShapeError(
            f"{name}: one value for each channel, and channels are the last axis",
            received=f"x {x.shape}, vectors {given}",
            allowed=f"x [N, ..., {channels or 'C'}] and vectors [{channels or 'C'}]",
            fix=transpose_hint(x, channels) if channels else None,
        )


Moments = tuple[jax.Array, jax.Array, jax.Array]  # y, mean and biased variance, or their cotangents

# -- batch norm ---------------------------------------------------------------------------------------------------


def _rows(x: jax.Array) -> jax.Array:
    """[N, ..., C] as the [N, H, W, C] that `channel_sums` takes."""
    if x.ndim == 4:
        return x
    if x.ndim < 4:
        return x.reshape(*x.shape[:-1], *(1,) * (4 - x.ndim), x.shape[-1])
    return x.reshape(x.shape[0], -1, *x.shape[-2:])


def _sums(arrays: Sequence[jax.Array], first: bool) -> list[jax.Array]:
    """The sums over all axes but the channels, of several arrays in one pass."""
    if not first:
        return channel_sums([_rows(a) for a in arrays])
    return channels_first_sums([a.reshape(*a.shape[:2], -1) for a in arrays])


def _along(vector: jax.Array, x: jax.Array, first: bool) -> jax.Array:
    """One value for each channel, to be combined with x."""
    return vector.reshape(-1, *(1,) * (x.ndim - 2)) if first else vector


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _batch_normalise(
    x: jax.Array, weight: jax.Array, bias: jax.Array, epsilon: float, first: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(y, mean, biased variance) with both sums taken in one pass over x."""
    count, wide = x.size // weight.size, wide_type(x.dtype)
    # Sums around one pixel instead of zero: the difference of squares then keeps its digits when the mean is large.
    pixel = x.reshape(*x.shape[:2], -1)[0, :, 0] if first else x.reshape(-1, x.shape[-1])[0]
    pivot = lax.stop_gradient(pixel).astype(wide)
    moved = x.astype(wide) - _along(pivot, x, first)
    total, squares = _sums([moved, moved * moved], first)
    shift = total / count
    variance = jnp.maximum(squares / count - shift * shift, 0.0)
    mean = pivot + shift
    scale = lax.rsqrt(variance + epsilon) * weight
    y = (x.astype(wide) - _along(mean, x, first)) * _along(scale, x, first) + _along(bias, x, first)
    return y.astype(x.dtype), mean, variance


def _batch_normalise_fwd(
    wrapped_x: CustomVJPPrimal,
    wrapped_weight: CustomVJPPrimal,
    wrapped_bias: CustomVJPPrimal,
    epsilon: float,
    first: bool,
) -> tuple[Moments, tuple[jax.Array, ...]]:
    x, weight, bias = wrapped_x.value, wrapped_weight.value, wrapped_bias.value
    out: Moments = _batch_normalise(x, weight, bias, epsilon, first)  # custom_vjp loses the type
    return out, (x, out[1], lax.rsqrt(out[2] + epsilon), weight, bias)


def _batch_normalise_bwd(
    epsilon: float,
    first: bool,
    saved: tuple[jax.Array, ...],
    cotangents: tuple[jax.Array | SymbolicZero, jax.Array | SymbolicZero, jax.Array | SymbolicZero],
) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, mean, inverse, weight, bias = saved
    dy, dmean, dvariance = cotangents
    dy = jnp.zeros(x.shape, mean.dtype) if isinstance(dy, SymbolicZero) else dy.astype(mean.dtype)
    count = x.size // weight.size
    centred = x.astype(mean.dtype) - _along(mean, x, first)
    dbias, products = _sums([dy, dy * centred], first)
    dweight = products * inverse
    slope = _along(inverse * dweight / count, x, first)
    dx = (dy - _along(dbias / count, x, first) - centred * slope) * _along(inverse * weight, x, first)
    # Only gradients of gradients go through mean and variance: this function reads both from the forward run.
    if not isinstance(dmean, SymbolicZero):
        dx = dx + _along(dmean / count, x, first)
    if not isinstance(dvariance, SymbolicZero):
        dx = dx + centred * _along(dvariance * 2 / count, x, first)
    return dx.astype(x.dtype), dweight.astype(weight.dtype), dbias.astype(bias.dtype)


_batch_normalise.defvjp(_batch_normalise_fwd, _batch_normalise_bwd, symbolic_zeros=True)


def _plain_normalise(
    x: jax.Array, weight: jax.Array, bias: jax.Array, epsilon: float, first: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    wide = x.astype(wide_type(x.dtype))
    axes = (0, *range(2, x.ndim)) if first else tuple(range(x.ndim - 1))
    mean = wide.mean(axes)
    centred = wide - _along(mean, x, first)
    variance = jnp.square(centred).mean(axes)
    scale = lax.rsqrt(variance + epsilon) * weight
    y = centred * _along(scale, x, first) + _along(bias, x, first)
    return y.astype(x.dtype), mean, variance


@jitted("momentum", "epsilon", "on", "first")
def _batch_norm_train(
    x: jax.Array,
    running_mean: jax.Array,
    running_var: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    momentum: float,
    epsilon: float,
    on: Platform,
    first: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    channels, wide = x.shape[1 if first else -1], wide_type(x.dtype)
    weight = jnp.ones(channels, wide) if weight is None else weight.astype(wide)
    bias = jnp.zeros(channels, wide) if bias is None else bias.astype(wide)
    y, mean, variance = choose(
        on,
        lambda x, w, b: _batch_normalise(x, w, b, epsilon, first),
        lambda x, w, b: _plain_normalise(x, w, b, epsilon, first),
        x,
        weight,
        bias,
    )
    mean, variance = lax.stop_gradient(mean), lax.stop_gradient(variance)

    def average(running: jax.Array, batch: jax.Array) -> jax.Array:
        return (running.astype(wide) * momentum + batch * (1 - momentum)).astype(running.dtype)

    return y, average(running_mean, mean), average(running_var, variance)


@jitted("epsilon", "first")
def _batch_norm_eval(
    x: jax.Array,
    running_mean: jax.Array,
    running_var: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    epsilon: float,
    first: bool,
) -> jax.Array:
    wide = wide_type(x.dtype)
    scale = lax.rsqrt(running_var.astype(wide) + epsilon)
    scale = scale if weight is None else scale * weight.astype(wide)
    shift = -running_mean.astype(wide) * scale
    shift = shift if bias is None else shift + bias.astype(wide)
    return (x.astype(wide) * _along(scale, x, first) + _along(shift, x, first)).astype(x.dtype)


def batch_norm(
    x: jax.Array,
    running_mean: jax.Array,
    running_var: jax.Array,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    use_global_stats: bool | None = None,
    channels_first: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(y, running_mean, running_var) of x [N, ..., C]: arrays do not change in place, so the new statistics return.

    `momentum` weighs the old statistic; the variance is biased. `use_global_stats` normalises with the running
    statistics even in training and leaves them as they are. Source: Ioffe and Szegedy 2015. `channels_first` is for
    framework.paddle, whose x is [N, C, ...]: on a CPU a transposition takes longer than the norm.
    """
    _check_channels("batch_norm", x, running_mean, running_var, weight, bias, first=channels_first)
    if not training or use_global_stats:
        y = _batch_norm_eval(x, running_mean, running_var, weight, bias, float(epsilon), channels_first)
        return y, running_mean, running_var
    settings = (float(momentum), float(epsilon), lowering.platform(), channels_first)
    return _batch_norm_train(x, running_mean, running_var, weight, bias, *settings)


# -- layer, group, instance norm ----------------------------------------------------------------------------------


def _standardise(x: jax.Array, axes: tuple[int, ...], epsilon: float) -> jax.Array:
    """x in its wide type with mean 0 and biased variance 1 over `axes`."""
    wide = x.astype(wide_type(x.dtype))
    centred = wide - wide.mean(axes, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(axes, keepdims=True) + epsilon)


def _affine(y: jax.Array, weight: jax.Array | None, bias: jax.Array | None) -> jax.Array:
    y = y if weight is None else y * weight.astype(y.dtype)
    return y if bias is None else y + bias.astype(y.dtype)


@jitted("axes", "epsilon")
def _layer_norm(
    x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, axes: int, epsilon: float
) -> jax.Array:
    shape = x.shape[x.ndim - axes :]
    weight = None if weight is None else weight.reshape(shape)
    bias = None if bias is None else bias.reshape(shape)
    y = _standardise(x, tuple(range(x.ndim - axes, x.ndim)), epsilon)
    return _affine(y, weight, bias).astype(x.dtype)


def layer_norm(
    x: jax.Array,
    normalized_shape: int | Sequence[int],
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    epsilon: float = 1e-5,
) -> jax.Array:
    """Normalise the trailing axes `normalized_shape`; weight and bias have as many values, flat as Paddle keeps them.

    Source: Ba et al. 2016.
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    size = math.prod(shape)
    if x.shape[x.ndim - len(shape) :] != shape or any(
        v is not None and v.size != size for v in (weight, bias)
    ):
        raise ShapeError(
            "layer_norm: the trailing axes, weight and bias follow normalized_shape",
            received=f"x {x.shape}, weight {getattr(weight, 'shape', None)}, bias {getattr(bias, 'shape', None)}",
            allowed=f"x [..., {', '.join(map(str, shape))}] and {size} values each",
        )
    return _layer_norm(x, weight, bias, len(shape), float(epsilon))


@jitted("num_groups", "epsilon")
def group_norm(
    x: jax.Array,
    num_groups: int,
    epsilon: float = 1e-5,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
) -> jax.Array:
    """Normalise each of `num_groups` runs of channels over all pixels. x [N, ..., C]. Source: Wu and He 2018."""
    _check_channels("group_norm", x, weight, bias)
    if x.shape[-1] % num_groups:
        raise ShapeError(
            "group_norm: channels divide into groups",
            received=f"{x.shape[-1]} channels",
            allowed=f"a multiple of {num_groups}; activations are channels-last",
        )
    grouped = x.reshape(*x.shape[:-1], num_groups, x.shape[-1] // num_groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    return _affine(_standardise(grouped, axes, epsilon).reshape(x.shape), weight, bias).astype(x.dtype)


@jitted("use_input_stats", "momentum", "eps")
def instance_norm(
    x: jax.Array,
    running_mean: jax.Array | None = None,
    running_var: jax.Array | None = None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-5,
) -> jax.Array:
    """Normalise each channel of each sample over its pixels. x [N, ..., C]. Source: Ulyanov et al. 2016.

    As in Paddle running statistics and `momentum` change nothing.
    """
    if not use_input_stats:
        raise ShapeError(
            "instance_norm: there are no running statistics",
            received="use_input_stats=False",
            allowed="True",
            fix="batch_norm(training=False) normalises with given statistics",
        )
    _check_channels("instance_norm", x, weight, bias)
    return _affine(_standardise(x, tuple(range(1, x.ndim - 1)), eps), weight, bias).astype(x.dtype)


@jitted("axes", "epsilon")
def _rms_norm(x: jax.Array, weight: jax.Array | None, axes: tuple[int, ...], epsilon: float) -> jax.Array:
    wide = x.astype(wide_type(x.dtype))
    y = wide * lax.rsqrt(jnp.square(wide).mean(axes, keepdims=True) + epsilon)
    return _affine(y, weight, None).astype(x.dtype)


def rms_norm(
    input: jax.Array,
    normalized_shape: int | Sequence[int],
    weight: jax.Array | None = None,
    eps: float | None = None,
) -> jax.Array:
    """input / root of its mean square over the trailing axes `normalized_shape`, times `weight` of that shape.

    `eps` is that of float32 when None. Source: Zhang and Sennrich 2019 (arXiv 1910.07467), equation 4.
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if input.shape[input.ndim - len(shape) :] != shape or (weight is not None and weight.shape != shape):
        raise ShapeError(
            "rms_norm: the trailing axes and the weight follow normalized_shape",
            received=f"input {input.shape}, weight {None if weight is None else weight.shape}",
            allowed=f"input [..., {', '.join(map(str, shape))}], weight {shape}",
        )
    epsilon = float(jnp.finfo(jnp.float32).eps) if eps is None else float(eps)
    return _rms_norm(input, weight, tuple(range(input.ndim - len(shape), input.ndim)), epsilon)


@jitted("size", "alpha", "beta", "k", "data_format")
def local_response_norm(
    x: jax.Array,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NHWC",
) -> jax.Array:
    """x / (k + alpha * the mean square over `size` neighbouring channels) ** beta. x [N, ..., C].

    Channels beyond the edges count as 0. Source: Krizhevsky et al. 2012, section 3.3, with a mean in place of the sum.
    """
    check_data_format(data_format, "local_response_norm")
    if x.ndim < 3:
        raise ShapeError(
            "local_response_norm takes images", received=x.shape, allowed="[N, ..., C] with 3 or more axes"
        )
    edges = [(0, 0, 0)] * (x.ndim - 1) + [(size // 2, (size - 1) // 2, 0)]
    kind = x.dtype
    x = x.astype(wide_type(kind))
    squares = lax.pad(jnp.square(x), jnp.zeros((), x.dtype), edges)
    channels = x.shape[-1]
    total = functools.reduce(
        jnp.add, [lax.slice_in_dim(squares, i, i + channels, axis=-1) for i in range(size)]
    )
    return (x / (total * (float(alpha) / size) + float(k)) ** float(beta)).astype(kind)


# -- unit vectors -------------------------------------------------------------------------------------------------


@jitted("p", "axis", "epsilon")
def normalize(x: jax.Array, p: float = 2, axis: int = 1, epsilon: float = 1e-12) -> jax.Array:
    """x / max(|x|_p, epsilon) along `axis`, whose default is Paddle's 1: pass -1 for channels-last features."""
    p, epsilon, kind = float(p), float(epsilon), x.dtype
    x = x.astype(wide_type(kind))  # squares of float16 end at 65504
    if p == 2:
        squares = jnp.square(x).sum(axis, keepdims=True)
        # The root of max(squares, epsilon^2) is max(norm, epsilon) with a finite gradient at zero.
        return (x * lax.rsqrt(jnp.maximum(squares, epsilon * epsilon))).astype(kind)
    if math.isinf(p):
        norm = jnp.abs(x).max(axis, keepdims=True)
    else:
        total = (absolute(x) ** p).sum(axis, keepdims=True)
        norm = jnp.where(total == 0, 0, jnp.where(total == 0, 1, total) ** (1 / p))  # with a gradient at zero
    return (x / jnp.maximum(norm, epsilon)).astype(kind)


# -- spectral norm ------------------------------------------------------------------------------------------------


@jitted("dim", "power_iters", "eps")
def spectral_norm(
    weight: jax.Array, u: jax.Array, v: jax.Array, dim: int = 0, power_iters: int = 1, eps: float = 1e-12
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(weight / sigma, u, v): sigma is u' W v after `power_iters` steps of power iteration on `weight`.

    W has axis `dim` as rows and all others as columns; u [rows], v [columns] carry no gradient.
    Source: Miyato et al. 2018, algorithm 1.
    """
    rows = weight.shape[dim]
    if u.shape != (rows,) or v.shape != (weight.size // rows,):
        raise ShapeError(
            "spectral_norm: the vectors do not fit the weight",
            received=f"weight {weight.shape}, dim {dim}, u {u.shape}, v {v.shape}",
            allowed=f"u [{rows}], v [{weight.size // rows}]",
        )
    matrix = jnp.moveaxis(weight, dim, 0).reshape(rows, -1)
    fixed = lax.stop_gradient(matrix)

    def unit(x: jax.Array) -> jax.Array:
        return x / (jnp.sqrt(jnp.square(x).sum()) + float(eps))

    for _ in range(power_iters):
        v = unit(fixed.T @ u)
        u = unit(fixed @ v)
    return weight / (u @ matrix @ v), u, v
