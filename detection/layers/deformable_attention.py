"""Multi-scale deformable attention: each query reads a few learned places of every level, and nothing else.

Paper: Deformable DETR, https://arxiv.org/abs/2010.04159, section 4.1
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/deformable_transformer.py and utils.py
Weights: the names of PaddleDetection
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I

ShapesHW = Sequence[tuple[int, int]]
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
    batch, pixels, heads, channels = value.shape
    queries = locations.shape[1]
    table = value.reshape(batch * pixels * heads, channels)
    image = (jnp.arange(batch) * pixels)[:, None, None, None]
    start, total = 0, jnp.zeros((batch, queries, heads, channels), value.dtype)
    for level, (height, width) in enumerate(shapes_hw):
        columns = _neighbours(locations[..., level, :, 0], width)
        rows = _neighbours(locations[..., level, :, 1], height)
        # One gather of contiguous rows for each of the four corners: on CPUs faster than one of all at once.
        for (row, down), (column, across) in itertools.product(rows, columns):
            index = (image + start + row * width + column) * heads + jnp.arange(heads)[:, None]
            share = (down * across * weights[..., level, :]).astype(value.dtype)
            values_at = table.at[index].get(mode="promise_in_bounds")  # [N, Q, heads, P, D]
            total += jnp.einsum("nqhp,nqhpd->nqhd", share, values_at)
        start += height * width
    return total.reshape(batch, queries, heads * channels)


def _neighbours(location: jax.Array, size: int) -> tuple[tuple[jax.Array, jax.Array], ...]:
    """(index, share) of the two pixels around a coordinate of 0 to 1; pixels outside have a share of 0."""
    position = location.astype(jnp.float32) * size - 0.5
    first = jnp.floor(position)
    share = position - first
    pairs = ((first, 1 - share), (first + 1, share))
    return tuple(
        (
            jnp.clip(pixel, 0, size - 1).astype(jnp.int32),
            jnp.where((pixel >= 0) & (pixel < size), part, 0),
        )
        for pixel, part in pairs
    )


class MSDeformableAttention(nn.Layer):
    """`query` [N, Q, C] reads `num_points` places of each level in each head. -> [N, Q, C].

    `forward(query, reference, value, shapes_hw)`: `reference` [N, Q or 1, 1 or L, 2 or 4] are points xy, which offsets
    in pixels of the level move, or boxes cxcywh, whose halves are the unit of the offsets; both 0 to 1. `value`
    [N, S, C] are the pixels of all levels.
    """

    def __init__(self, embed_dim: int, num_heads: int, num_levels: int, num_points: int) -> None:
        super().__init__()
        self.num_heads, self.num_levels, self.num_points = num_heads, num_levels, num_points
        points = num_heads * num_levels * num_points
        zero = I.Constant(0.0)
        self.sampling_offsets = nn.Linear(
            embed_dim, points * 2, zero, I.Assign(_star(num_heads, num_levels, num_points))
        )
        self.attention_weights = nn.Linear(embed_dim, points, zero)
        self.value_proj = nn.Linear(embed_dim, embed_dim)
        self.output_proj = nn.Linear(embed_dim, embed_dim)

    def forward(
        self, query: jax.Array, reference: jax.Array, value: jax.Array, shapes_hw: ShapesHW
    ) -> jax.Array:
        batch, queries = query.shape[:2]
        heads, levels, points = self.num_heads, self.num_levels, self.num_points
        values = self.value_proj(value).reshape(batch, value.shape[1], heads, -1)
        offsets = self.sampling_offsets(query).reshape(batch, queries, heads, levels, points, 2)
        weights = self.attention_weights(query).reshape(batch, queries, heads, levels * points)
        weights = F.softmax(weights.astype(jnp.float32)).reshape(batch, queries, heads, levels, points)
        centre = reference[:, :, None, :, None, :2]
        if reference.shape[-1] == 2:
            sizes = jnp.asarray([(width, height) for height, width in shapes_hw], jnp.float32)
            locations = centre + offsets / sizes[:, None]
        else:
            locations = centre + offsets / points * reference[:, :, None, :, None, 2:] * 0.5
        return self.output_proj(sample_levels(values, shapes_hw, locations, weights))


def _star(heads: int, levels: int, points: int) -> np.ndarray:
    """First offsets xy [heads * levels * points * 2]: each head looks in its own direction, 1 to `points` far."""
    angles = np.arange(heads) * (2 * math.pi / heads)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    directions /= np.abs(directions).max(axis=-1, keepdims=True)
    far = np.arange(1, points + 1)[:, None]
    star = np.broadcast_to(directions[:, None, None] * far, (heads, levels, points, 2))
    return star.reshape(-1).astype(np.float32)
