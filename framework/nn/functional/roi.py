"""roi_align, roi_pool and psroi_pool, Paddle's: regions of feature maps [N, H, W, C] in one size.

All take boxes [R, 4] xyxy, those of one image after another, and how many each image has, boxes_num [N]. Shapes are
fixed, so they run in a program as they are; rows beyond the sum of boxes_num are zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional.boxes import check_boxes

Size = int | Sequence[int]
_BATCH = 32  # boxes at a time: what is gathered for them stays in the cache


def roi_align(
    x: jax.Array,
    boxes: jax.Array,
    boxes_num: jax.Array,
    output_size: Size,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = True,
) -> jax.Array:
    """[R, h, w, C]: each bin is the mean of points between pixels.

    Source: He et al. 2017, "Mask R-CNN", section 3.

    Args:
        x: [N, H, W, C]. boxes: [R, 4]; times `spatial_scale` they are in pixels of the map.
        sampling_ratio: A bin has its square of points. -1: as many as it has pixels, rounded up; each box has its own
            number then, which takes longer.
        aligned: Boxes are shifted by half a pixel, as they should; False is older models' rule.
    """
    size, boxes, image = _check(x, boxes, boxes_num, output_size, "roi_align")
    if not boxes.shape[0]:
        return jnp.zeros((0, *size, x.shape[3]), x.dtype)
    return _roi_align(
        x,
        lax.stop_gradient(boxes * spatial_scale),
        image,
        size=size,
        ratio=max(int(sampling_ratio), 0),
        aligned=bool(aligned),
    )


@functools.partial(jax.jit, static_argnames=("size", "ratio", "aligned"))
def _roi_align(
    x: jax.Array, boxes: jax.Array, image: jax.Array, *, size: tuple[int, int], ratio: int, aligned: bool
) -> jax.Array:
    start = boxes[:, 1::-1] - (0.5 if aligned else 0.0)  # (y, x)
    side = boxes[:, :1:-1] - boxes[:, 1::-1]
    bins = (side if aligned else jnp.maximum(side, 1)) / jnp.asarray(size, side.dtype)
    if ratio:
        grid = jnp.full(bins.shape, ratio, jnp.int32)
    else:
        grid = jnp.ceil(bins).astype(jnp.int32)  # none for boxes turned inside out
    axes = list(zip(x.shape[1:3], size, strict=True))
    if ratio:
        tables = [_points(start[:, a], bins[:, a], n, out, ratio) for a, (n, out) in enumerate(axes)]
    else:
        tables = [
            (None, _weights(start[:, a], bins[:, a], grid[:, a], n, out)) for a, (n, out) in enumerate(axes)
        ]
    (rows, row_weights), (columns, column_weights) = tables
    total = jnp.maximum(grid.prod(axis=1), 1).astype(x.dtype)

    def of_box(args: tuple[jax.Array, ...]) -> jax.Array:
        index, count, row_weights, column_weights, *places = args
        part = x[index]
        if places:
            part = part[places[0]][:, places[1]]
        part = jnp.einsum("ph,hwc->pwc", row_weights.astype(x.dtype), part)
        return jnp.einsum("qw,pwc->pqc", column_weights.astype(x.dtype), part) / count

    places = () if rows is None or columns is None else (rows, columns)
    return _map(of_box, image, x.shape[0], total, row_weights, column_weights, *places)


def _points(
    start: jax.Array, bins: jax.Array, size: int, out: int, ratio: int
) -> tuple[jax.Array, jax.Array]:
    """(pixels [R, T], weights [R, out, T]) along one axis: T = 2 * out * ratio neighbours of the points."""
    step = (jnp.arange(ratio, dtype=bins.dtype) + 0.5) / ratio
    place = start[:, None, None] + (jnp.arange(out, dtype=bins.dtype)[:, None] + step) * bins[:, None, None]
    low, high, part, inside = _neighbours(place, size)
    weights = jnp.stack([(1 - part) * inside, part * inside], axis=-1)  # [R, out, ratio, 2]
    own = jnp.eye(out, dtype=weights.dtype)[:, :, None, None]
    spread = weights[:, None] * own  # [R, out, out, ratio, 2]
    return jnp.stack([low, high], axis=-1).reshape(len(start), -1), spread.reshape(len(start), out, -1)


def _weights(start: jax.Array, bins: jax.Array, grid: jax.Array, size: int, out: int) -> jax.Array:
    """[R, out, size] along one axis: the sum of the points' weights on each pixel, `grid [R]` points a bin."""
    order, pixels = jnp.arange(out, dtype=bins.dtype), jnp.arange(size, dtype=jnp.int32)

    def add(point: jax.Array, total: jax.Array) -> jax.Array:
        step = (point.astype(bins.dtype) + 0.5) / jnp.maximum(grid, 1).astype(bins.dtype)
        place = start[:, None] + order * bins[:, None] + (step * bins)[:, None]
        low, high, part, inside = _neighbours(place, size)
        inside = inside * (point < grid)[:, None].astype(bins.dtype)
        weight = jnp.where(pixels == low[..., None], ((1 - part) * inside)[..., None], 0)
        return total + weight + jnp.where(pixels == high[..., None], (part * inside)[..., None], 0)

    zero = jnp.zeros((), grid.dtype)
    return lax.fori_loop(zero, grid.max(), add, jnp.zeros((len(start), out, size), bins.dtype))


def _neighbours(place: jax.Array, size: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(pixel before, pixel after, share of the latter, 1 inside of the map and up to a pixel beside it, else 0)."""
    inside = ((place >= -1) & (place <= size)).astype(place.dtype)
    place = jnp.clip(place, 0, size - 1)
    low = jnp.floor(place)
    index = low.astype(jnp.int32)
    return index, jnp.minimum(index + 1, size - 1), place - low, inside


def roi_pool(
    x: jax.Array,
    boxes: jax.Array,
    boxes_num: jax.Array,
    output_size: Size,
    spatial_scale: float = 1.0,
) -> jax.Array:
    """[R, h, w, C]: each bin is the greatest of its pixels, 0 where it has none; boxes are rounded to whole pixels.

    Source: Girshick 2015, "Fast R-CNN", section 2.1. Arguments as of `roi_align`.
    """
    size, boxes, image = _check(x, boxes, boxes_num, output_size, "roi_pool")
    if not boxes.shape[0]:
        return jnp.zeros((0, *size, x.shape[3]), x.dtype)
    return _roi_pool(x, lax.stop_gradient(_round(boxes * spatial_scale)), image, size=size)


@functools.partial(jax.jit, static_argnames=("size",))
def _roi_pool(x: jax.Array, boxes: jax.Array, image: jax.Array, *, size: tuple[int, int]) -> jax.Array:
    side = jnp.maximum(boxes[:, 2:] - boxes[:, :2] + 1, 1)
    rows = _cover(boxes[:, 1], side[:, 1] / size[0], x.shape[1], size[0])
    columns = _cover(boxes[:, 0], side[:, 0] / size[1], x.shape[2], size[1])
    lowest = jnp.finfo(x.dtype).min

    def of_box(args: tuple[jax.Array, ...]) -> jax.Array:
        index, rows, columns = args
        part = jnp.where(rows[:, :, None, None], x[index], lowest).max(axis=1)  # [h, W, C]
        part = jnp.where(columns[:, None, :, None], part, lowest).max(axis=2)  # [w, h, C]
        there = columns.any(axis=1)[:, None] & rows.any(axis=1)
        return jnp.where(there[..., None], part, 0).swapaxes(0, 1)

    return _map(of_box, image, x.shape[0], rows, columns)


def psroi_pool(
    x: jax.Array,
    boxes: jax.Array,
    boxes_num: jax.Array,
    output_size: Size,
    spatial_scale: float = 1.0,
) -> jax.Array:
    """[R, h, w, C]: each bin is the mean of its pixels in channels of its own, 0 where it has none.

    Source: Dai et al. 2016, "R-FCN", equation 1.

    Args:
        x: [N, H, W, C * h * w]; channel (c * h + i) * w + j belongs to bin (i, j). The others are as of `roi_align`.
    """
    size, boxes, image = _check(x, boxes, boxes_num, output_size, "psroi_pool")
    if x.shape[3] % (size[0] * size[1]):
        raise ShapeError(
            "the channels do not divide among the bins",
            where="psroi_pool",
            received=f"{x.shape[3]} channels, output_size {size}",
            allowed=f"a multiple of {size[0] * size[1]} channels",
        )
    if not boxes.shape[0]:
        return jnp.zeros((0, *size, x.shape[3] // (size[0] * size[1])), x.dtype)
    start, end = _round(boxes[:, :2]) * spatial_scale, (_round(boxes[:, 2:]) + 1) * spatial_scale
    boxes = jnp.concatenate([start, jnp.maximum(end - start, 0.1)], axis=1)
    return _psroi_pool(x, lax.stop_gradient(boxes), image, size=size)


@functools.partial(jax.jit, static_argnames=("size",))
def _psroi_pool(x: jax.Array, boxes: jax.Array, image: jax.Array, *, size: tuple[int, int]) -> jax.Array:
    rows = _cover(boxes[:, 1], boxes[:, 3] / size[0], x.shape[1], size[0], shifted=True)
    columns = _cover(boxes[:, 0], boxes[:, 2] / size[1], x.shape[2], size[1], shifted=True)
    x = x.reshape(*x.shape[:3], -1, *size)

    def of_box(args: tuple[jax.Array, ...]) -> jax.Array:
        index, rows, columns = args
        count = rows.sum(axis=1)[:, None] * columns.sum(axis=1)
        total = jnp.einsum("ph,hwcpq->pwcq", rows.astype(x.dtype), x[index])
        total = jnp.einsum("qw,pwcq->pqc", columns.astype(x.dtype), total)
        return total / jnp.maximum(count, 1)[..., None].astype(x.dtype)

    return _map(of_box, image, x.shape[0], rows, columns)


def _cover(start: jax.Array, bins: jax.Array, size: int, out: int, shifted: bool = False) -> jax.Array:
    """[R, out, size] bool: the pixels that each bin touches. `shifted`: the start is no whole pixel."""
    order = jnp.arange(out, dtype=bins.dtype)
    first, last = order * bins[:, None], (order + 1) * bins[:, None]
    if shifted:
        first, last = jnp.floor(first + start[:, None]), jnp.ceil(last + start[:, None])
    else:
        first, last = jnp.floor(first) + start[:, None], jnp.ceil(last) + start[:, None]
    pixels = jnp.arange(size, dtype=bins.dtype)
    return (pixels >= first[..., None]) & (pixels < last[..., None])


def _round(values: jax.Array) -> jax.Array:
    """To the nearest whole number, halves away from 0 as in C."""
    return jnp.trunc(values + jnp.where(values < 0, -0.5, 0.5))


def _map(
    of_box: Callable[[tuple[jax.Array, ...]], jax.Array], image: jax.Array, images: int, *tables: jax.Array
) -> jax.Array:
    index = jnp.minimum(image, images - 1)
    out = lax.map(of_box, (index, *tables), batch_size=min(_BATCH, len(image)))
    return jnp.where((image < images)[:, None, None, None], out, 0)


def _check(
    x: jax.Array, boxes: jax.Array, boxes_num: jax.Array, output_size: Size, where: str
) -> tuple[tuple[int, int], jax.Array, jax.Array]:
    """(output size, boxes, the image of each box)."""
    pair = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    if x.ndim != 4 or boxes_num.shape != x.shape[:1] or len(pair) != 2 or min(pair) < 1:
        raise ShapeError(
            "the map, the boxes and the size do not fit",
            where=where,
            received=f"x {list(x.shape)}, boxes_num {list(boxes_num.shape)}, output_size {output_size}",
            allowed="x [N, H, W, C], boxes_num [N], sides >= 1",
            fix="maps are channels-last here: x.transpose(0, 2, 3, 1)",
        )
    boxes = check_boxes(jnp.asarray(boxes), f"{where}.boxes")
    return (int(pair[0]), int(pair[1])), boxes, image_of_box(jnp.asarray(boxes_num), boxes.shape[0])


def image_of_box(boxes_num: jax.Array, count: int) -> jax.Array:
    """[count] int: to which image each of `count` boxes belongs, N for those beyond the sum of boxes_num [N]."""
    ends = jnp.cumsum(boxes_num)
    return jnp.searchsorted(ends, jnp.arange(count, dtype=ends.dtype), side="right")
