"""SimOTA: each object takes as many of its cheapest cells as its best overlaps add up to.

Source: Ge et al. 2021 (YOLOX), https://arxiv.org/abs/2107.08430; PaddleDetection
    ppdet/modeling/assigners/simota_assigner.py
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment, resolve
from detection.boxes import centers, inside
from detection.contracts import Targets
from detection.layers.grid import Grid
from detection.losses import binary_cross_entropy
from framework.nn.functional.boxes import pairwise_iou

_FAR = 1e8  # what a cell costs that is not both in the object and near its centre


def simota(
    scores: jax.Array,
    predictions: jax.Array,
    points: jax.Array,
    strides: jax.Array,
    boxes: jax.Array,
    labels: jax.Array,
    valid: jax.Array,
    varifocal: bool = True,
    iou_weight: float = 3.0,
    topk: int = 10,
    center_radius: float = 2.5,
) -> Assignment:
    """Of one image; `quality` is the IoU of the prediction with its object.

    Args:
        scores: [L, C] probabilities.
        predictions: [L, 4] xyxy.
        points: [L, 2] xy of the cells.
        strides: [L, 1].
        boxes: [M, 4] xyxy.
        labels: [M] int.
        valid: [M] bool.
        varifocal: The cost is the varifocal loss and 1 - GIoU (PicoDet), otherwise cross entropy and -log IoU (YOLOX).
        topk: The dynamic number of cells is the sum of this many best IoUs, at least 1.
        center_radius: In strides, of the square around an object's centre.
    """
    ious = jnp.where(valid[:, None], pairwise_iou(boxes, predictions), 0)  # [M, L]
    within = inside(points, boxes) & valid[:, None]
    offsets = jnp.abs(points - centers(boxes)[:, None, :]).max(axis=-1)
    central = (offsets < center_radius * strides[:, 0]) & valid[:, None]
    candidate = (within | central).any(axis=0)  # [L]
    if varifocal:
        place_cost = 1 - pairwise_iou(boxes, predictions, "giou")
    else:
        place_cost = -jnp.log(ious + 1e-7)
    class_cost = _class_cost(scores, labels, ious, varifocal)
    cost = class_cost + iou_weight * place_cost + jnp.where(within & central, 0, _FAR)
    cost = jnp.where(candidate & valid[:, None], cost, jnp.inf)
    matched = _cheapest(cost, jnp.where(candidate, ious, 0), topk)
    matched = resolve(matched, -cost)
    positive, index = matched.any(axis=0), matched.argmax(axis=0).astype(jnp.int32)
    quality = jnp.take_along_axis(ious, index[None, :], axis=0)[0]
    return Assignment(positive, index, jnp.where(positive, quality, 0))


def simota_batch(
    grid: Grid,
    scores: jax.Array,
    predictions: jax.Array,
    targets: Targets,
    varifocal: bool = True,
    iou_weight: float = 3.0,
) -> Assignment:
    """`simota` of each image: scores [N, L, C], predictions [N, L, 4]. No gradient passes through it."""
    scores, predictions = jax.lax.stop_gradient((scores, predictions))
    assign = functools.partial(simota, varifocal=varifocal, iou_weight=iou_weight)
    each = jax.vmap(assign, in_axes=(0, 0, None, None, 0, 0, 0))
    return each(scores, predictions, grid.points, grid.strides, targets.boxes, targets.labels, targets.valid)


def _class_cost(scores: jax.Array, labels: jax.Array, ious: jax.Array, varifocal: bool) -> jax.Array:
    """[M, L]: the loss of a cell over all classes if it were to learn the object."""
    empty = binary_cross_entropy(scores, jnp.zeros(()))  # [L, C]
    if varifocal:
        empty = 0.75 * scores**2 * empty
    of_labels = scores.T[labels]  # [M, L]
    if varifocal:
        full = jnp.where(ious > 0, ious * binary_cross_entropy(of_labels, ious), empty.T[labels])
    else:
        full = binary_cross_entropy(of_labels, jnp.ones(()))
    return empty.sum(axis=-1) - empty.T[labels] + full


def _cheapest(cost: jax.Array, ious: jax.Array, topk: int) -> jax.Array:
    """[M, L] bool: for each object its dynamic number of cells with the least finite cost."""
    topk = min(topk, cost.shape[-1])
    numbers = jnp.maximum(jax.lax.top_k(ious, topk)[0].sum(axis=1).astype(jnp.int32), 1)  # [M]
    least, cells = jax.lax.top_k(-cost, topk)
    selected = (jnp.arange(topk) < numbers[:, None]) & jnp.isfinite(least)
    rows = jnp.arange(cost.shape[0])[:, None]
    return jnp.zeros(cost.shape, bool).at[rows, cells].set(selected)
