"""nms and matrix_nms of paddle.vision.ops.

How many boxes stay depends on values. As in Paddle the results hold just those, which works outside of jit; with
`padded=True` their shapes are fixed and the rest is filled up, so they can be compiled, exported and mapped.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError, ShapeError
from framework.nn.functional.boxes import matrix_nms as matrix_nms_rows
from framework.vision.ops.geometry import check_boxes, check_eager, pairwise_iou, suppress

_LEAST = 64  # boxes of the smallest program


def nms(
    boxes: jax.Array,
    iou_threshold: float = 0.3,
    scores: jax.Array | None = None,
    category_idxs: jax.Array | None = None,
    categories: Sequence[int] | None = None,
    top_k: int | None = None,
    *,
    padded: bool = False,
) -> jax.Array:
    """Indices [M] of the boxes that stay, best first: of two that overlap by more than the threshold, the better one.

    Args:
        boxes: [K, 4] xyxy. Without scores the first is the best, and the order stays.
        scores: [K].
        category_idxs: [K]: only boxes of equal categories suppress one another; those not in `categories` are
            dropped.
        top_k: At most so many, of the best.
        padded: Indices [top_k], or [K], with -1 behind those that stay; for jit.

    Raises:
        ConfigError: one of scores, category_idxs and categories needs another that is not there, or top_k > K.
        TraceError: under a trace without `padded`.
    """
    boxes = check_boxes(jnp.asarray(boxes), "nms.boxes")
    count = boxes.shape[0]
    if category_idxs is not None and (scores is None or categories is None):
        raise ConfigError(
            "categories need scores and the list of categories",
            where="nms",
            received=f"scores {'given' if scores is not None else None}, categories {categories}",
            fix="nms(boxes, threshold, scores, category_idxs, categories)",
        )
    if top_k is not None and not 0 < top_k <= count:
        raise ConfigError(
            "top_k is more than there are boxes", where="nms.top_k", received=top_k, allowed=f"1 to {count}"
        )
    for name, values in (("scores", scores), ("category_idxs", category_idxs)):
        if values is not None and values.shape != (count,):
            raise ShapeError(
                "there is not one for each box",
                where=f"nms.{name}",
                received=list(values.shape),
                allowed=[count],
            )
    labels, known = category_idxs, None
    if labels is not None:
        labels = jnp.asarray(labels)
        known = jnp.asarray(categories, labels.dtype)
    if padded:
        return _nms(boxes, scores, labels, known, iou_threshold, count)[:top_k]
    check_eager("nms")
    # The number of boxes differs from image to image: powers of two keep the number of programs small.
    more = max(_LEAST, 1 << (count - 1).bit_length()) - count
    boxes = jnp.pad(boxes, ((0, more), (0, 0)))
    scores, labels = (None if part is None else jnp.pad(part, (0, more)) for part in (scores, labels))
    found = np.asarray(_nms(boxes, scores, labels, known, iou_threshold, count))
    return jnp.asarray(found[found >= 0][:top_k])


@jax.jit
def _nms(
    boxes: jax.Array,
    scores: jax.Array | None,
    labels: jax.Array | None,
    known: jax.Array | None,
    threshold: float,
    count: int,
) -> jax.Array:
    """Indices [K] of those of the first `count` boxes that stay, then -1."""
    order = jnp.arange(boxes.shape[0]) if scores is None else jnp.argsort(-scores, stable=True)
    boxes = boxes[order]
    clash, valid = pairwise_iou(boxes, boxes) > threshold, order < count
    if labels is not None and known is not None:
        labels = labels[order]
        clash &= labels[:, None] == labels[None, :]
        valid &= (labels[:, None] == known).any(axis=1)
    kept = suppress(clash, valid)
    place = jnp.nonzero(kept, size=len(boxes), fill_value=len(boxes))[0]
    return jnp.concatenate([order, jnp.full(1, -1, order.dtype)])[place].astype(jnp.int32)


def matrix_nms(
    bboxes: jax.Array,
    scores: jax.Array,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    return_rois_num: bool = True,
    name: str | None = None,
    *,
    padded: bool = False,
) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    """Lowers the scores of boxes that better ones of their class overlap, instead of dropping them.

    Source: Wang et al. 2020, "SOLOv2", section 3.3.

    Args:
        bboxes: [N, M, 4] xyxy; `normalized` False counts right and bottom as inclusive pixels.
        scores: [N, C, M]; the class `background_label` is left out.
        score_threshold, post_threshold: What scores must exceed before and after.
        nms_top_k: The best boxes of a class that are compared, keep_top_k: those of an image that stay; -1 for all.
        name: Not used; it is there for calls that give it.
        padded: Fixed shapes, for jit; K is `keep_top_k`, or all.

    Returns:
        (rows, rois_num, index): rows [R, 6] of class, score and box, the best of each image first; the number of rows
        of each image [N]; and the rows' boxes as indices [R, 1] into [N * M]. Padded: [N, K, 6], of zeros behind
        rois_num, and [N, K]. What is not asked for is None.
    """
    if (
        bboxes.ndim != 3
        or scores.ndim != 3
        or (bboxes.shape[0], bboxes.shape[1])
        != (
            scores.shape[0],
            scores.shape[2],
        )
    ):
        raise ShapeError(
            "boxes and scores do not belong together",
            where="matrix_nms",
            received=f"{list(bboxes.shape)}, {list(scores.shape)}",
            allowed="[N, M, 4], [N, C, M]",
        )
    if not padded:
        check_eager("matrix_nms")
    classes = tuple(label for label in range(scores.shape[1]) if label != background_label)
    compared = scores.shape[2] if nms_top_k < 0 else min(nms_top_k, scores.shape[2])
    total = compared * len(classes)
    rows, counts, index = matrix_nms_rows(
        jnp.asarray(bboxes, jnp.float32),
        jnp.asarray(scores, jnp.float32),
        classes=classes,
        limits=(float(score_threshold), float(post_threshold)),
        sizes=(compared, total if keep_top_k < 0 else min(keep_top_k, total)),
        sigma=float(gaussian_sigma) if use_gaussian else None,
        offset=0.0 if normalized else 1.0,
    )
    if not padded:
        there = np.arange(rows.shape[1]) < np.asarray(counts)[:, None]
        first = np.arange(len(counts))[:, None] * bboxes.shape[1]
        rows, index = (
            jnp.asarray(np.asarray(rows)[there]),
            jnp.asarray((np.asarray(index) + first)[there][:, None]),
        )
    return rows, counts if return_rois_num else None, index if return_index else None
