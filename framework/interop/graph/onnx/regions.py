"""Boxes of a feature map in one size, as ONNX's RoiAlign pools them. Source: ONNX operator specification, RoiAlign."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer

_UNROLLED = 2  # points of a row of a bin up to which a program has each of them by itself


@dataclass(frozen=True)
class Axis:
    """The bins of R boxes along one axis of the map.

    Attributes:
        start: [R, bins], where each begins, in pixels.
        length: [R, 1], of one bin.
        points: [R, 1] int, how many each has; 0 for boxes that are turned inside out and have no number of their own.
        limit: The pixels of the map.
    """

    start: jax.Array
    length: jax.Array
    points: jax.Array
    limit: int

    def neighbours(self, number: int | jax.Array) -> tuple[tuple[jax.Array, jax.Array], ...]:
        """The pixels before and behind the point `number` of each bin, each with its weight: [R, bins]. Weights are 0
        where the point is farther than a pixel outside of the map, or where the box has no such point."""
        kind = self.length.dtype
        share = (jnp.asarray(number).astype(kind) + 0.5) / jnp.maximum(self.points, 1).astype(kind)
        at = self.start + share * self.length
        there = (at >= -1) & (at <= self.limit) & (number < self.points)
        at = jnp.clip(at, 0, self.limit - 1)
        low = jnp.floor(at)
        pixel, behind = low.astype(jnp.int32), at - low
        after = jnp.minimum(pixel + 1, self.limit - 1)
        return (pixel, jnp.where(there, 1 - behind, 0)), (after, jnp.where(there, behind, 0))

    @property
    def most(self) -> int | jax.Array:
        """The most points of a box; Python's number where the boxes are known, so that it has a gradient."""
        if isinstance(self.points, Tracer):
            return self.points.max(initial=0)
        return int(self.points.max(initial=0))


def roi_align(
    x: jax.Array,
    rois: jax.Array,
    batch: jax.Array,
    size: tuple[int, int],
    scale: float,
    ratio: int,
    mode: str,
    half_pixel: bool,
) -> jax.Array:
    """Boxes `rois [R, 4]` xyxy of the images `batch [R]` of x [N, H, W, C] -> [R, *size, C].

    Every point of all bins is one gather of pixels, added up in one pass; nothing is as large as an image a box.

    Args:
        scale: Boxes times this are in pixels of the map.
        ratio: Points a bin and axis; 0: as many as the bin has pixels, rounded up, for each box its own number.
        mode: "avg" is the mean of a bin's points. "max" is the largest of the weighted pixels around them.
        half_pixel: The centre of the first pixel is at 0.5; else at 0, and boxes have at least a pixel.
    """
    kind = jnp.promote_types(x.dtype, rois.dtype)
    rois, pixels = rois.astype(kind), x.reshape(-1, x.shape[-1]).astype(kind)
    left, top, right, bottom = jnp.split(rois * scale - (0.5 if half_pixel else 0.0), 4, -1)
    axes = []
    for low, high, bins, limit in ((top, bottom, size[0], x.shape[1]), (left, right, size[1], x.shape[2])):
        side = high - low if half_pixel else jnp.maximum(high - low, 1.0)
        length = side / bins
        counts = jnp.ceil(length).astype(jnp.int32)
        points = jnp.full_like(counts, ratio) if ratio else jnp.maximum(counts, 0)
        axes.append(Axis(low + jnp.arange(bins, dtype=length.dtype) * length, length, points, limit))
    rows, columns = axes
    most = [ratio or axis.most for axis in axes]
    image = jnp.clip(batch, 0, x.shape[0] - 1)[:, None].astype(jnp.int32) * x.shape[1]

    def corners(i: int | jax.Array, j: int | jax.Array) -> list[jax.Array]:
        """The weighted pixels [R, *size, C] around the point (i, j) of each bin."""
        return [
            jnp.take(pixels, ((image + y) * x.shape[2])[:, :, None] + left[:, None], axis=0, mode="clip")
            * (a[:, :, None] * b[:, None])[..., None]
            for y, a in rows.neighbours(i)
            for left, b in columns.neighbours(j)
        ]

    def visit(i: int | jax.Array, j: int | jax.Array, total: jax.Array) -> jax.Array:
        if mode != "max":
            return total + sum(corners(i, j))
        best = jnp.stack(corners(i, j)).max(0)
        has = (i < rows.points) & (j < columns.points)  # [R, 1]
        return jnp.where(has[..., None, None], jnp.maximum(total, best), total)

    total = jnp.full((rois.shape[0], *size, x.shape[-1]), -jnp.inf if mode == "max" else 0, kind)

    def visit_row(i: jax.Array, total: jax.Array) -> jax.Array:
        if 0 < ratio <= _UNROLLED:
            for j in range(ratio):
                total = visit(i, j, total)
            return total
        return lax.fori_loop(0, most[1], lambda j, value: visit(i, j, value), total)

    # A loop, also of few steps: XLA would gather number by number where the result is transposed behind it.
    total = lax.fori_loop(0, most[0], visit_row, total)
    count = (rows.points * columns.points)[..., None, None]  # [R, 1, 1, 1]
    if mode == "max":
        return jnp.where(count > 0, total, 0).astype(x.dtype)
    return (total / jnp.maximum(count, 1).astype(kind)).astype(x.dtype)
