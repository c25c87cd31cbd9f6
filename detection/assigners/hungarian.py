"""Which query learns which object: the one-to-one matching of least cost over the whole image.

Paper: DETR, https://arxiv.org/abs/2005.12872, section 3.1; focal costs as in https://arxiv.org/abs/2010.04159
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/matchers.py with `use_focal_loss`
Differs: the matching runs on the host, for all images and layers in one call; its result is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from detection.layers.detr import to_corners
from framework.nn.functional.boxes import pairwise_iou

_ALPHA, _GAMMA = 0.25, 2  # of the focal loss
_EPSILON = 1e-8


@dataclass(frozen=True)
class MatchingCosts:
    """Weights of the costs."""

    label: float = 2.0
    box: float = 5.0
    giou: float = 2.0


class Matches(NamedTuple):
    """For each of M objects the query that learns it."""

    query: jax.Array
    """[..., M] int32; 0 where not matched"""
    matched: jax.Array
    """[..., M] bool"""


def matching_costs(
    boxes: jax.Array,
    logits: jax.Array,
    object_boxes: jax.Array,
    labels: jax.Array,
    weights: MatchingCosts = MatchingCosts(),
) -> jax.Array:
    """[..., Q, M] of queries with boxes [..., Q, 4] cxcywh and logits [..., Q, num_classes], and M objects."""
    at_labels = jnp.broadcast_to(labels[..., None, :], (*logits.shape[:-1], labels.shape[-1]))
    scores = jnp.take_along_axis(jax.nn.sigmoid(logits), at_labels, axis=-1)
    positive = _ALPHA * (1 - scores) ** _GAMMA * -jnp.log(scores + _EPSILON)
    negative = (1 - _ALPHA) * scores**_GAMMA * -jnp.log(1 - scores + _EPSILON)
    distance = jnp.abs(boxes[..., :, None, :] - object_boxes[..., None, :, :]).sum(axis=-1)
    overlap = pairwise_iou(to_corners(boxes), to_corners(object_boxes), "giou")
    return weights.label * (positive - negative) + weights.box * distance - weights.giou * overlap


def match(costs: jax.Array, valid: jax.Array) -> Matches:
    """The matching of least cost between all valid objects and as many queries, fewer where queries are fewer.

    Args:
        costs: [B, Q, M] float32.
        valid: [B, M] bool.

    It is for training: a program that is exported cannot call the host.
    """
    shape = jax.ShapeDtypeStruct(valid.shape, jnp.int32)
    costs = jax.lax.stop_gradient(costs)
    query = jax.pure_callback(_solve, shape, costs, valid, vmap_method="sequential")
    return Matches(jnp.maximum(query, 0), query >= 0)


def _solve(costs: jax.Array, valid: jax.Array) -> np.ndarray:
    """[B, M] int32, -1 where an object has no query."""
    out = np.full(valid.shape, -1, np.int32)
    for row, cost, objects in zip(out, np.asarray(costs), np.asarray(valid)):
        columns = np.flatnonzero(objects)
        # What is not a number is made one: the loss itself then says that training went astray.
        queries, order = linear_sum_assignment(np.nan_to_num(cost[:, columns]))
        row[columns[order]] = queries
    return out
