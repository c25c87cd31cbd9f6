"""Denoising queries of DINO: copies of the objects with noise, from which the decoder learns to find them again.

Paper: DINO, https://arxiv.org/abs/2203.03605, section 3.3
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/utils.py, contrastive denoising
Differs: the number of queries is fixed; those beyond the reference's count for nothing, and no other sees them.

With g the most objects of an image in the batch, a group is g positive queries, near an object, and g negative ones,
further away; there are `num_denoising // g` groups, at least one. An image with fewer objects has empty queries.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.layers.detr import logit, to_centers, to_corners

_LABEL_NOISE = 0.5  # twice the share of labels that are drawn anew
_BOX_NOISE = 1.0  # in halves of the box's size


class Noise(NamedTuple):
    """What is drawn for D queries."""

    chance: jax.Array
    """[N, D] in 0 to 1: low ones have their label replaced"""
    labels: jax.Array
    """[N, D] int32 in 0 to num_classes - 1"""
    signs: jax.Array
    """[N, D, 4], -1 or 1"""
    shares: jax.Array
    """[N, D, 4] in 0 to 1"""


class DenoisingQueries(NamedTuple):
    """D queries of each image."""

    labels: jax.Array
    """[N, D] int32; num_classes where there is no object"""
    box_logits: jax.Array
    """[N, D, 4]"""
    visible: jax.Array
    """[D, D] bool: what each query sees of the others"""
    live: jax.Array
    """[D] bool: False where the reference has no query"""
    index: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]
    """[N, D] int32: the object that the query learns"""
    positive: jax.Array
    """[N, D] bool: the query learns an object"""
    groups: jax.Array
    """[] int32"""


def draw_noise(key: jax.Array, batch: int, count: int, num_classes: int) -> Noise:
    """Noise for `count` queries of each of `batch` images."""
    chance, labels, signs, shares = jax.random.split(key, 4)
    return Noise(
        jax.random.uniform(chance, (batch, count)),
        jax.random.randint(labels, (batch, count), 0, num_classes),
        jax.random.rademacher(signs, (batch, count, 4), jnp.float32),
        jax.random.uniform(shares, (batch, count, 4)),
    )


def denoising_queries(
    boxes: jax.Array, labels: jax.Array, valid: jax.Array, noise: Noise, num_denoising: int, num_classes: int
) -> DenoisingQueries:
    """Queries for objects with boxes [N, M, 4] cxcywh in 0 to 1; as many as there is noise for.

    The reference never has more than twice the greater of `num_denoising` and M.
    """
    order = jnp.argsort(~valid, axis=1, stable=True)  # the objects first
    counts = valid.sum(axis=1)
    most = jnp.maximum(counts.max(), 1)
    groups = jnp.where(counts.max() > 0, jnp.maximum(num_denoising // most, 1), 0)

    slot = jnp.arange(noise.chance.shape[1])
    group, within = slot // (2 * most), slot % (2 * most)
    place, negative = within % most, within >= most
    live = group < groups
    visible = group[:, None] == group[None, :]
    present = live & (place < counts[:, None])  # [N, D]
    index = jnp.take(order, place, axis=1)

    label = jnp.take_along_axis(labels, index, axis=1)
    label = jnp.where(noise.chance < _LABEL_NOISE / 2, noise.labels, label)
    box = jnp.where(present[..., None], jnp.take_along_axis(boxes, index[..., None], axis=1), 0)
    half = jnp.tile(box[..., 2:], (1, 1, 2)) * (_BOX_NOISE / 2)
    shift = noise.signs * (noise.shares + negative[:, None].astype(jnp.float32)) * half
    moved = to_centers(jnp.clip(to_corners(box) + shift, 0, 1))
    return DenoisingQueries(
        labels=jnp.where(present, label, num_classes),
        box_logits=logit(moved),
        visible=visible,
        live=live,
        index=index,
        positive=present & ~negative,
        groups=groups,
    )
