"""Targets of two-stage detectors and of RetinaNet: which proposals and anchors are trained, and towards which boxes.

Source: paddle/fluid/operators/detection/{generate_proposal_labels_op,rpn_target_assign_op}.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from framework.paddle.legacy_operators.operands import (
    Levels,
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    registrar,
)
from framework.vision.boxes import iou

OPERATORS: Table = {}
operator = registrar(OPERATORS)
_EQUAL = 1e-5  # overlaps that differ by less are equal


def _overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Overlaps of boxes whose last pixels belong to them: even boxes that lie side by side share some."""
    last = np.array([0, 0, 1, 1])
    return iou(first + last, second + last)


def _deltas(anchors: np.ndarray, boxes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How each box differs from its anchor: shifts by the anchor's size, and logarithms of the sizes' ratios."""
    sizes = [box[:, 2:] - box[:, :2] + 1 for box in (anchors, boxes)]
    centers = [box[:, :2] + size / 2 for box, size in zip((anchors, boxes), sizes)]
    shifts = (centers[1] - centers[0]) / sizes[0]
    return np.concatenate([shifts, np.log(sizes[1] / sizes[0])], 1) / weights


def _sample(indices: np.ndarray, count: int, random: bool) -> np.ndarray:
    """At most `count` of the indices: the first, or random ones in ascending order."""
    if len(indices) > count and random:
        return np.sort(np.random.default_rng().choice(indices, count, replace=False))
    return indices[:count]


def _slices(a: Operands, slot: str) -> list[tuple[int, int]]:
    return list(itertools.pairwise(offsets_of(a.lengths(slot))))


# -- proposals ---------------------------------------------------------------------------------------------------------


def _sample_proposals(a: Operands, overlaps: np.ndarray, images_limit: int) -> tuple[np.ndarray, np.ndarray]:
    """(indices of the boxes that stand for objects, of those that are background)."""
    foreground = np.flatnonzero(overlaps >= a.attr("fg_thresh", 0.5))
    low, high = a.attr("bg_thresh_lo", 0.0), a.attr("bg_thresh_hi", 0.5)
    background = np.flatnonzero((overlaps >= low) & (overlaps < high))
    if a.attr("is_cascade_rcnn", False):
        return foreground, background
    random = a.attr("use_random", True)
    limit = int(np.round(a.attr("fg_fraction", 0.25) * images_limit))
    foreground = _sample(foreground, limit, random)
    return foreground, _sample(background, images_limit - len(foreground), random)


def _image_proposals(
    a: Operands, rois: np.ndarray, classes: np.ndarray, crowd: np.ndarray, boxes: np.ndarray, scale: float
) -> tuple[np.ndarray, ...]:
    """(RoIs, labels, targets, inside weights, overlaps) of one image; `rois` are those of its own scale."""
    candidates = np.concatenate([boxes, rois / scale])
    table = _overlaps(candidates, boxes)
    nearest, overlaps = table.argmax(1), table.max(1)
    overlaps[: len(boxes)][crowd.astype(bool)] = -1
    foreground, background = _sample_proposals(a, overlaps, a.attr("batch_size_per_im", 512))
    sampled = np.concatenate([foreground, background])
    labels = np.concatenate([classes[nearest[foreground]], np.zeros(len(background), np.int64)])
    weights = np.asarray(a.attr("bbox_reg_weights", [0.1, 0.1, 0.2, 0.2]))
    deltas = _deltas(candidates[foreground], boxes[nearest[foreground]], weights)
    agnostic = a.attr("is_cls_agnostic", False)
    targets = np.zeros((len(sampled), 2 if agnostic else a.attr("class_nums", 81), 4))
    inside = np.zeros_like(targets)
    rows = np.arange(len(foreground))
    columns = np.ones(len(rows), np.int64) if agnostic else labels[: len(rows)]
    targets[rows, columns], inside[rows, columns] = deltas, 1
    flat = (len(sampled), -1)
    return candidates[sampled] * scale, labels, targets.reshape(flat), inside.reshape(flat), overlaps[sampled]


@operator("generate_proposal_labels")
def _generate_proposal_labels(a: Operands) -> Outputs:
    """Sampled RoIs of each image with their classes and the boxes that they are trained towards."""
    rois, boxes, info = a.host("RpnRois"), a.host("GtBoxes"), a.host("ImInfo")
    images = []
    for image, (proposals, truths) in enumerate(zip(_slices(a, "RpnRois"), _slices(a, "GtBoxes"))):
        rows, true = slice(*proposals), slice(*truths)
        candidates = rois[rows]
        if a.attr("is_cascade_rcnn", False):
            candidates = _below_one(candidates, a.host("MaxOverlap").ravel()[rows])
        targets = a.host("GtClasses").ravel()[true], a.host("IsCrowd").ravel()[true], boxes[true]
        images.append(_image_proposals(a, candidates, *targets, float(info[image, 2])))
    levels: Levels = [[len(labels) for _, labels, *_ in images]]
    all_rois, labels, targets, inside, overlaps = (np.concatenate(column) for column in zip(*images))
    outputs = {
        "Rois": all_rois.astype(rois.dtype),
        "LabelsInt32": labels.astype(np.int32)[:, None],
        "BboxTargets": targets.astype(rois.dtype),
        "BboxInsideWeights": inside.astype(rois.dtype),
        "BboxOutsideWeights": inside.astype(rois.dtype),
        "MaxOverlapWithGT": overlaps.astype(rois.dtype),
    }
    return {slot: Ragged(array, levels) for slot, array in outputs.items()}


def _below_one(rois: np.ndarray, overlaps: np.ndarray) -> np.ndarray:
    """The RoIs of a cascade's earlier stage that are no true boxes; one empty RoI where there are none."""
    sizes = rois[:, 2:] - rois[:, :2] + 1
    rest = rois[(sizes > 0).all(1) & (overlaps < 1)]
    return rest if len(rest) else np.zeros((1, 4), rois.dtype)


# -- anchors -----------------------------------------------------------------------------------------------------------


def _label_anchors(
    overlaps: np.ndarray, positive: float, negative: float, samples: tuple[int, int] | None, random: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indices of anchors that stand for objects, of background, of positive ones that turned into background).

    Args:
        samples: At most so many positive anchors, and so many in all; None takes all.
    """
    largest = overlaps.max(1)
    best = (np.abs(overlaps - overlaps.max(0)) < _EQUAL).any(1)
    foreground = np.flatnonzero(best | (largest >= positive))
    background = np.flatnonzero(largest < negative)
    if samples is not None:
        foreground = _sample(foreground, samples[0], random)
        background = _sample(background, samples[1] - len(foreground), random)
    both = np.intersect1d(background, foreground)
    return np.setdiff1d(foreground, both), background, np.full(len(both), foreground[0], np.int64)


def _assign_anchors(
    a: Operands, samples: tuple[int, int] | None, margin: float, names: tuple[str, str]
) -> Outputs:
    anchors, boxes, info = a.host("Anchor").reshape(-1, 4), a.host("GtBoxes"), a.host("ImInfo")
    classes = a.get("GtLabels")
    columns: list[tuple[np.ndarray, ...]] = []
    for image, truths in enumerate(_slices(a, "GtBoxes")):
        height, width, scale = (float(number) for number in info[image, :3])
        inside = np.arange(len(anchors))
        if margin >= 0:
            limits = np.array([width + margin, height + margin])
            low, high = (anchors[:, :2] >= -margin).all(1), (anchors[:, 2:] < limits).all(1)
            inside = np.flatnonzero(low & high)
        plain = a.host("IsCrowd").ravel()[slice(*truths)] == 0
        true = boxes[slice(*truths)][plain] * scale
        overlaps = _overlaps(anchors[inside], true)
        positive, negative = a.attr(names[0], 0.7), a.attr(names[1], 0.3)
        foreground, background, unused = _label_anchors(
            overlaps, positive, negative, samples, a.attr("use_random", True)
        )
        nearest = overlaps.argmax(1)
        located = np.concatenate([unused, foreground])
        scored = np.concatenate([foreground, np.sort(background)])
        labels = np.zeros(len(scored), np.int32)
        true_classes = None if classes is None else np.asarray(classes).ravel()[slice(*truths)][plain]
        labels[: len(foreground)] = 1 if true_classes is None else true_classes[nearest[foreground]]
        weights = np.repeat(np.arange(len(located))[:, None] >= len(unused), 4, 1)
        deltas = _deltas(anchors[inside[located]], true[nearest[located]], np.ones(4))
        first = image * len(anchors)
        count = np.array([len(located) + 1])
        columns.append((inside[located] + first, inside[scored] + first, labels, deltas, weights, count))
    location, score, labels, deltas, weights, counts = (np.concatenate(column) for column in zip(*columns))
    return {
        "LocationIndex": location.astype(np.int32),
        "ScoreIndex": score.astype(np.int32),
        "TargetLabel": labels[:, None],
        "TargetBBox": deltas.astype(anchors.dtype),
        "BBoxInsideWeight": weights.astype(anchors.dtype),
        "ForegroundNumber": counts.astype(np.int32)[:, None],
    }


@operator("rpn_target_assign")
def _rpn_target_assign(a: Operands) -> Outputs:
    """Sampled anchors of each image, of which some stand for the boxes that they overlap most."""
    size = a.attr("rpn_batch_size_per_im", 256)
    samples = int(a.attr("rpn_fg_fraction", 0.5) * size), size
    names = ("rpn_positive_overlap", "rpn_negative_overlap")
    outputs = dict(_assign_anchors(a, samples, a.attr("rpn_straddle_thresh", 0.0), names))
    del outputs["ForegroundNumber"]
    return outputs


@operator("retinanet_target_assign")
def _retinanet_target_assign(a: Operands) -> Outputs:
    """All anchors of each image that overlap a box by enough, with its class, and those that overlap none."""
    return _assign_anchors(a, None, -1.0, ("positive_overlap", "negative_overlap"))
