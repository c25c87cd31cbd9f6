"""Boxes in a program: IoU, and which boxes stay of those that overlap, in fixed shapes; arrays [..., 4] of xyxy.

One rule in three forms, of two boxes that overlap too much the better one stays: `suppress` settles all pairs at once,
`pick_boxes` goes from box to box and needs no matrix of pairs, `matrix_nms` lowers scores instead. `nms`, `matrix_nms`
and `multiclass_nms` have Paddle's numerics. The host's twin, in numpy, is `framework.vision.boxes`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.errors import ConfigError, ShapeError, TraceError
from framework.core.rng import is_tracing
from framework.nn.functional.lowering import describe, jitted

# A float32 below what one pixel's overlap could be, so that empty boxes divide to 0.
EPSILON = 1e-9
_NO_BOX = -1
_LEAST = 64  # boxes of the smallest program of `nms`


def _side(low: jax.Array, high: jax.Array, offset: float) -> jax.Array:
    size = high - low
    return jnp.where(size < 0, 0, size + offset) if offset else jnp.maximum(size, 0)


def area(boxes: jax.Array, offset: float = 0.0) -> jax.Array:
    """[...]: 0 for boxes that are turned inside out. With an offset of 1 right and bottom are inclusive pixels."""
    size = _side(boxes[..., :2], boxes[..., 2:], offset)
    return size[..., 0] * size[..., 1]


def intersection(a: jax.Array, b: jax.Array, offset: float = 0.0) -> jax.Array:
    """The area [...] that boxes [..., 4] share, one by one; shapes broadcast."""
    # Each coordinate by itself: engines other than XLA are slow where the last axis has two.
    sides = [
        _side(jnp.maximum(a[..., i], b[..., i]), jnp.minimum(a[..., i + 2], b[..., i + 2]), offset)
        for i in (0, 1)
    ]
    return sides[0] * sides[1]


def iou(
    a: jax.Array,
    b: jax.Array,
    kind: Literal["iou", "giou"] = "iou",
    *,
    offset: float = 0.0,
    exact: bool = False,
) -> jax.Array:
    """Intersection over union [...] of boxes [..., 4] one by one; shapes broadcast. Empty with empty is 0.

    Args:
        kind: "giou" is generalised, in -1 to 1: less the share of the hull that neither box covers. Source:
            Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630
        offset: 1 where right and bottom are inclusive pixels.
        exact: Divides by the union alone, as detectors' runtimes do, and has no gradient of use; else EPSILON is added.
    """
    shared = intersection(a, b, offset)
    union = area(a, offset) + area(b, offset) - shared
    if exact:
        overlap = jnp.where(union > 0, shared / jnp.where(union > 0, union, 1), 0)
    else:
        overlap = shared / (union + EPSILON)
    if kind == "iou":
        return overlap
    corners = [jnp.minimum(a[..., :2], b[..., :2]), jnp.maximum(a[..., 2:], b[..., 2:])]
    hull = area(jnp.concatenate(corners, axis=-1), offset)
    return overlap - (hull - union) / (hull + EPSILON)


def pairwise_iou(a: jax.Array, b: jax.Array, kind: Literal["iou", "giou"] = "iou") -> jax.Array:
    """[..., N, M] of all pairs of a [..., N, 4] and b [..., M, 4]."""
    return iou(a[..., :, None, :], b[..., None, :, :], kind)


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


def _clash(boxes: jax.Array, labels: jax.Array | None, threshold: jax.typing.ArrayLike) -> jax.Array:
    """[K, K] bool: the two overlap by more than the threshold, and have one label."""
    clash = pairwise_iou(boxes, boxes) > threshold
    if labels is not None:
        clash &= labels[:, None] == labels[None, :]
    return clash


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
        return suppress(_clash(boxes, labels, iou_threshold), valid)


def pick_boxes(
    boxes: jax.Array,
    valid: jax.Array,
    count: int,
    iou_threshold: float,
    eta: float = 1.0,
    offset: float = 0.0,
) -> jax.Array:
    """Indices [count] int32 of the first boxes that stay, then -1: one box after the other drops those that overlap it
    by more than the threshold.

    Args:
        boxes: [K, 4] xyxy, best first.
        valid: [K] bool; the others neither stay nor suppress.
        eta: Below 1 it lowers the threshold, while that is above 0.5, with each box that stays.
        offset: 1 where right and bottom are inclusive pixels.
    """

    def visit(place: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        chosen, open_, overlap, limit = state
        best = jnp.argmax(open_).astype(jnp.int32)
        there = open_[best]
        limit = jnp.where(there & (limit > 0.5), limit * min(eta, 1.0), limit)
        overlap = jnp.maximum(
            overlap, jnp.where(there, iou(boxes[best], boxes, offset=offset, exact=True), 0)
        )
        # A box is held against the threshold of its turn, which is no higher than this one.
        open_ = (open_ & (overlap <= limit)).at[best].set(False)
        return chosen.at[place].set(jnp.where(there, best, _NO_BOX)), open_, overlap, limit

    none = jnp.full(count, _NO_BOX, jnp.int32)
    start = (none, valid, jnp.zeros_like(boxes[:, 0]), jnp.asarray(iou_threshold, boxes.dtype))
    return lax.fori_loop(0, count, visit, start)[0] if boxes.shape[0] != 0 else none


def check_boxes(boxes: jax.Array, where: str) -> jax.Array:
    """Raises: ShapeError, where these are no boxes [K, 4]."""
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            "boxes must be an array [K, 4]",
            where=where,
            received=list(boxes.shape),
            allowed="[K, 4]; none: [0, 4]",
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
    boxes, valid = boxes[order], order < count
    if labels is not None and known is not None:
        labels = labels[order]
        valid &= (labels[:, None] == known).any(axis=1)
    kept = suppress(_clash(boxes, labels, threshold), valid)
    place = jnp.nonzero(kept, size=len(boxes), fill_value=len(boxes))[0]
    return jnp.concatenate([order, jnp.full(1, -1, order.dtype)])[place].astype(jnp.int32)


def _compared(
    scores: jax.Array, background: int, nms_top_k: int, keep_top_k: int
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """(the classes that count, (the boxes of a class that are compared, those of an image that stay)) of scores
    [N, C, M]; -1 for all. An open M is taken to be enough."""

    def least(number: int, size: int) -> int:
        return size if number < 0 else min(number, size) if isinstance(size, int) else number

    classes = tuple(label for label in range(scores.shape[1]) if label != background)
    compared = least(nms_top_k, scores.shape[2])
    return classes, (compared, least(keep_top_k, compared * len(classes)))


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
    *,
    padded: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Lowers the scores of boxes that better ones of their class overlap, instead of dropping them.

    Source: Wang et al. 2020, "SOLOv2", section 3.3.

    Args:
        bboxes: [N, M, 4] xyxy; `normalized` False counts right and bottom as inclusive pixels.
        scores: [N, C, M]; the class `background_label` is left out.
        score_threshold, post_threshold: What scores must exceed before and after.
        nms_top_k: The best boxes of a class that are compared, keep_top_k: those of an image that stay; -1 for all.
        padded: Fixed shapes, for jit; K is `keep_top_k`, or all.

    Returns:
        (rows, counts, index): rows [R, 6] of class, score and box, the best of each image first; the number of rows
        of each image [N]; and the rows' boxes as indices [R, 1] into [N * M]. Padded: [N, K, 6], of zeros behind
        the counts, and [N, K] into [M].
    """
    if bboxes.ndim != 3 or scores.ndim != 3 or bboxes.shape[:2] != (scores.shape[0], scores.shape[2]):
        raise ShapeError(
            "boxes and scores do not belong together",
            where="matrix_nms",
            received=f"{list(bboxes.shape)}, {list(scores.shape)}",
            allowed="[N, M, 4], [N, C, M]",
        )
    if not padded:
        check_eager("matrix_nms")
    classes, sizes = _compared(scores, background_label, nms_top_k, keep_top_k)
    rows, counts, index = _matrix_nms(
        jnp.asarray(bboxes, jnp.float32),
        jnp.asarray(scores, jnp.float32),
        classes=classes,
        limits=(float(score_threshold), float(post_threshold)),
        sizes=sizes,
        sigma=float(gaussian_sigma) if use_gaussian else None,
        offset=0.0 if normalized else 1.0,
    )
    if not padded:
        there = np.arange(rows.shape[1]) < np.asarray(counts)[:, None]
        index = np.asarray(index) + np.arange(len(counts))[:, None] * bboxes.shape[1]
        rows, index = jnp.asarray(np.asarray(rows)[there]), jnp.asarray(index[there][:, None])
    return rows, counts, index


@functools.partial(jax.jit, static_argnames=("classes", "limits", "sizes", "sigma", "offset"))
def _matrix_nms(
    boxes: jax.Array,
    scores: jax.Array,
    *,
    classes: tuple[int, ...],
    limits: tuple[float, float],
    sizes: tuple[int, int],
    sigma: float | None,
    offset: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`sigma` of a Gaussian decay; None for a linear one."""
    compared, kept = sizes
    labels = jnp.asarray(classes, jnp.int32)

    def of_class(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(lowered scores, indices) [compared] of the best boxes of a class."""
        best, place = lax.top_k(jnp.where(scores > limits[0], scores, -jnp.inf), compared)
        valid = jnp.isfinite(best)
        found = boxes[place]
        order = jnp.arange(compared)
        earlier = (order[:, None] < order[None, :]) & valid[:, None]  # [i, j]: i is better than j
        overlap = jnp.where(earlier, iou(found[:, None], found[None], offset=offset, exact=True), 0)
        worst = overlap.max(axis=0)[:, None]  # of i: how much better ones overlap it
        if sigma is None:
            decay = (1 - overlap) / (1 - worst)
        else:
            decay = jnp.exp((worst**2 - overlap**2) * sigma)
        lowered = best * jnp.where(earlier, decay, 1).min(axis=0, initial=1)
        return jnp.where(valid & (lowered > limits[1]), lowered, -jnp.inf), place

    def of_image(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        lowered, place = jax.vmap(of_class, (None, 0))(boxes, scores[labels])
        best, rank = lax.top_k(lowered.reshape(-1), kept)
        valid = jnp.isfinite(best)
        index = place.reshape(-1)[rank]
        label = labels[rank // max(compared, 1)].astype(jnp.float32)
        rows = jnp.concatenate([label[:, None], best[:, None], boxes[index]], axis=1)
        return jnp.where(valid[:, None], rows, 0), valid.sum(dtype=jnp.int32), jnp.where(valid, index, 0)

    return jax.vmap(of_image)(boxes, scores)


def multiclass_nms(
    bboxes: jax.Array,
    scores: jax.Array,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
    background_label: int = 0,
    normalized: bool = True,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(rows [N, K, 6] of class, score and box; counts [N]; the rows' boxes [N, K]), filled with -1.

    As Paddle lists them: the K best of all classes, in the order of classes, in each the best first.

    Args:
        bboxes: [N, M, 4] xyxy; `normalized` False counts right and bottom as inclusive pixels.
        scores: [N, C, M]; the class `background_label` is left out, and scores must exceed `score_threshold`.
        nms_top_k: The best boxes of a class that are compared, keep_top_k: those of an image that stay, K; -1 for all.
        nms_threshold, nms_eta: Of two boxes of a class that overlap more, the better one stays; as of `pick_boxes`.
    """
    classes, sizes = _compared(scores, background_label, nms_top_k, keep_top_k)
    limits = (float(score_threshold), float(nms_threshold), float(nms_eta), 0.0 if normalized else 1.0)
    return _multiclass_nms(bboxes, scores, classes=classes, sizes=sizes, limits=limits)


@functools.partial(jax.jit, static_argnames=("classes", "sizes", "limits"))
def _multiclass_nms(
    boxes: jax.Array,
    scores: jax.Array,
    *,
    classes: tuple[int, ...],
    sizes: tuple[int, int],
    limits: tuple[float, float, float, float],
) -> tuple[jax.Array, jax.Array, jax.Array]:
    (compared, kept), (threshold, *overlap) = sizes, limits
    labels = jnp.asarray(classes, jnp.int32)
    # Of a class no more than those of the image can stay.
    most = min(compared, kept) if isinstance(compared, int) and isinstance(kept, int) else compared

    def of_class(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        best, place = lax.top_k(jnp.where(scores > threshold, scores, -jnp.inf), compared)
        stays = pick_boxes(boxes[place], jnp.isfinite(best), most, *overlap)
        return jnp.where(stays >= 0, best[stays], -jnp.inf), place[stays]

    def of_image(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        values, place = jax.vmap(of_class, (None, 0))(boxes, scores[labels])
        best, rank = lax.top_k(values.reshape(-1), kept)
        valid = jnp.isfinite(best)
        # Ranks grow with the class, and in a class fall with the score: sorted they have Paddle's order.
        order = jnp.argsort(jnp.where(valid, rank, values.size), stable=True)
        best, rank, valid = best[order], rank[order], valid[order]
        label, index = labels[rank // max(most, 1)].astype(best.dtype), place.reshape(-1)[rank]
        rows = jnp.concatenate([label[:, None], best[:, None], boxes[index]], axis=1)
        counts = valid.sum(dtype=jnp.int32)
        return jnp.where(valid[:, None], rows, _NO_BOX), counts, jnp.where(valid, index, _NO_BOX)

    return jax.vmap(of_image)(boxes, scores)
