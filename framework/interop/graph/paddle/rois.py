"""Paddle's operators of two-stage detectors and of anchors: proposals, their levels, prior boxes; and `unique`.

What they give has as many rows as the values ask for, so they run on the host, behind the compiled part of a program.
Source: https://github.com/PaddlePaddle/Paddle/tree/v2.6.2/paddle/phi/kernels/cpu (rounding, order, defaults)
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, registrar
from framework.interop.graph.values import Item, Value, shape_of, to_jax
from framework.vision import boxes as host_boxes

OPERATORS: Table = {}
operator = registrar(OPERATORS)
_MOST_GROWTH = math.log(1000 / 16)


def _floats(a: Arguments, slot: str) -> np.ndarray:
    return np.asarray(a.call.static(a[slot], slot), np.float32)


def _back(array: np.ndarray) -> Value:
    return Value.of(jnp.asarray(array))


@operator("unique", grows=True)
def _unique(a: Arguments) -> dict[str, Item]:
    """The values, sorted or in the order of their first appearance, where they stand, and how often."""
    x = np.asarray(a.call.static(a["X"], "the values of unique"))
    axes = a.ints("axis")
    axis = axes[0] if axes else None
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.ravel()
    if not a.attr("is_sorted", False):
        order = np.argsort(first)
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    dtype = a.dtype("dtype", np.dtype(np.int64))
    rest = {"Indices": first, "Index": inverse, "Counts": counts}
    return {"Out": values, **{slot: array.astype(dtype) for slot, array in rest.items()}}


@operator("unique_consecutive", grows=True)
def _unique_consecutive(a: Arguments) -> dict[str, Item]:
    """The values without those that equal the one in front of them, where each went, and how often it stood there."""
    x, axes = np.asarray(a.call.static(a["X"], "the values of unique_consecutive")), a.ints("axis")
    rows = np.moveaxis(x, axes[0], 0) if axes else x.reshape(-1)
    flat = rows.reshape(len(rows), -1)
    first = np.concatenate([[True], (flat[1:] != flat[:-1]).any(1)]) if len(rows) else np.zeros(0, bool)
    dtype, at = a.dtype("dtype", np.dtype(np.int64)), np.flatnonzero(first)
    return {
        "Out": np.moveaxis(rows[first], 0, axes[0]) if axes else rows[first],
        "Index": (np.cumsum(first) - 1).astype(dtype),
        "Counts": np.diff(np.append(at, len(rows))).astype(dtype),
    }


@operator("nms", main="KeepBoxesIdxs", grows=True)
def _nms(a: Arguments) -> Item:
    """The boxes that stay, which come best first."""
    return host_boxes.suppress(_floats(a, "Boxes"), np.float32(a.attr("iou_threshold", 0.3))).astype(np.int64)


@operator("box_coder", main="OutputBox")
def _box_coder(a: Arguments) -> Item:
    """Boxes [N, M, 4] as offsets from anchors, or offsets as boxes. Source: Ren et al. 2015, equation 2."""
    anchors, boxes, variance_input = a.array("PriorBox"), a.array("TargetBox"), a.get("PriorBoxVar")
    axis, one = int(a.attr("axis", 0)), 0.0 if a.attr("box_normalized", True) else 1.0
    variances = (
        jnp.asarray(a.attr("variance", ()) or (1.0,) * 4)
        if variance_input is None
        else to_jax(variance_input)
    )
    encodes = a.attr("code_type", "encode_center_size") == "encode_center_size"
    anchors = anchors[None] if encodes or axis == 0 else anchors[:, None]
    variances = (
        variances if variances.ndim == 1 else variances[None] if encodes or axis == 0 else variances[:, None]
    )
    side = anchors[..., 2:] - anchors[..., :2] + one
    centre = anchors[..., :2] + side / 2
    if encodes:
        boxes = boxes[:, None]
        ours = boxes[..., 2:] - boxes[..., :2] + one
        middle = (boxes[..., :2] + boxes[..., 2:]) / 2
        y = jnp.concatenate([(middle - centre) / side, jnp.log(jnp.abs(ours / side))], -1) / variances
        return Value.of(y)
    moves = boxes * variances
    middle, half = moves[..., :2] * side + centre, jnp.exp(moves[..., 2:]) * side / 2
    return Value.of(jnp.concatenate([middle - half, middle + half - one], -1))


@operator("prior_box")
def _prior_box(a: Arguments) -> dict[str, Item]:
    """[H, W, priors, 4] boxes relative to the image, and as many variances. Source: Liu et al. 2016, section 2.2."""
    (height, width), (rows, columns) = shape_of(a["Image"])[2:], shape_of(a["Input"])[2:]
    if not all(isinstance(n, int) for n in (height, width, rows, columns)):
        raise a.call.error("prior boxes of images of open size", ShapeError, fix="say the size of the images")
    ratios = [1.0]
    for ratio in a.attr("aspect_ratios", ()):
        if all(abs(ratio - one) >= 1e-6 for one in ratios):
            ratios += [ratio, 1 / ratio] if a.attr("flip", False) else [ratio]
    sides: list[tuple[float, float]] = []
    largest = list(a.attr("max_sizes", ()) or ())
    for number, side in enumerate(a.attr("min_sizes", ())):
        square = [(side * math.sqrt(ratio), side / math.sqrt(ratio)) for ratio in ratios]
        between = [(math.sqrt(side * largest[number]),) * 2] if largest else []
        first = 1 if a.attr("min_max_aspect_ratios_order", False) else len(square)
        sides += [*square[:first], *between, *square[first:]]
    sizes = (("step_w", width, columns), ("step_h", height, rows))
    steps = [a.attr(name, 0.0) or size / count for name, size, count in sizes]
    offset = a.attr("offset", 0.5)
    x, y = np.meshgrid((np.arange(columns) + offset) * steps[0], (np.arange(rows) + offset) * steps[1])
    half = np.asarray(sides, np.float64).reshape(-1, 2) / 2
    centre = np.stack([x, y], -1)[:, :, None]
    boxes = np.concatenate([centre - half, centre + half], -1) / np.asarray([width, height] * 2)
    boxes = np.clip(boxes, 0, 1) if a.attr("clip", False) else boxes
    variances = np.broadcast_to(np.asarray(a.attr("variances"), np.float32), boxes.shape)
    return {"Boxes": boxes.astype(np.float32), "Variances": np.ascontiguousarray(variances)}


@operator("generate_proposals", "generate_proposals_v2", grows=True)
def _proposals(a: Arguments) -> dict[str, Item]:
    scores, deltas, sizes = (_floats(a, slot) for slot in ("Scores", "BboxDeltas", "ImShape"))
    anchors, variances = (_floats(a, slot).reshape(-1, 4) for slot in ("Anchors", "Variances"))
    rows, probabilities, numbers = [], [], []
    for score, delta, size in zip(scores, deltas, sizes, strict=True):
        best = score.transpose(1, 2, 0).reshape(-1)
        moves = delta.reshape(-1, 4, *delta.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        boxes, best_scores = _of_image(a, best, moves, size, anchors, variances)
        rows.append(boxes)
        probabilities.append(best_scores[:, None])
        numbers.append(len(boxes))
    counts = _back(np.asarray(numbers, np.int32))
    return {
        "RpnRois": _back(np.concatenate(rows)),
        "RpnRoiProbs": _back(np.concatenate(probabilities)),
        "RpnRoisNum": counts,
    }


def _of_image(
    a: Arguments,
    scores: np.ndarray,
    moves: np.ndarray,
    size: np.ndarray,
    anchors: np.ndarray,
    variances: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes and scores of one image, best first; one empty box where none is left."""
    offset = np.float32(a.attr("pixel_offset", True))
    order = np.argsort(-scores, kind="stable")
    most = int(a.attr("pre_nms_topN", 6000))
    order = order[:most] if most > 0 else order
    scores, anchors, moves = scores[order], anchors[order], moves[order] * variances[order]
    side = anchors[:, 2:] - anchors[:, :2] + offset
    centre = anchors[:, :2] + side / 2 + moves[:, :2] * side
    half = np.exp(np.minimum(moves[:, 2:], _MOST_GROWTH)) * side / 2
    boxes = np.concatenate([centre - half, centre + half - offset], -1)
    edge = np.asarray([size[1], size[0]] * 2, np.float32) - offset
    boxes = np.clip(boxes, 0, np.maximum(edge, 0)).astype(np.float32)
    side = boxes[:, 2:] - boxes[:, :2] + offset
    large = (side >= max(float(a.attr("min_size", 0.1)), 1.0)).all(-1)
    if offset:
        large &= (boxes[:, :2] + side / 2 <= size[::-1]).all(-1)
    boxes, scores = boxes[large], scores[large]
    if not len(boxes):
        return np.zeros((1, 4), np.float32), np.zeros(1, np.float32)
    limit = float(a.attr("nms_thresh", 0.5))
    if limit <= 0:
        return boxes, scores
    most = int(a.attr("post_nms_topN", 1000))
    eta, count = np.float32(a.attr("eta", 1.0)), most if most > 0 else None
    stays = host_boxes.suppress(boxes, np.float32(limit), count=count, eta=eta, offset=float(offset))
    return boxes[stays], scores[stays]


@operator("distribute_fpn_proposals", grows=True)
def _distribute(a: Arguments) -> dict[str, Item]:
    """The regions of each level of a pyramid, by the root of their area, and where each went. Lin et al. 2017."""
    regions, low, high = _floats(a, "FpnRois"), int(a.attr("min_level", 2)), int(a.attr("max_level", 5))
    offset = np.float32(a.attr("pixel_offset", True))
    side = np.maximum(regions[:, 2:] - regions[:, :2] + offset, 0)
    scale = np.sqrt(side[:, 0] * side[:, 1])
    level = np.floor(np.log2(scale / a.attr("refer_scale", 224) + 1e-6) + a.attr("refer_level", 4))
    level = np.clip(level, low, high).astype(int)
    counts = a.get("RoisNum")
    numbers = np.asarray([len(regions)]) if counts is None else np.asarray(a.call.static(counts, "RoisNum"))
    image = np.repeat(np.arange(len(numbers)), numbers)
    at = [np.flatnonzero(level == each) for each in range(low, high + 1)]
    restore = np.argsort(np.concatenate(at), kind="stable").astype(np.int32)
    return {
        "MultiFpnRois": [_back(regions[index]) for index in at],
        "RestoreIndex": _back(restore[:, None]),
        "MultiLevelRoIsNum": [
            _back(np.bincount(image[index], minlength=len(numbers)).astype(np.int32)) for index in at
        ],
    }


@operator("collect_fpn_proposals", main="FpnRois", grows=True)
def _collect(a: Arguments) -> dict[str, Item]:
    """The best regions of all levels, image by image."""
    levels = [
        [np.asarray(a.call.static(item, slot)) for item in a.all(slot)]
        for slot in ("MultiLevelRois", "MultiLevelScores", "MultiLevelRoIsNum")
    ]
    regions, scores, counts = levels
    images = len(counts[0]) if counts else 1
    image = [
        np.repeat(np.arange(images), counts[i]) if counts else np.zeros(len(one), int)
        for i, one in enumerate(regions)
    ]
    owner = np.concatenate(image)
    best = np.argsort(-np.concatenate([s.reshape(-1) for s in scores]), kind="stable")
    best = best[: int(a.attr("post_nms_topN", len(best)))]
    best = best[np.argsort(owner[best], kind="stable")]
    numbers = np.bincount(owner[best], minlength=images).astype(np.int32)
    return {"FpnRois": _back(np.concatenate(regions)[best]), "RoisNum": _back(numbers)}


# -- numbers of 8 bits ------------------------------------------------------------------------------------------------


def _scale(x: Value, scale: Item, axis: int) -> jax.Array:
    values = to_jax(scale)
    if values.size == 1:
        return values.reshape(())
    shape = [1] * x.ndim
    shape[x.order[axis % x.ndim]] = values.size
    return values.reshape(shape)


@operator("quantize_linear", main="Y")
def _quantize(a: Arguments) -> Item:
    x, top = a.value("X"), float(2 ** (int(a.attr("bit_length", 8)) - 1) - 1)
    if a.attr("only_observer", False):
        return x
    scale = _scale(x, a["Scale"], int(a.attr("quant_axis", -1)))
    if int(a.attr("round_type", 0)) == 0:
        return x.keep(jnp.clip(jnp.round(x.data * top / scale), -top - 1, top))
    y = jnp.clip(x.data, -scale, scale) * top / scale
    return x.keep(jnp.trunc(y + jnp.copysign(0.5, y)))  # ties away from zero


@operator("dequantize_linear", main="Y")
def _dequantize(a: Arguments) -> Item:
    x, top = a.value("X"), float(2 ** (int(a.attr("bit_length", 8)) - 1) - 1)
    if a.attr("only_observer", False):
        return x
    scale = _scale(x, a["Scale"], int(a.attr("quant_axis", -1)))
    return x.keep(x.data.astype(scale.dtype) * scale / top)
