"""Pooling on channels-last arrays of one to three axes with Paddle's numerics: ceil mode, exclusive averages, adaptive
windows, powers.

Source: paddle.nn.functional pooling; `exclusive=True` means that padding does not count in an average.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn.functional import lowering
from framework.nn.functional.conv import Pads, Pair, flat_padding, gather_taps, out_size, shift_views
from framework.nn.functional.lowering import Platform, choose, jitted
from framework.nn.functional.pooling_places import adaptive_max_with_places, max_pool_with_places
from framework.nn.functional.windows import (
    Axes,
    Edges,
    Padding,
    Size,
    bin_size,
    bins,
    pool_geometry,
    pool_windows,
    reduce_windows,
)

# Up to this many taps an average is a sum of shifted views: XLA's CPU reduce_window is a scalar loop.
_FEW_VIEWS = 16
_NO_PADS: Pads = ((0, 0), (0, 0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _max_of_views(x: jax.Array, kernel: Pair, stride: Pair) -> jax.Array:
    out = out_size(x.shape[1:3], kernel, stride, (1, 1), _NO_PADS)
    return functools.reduce(jnp.maximum, shift_views(x, kernel, stride, (1, 1), out))


def _max_of_views_fwd(
    x: jax.Array, kernel: Pair, stride: Pair
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    y: jax.Array = _max_of_views(x, kernel, stride)
    return y, (x, y)


def _max_of_views_bwd(
    kernel: Pair, stride: Pair, saved: tuple[jax.Array, jax.Array], dy: jax.Array
) -> tuple[jax.Array]:
    x, y = saved
    views = shift_views(x, kernel, stride, (1, 1), y.shape[1:3])
    first = jnp.full(y.shape, len(views) - 1, jnp.int32)
    for tap in reversed(range(len(views) - 1)):
        first = jnp.where(views[tap] == y, tap, first)
    first = lax.optimization_barrier(first)  # otherwise it is found again for every shift

    def part(arrays: Sequence[jax.Array], tap: int) -> jax.Array:
        return jnp.where(arrays[1] == tap, arrays[0], 0)

    return (gather_taps((dy, first), part, kernel, stride, _NO_PADS, (1, 1), x.shape[1:3]),)


_max_of_views.defvjp(_max_of_views_fwd, _max_of_views_bwd)


def _separable_max(x: jax.Array, kernel: Pair, stride: Pair, pads: Pads, low: float) -> jax.Array:
    """Max pooling as the maximum of shifted columns, then of shifted rows.

    Behind a barrier: otherwise what comes before (bias, activation) is computed for every shift again. The gradient
    goes to the first maximum of a window, row by row, as in Paddle.
    """
    edges = [(0, 0, 0), (*pads[0], 0), (*pads[1], 0), (0, 0, 0)]
    x = lax.pad(lax.optimization_barrier(x), jnp.asarray(low, x.dtype), edges)
    for window, step in (((1, kernel[1]), (1, stride[1])), ((kernel[0], 1), (stride[0], 1))):
        x = x if window == step == (1, 1) else _max_of_views(x, window, step)
    return x


def _padded(x: jax.Array, value: float, edges: Edges) -> jax.Array:
    return lax.pad(x, jnp.asarray(value, x.dtype), [(0, 0, 0), *((*edge, 0) for edge in edges), (0, 0, 0)])


@jitted("kernel", "stride", "pads", "ceil_mode", "pad_value", "on")
def _max_pool(
    x: jax.Array,
    kernel: Axes,
    stride: Axes,
    pads: Edges,
    ceil_mode: bool,
    pad_value: float = -jnp.inf,
    on: Platform = "other",
) -> jax.Array:
    _, edges = pool_windows(x.shape[1:-1], kernel, stride, pads, ceil_mode)
    low = max(pad_value, float(jnp.finfo(x.dtype).min)) if pad_value != -jnp.inf else -jnp.inf

    def plain(x: jax.Array) -> jax.Array:
        if low == -jnp.inf:
            return reduce_windows(x, -jnp.inf, lax.max, kernel, stride, edges)
        return reduce_windows(
            _padded(x, low, edges), -jnp.inf, lax.max, kernel, stride, ((0, 0),) * len(edges)
        )

    if stride != (1, 1) and not all(isinstance(size, int) for size in x.shape[1:-1]):
        return plain(x)  # whether a strided view of a symbolic size is empty cannot be decided
    return choose(on, lambda x: _separable_max(x, kernel, stride, edges, low), plain, x)  # type: ignore[arg-type]


@jitted("kernel", "stride", "pads", "ceil_mode", "exclusive", "on")
def _avg_pool(
    x: jax.Array,
    kernel: Axes,
    stride: Axes,
    pads: Edges,
    ceil_mode: bool,
    exclusive: bool,
    on: Platform = "other",
) -> jax.Array:
    size, none = x.shape[1:-1], ((0, 0),) * len(kernel)
    out, edges = pool_windows(size, kernel, stride, pads, ceil_mode)
    taps = math.prod(kernel)

    def views(x: jax.Array) -> jax.Array:
        views = shift_views(_padded(x, 0.0, edges), kernel, stride, (1, 1), out)  # type: ignore[arg-type]
        return functools.reduce(jnp.add, views)

    def plain(x: jax.Array) -> jax.Array:
        return reduce_windows(x, 0.0, lax.add, kernel, stride, edges)

    total = choose(on, views, plain, x) if taps <= _FEW_VIEWS else plain(x)
    if edges == none:
        return total / taps
    # Declared padding counts unless `exclusive`: behind the last element as many rows as before the first, as in
    # Paddle, which knows one number for both, be they of the padding or of ceil mode.
    counted = none if exclusive else tuple((pad[0], min(pad[0], edge[1])) for pad, edge in zip(pads, edges))
    inside = jnp.ones((1, *(n + sum(pad) for n, pad in zip(size, counted)), 1), x.dtype)
    beyond = tuple((edge[0] - pad[0], edge[1] - pad[1]) for edge, pad in zip(edges, counted))
    return total / reduce_windows(inside, 0.0, lax.add, kernel, stride, beyond)


def max_pool2d(
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    pad_value: float = -float("inf"),
) -> PyTree:
    """Maximum over windows. x [N, H, W, C]; with `return_mask` also the places of the maxima, see pooling_places.py.

    `pad_value` is what padding holds: the activation's minimum (0 after a ReLU) keeps int8 quantisation exact.
    """
    if return_mask:
        return max_pool_with_places("max_pool2d", x, kernel_size, stride, padding, ceil_mode, 2)
    kernel, strides, pads = pool_geometry("max_pool2d", x, kernel_size, stride, padding, 2)
    return _max_pool(x, kernel, strides, pads, ceil_mode, pad_value, lowering.platform())


def max_pool3d(
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
) -> PyTree:
    """Maximum over windows. x [N, D, H, W, C]; with `return_mask` also the places, see pooling_places.py."""
    if return_mask:
        return max_pool_with_places("max_pool3d", x, kernel_size, stride, padding, ceil_mode, 3)
    return _max_pool(x, *pool_geometry("max_pool3d", x, kernel_size, stride, padding, 3), ceil_mode)


def avg_pool2d(
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
) -> jax.Array:
    """Mean over windows. x [N, H, W, C]. With `exclusive` padding does not count in the mean.

    `divisor_override` as in Paddle: the mean times the size of the window, divided by this number.
    """
    kernel, strides, pads = pool_geometry("avg_pool2d", x, kernel_size, stride, padding, 2)
    mean = _avg_pool(x, kernel, strides, pads, ceil_mode, exclusive, lowering.platform())
    return _override_divisor(mean, kernel, divisor_override)


def avg_pool3d(
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
) -> jax.Array:
    """`avg_pool2d` for x [N, D, H, W, C]."""
    kernel, strides, pads = pool_geometry("avg_pool3d", x, kernel_size, stride, padding, 3)
    return _override_divisor(
        _avg_pool(x, kernel, strides, pads, ceil_mode, exclusive), kernel, divisor_override
    )


def _override_divisor(mean: jax.Array, kernel: Axes, divisor: float | None) -> jax.Array:
    if divisor is None:
        return mean
    if not divisor > 0:
        raise ShapeError(
            "divisor_override is positive", received=divisor, allowed="a number above 0, or None"
        )
    return mean * (math.prod(kernel) / float(divisor))


def _sums(x: jax.Array) -> jax.Array:
    """[N, K, C] -> [N, C] as a product, which is faster on a CPU than a sum."""
    return jnp.einsum("nk,nkc->nc", jnp.ones(x.shape[:2], x.dtype), x)


@jax.custom_jvp
def _mean_by_product(x: jax.Array) -> jax.Array:
    """The mean over all pixels as products (16x32x1024: 1.7 to 0.06 ms). First over each row: a product adds up one
    number after the other, and over 128x128 pixels at once it is 20 times as far off as a sum."""
    n, h, w, c = x.shape
    rows = _sums(x.reshape(n * h, w, c)).reshape(n, h, c)
    return (_sums(rows) / (h * w))[:, None, None]


def _mean(x: jax.Array) -> jax.Array:
    return x.mean((1, 2), keepdims=True)


# What is linear is its own slope, and the transposed one spreads the cotangent over the pixels.
_mean_by_product.defjvp(lambda primals, tangents: (_mean_by_product(*primals), _mean(*tangents)))


@functools.partial(jax.jit, static_argnames=("on",))
def _global_mean(x: jax.Array, on: Platform) -> jax.Array:
    wide = x.dtype.itemsize > 2  # products of 16 bits in batches are not for every CPU
    return choose(on, _mean_by_product if wide else _mean, _mean, x)


def global_avg_pool2d(x: jax.Array) -> jax.Array:
    """Mean over all pixels. [N, H, W, C] -> [N, 1, 1, C]."""
    return _global_mean(x, lowering.platform())


@jitted("output")
def _adaptive_mean(x: jax.Array, output: Axes) -> jax.Array:
    wide = x.dtype if x.dtype.itemsize > 2 else jnp.float32  # a share of 1/7 has few digits in 16 bits
    inside = [bins(*pair).astype(wide) for pair in zip(x.shape[1:-1], output)]
    first, *others = [one / one.sum(1, keepdims=True) for one in inside]
    spec = "ih,nhwc,jw->nijc" if len(output) == 2 else "ih,nhwdc,jw,kd->nijkc"
    return jnp.einsum(spec, first, x.astype(wide), *others).astype(x.dtype)


@jitted("output")
def _adaptive_max(x: jax.Array, output: Axes) -> jax.Array:
    for axis, pair in enumerate(zip(x.shape[1:-1], output), start=1):
        inside = bins(*pair)
        inside = inside.reshape(*inside.shape, *(1,) * (x.ndim - axis - 1))
        x = jnp.where(inside, jnp.expand_dims(x, axis), jnp.asarray(-jnp.inf, x.dtype)).max(axis + 1)
    return x


def adaptive_avg_pool2d(x: jax.Array, output_size: int | Sequence[int | None]) -> jax.Array:
    """Mean over `output_size` bins that cover the input; None keeps an axis. x [N, H, W, C]."""
    output = bin_size("adaptive_avg_pool2d", output_size, x, 2)
    if output == (1, 1):
        return global_avg_pool2d(x)
    if all(isinstance(n, int) for n in (*x.shape[1:3], *output)):
        (h, w), (oh, ow) = x.shape[1:3], output
        window = h // oh, w // ow
        if h % oh == 0 and w % ow == 0:
            # Many taps on a CPU: XLA's windows are a scalar loop there (16x32x1024 to 2x2: 0.8 ms against 0.2).
            on = lowering.platform() if window[0] * window[1] > _FEW_VIEWS else "other"
            by_matrices = functools.partial(_adaptive_mean, output=output)
            return choose(on, by_matrices, functools.partial(avg_pool2d, kernel_size=window), x)
    return _adaptive_mean(x, output)


def adaptive_max_pool2d(
    x: jax.Array, output_size: int | Sequence[int | None], return_mask: bool = False
) -> PyTree:
    """Maximum over `output_size` bins that cover the input; None keeps an axis. x [N, H, W, C]."""
    if return_mask:
        return adaptive_max_with_places("adaptive_max_pool2d", x, output_size, 2)
    output = bin_size("adaptive_max_pool2d", output_size, x, 2)
    if output == (1, 1):
        return x.max((1, 2), keepdims=True)
    return _adaptive_max(x, output)


def adaptive_avg_pool3d(x: jax.Array, output_size: int | Sequence[int | None]) -> jax.Array:
    """Mean over `output_size` bins that cover the input; None keeps an axis. x [N, D, H, W, C]."""
    return _adaptive_mean(x, bin_size("adaptive_avg_pool3d", output_size, x, 3))


def adaptive_max_pool3d(
    x: jax.Array, output_size: int | Sequence[int | None], return_mask: bool = False
) -> PyTree:
    """Maximum over `output_size` bins that cover the input; None keeps an axis. x [N, D, H, W, C]."""
    maxima, places = adaptive_max_with_places("adaptive_max_pool3d", x, output_size, 3)
    return (maxima, places) if return_mask else maxima


# -- one axis -----------------------------------------------------------------------------------------------------


def max_pool1d(
    x: jax.Array,
    kernel_size: int,
    stride: int | None = None,
    padding: int | str | Sequence[int] = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
) -> PyTree:
    """Maximum over windows. x [N, T, C]; with `return_mask` also the places of the maxima, see pooling_places.py."""
    if return_mask:
        return max_pool_with_places("max_pool1d", x, kernel_size, stride, padding, ceil_mode, 1)
    step = (1, kernel_size if stride is None else stride)
    return max_pool2d(x[:, None], (1, kernel_size), step, flat_padding(padding), ceil_mode=ceil_mode)[:, 0]


def avg_pool1d(
    x: jax.Array,
    kernel_size: int,
    stride: int | None = None,
    padding: int | str | Sequence[int] = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
) -> jax.Array:
    """Mean over windows. x [N, T, C]. With `exclusive` padding does not count in the mean."""
    step = (1, kernel_size if stride is None else stride)
    return avg_pool2d(x[:, None], (1, kernel_size), step, flat_padding(padding), ceil_mode, exclusive)[:, 0]


def adaptive_avg_pool1d(x: jax.Array, output_size: int) -> jax.Array:
    """Mean over `output_size` bins that cover the input. x [N, T, C]."""
    return adaptive_avg_pool2d(x[:, None], (1, output_size))[:, 0]


def adaptive_max_pool1d(x: jax.Array, output_size: int, return_mask: bool = False) -> PyTree:
    """Maximum over `output_size` bins that cover the input. x [N, T, C]."""
    if return_mask:
        return adaptive_max_with_places("adaptive_max_pool1d", x, output_size, 1)
    return adaptive_max_pool2d(x[:, None], (1, output_size))[:, 0]


# -- powers -----------------------------------------------------------------------------------------------------------


@jitted("norm_type", "kernel", "stride", "pads", "ceil_mode")
def _lp_pool(
    x: jax.Array, norm_type: float, kernel: Axes, stride: Axes, pads: Edges, ceil_mode: bool
) -> jax.Array:
    _, edges = pool_windows(x.shape[1:-1], kernel, stride, pads, ceil_mode)
    total = reduce_windows(x**norm_type, 0.0, lax.add, kernel, stride, edges)
    # The root is 0 with gradient 0 where all of a window is 0; of an odd power it has the sum's sign.
    safe = jnp.where(total == 0, 1, jnp.abs(total))
    return jnp.where(total == 0, 0, jnp.sign(total) * safe ** (1 / norm_type))


def _power_pool(
    where: str,
    x: jax.Array,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    ceil_mode: bool,
    axes: int,
) -> jax.Array:
    kernel, strides, pads = pool_geometry(where, x, kernel_size, stride, padding, axes)
    if math.isinf(norm_type):
        return _max_pool(x, kernel, strides, pads, ceil_mode)
    if not norm_type > 0:
        raise ShapeError(f"{where}: norm_type is positive", received=norm_type, allowed="above 0, up to inf")
    return _lp_pool(x, float(norm_type), kernel, strides, pads, ceil_mode)


def lp_pool1d(
    x: jax.Array,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
) -> jax.Array:
    """(the sum of x**norm_type over windows) ** (1 / norm_type); inf is the maximum. x [N, T, C]."""
    return _power_pool("lp_pool1d", x, norm_type, kernel_size, stride, padding, ceil_mode, 1)


def lp_pool2d(
    x: jax.Array,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
) -> jax.Array:
    """(the sum of x**norm_type over windows) ** (1 / norm_type); inf is the maximum. x [N, H, W, C]."""
    return _power_pool("lp_pool2d", x, norm_type, kernel_size, stride, padding, ceil_mode, 2)
