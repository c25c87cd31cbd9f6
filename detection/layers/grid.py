"""The cells of a detector's maps, laid side by side: one point a cell, finest map first, rows before columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Grid(NamedTuple):
    """L cells of all maps."""

    points: jax.Array
    """[L, 2] float32 xy in pixels of the network's input"""
    strides: jax.Array
    """[L, 1] float32"""
    counts: tuple[int, ...]
    """Cells of each map"""

    def anchors(self, scale: float) -> jax.Array:
        """Squares [L, 4] xyxy around the points with sides of `scale` strides."""
        half = self.strides * (scale / 2)
        return jnp.concatenate([self.points - half, self.points + half], axis=-1)


def make_grid(maps: Sequence[jax.Array], strides: Sequence[int], offset: float = 0.5) -> Grid:
    """The cells of maps [N, H, W, ...]; `offset` places the point in its cell, 0.5 in the middle."""
    points, steps, counts = [], [], []
    for x, stride in zip(maps, strides, strict=True):
        height, width = x.shape[1:3]
        across, down = ((jnp.arange(n, dtype=jnp.float32) + offset) * stride for n in (width, height))
        xy = jnp.stack(jnp.meshgrid(across, down, indexing="xy"), axis=-1)  # [H, W, 2]
        points.append(xy.reshape(-1, 2))
        steps.append(jnp.full((height * width, 1), stride, jnp.float32))
        counts.append(height * width)
    return Grid(jnp.concatenate(points), jnp.concatenate(steps), tuple(counts))


def flatten_maps(maps: Sequence[jax.Array]) -> jax.Array:
    """[N, H, W, C] of each map to [N, L, C] in the order of `make_grid`."""
    return jnp.concatenate([x.reshape(x.shape[0], -1, x.shape[-1]) for x in maps], axis=1)
