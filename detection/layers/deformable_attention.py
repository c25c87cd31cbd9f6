"""Multi-scale deformable attention: each query reads a few learned places of every level, and nothing else.

Paper: Deformable DETR, https://arxiv.org/abs/2010.04159, section 4.1
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/deformable_transformer.py and utils.py
Weights: the names of PaddleDetection
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I

ShapesHW = Sequence[tuple[Any, Any]]
"""(height, width) of every level."""


def sample_levels(
    value: jax.Array, shapes_hw: ShapesHW, locations: jax.Array, weights: jax.Array
) -> jax.Array:
    """Weighted sums of bilinear samples; what lies outside of a level is 0.

    Args:
        value: [N, S, heads, D], the pixels of all levels, each row by row: S is the sum of their areas.
        locations: [N, Q, heads, L, P, 2] xy, 0 to 1 from the outer edge of the first pixel to that of the last.
        weights: [N, Q, heads, L, P].

    Returns:
        [N, Q, heads * D].

    Raises:
        ShapeError: `value` has not as many pixels as the levels.
    """
    if value.shape[1] != sum(height * width for height, width in shapes_hw):
        raise ShapeError(
            "the value is not that of these levels",
            where="sample_levels",
            received=f"{value.shape[1]} pixels",
            allowed=f"the sum of the areas of {list(shapes_hw)}",
        )
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    start, total = 0, jnp.zeros((batch, queries, heads, channels), value.dtype)
    for level, (height, width) in enumerate(shapes_hw):
        x, across = _cells(locations[:, :, :, level, :, 0], width)
        y, down = _cells(locations[:, :, :, level, :, 1], height)
        rows = _quads(value[:, start : start + height * width], height, width)
        index = (y * (width + 1) + x) * heads + jnp.arange(heads)[:, None]  # [N, Q, heads, P]
        samples = jax.vmap(lambda table, i: table.at[i].get(mode="promise_in_bounds"))(rows, index)
        corners = jnp.stack(
            [(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across], axis=-1
        )
        corners = (corners * weights[:, :, :, level, :, None]).astype(value.dtype)
        samples = samples.reshape(batch, queries, heads, points * 4, channels)
        total += jnp.einsum("nqhk,nqhkd->nqhd", corners.reshape(batch, queries, heads, points * 4), samples)
        start += height * width
    return total.reshape(batch, queries, heads * channels)


def _cells(location: jax.Array, size: Any) -> tuple[jax.Array, jax.Array]:
    """(cell, share of its far side) of 0-to-1 coordinates. Cells are the gaps between pixels, the border's included."""
    place = jnp.clip(location.astype(jnp.float32) * size + 0.5, 0, size + 1)
    cell = jnp.minimum(jnp.floor(place), size)
    return cell.astype(jnp.int32), place - cell


def _quads(value: jax.Array, height: Any, width: Any) -> jax.Array:
    """[N, H * W, heads, D] -> [N, (H + 1) * (W + 1) * heads, 4 * D]: the four pixels around each cell, zeros outside.

    One gather then brings all that a sample needs in one contiguous row, without a test for borders.
    """
    batch, _, heads, channels = value.shape
    framed = jnp.pad(
        value.reshape(batch, height, width, heads, channels), ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0))
    )
    quads = jnp.concatenate(
        [framed[:, :-1, :-1], framed[:, :-1, 1:], framed[:, 1:, :-1], framed[:, 1:, 1:]], axis=-1
    )
    return quads.reshape(batch, (height + 1) * (width + 1) * heads, 4 * channels)
