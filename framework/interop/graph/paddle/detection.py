"""The last steps of Paddle's detectors: decoding maps, and suppressing boxes.

How many boxes stay depends on values. Eagerly results have just those rows, as Paddle's; in a compiled program they
have a row for each box that could stay, rows of -1 come last, and the numbers of each image tell how many there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import ShapeError, TraceError
from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, registrar
from framework.interop.graph.values import Dim, Item, Value
from framework.nn.functional import boxes as F
from framework.nn.functional.yolo import yolo_box
from framework.vision import boxes as host_boxes

OPERATORS: Table = {}
operator = registrar(OPERATORS)


class _Settings(TypedDict):
    score_threshold: float
    nms_top_k: int
    keep_top_k: int
    background_label: int
    normalized: bool


def _settings(a: Arguments) -> _Settings:
    """What both suppressions are set by, as the core names it."""
    return {
        "score_threshold": float(a.attr("score_threshold", 0.0)),
        "nms_top_k": int(a.attr("nms_top_k", -1)),
        "keep_top_k": int(a.attr("keep_top_k", -1)),
        "background_label": int(a.attr("background_label", 0)),
        "normalized": bool(a.attr("normalized", True)),
    }


def _inputs(a: Arguments) -> tuple[jax.Array, jax.Array]:
    """Boxes and scores. Raises: ShapeError, where they do not belong together."""
    boxes, scores = a.array("BBoxes"), a.array("Scores")
    dense = scores.ndim == 3 and boxes.ndim == 3 and scores.shape[2] == boxes.shape[1]
    ragged = scores.ndim == 2 and boxes.ndim == 3 and scores.shape == boxes.shape[:2]
    if boxes.shape[-1] != 4 or not (dense or ragged):
        raise a.call.error(
            "boxes and scores do not belong together",
            ShapeError,
            received=f"{boxes.shape}, {scores.shape}",
            allowed="[N, M, 4], [N, C, M]; or [M, C, 4], [M, C]",
            fix="boxes with more than two corners are not supported: export the model without its last step",
        )
    return boxes, scores


@operator("multiclass_nms", "multiclass_nms2", "multiclass_nms3", grows=True)
def _multiclass_nms(a: Arguments) -> Mapping[str, Item]:
    boxes, scores = _inputs(a)
    eager = not isinstance(boxes, Tracer) and not isinstance(scores, Tracer)
    if not eager and scores.ndim == 2:
        raise a.call.error(
            "suppression of regions in a compiled program",
            TraceError,
            fix="run the layer eagerly, as framework.inference.Config(model, params) does",
        )
    return _exact_nms(a, np.asarray(boxes), np.asarray(scores)) if eager else _padded_nms(a, boxes, scores)


def _padded_nms(a: Arguments, boxes: jax.Array, scores: jax.Array) -> Mapping[str, Item]:
    limit, eta = float(a.attr("nms_threshold", 0.3)), float(a.attr("nms_eta", 1.0))
    rows, counts, index = F.multiclass_nms(boxes, scores, **_settings(a), nms_threshold=limit, nms_eta=eta)
    return _in_one_list(rows, counts, index, boxes.shape[1])


def _in_one_list(rows: jax.Array, counts: jax.Array, index: jax.Array, boxes: Dim) -> dict[str, Value]:
    """The rows of all images one after the other, and -1 at the end."""
    images, limit = index.shape
    there = jnp.arange(limit, dtype=counts.dtype) < counts[:, None]
    order = jnp.argsort(~there.reshape(-1), stable=True)
    valid = there.reshape(-1)[order][:, None]
    positions = (index + jnp.arange(images, dtype=index.dtype)[:, None] * boxes).reshape(-1, 1)[order]
    return {
        "Out": Value.of(jnp.where(valid, rows.reshape(-1, 6)[order], -1)),
        "Index": Value.of(jnp.where(valid, positions, -1)),
        "NmsRoisNum": Value.of(counts),
        "RoisNum": Value.of(counts),
    }


def _exact_nms(a: Arguments, boxes: np.ndarray, scores: np.ndarray) -> Mapping[str, Item]:
    """Source: paddle/phi/kernels/cpu/multiclass_nms3_kernel.cc"""
    regions = scores.ndim == 2
    if regions:
        numbers = a.get("RoisNum")
        counts = np.array([len(scores)]) if numbers is None else a.call.static(numbers, "RoisNum").ravel()
        starts = np.concatenate([[0], np.cumsum(counts)])
        if starts[-1] != len(scores) or (counts < 0).any():
            raise a.call.error(
                "RoisNum does not count the regions",
                ShapeError,
                received=counts.tolist(),
                allowed=len(scores),
            )
        images = [
            (boxes[low:high].swapaxes(0, 1), scores[low:high].T) for low, high in itertools.pairwise(starts)
        ]
    else:
        starts = np.arange(len(scores) + 1) * boxes.shape[1]
        images = [(np.broadcast_to(b, (scores.shape[1], *b.shape)), s) for b, s in zip(boxes, scores)]
    background, keep = int(a.attr("background_label", 0)), int(a.attr("keep_top_k", -1))
    labels = scores.shape[1]
    rows, index, rows_found = [], [], []
    for (boxes_of, values), start in zip(images, starts):
        pairs = [
            (label, box)
            for label in range(labels)
            if label != background
            for box in _one_class(a, boxes_of[label], values[label], regions)
        ]
        if -1 < keep < len(pairs):
            best = sorted(range(len(pairs)), key=lambda at: -values[pairs[at]])[:keep]
            order = pairs if regions else range(len(pairs))
            best.sort(key=lambda at: order[at])
            pairs = [pairs[at] for at in best]
        rows += [[label, values[label, box], *boxes_of[label, box]] for label, box in pairs]
        index += [(start + box) * labels + label if regions else start + box for label, box in pairs]
        rows_found.append(len(pairs))
    out = np.array(rows, scores.dtype).reshape(-1, 6)
    if not rows and a.call.node.op == "multiclass_nms":
        out = np.full((1, 1), -1, scores.dtype)
    return {
        "Out": Value.of(jnp.asarray(out)),
        "Index": Value.of(jnp.asarray(np.array(index, np.int32).reshape(-1, 1))),
        "NmsRoisNum": Value.of(jnp.asarray(np.array(rows_found, np.int32))),
    }


def _one_class(a: Arguments, boxes: np.ndarray, scores: np.ndarray, regions: bool) -> list[int]:
    """The boxes that stay, the best first; regions in their own order."""
    queue = np.argsort(-scores, kind="stable")
    queue = queue[scores[queue] > np.float32(a.attr("score_threshold", 0.0))]
    top, keep = int(a.attr("nms_top_k", -1)), int(a.attr("keep_top_k", -1))
    queue = queue if top < 0 else queue[:top]
    picked = queue[
        host_boxes.suppress(
            boxes[queue],
            np.float32(a.attr("nms_threshold", 0.3)),
            # Of a class no more than keep_top_k can be among the best of the image: the others are not looked for.
            count=None if keep < 0 or regions else keep,
            eta=np.float32(a.attr("nms_eta", 1.0)),
            offset=0.0 if a.attr("normalized", True) else 1.0,
        )
    ].tolist()
    return sorted(picked) if regions else picked


@operator("matrix_nms", grows=True)
def _matrix_nms(a: Arguments) -> Mapping[str, Item]:
    boxes, scores = _inputs(a)
    if scores.ndim != 3:
        raise a.call.error("scores are [N, C, M]", ShapeError, received=scores.shape)
    rows, counts, index = F.matrix_nms(
        boxes,
        scores,
        **_settings(a),
        post_threshold=float(a.attr("post_threshold", 0.0)),
        use_gaussian=bool(a.attr("use_gaussian", False)),
        gaussian_sigma=float(a.attr("gaussian_sigma", 2.0)),
        padded=True,
    )
    joined = _in_one_list(rows, counts, index, boxes.shape[1])
    if not isinstance(rows, Tracer):
        number = int(np.asarray(counts).sum())
        joined |= {slot: Value.of(joined[slot].data[:number]) for slot in ("Out", "Index")}
    return joined


@operator("yolo_box")
def _yolo_box(a: Arguments) -> Mapping[str, Item]:
    x, anchors = a.value("X").channels_last(), tuple(a.ints("anchors"))
    count, classes, aware = len(anchors) // 2, int(a.attr("class_num", 1)), bool(a.attr("iou_aware", False))
    channels = count * (5 + aware + classes)
    if x.ndim != 4 or x.shape[3] != channels or not anchors or len(anchors) % 2:
        raise a.call.error(
            "the map does not fit the anchors",
            ShapeError,
            received=f"{x.shape[-1]} channels, {len(anchors)} numbers of anchors",
            allowed=f"[N, {channels}, H, W], anchors w, h, w, h, ...",
        )
    boxes, scores = yolo_box(
        x,
        a.array("ImgSize"),
        anchors,
        classes,
        float(a.attr("conf_thresh", 0.01)),
        int(a.attr("downsample_ratio", 32)),
        bool(a.attr("clip_bbox", True)),
        float(a.attr("scale_x_y", 1.0)),
        aware,
        float(a.attr("iou_aware_factor", 0.5)),
    )
    return {"Boxes": Value.of(boxes), "Scores": Value.of(scores)}
