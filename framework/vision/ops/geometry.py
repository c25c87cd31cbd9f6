"""Boxes in the program: arrays [..., 4] of xyxy float32, pure functions that differentiate and vectorise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError, TraceError
from framework.core.rng import is_tracing
from framework.nn.functional.lowering import describe, jitted

# A float32 below what one pixel's overlap could be, so that empty boxes divide to 0.
EPSILON = 1e-9


def area(boxes: jax.Array) -> jax.Array:
    """[...]: 0 for boxes that are turned inside out."""
    size = jnp.maximum(boxes[..., 2:] - boxes[..., :2], 0)
    return size[..., 0] * size[..., 1]


def intersect(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(intersection over union, union) [...] of boxes [..., 4] one by one; shapes broadcast. Empty with empty is 0."""
    # Each coordinate by itself: engines other than XLA are slow where the last axis has two.
    sides = [
        jnp.maximum(jnp.minimum(a[..., i + 2], b[..., i + 2]) - jnp.maximum(a[..., i], b[..., i]), 0)
        for i in (0, 1)
    ]
    shared = sides[0] * sides[1]
    union = area(a) + area(b) - shared
    return shared / (union + EPSILON), union


def pairwise_iou(a: jax.Array, b: jax.Array) -> jax.Array:
    """[..., N, M] of all pairs of a [..., N, 4] and b [..., M, 4]."""
    return intersect(a[..., :, None, :], b[..., None, :, :])[0]


def suppress(clash: jax.Array, valid: jax.Array) -> jax.Array:
    """Which of K boxes stay [K] bool, the best first: those that no better one that stays clashes with.

    The greedy rule (keep the best box, drop what overlaps it, go on) has one fixed point: a box stays if and only if
    no better box that stays overlaps it. It is found by iterating that rule on all boxes at once, which ends after as
    many rounds as the longest chain of boxes that suppress one another, a handful in images.

    Args:
        clash: [K, K] bool: two boxes overlap too much.
        valid: [K] bool; the others neither stay nor suppress.
    """
    order = jnp.arange(valid.shape[0])
    better = clash & (order[:, None] < order[None, :])  # [i, j]: i drops j

    def is_unsettled(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        return (state[0] != state[1]).any()

    def repeat(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        kept = state[1]
        return kept, valid & ~(better & kept[:, None]).any(axis=0)

    return lax.while_loop(is_unsettled, repeat, (jnp.zeros_like(valid), valid))[1]


def suppress_boxes(
    boxes: jax.Array,
    valid: jax.Array,
    iou_threshold: float,
    labels: jax.Array | None = None,
    num_labels: int = 1,
) -> jax.Array:
    """Which boxes stay, [K] bool: of two that overlap by more than the threshold, the better one. In ONNX it is the
    operator NonMaxSuppression.

    Args:
        boxes: [K, 4] xyxy, best first.
        valid: [K] bool; the others neither stay nor suppress.
        labels: [K] int below `num_labels`: only boxes of equal labels suppress one another.
    """
    return _suppress_boxes(boxes, valid, labels, float(iou_threshold), num_labels)


@jitted("iou_threshold", "num_labels")
def _suppress_boxes(
    boxes: jax.Array, valid: jax.Array, labels: jax.Array | None, iou_threshold: float, num_labels: int
) -> jax.Array:
    with describe("suppress_boxes", iou_threshold=iou_threshold, num_labels=num_labels):
        clash = pairwise_iou(boxes, boxes) > iou_threshold
        if labels is not None:
            clash &= labels[:, None] == labels[None, :]
        return suppress(clash, valid)


def image_of_box(boxes_num: jax.Array, count: int) -> jax.Array:
    """[count] int: to which image each of `count` boxes belongs, N for those beyond the sum of boxes_num [N]."""
    ends = jnp.cumsum(boxes_num)
    return jnp.searchsorted(ends, jnp.arange(count, dtype=ends.dtype), side="right")


def check_boxes(boxes: jax.Array, where: str) -> jax.Array:
    """Raises: ShapeError, where these are no boxes [K, 4]."""
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            "these are no boxes", where=where, received=list(boxes.shape), allowed="[K, 4]; none: [0, 4]"
        )
    return boxes.astype(jnp.promote_types(boxes.dtype, jnp.float32))


def check_eager(where: str) -> None:
    """Raises: TraceError, where a result whose length depends on values is asked for under a trace."""
    if is_tracing():
        raise TraceError(
            "the length of the result depends on values, which a program has none of while it is traced",
            where=where,
            received="a trace (jit, grad or export)",
            allowed="padded=True: arrays of fixed shapes, with counts",
        )
