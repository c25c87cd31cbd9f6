"""Pooling on NHWC arrays with Paddle's numerics: ceil mode, exclusive averages, adaptive windows.

Source: paddle.nn.functional pooling; `exclusive=True` means that padding does not count in an average.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional import lowering
from framework.nn.functional.conv import (
    Padding,
    Pads,
    Pair,
    conv_padding,
    flat_padding,
    gather_taps,
    out_size,
    pair,
    shift_views,
)
from framework.nn.functional.lowering import Platform, choose
from framework.nn.functional.pooling_nd import (
    adaptive_max_with_places,
    max_pool_with_places,
    override_divisor,
)
from framework.nn.functional.windows import pool_windows

# Up to this many taps an average is a sum of shifted views: XLA's CPU reduce_window is a scalar loop.
_FEW_VIEWS = 16
_NO_PADS: Pads = ((0, 0), (0, 0))


def _check_rank(x: jax.Array) -> None:
    if x.ndim != 4:
        raise ShapeError("2-D pooling takes [N, H, W, C]", received=x.shape, allowed="4 axes")


def _reduce(
    x: jax.Array,
    init: float,
    op: Callable[[jax.Array, jax.Array], jax.Array],
    kernel: Pair,
    stride: Pair,
    pads: Pads,
) -> jax.Array:
    # The initial value is a numpy constant: with a traced one JAX sees no maximum or sum and has no gradient.
    return lax.reduce_window(
        x, np.asarray(init, x.dtype), op, (1, *kernel, 1), (1, *stride, 1), ((0, 0), *pads, (0, 0))
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _max_of_views(x: jax.Array, kernel: Pair, stride: Pair) -> jax.Array:
    out = out_size(x.shape[1:3], kernel, stride, (1, 1), _NO_PADS)
    return functools.reduce(jnp.maximum, shift_views(x, kernel, stride, (1, 1), out))


def _max_of_views_fwd(x: jax.Array, kernel: Pair, stride: Pair) -> Any:
    y = _max_of_views(x, kernel, stride)
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


@functools.partial(jax.jit, static_argnames=("kernel", "stride", "pads", "ceil_mode", "pad_value", "on"))
def _max_pool2d(
    x: jax.Array, kernel: Pair, stride: Pair, pads: Pads, ceil_mode: bool, pad_value: float, on: Platform
) -> jax.Array:
    _, edges = pool_windows(x.shape[1:3], kernel, stride, pads, ceil_mode)
    low = max(pad_value, float(jnp.finfo(x.dtype).min)) if pad_value != -jnp.inf else -jnp.inf

    def plain(x: jax.Array) -> jax.Array:
        if low != -jnp.inf:
            x = lax.pad(x, jnp.asarray(low, x.dtype), [(0, 0, 0), (*edges[0], 0), (*edges[1], 0), (0, 0, 0)])
            return _reduce(x, -jnp.inf, lax.max, kernel, stride, ((0, 0), (0, 0)))
        return _reduce(x, -jnp.inf, lax.max, kernel, stride, edges)

    if stride != (1, 1) and not all(isinstance(size, int) for size in x.shape[1:3]):
        return plain(x)  # whether a strided view of a symbolic size is empty cannot be decided
    return choose(on, lambda x: _separable_max(x, kernel, stride, edges, low), plain, x)


def max_pool2d(
    x: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    pad_value: float = -float("inf"),
) -> Any:
    """Maximum over windows. x [N, H, W, C]; with `return_mask` also the places of the maxima, see pooling_nd.py.

    `pad_value` is what padding holds: the activation's minimum (0 after a ReLU) keeps int8 quantisation exact.
    """
    if return_mask:
        return max_pool_with_places("max_pool2d", x, kernel_size, stride, padding, ceil_mode, 2)
    _check_rank(x)
    kernel = pair(kernel_size, "kernel_size")
    strides = kernel if stride is None else pair(stride, "stride")
    pads = conv_padding(padding, kernel, (1, 1), strides, x.shape[1:3])
    return _max_pool2d(x, kernel, strides, pads, ceil_mode, pad_value, lowering.platform())


@functools.partial(jax.jit, static_argnames=("kernel", "stride", "pads", "ceil_mode", "exclusive", "on"))
def _avg_pool2d(
    x: jax.Array,
    kernel: Pair,
    stride: Pair,
    pads: Pads,
    ceil_mode: bool,
    exclusive: bool,
    on: Platform,
) -> jax.Array:
    out, edges = pool_windows(x.shape[1:3], kernel, stride, pads, ceil_mode)
    taps = kernel[0] * kernel[1]

    def views(x: jax.Array) -> jax.Array:
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (*edges[0], 0), (*edges[1], 0), (0, 0, 0)])
        return functools.reduce(jnp.add, shift_views(x, kernel, stride, (1, 1), out))

    def plain(x: jax.Array) -> jax.Array:
        return _reduce(x, 0.0, lax.add, kernel, stride, edges)

    total = choose(on, views, plain, x) if taps <= _FEW_VIEWS else plain(x)
    if edges == ((0, 0), (0, 0)):
        return total / taps
    if exclusive:
        counted = jnp.ones((1, *x.shape[1:3], 1), x.dtype)
        return total / _reduce(counted, 0.0, lax.add, kernel, stride, edges)
    # Rows that only ceil mode added never count; declared padding does.
    inside = jnp.ones((1, *(n + sum(pad) for n, pad in zip(x.shape[1:3], pads)), 1), x.dtype)
    beyond = tuple((0, edge[1] - pad[1]) for edge, pad in zip(edges, pads))
    return total / _reduce(inside, 0.0, lax.add, kernel, stride, beyond)  # type: ignore[arg-type]


def avg_pool2d(
    x: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
) -> jax.Array:
    """Mean over windows. x [N, H, W, C]. With `exclusive` padding does not count in the mean.

    `divisor_override` as in Paddle: the mean times the size of the window, divided by this number.
    """
    _check_rank(x)
    kernel = pair(kernel_size, "kernel_size")
    strides = kernel if stride is None else pair(stride, "stride")
    pads = conv_padding(padding, kernel, (1, 1), strides, x.shape[1:3])
    mean = _avg_pool2d(x, kernel, strides, pads, ceil_mode, exclusive, lowering.platform())
    return override_divisor(mean, kernel, divisor_override)


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


def _bin_matrix(size: int, bins: int) -> jax.Array:
    """[bins, size] weights of adaptive averaging: bin b covers floor(b*n/bins) to ceil((b+1)*n/bins)."""
    b = jnp.arange(bins)[:, None]
    start, stop = b * size // bins, -((-(b + 1) * size) // bins)
    position = jnp.arange(size)[None]
    inside = ((position >= start) & (position < stop)).astype(jnp.float32)
    return inside / inside.sum(1, keepdims=True)


@functools.partial(jax.jit, static_argnames=("output",))
def _adaptive_mean(x: jax.Array, output: tuple[Any, Any]) -> jax.Array:
    wide = x.dtype if x.dtype.itemsize > 2 else jnp.float32  # a share of 1/7 has few digits in 16 bits
    rows, cols = (_bin_matrix(*pair).astype(wide) for pair in zip(x.shape[1:3], output))
    return jnp.einsum("ih,nhwc,jw->nijc", rows, x.astype(wide), cols).astype(x.dtype)


@functools.partial(jax.jit, static_argnames=("output",))
def _adaptive_max(x: jax.Array, output: tuple[Any, Any]) -> jax.Array:
    low = jnp.asarray(-jnp.inf, x.dtype)
    rows, cols = (_bin_matrix(*pair) > 0 for pair in zip(x.shape[1:3], output))
    x = jnp.where(rows[None, :, :, None, None], x[:, None], low).max(2)
    return jnp.where(cols[None, None, :, :, None], x[:, :, None], low).max(3)


def _output_size(output_size: int | Sequence[int | None] | None, x: jax.Array) -> tuple[Any, Any]:
    _check_rank(x)
    sizes = (output_size, output_size) if output_size is None or isinstance(output_size, int) else output_size
    return tuple(n if want is None else want for n, want in zip(x.shape[1:3], sizes))  # type: ignore[return-value]


def adaptive_avg_pool2d(x: jax.Array, output_size: int | Sequence[int | None]) -> jax.Array:
    """Mean over `output_size` bins that cover the input; None keeps an axis. x [N, H, W, C]."""
    output = _output_size(output_size, x)
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
) -> Any:
    """Maximum over `output_size` bins that cover the input; None keeps an axis. x [N, H, W, C]."""
    if return_mask:
        return adaptive_max_with_places("adaptive_max_pool2d", x, output_size, 2)
    output = _output_size(output_size, x)
    if output == (1, 1):
        return x.max((1, 2), keepdims=True)
    return _adaptive_max(x, output)


# -- one axis -----------------------------------------------------------------------------------------------------


def max_pool1d(
    x: jax.Array,
    kernel_size: int,
    stride: int | None = None,
    padding: int | str | Sequence[int] = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """Maximum over windows. x [N, T, C]; with `return_mask` also the places of the maxima, see pooling_nd.py."""
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


def adaptive_max_pool1d(x: jax.Array, output_size: int, return_mask: bool = False) -> Any:
    """Maximum over `output_size` bins that cover the input. x [N, T, C]."""
    if return_mask:
        return adaptive_max_with_places("adaptive_max_pool1d", x, output_size, 1)
    return adaptive_max_pool2d(x[:, None], (1, output_size))[:, 0]
