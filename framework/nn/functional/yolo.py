"""yolo_box and yolo_loss, Paddle's: the head of YOLOv3 on maps [N, H, W, A * (5 + classes)].

The channels of an anchor are x, y, w, h, objectness, classes. Source: Redmon & Farhadi 2018, "YOLOv3".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional.boxes import EPSILON, intersection
from framework.nn.functional.losses import entropy_of_logits
from framework.nn.functional.slopes import absolute


def _cells(height: int, width: int) -> np.ndarray:
    """[H, W, 1, 2] xy: the corner of each place of a map."""
    grid = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return np.stack(grid, axis=-1)[:, :, None]


def _stretch(values: jax.Array, scale: float) -> jax.Array:
    """Where centres lie in their cells: the sigmoid, whose reach `scale` stretches beyond the cell."""
    return jax.nn.sigmoid(values) * scale - 0.5 * (scale - 1)


def yolo_box(
    x: jax.Array,
    img_size: jax.Array,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[jax.Array, jax.Array]:
    """(boxes [N, A * H * W, 4] xyxy in pixels of the image, scores [N, A * H * W, classes]); zeros below the threshold.

    Args:
        x: [N, H, W, A * (5 + class_num)]; with `iou_aware` A channels of predicted IoU come first.
        img_size: [N, 2] int, height and width.
        anchors: w, h, w, h, ... in pixels of the input, which has `downsample_ratio` times the map's sides.
        conf_thresh: Of the objectness, with `iou_aware` of its product with the IoU, weighed by `iou_aware_factor`.
        clip_bbox: Cuts boxes at 0 and side - 1.
        scale_x_y: Stretches the reach of a centre beyond its cell.
    """
    count = len(anchors) // 2
    _check(x, count * (6 if iou_aware else 5) + count * class_num, anchors, "yolo_box")
    return _yolo_box(
        x,
        img_size,
        anchors=tuple(anchors),
        threshold=float(conf_thresh),
        downsample=downsample_ratio,
        clips=bool(clip_bbox),
        stretch=float(scale_x_y),
        factor=float(iou_aware_factor) if iou_aware else None,
    )


@functools.partial(
    jax.jit, static_argnames=("anchors", "threshold", "downsample", "clips", "stretch", "factor")
)
def _yolo_box(
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
    """`factor`: the weight of the predicted IoU, in the first A channels, against the objectness."""
    n, height, width, _ = x.shape
    sizes = np.asarray(anchors, np.float32).reshape(-1, 2)
    count = len(sizes)
    values = x[..., 0 if factor is None else count :].reshape(n, height, width, count, -1)
    objectness = jax.nn.sigmoid(values[..., 4])
    if factor is not None:
        objectness = objectness ** (1 - factor) * jax.nn.sigmoid(x[..., :count]) ** factor
    map_wh = np.array([width, height], np.float32)
    image_wh = img_size[:, None, None, None, ::-1].astype(x.dtype)
    centre = (_cells(height, width) + _stretch(values[..., :2], stretch)) * image_wh / map_wh
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


def yolo_loss(
    x: jax.Array,
    gt_box: jax.Array,
    gt_label: jax.Array,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: jax.Array | None = None,
    use_label_smooth: bool = True,
    scale_x_y: float = 1.0,
) -> jax.Array:
    """[N]: the loss of each image at one scale, the sum of those of places, sizes, objectness and classes.

    Args:
        x: [N, H, W, len(anchor_mask) * (5 + class_num)].
        gt_box: [N, B, 4] centre x, y, width and height as shares of the image; rows without a size are filling.
        gt_label: [N, B] int. gt_score: [N, B], how much a box counts, 1 where it is None.
        anchors: w, h, ... of all scales, in pixels; anchor_mask: the numbers of this scale's.
        ignore_thresh: A prediction that overlaps a box more is no background.
        use_label_smooth: Classes are 1 - d and d instead of 1 and 0, d = min(1 / class_num, 1 / 40).
    """
    count = len(anchor_mask)
    _check(x, count * (5 + class_num), anchors, "yolo_loss")
    if gt_box.ndim != 3 or gt_box.shape[2] != 4 or gt_label.shape != gt_box.shape[:2]:
        raise ShapeError(
            "boxes and labels do not belong together",
            where="yolo_loss",
            received=f"gt_box {list(gt_box.shape)}, gt_label {list(gt_label.shape)}",
            allowed="[N, B, 4], [N, B]",
        )
    scores = jnp.ones(gt_label.shape, x.dtype) if gt_score is None else gt_score
    return _yolo_loss(
        x,
        gt_box,
        gt_label,
        scores,
        anchors=tuple(anchors),
        mask=tuple(anchor_mask),
        numbers=(float(ignore_thresh), downsample_ratio, float(scale_x_y)),
        smooth=min(1 / class_num, 1 / 40) if use_label_smooth else 0.0,
    )


@functools.partial(jax.jit, static_argnames=("anchors", "mask", "numbers", "smooth"))
def _yolo_loss(
    x: jax.Array,
    gt_box: jax.Array,
    gt_label: jax.Array,
    gt_score: jax.Array,
    *,
    anchors: tuple[int, ...],
    mask: tuple[int, ...],
    numbers: tuple[float, int, float],
    smooth: float,
) -> jax.Array:
    ignore, downsample, stretch = numbers
    n, height, width, _ = x.shape
    values = x.reshape(n, height, width, len(mask), -1)
    classes = values.shape[-1] - 5
    side = height  # Paddle takes the map and the input for squares of this side
    input_side = downsample * side
    sizes = np.asarray(anchors, np.float32).reshape(-1, 2)
    here = sizes[list(mask)]
    real = (gt_box[..., 2:] > 1e-6).all(axis=-1)  # [N, B]
    predicted = lax.stop_gradient(
        jnp.concatenate(
            [
                (_cells(height, width) + _stretch(values[..., :2], stretch)) / side,
                jnp.exp(values[..., 2:4]) * here / input_side,
            ],
            axis=-1,
        )
    )
    overlap = _centre_iou(predicted[..., None, :], gt_box[:, None, None, None])  # [N, H, W, A, B]
    best = jnp.where(real[:, None, None, None], overlap, 0).max(axis=-1, initial=0)
    # Objectness wanted: the box's score where there is one, 0 for background, -1 where it does not count.
    wanted = jnp.where(best > ignore, -1.0, 0.0)

    shapes = jnp.concatenate([jnp.zeros_like(gt_box[..., :2]), gt_box[..., 2:]], axis=-1)
    priors = np.concatenate([np.zeros_like(sizes), sizes / input_side], axis=1)
    nearest = _centre_iou(shapes[:, :, None], jnp.asarray(priors)).argmax(axis=-1)  # [N, B]
    slot = jnp.full(len(sizes), -1).at[jnp.asarray(mask)].set(jnp.arange(len(mask)))[nearest]
    mine = real & (slot >= 0)
    column = jnp.clip((gt_box[..., 0] * width).astype(jnp.int32), 0, width - 1)
    row = jnp.clip((gt_box[..., 1] * height).astype(jnp.int32), 0, height - 1)
    image = jnp.arange(n)[:, None]
    found = values[image, row, column, slot]  # [N, B, 5 + classes]
    cell = jnp.stack([column, row], axis=-1).astype(x.dtype)
    target_xy = gt_box[..., :2] * side - cell
    target_wh = jnp.log(
        jnp.where(mine[..., None], gt_box[..., 2:] * input_side / jnp.asarray(sizes)[nearest], 1)
    )
    weight = (2 - gt_box[..., 2] * gt_box[..., 3]) * gt_score
    place = entropy_of_logits(found[..., :2], target_xy).sum(-1) + absolute(found[..., 2:4] - target_wh).sum(
        -1
    )
    is_class = gt_label[..., None] == jnp.arange(classes)
    label = entropy_of_logits(found[..., 5:], jnp.where(is_class, 1 - smooth, smooth)).sum(-1)
    loss = jnp.where(mine, place * weight + label * gt_score, 0).sum(axis=1)

    def mark(wanted: jax.Array, box: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        mine, row, column, slot, score = box  # one of each image; of two in a cell the later one counts
        images = jnp.where(mine, jnp.arange(n), n)
        return wanted.at[images, row, column, slot].set(score, mode="drop"), None

    boxes = tuple(jnp.moveaxis(part, 1, 0) for part in (mine, row, column, slot, gt_score))
    wanted = lax.stop_gradient(lax.scan(mark, wanted.astype(gt_score.dtype), boxes)[0])
    objectness = values[..., 4]
    positive = entropy_of_logits(objectness, 1.0) * wanted
    negative = jnp.where(wanted > -0.5, entropy_of_logits(objectness, 0.0), 0)
    return loss + jnp.where(wanted > 1e-5, positive, negative).sum(axis=(1, 2, 3))


def _centre_iou(a: jax.Array, b: jax.Array) -> jax.Array:
    """[...] of boxes [..., 4] of centre and size."""
    corners = [
        jnp.concatenate([box[..., :2] + sign * box[..., 2:] / 2 for sign in (-1, 1)], -1) for box in (a, b)
    ]
    shared = intersection(corners[0], corners[1])
    return shared / (a[..., 2:].prod(axis=-1) + b[..., 2:].prod(axis=-1) - shared + EPSILON)


def _check(x: jax.Array, channels: int, anchors: Sequence[int], where: str) -> None:
    if x.ndim != 4 or x.shape[3] != channels or not anchors or len(anchors) % 2:
        raise ShapeError(
            "the map does not fit the anchors",
            where=where,
            received=f"x {list(x.shape)}, {len(anchors)} numbers of anchors",
            allowed=f"x [N, H, W, {channels}], anchors w, h, w, h, ...",
            fix="maps are channels-last here: x.transpose(0, 2, 3, 1)",
        )
