"""Pooling with the places of the maxima, its inverse, and maxima of random regions.

All on channels-last arrays of one to three axes with Paddle's numerics. A place is the number of a pixel in the
flattened spatial axes of the input, int32, as `return_mask=True` gives it and `max_unpool` takes it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import per_axis
from framework.core.errors import ShapeError
from framework.core.rng import next_key
from framework.core.types import PyTree
from framework.nn.functional.lowering import jitted
from framework.nn.functional.windows import (
    Axes,
    Edges,
    Padding,
    Size,
    bin_size,
    bins,
    pool_geometry,
    pool_windows,
)

# -- places -----------------------------------------------------------------------------------------------------------


@jitted("kernel", "stride", "pads", "ceil_mode")
def _max_pool_with_places(
    x: jax.Array, kernel: Axes, stride: Axes, pads: Edges, ceil_mode: bool
) -> tuple[jax.Array, jax.Array]:
    """(maxima, places): of equal values the first, in the order of rows."""
    size = x.shape[1:-1]
    out, edges = pool_windows(size, kernel, stride, pads, ceil_mode)
    padded = lax.pad(x, jnp.asarray(-jnp.inf, x.dtype), [(0, 0, 0), *((*e, 0) for e in edges), (0, 0, 0)])
    taps = list(itertools.product(*map(range, kernel)))

    def view(tap: Sequence[int]) -> jax.Array:
        stops = [t + (o - 1) * s + 1 for t, o, s in zip(tap, out, stride)]
        return lax.slice(padded, (0, *tap, 0), (x.shape[0], *stops, x.shape[-1]), (1, *stride, 1))

    views = jnp.stack([view(tap) for tap in taps])
    best = lax.stop_gradient(views).argmax(0)
    numbers = lax.broadcasted_iota(best.dtype, views.shape, 0)
    values = (
        jnp.where(numbers == best, views, 0).sum(0).astype(x.dtype)
    )  # the gradient goes to the first maximum
    place = jnp.zeros(best.shape, jnp.int32)
    for axis, n in enumerate(size):
        offsets = jnp.asarray([tap[axis] for tap in taps], jnp.int32)[best]
        start = lax.broadcasted_iota(jnp.int32, best.shape, axis + 1) * stride[axis] - pads[axis][0]
        place = place * n + start + offsets
    return values, place


def max_pool_with_places(
    where: str,
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    ceil_mode: bool,
    axes: int,
) -> tuple[jax.Array, jax.Array]:
    """What the maxima over windows give with `return_mask=True`."""
    kernel, strides, pads = pool_geometry(where, x, kernel_size, stride, padding, axes)
    return _max_pool_with_places(x, kernel, strides, pads, ceil_mode)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _scatter_places(x: jax.Array, places: jax.Array, count: int) -> jax.Array:
    """[N, P, C] values at places [N, P, C] of zeros [N, count, C]."""
    rows = jnp.arange(x.shape[0])[:, None, None]
    return (
        jnp.zeros((x.shape[0], count, x.shape[2]), x.dtype)
        .at[rows, places, jnp.arange(x.shape[2])[None, None]]
        .set(x)
    )


def _scatter_places_bwd(count: int, places: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, None]:
    return jnp.take_along_axis(cotangent, places, 1), None


_scatter_places.defvjp(
    lambda x, places, count: (_scatter_places(x, places, count), places), _scatter_places_bwd
)


@jitted("size")
def _max_unpool(x: jax.Array, places: jax.Array, size: Axes) -> jax.Array:
    flat = (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])
    spread: jax.Array = _scatter_places(
        x.reshape(flat), places.reshape(flat), math.prod(size)
    )  # loses its type
    return spread.reshape(x.shape[0], *size, x.shape[-1])


def _unpool(
    where: str,
    x: jax.Array,
    indices: jax.Array,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    output_size: Sequence[int] | None,
    axes: int,
) -> jax.Array:
    kernel, strides, pads = pool_geometry(where, x, kernel_size, stride, padding, axes)
    if indices.shape != x.shape or not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ShapeError(
            f"{where}: one place for each value",
            received=f"x {x.shape}, indices {indices.shape} of {indices.dtype}",
            allowed="integers of the shape of x, as max_pool(return_mask=True) gives them",
        )
    default = tuple((n - 1) * s - sum(p) + k for n, s, p, k in zip(x.shape[1:-1], strides, pads, kernel))
    if output_size is None:
        return _max_unpool(x, indices, default)
    given = tuple(int(n) for n in output_size)
    size = given[1:-1] if len(given) == axes + 2 else given
    if len(size) != axes or any(abs(n - d) >= s for n, d, s in zip(size, default, strides)):
        raise ShapeError(
            f"{where}: output_size is not one that pools to this input",
            received=given,
            allowed=f"{default}, each less than a stride {strides} away",
        )
    return _max_unpool(x, indices, size)


def max_unpool1d(
    x: jax.Array,
    indices: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """The inverse of `max_pool1d(return_mask=True)`: zeros but at the places `indices`. x and indices [N, T, C]."""
    return _unpool("max_unpool1d", x, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    x: jax.Array,
    indices: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """The inverse of `max_pool2d(return_mask=True)`: zeros but at the places `indices`. x and indices [N, H, W, C]."""
    return _unpool("max_unpool2d", x, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    x: jax.Array,
    indices: jax.Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """The inverse of `max_pool3d(return_mask=True)`: zeros but at the places. x and indices [N, D, H, W, C]."""
    return _unpool("max_unpool3d", x, indices, kernel_size, stride, padding, output_size, 3)


# -- adaptive ---------------------------------------------------------------------------------------------------------


@jitted("output")
def _adaptive_max(x: jax.Array, output: Axes) -> tuple[jax.Array, jax.Array]:
    return _max_of_bins(x, [bins(*sizes) for sizes in zip(x.shape[1:-1], output)])


def _max_of_bins(x: jax.Array, bins: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """(maxima, places) of bins [out, n] for each axis, which say what is inside.

    From the last axis to the first: of equal values the first in the order of rows stays.
    """
    size = x.shape[1:-1]
    place = jnp.zeros(x.shape, jnp.int32)
    stride = 1
    for axis in reversed(range(1, x.ndim - 1)):
        inside = bins[axis - 1]
        inside = inside.reshape([*inside.shape, *(1,) * (x.ndim - axis - 1)])
        spread, low = jnp.expand_dims(x, axis), jnp.asarray(-jnp.inf, x.dtype)
        values = jnp.where(inside, spread, low)  # [..., bins, n, ...]
        best = lax.stop_gradient(values).argmax(axis + 1, keepdims=True)
        chosen = lax.broadcasted_iota(best.dtype, values.shape, axis + 1) == best
        x = jnp.where(chosen, values, 0).sum(axis + 1)
        earlier = jnp.where(chosen, jnp.expand_dims(place, axis), 0).sum(axis + 1, dtype=jnp.int32)
        place = earlier + stride * best.squeeze(axis + 1).astype(jnp.int32)
        stride *= size[axis - 1]
    return x, place


def adaptive_max_with_places(
    where: str, x: jax.Array, output_size: int | Sequence[int | None] | None, axes: int
) -> tuple[jax.Array, jax.Array]:
    """What the adaptive maxima give with `return_mask=True`."""
    return _adaptive_max(x, bin_size(where, output_size, x, axes))


# -- fractional -------------------------------------------------------------------------------------------------------


def _fractional_bins(u: jax.Array, size: int, count: int, kernel: int | None) -> jax.Array:
    """[count, size] whether a region holds a position, for u from 0 to 1; in float32, as Paddle."""
    if kernel is None:
        alpha, base = np.float32(size) / np.float32(count), size // count
        most = min(np.float32(base + 2) / alpha - 1, np.float32(size + 1 - base) / alpha - (count - 1))
        u = u * np.float32(most)
    else:
        alpha = np.float32(size - kernel) / np.float32(max(count - 1, 1))
    number = jnp.arange(count).astype(jnp.float32)
    first = jnp.floor(u * alpha)
    start = jnp.floor((number + u) * alpha) - first
    stop = start + kernel if kernel is not None else jnp.floor((number + 1 + u) * alpha) - first
    position = jnp.arange(size).astype(jnp.float32)[None]
    return (position >= start[:, None]) & (position < stop[:, None])


@jitted("output", "kernel")
def _fractional_max(
    x: jax.Array, u: jax.Array, output: Axes, kernel: Axes | None
) -> tuple[jax.Array, jax.Array]:
    kernels = kernel or (None,) * len(output)
    sizes = zip(x.shape[1:-1], output, kernels)
    return _max_of_bins(x, [_fractional_bins(u, size, count, k) for size, count, k in sizes])


def _fractional(
    where: str,
    x: jax.Array,
    output_size: int | Sequence[int | None] | None,
    kernel_size: Size | None,
    random_u: float | None,
    return_mask: bool,
    key: jax.Array | None,
    axes: int,
) -> PyTree:
    output = bin_size(where, output_size, x, axes)
    kernel = None if kernel_size is None else per_axis(kernel_size, axes, "kernel_size")
    reach = [k + n - 1 for k, n in zip(kernel, output)] if kernel else list(output)
    if any(size < least for size, least in zip(x.shape[1:-1], reach)):
        raise ShapeError(
            f"{where}: there are more regions than pixels",
            received=f"x {x.shape}, output_size {output}, kernel_size {kernel}",
            allowed="an output up to the input's size, less what a kernel covers",
        )
    if random_u is not None and not 0 < random_u < 1:
        raise ShapeError(
            f"{where}: random_u is a share", received=random_u, allowed="between 0 and 1, or None"
        )
    drawn = jax.random.uniform(next_key() if key is None else key) if random_u is None else random_u
    maxima, places = _fractional_max(x, jnp.asarray(drawn, jnp.float32), output, kernel)
    return (maxima, places) if return_mask else maxima


def fractional_max_pool2d(
    x: jax.Array,
    output_size: int | Sequence[int | None],
    kernel_size: Size | None = None,
    random_u: float | None = None,
    return_mask: bool = False,
    key: jax.Array | None = None,
) -> PyTree:
    """Maximum over `output_size` regions of random, nearly equal sizes. x [N, H, W, C].

    Regions of `kernel_size` overlap; without it they are disjoint. `random_u` from 0 to 1 decides where they are; None
    draws it from `key`, by default `next_key()`. Source: Graham 2014 (arXiv 1412.6071), section 2.
    """
    return _fractional("fractional_max_pool2d", x, output_size, kernel_size, random_u, return_mask, key, 2)


def fractional_max_pool3d(
    x: jax.Array,
    output_size: int | Sequence[int | None],
    kernel_size: Size | None = None,
    random_u: float | None = None,
    return_mask: bool = False,
    key: jax.Array | None = None,
) -> PyTree:
    """`fractional_max_pool2d` for x [N, D, H, W, C]."""
    return _fractional("fractional_max_pool3d", x, output_size, kernel_size, random_u, return_mask, key, 3)
