"""Boxes of detectors as arrays: decoding YOLO's maps and suppressing boxes, in fixed shapes, with Paddle's numerics.

`framework.vision.ops` checks its arguments and calls these; imported graphs of detectors run on them.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_NO_BOX = -1


def yolo_cells(height: int, width: int) -> np.ndarray:
    """[H, W, 1, 2] xy: the corner of each place of a map."""
    grid = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return np.stack(grid, axis=-1)[:, :, None]


def yolo_stretch(values: jax.Array, scale: float) -> jax.Array:
    """Where centres lie in their cells: the sigmoid, whose reach `scale` stretches beyond the cell."""
    return jax.nn.sigmoid(values) * scale - 0.5 * (scale - 1)


@functools.partial(
    jax.jit, static_argnames=("anchors", "threshold", "downsample", "clips", "stretch", "factor")
)
def yolo_box(
    x: jax.Array,
    img_size: jax.Array,
    *,
    anchors: tuple[int, ...],
    threshold: float,
    downsample: int,
    clips: bool,
    stretch: float,
    factor: float | None,
) -> tuple[jax.Array, jax.Array]:
    """(boxes [N, A * H * W, 4] xyxy in pixels of the image, scores [N, A * H * W, classes]); zeros below `threshold`.

    Args:
        x: [N, H, W, A * (5 + classes)]; where there is a `factor`, A channels of predicted IoU come first.
        img_size: [N, 2] int, height and width.
        factor: The weight of the predicted IoU against the objectness.
    """
    n, height, width, _ = x.shape
    sizes = np.asarray(anchors, np.float32).reshape(-1, 2)
    count = len(sizes)
    values = x[..., 0 if factor is None else count :].reshape(n, height, width, count, -1)
    objectness = jax.nn.sigmoid(values[..., 4])
    if factor is not None:
        objectness = objectness ** (1 - factor) * jax.nn.sigmoid(x[..., :count]) ** factor
    map_wh = np.array([width, height], np.float32)
    image_wh = img_size[:, None, None, None, ::-1].astype(x.dtype)
    centre = (yolo_cells(height, width) + yolo_stretch(values[..., :2], stretch)) * image_wh / map_wh
    half = jnp.exp(values[..., 2:4]) * sizes * image_wh / (map_wh * downsample) / 2
    boxes = jnp.concatenate([centre - half, centre + half], axis=-1)
    if clips:
        last = jnp.concatenate([image_wh] * 2, axis=-1) - 1
        boxes = jnp.concatenate(
            [jnp.maximum(boxes[..., :2], 0), jnp.minimum(boxes[..., 2:], last[..., 2:])], -1
        )
    scores = objectness[..., None] * jax.nn.sigmoid(values[..., 5:])
    there = (objectness >= threshold)[..., None]
    flat = [
        jnp.moveaxis(jnp.where(there, part, 0), 3, 1).reshape(n, -1, part.shape[-1])
        for part in (boxes, scores)
    ]
    return flat[0], flat[1]


def overlaps(a: Any, b: Any, offset: float) -> Any:
    """Intersection over union [...] of boxes [..., 4] xyxy; with an offset of 1 right and bottom are inclusive.

    Boxes that do not meet are 0. It takes numpy arrays too, and gives one then. Source: JaccardOverlap of
    paddle/phi/kernels/funcs/detection/nms_util.h
    """
    xp = np if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else jnp
    size = xp.minimum(a[..., 2:], b[..., 2:]) - xp.maximum(a[..., :2], b[..., :2])
    shared = (size + offset).prod(axis=-1)
    areas = _area(xp, a, offset) + _area(xp, b, offset)
    meets = (size >= 0).all(axis=-1) & (shared > 0)
    return xp.where(meets, shared / xp.where(meets, areas - shared, 1), 0)


def _area(xp: Any, boxes: Any, offset: float) -> Any:
    whole = boxes[..., 2:] - boxes[..., :2]
    return xp.where((whole < 0).any(axis=-1), 0, (whole + offset).prod(axis=-1))


@functools.partial(jax.jit, static_argnames=("classes", "limits", "sizes", "sigma", "offset"))
def matrix_nms(
    boxes: jax.Array,
    scores: jax.Array,
    *,
    classes: tuple[int, ...],
    limits: tuple[float, float],
    sizes: tuple[int, int],
    sigma: float | None,
    offset: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(rows [N, K, 6] of class, score and box, the best first; numbers [N]; the rows' boxes [N, K]), filled with zeros.

    Args:
        boxes: [N, M, 4] xyxy. scores: [N, C, M].
        classes: Those that count.
        limits: What scores must exceed before and after.
        sizes: The boxes of a class that are compared, and K.
        sigma: Of a Gaussian decay; None for a linear one.
        offset: 1 where right and bottom are inclusive pixels.

    Source: Wang et al. 2020, "SOLOv2", section 3.3.
    """
    compared, kept = sizes
    labels = jnp.asarray(classes, jnp.int32)

    def of_class(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(lowered scores, indices) [compared] of the best boxes of a class."""
        best, place = lax.top_k(jnp.where(scores > limits[0], scores, -jnp.inf), compared)
        valid = jnp.isfinite(best)
        found = boxes[place]
        order = jnp.arange(compared)
        earlier = (order[:, None] < order[None, :]) & valid[:, None]  # [i, j]: i is better than j
        iou = jnp.where(earlier, overlaps(found[:, None], found[None], offset), 0)
        worst = iou.max(axis=0)[:, None]  # of i: how much better ones overlap it
        if sigma is None:
            decay = (1 - iou) / (1 - worst)
        else:
            decay = jnp.exp((worst**2 - iou**2) * sigma)
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


@functools.partial(jax.jit, static_argnames=("classes", "sizes", "score", "iou", "eta", "offset"))
def multiclass_nms(
    boxes: jax.Array,
    scores: jax.Array,
    *,
    classes: tuple[int, ...],
    sizes: tuple[int, int],
    score: float,
    iou: float,
    eta: float = 1.0,
    offset: float = 0.0,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(rows [N, K, 6] of class, score and box; numbers [N]; the rows' boxes [N, K]), filled with -1.

    As Paddle lists them: the K best of all classes, in the order of classes, in each the best first.

    Args:
        boxes: [N, M, 4] xyxy, the same for all classes, or [N, M, C, 4]. scores: [N, C, M].
        classes: Those that count.
        sizes: The boxes of a class that are compared, and K.
        score: What a score must exceed.
        iou: Of two boxes of a class that overlap more, the better one stays.
        eta: Lowers `iou`, while it is above 0.5, with each box of a class that stays.
        offset: 1 where right and bottom are inclusive pixels.
    """
    compared, kept = sizes
    labels = jnp.asarray(classes, jnp.int32)

    def of_class(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        best, place = lax.top_k(jnp.where(scores > score, scores, -jnp.inf), compared)
        found = boxes[place]

        def visit(i: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            stays, limit = state
            clash = (overlaps(found[i], found, offset) > limit) & stays
            good = jnp.isfinite(best[i]) & ~clash.any()
            lowered = jnp.where(good & (eta < 1) & (limit > 0.5), limit * eta, limit)
            return stays.at[i].set(good), lowered

        start = jnp.zeros(compared, bool), jnp.asarray(iou, found.dtype)
        stays, _ = lax.fori_loop(0, compared, visit, start)
        return jnp.where(stays, best, -jnp.inf), place

    def of_image(boxes: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        axis = None if boxes.ndim == 2 else 0
        own = boxes if axis is None else jnp.moveaxis(boxes, 1, 0)[labels]
        values, place = jax.vmap(of_class, (axis, 0))(own, scores[labels])
        best, rank = lax.top_k(values.reshape(-1), kept)
        valid = jnp.isfinite(best)
        # Ranks grow with the class, and in a class fall with the score: sorted they have Paddle's order.
        order = jnp.argsort(jnp.where(valid, rank, values.size), stable=True)
        best, rank, valid = best[order], rank[order], valid[order]
        number, index = rank // max(compared, 1), place.reshape(-1)[rank]
        at = own[index] if axis is None else own[number, index]
        rows = jnp.concatenate([labels[number].astype(best.dtype)[:, None], best[:, None], at], axis=1)
        return (
            jnp.where(valid[:, None], rows, _NO_BOX),
            valid.sum(dtype=jnp.int32),
            jnp.where(valid, index, _NO_BOX),
        )

    return jax.vmap(of_image)(boxes, scores)
