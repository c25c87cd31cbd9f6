"""The assigner of a training step: one that needs no predictions at first, then one that follows them."""

from __future__ import annotations

import functools

import jax

from detection.assigners.assignment import Assignment
from detection.assigners.atss import atss
from detection.assigners.tal import task_aligned
from detection.contracts import Targets
from detection.layers.grid import Grid

_ANCHOR_SIDE = 5.0  # in strides


def assign_scheduled(
    grid: Grid, scores: jax.Array, boxes: jax.Array, targets: Targets, static_steps: int
) -> Assignment:
    """ATSS in the first `static_steps` steps, then the task-aligned assigner. No gradient passes through it.

    Args:
        scores: [N, L, C] probabilities.
        boxes: [N, L, 4] xyxy in pixels, as predicted.
    """
    scores, boxes = jax.lax.stop_gradient((scores, boxes))

    def static() -> Assignment:
        anchors = grid.anchors(_ANCHOR_SIDE)
        assign = functools.partial(atss, anchors=anchors, counts=grid.counts)
        each = jax.vmap(lambda gt, valid, box: assign(gt, valid, predictions=box))
        return each(targets.boxes, targets.valid, boxes)

    def aligned() -> Assignment:
        each = jax.vmap(task_aligned, in_axes=(0, 0, None, 0, 0, 0))
        return each(scores, boxes, grid.points, targets.boxes, targets.labels, targets.valid)

    return jax.lax.cond(targets.step < static_steps, static, aligned)
