"""Boxes of older detectors: decoding, suppression, and the mean average precision of a program.

Source: paddle/fluid/operators/detection, paddle/fluid/operators/detection_map_op.h
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import Operands, Outputs, Ragged, Table, offsets_of, registrar
from framework.vision.boxes import iou, suppress

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _decode(anchors: np.ndarray, deltas: np.ndarray, limit: float | None = None) -> np.ndarray:
    """Boxes [..., 4] of anchors [..., 4] whose sides belong to them."""
    sizes = anchors[..., 2:] - anchors[..., :2] + 1
    centers = anchors[..., :2] + sizes / 2 + deltas[..., :2] * sizes
    logs = deltas[..., 2:] if limit is None else np.minimum(deltas[..., 2:], limit)
    half = np.exp(logs) * sizes / 2
    return np.concatenate([centers - half, centers + half - 1], -1)


@operator("box_decoder_and_assign")
def _box_decoder_and_assign(a: Operands) -> Outputs:
    """The box of each class, and for each prior that of its best class but the background."""
    priors, targets = a.host("PriorBox"), a.host("TargetBox")
    deltas = targets.reshape(len(targets), -1, 4) * a.host("PriorBoxVar").reshape(-1, 4)[0]
    boxes = _decode(priors[:, None], deltas, a.attr("box_clip", 4.135))
    best = a.host("BoxScore")[:, 1:].argmax(1) + 1
    outputs = {
        "DecodeBox": boxes.reshape(targets.shape),
        "OutputAssignBox": boxes[np.arange(len(boxes)), best],
    }
    levels = a.lod("PriorBox") or []
    return {slot: Ragged(jnp.asarray(array.astype(targets.dtype)), levels) for slot, array in outputs.items()}


# -- suppression -------------------------------------------------------------------------------------------------------


def _clip_convex(polygon: np.ndarray, edge: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """What of a convex polygon lies on the side of `edge` (two points) on which the point `inside` is."""
    direction = edge[1] - edge[0]

    def side(points: np.ndarray) -> np.ndarray:
        offset = points - edge[0]
        return direction[0] * offset[..., 1] - direction[1] * offset[..., 0]

    distances = side(polygon) * np.sign(side(inside))
    points = []
    for index, (point, distance) in enumerate(zip(polygon, distances)):
        following = (index + 1) % len(polygon)
        if distance >= 0:
            points.append(point)
        if distance * distances[following] < 0:
            share = distance / (distance - distances[following])
            points.append(point + share * (polygon[following] - point))
    return np.array(points).reshape(-1, 2)


def _polygon_area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return float(abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2)


def _polygon_iou(first: np.ndarray, second: np.ndarray) -> float:
    """The overlap of two convex polygons [points, 2]."""
    shared = first
    for index in range(len(second)):
        edge = second[[index, (index + 1) % len(second)]]
        shared = _clip_convex(shared, edge, second.mean(0))
    common = _polygon_area(shared)
    total = _polygon_area(first) + _polygon_area(second) - common
    return common / total if total > 0 else 0.0


def _overlap(first: np.ndarray, second: np.ndarray, normalized: bool) -> float:
    if len(first) == 4:
        return float(iou(first[None], second[None], 0.0 if normalized else 1.0)[0, 0])
    return _polygon_iou(first.reshape(-1, 2), second.reshape(-1, 2))


def _merge_neighbours(
    boxes: np.ndarray, scores: np.ndarray, threshold: float, normalized: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(boxes, scores, which remain): a box that overlaps the last one that remains joins it, weighted by scores."""
    boxes, scores = boxes.copy(), scores.copy()
    remains = np.ones(len(boxes), bool)
    last = 0
    for index in range(1, len(boxes)):
        if _overlap(boxes[index], boxes[last], normalized) > threshold:
            total = scores[index] + scores[last]
            boxes[last] = (boxes[index] * scores[index] + boxes[last] * scores[last]) / total
            scores[last], remains[index] = total, False
        else:
            last = index
    return boxes, scores, remains


def _suppress(
    boxes: np.ndarray, order: np.ndarray, threshold: float, eta: float, normalized: bool
) -> list[int]:
    if boxes.shape[1] == 4:
        stay = suppress(boxes[order], threshold, eta=eta, offset=0.0 if normalized else 1.0)
        return [int(index) for index in order[stay]]
    stay_indices: list[int] = []
    for index in order:
        if all(_overlap(boxes[index], boxes[other], normalized) <= threshold for other in stay_indices):
            stay_indices.append(int(index))
            threshold *= eta if eta < 1 and threshold > 0.5 else 1
    return stay_indices


@operator("locality_aware_nms")
def _locality_aware_nms(a: Operands) -> Outputs:
    """Rows of label, score and box; neighbours are merged before the suppression. Source: EAST, Zhou et al. 2017."""
    threshold, normalized = a.attr("nms_threshold", 0.3), a.attr("normalized", True)
    rows, counts = [], []
    for all_boxes, all_scores in zip(a.host("BBoxes"), a.host("Scores")):
        boxes, image = all_boxes, []
        for label, class_scores in enumerate(all_scores):
            if label == a.attr("background_label", -1):
                continue
            boxes, scores, remains = _merge_neighbours(boxes, class_scores, threshold, normalized)
            over = np.flatnonzero(remains & (scores > a.attr("score_threshold", 0.0)))
            order = over[np.argsort(-scores[over], kind="stable")]
            order = order[: a.attr("nms_top_k", -1)] if a.attr("nms_top_k", -1) > -1 else order
            stay = _suppress(boxes, order, threshold, a.attr("nms_eta", 1.0), normalized)
            image += [(label, scores[index], boxes[index]) for index in stay]
        image = _best(image, a.attr("keep_top_k", -1))
        counts.append(len(image))
        rows += [
            np.concatenate([[label, score], box])
            for label, score, box in sorted(image, key=lambda row: row[0])
        ]
    return {"Out": _detections(rows, counts, a.host("BBoxes").dtype)}


def _best(rows: list[tuple[int, float, np.ndarray]], count: int) -> list[tuple[int, float, np.ndarray]]:
    if count < 0 or len(rows) <= count:
        return rows
    return sorted(rows, key=lambda row: -row[1])[:count]


def _detections(rows: Sequence[np.ndarray], counts: list[int], dtype: np.dtype) -> Ragged:
    """The rows of all images; one row of -1 where there are none."""
    if not rows:
        return Ragged(jnp.full((1, 1), -1, dtype), [[1]])
    return Ragged(jnp.asarray(np.stack(rows).astype(dtype)), [counts])


def _level_boxes(
    a: Operands, level: int, image: int, threshold: float, info: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(boxes, scores, labels) of the best scores of one level of RetinaNet, in the original image."""
    scores = np.asarray(a.all("Scores")[level])[image]
    flat = scores.ravel()
    over = np.flatnonzero(flat > threshold)
    order = over[np.argsort(-flat[over], kind="stable")]
    count = a.attr("nms_top_k", 1000)
    order = order[:count] if count > -1 else order
    rows, labels = np.divmod(order, scores.shape[-1])
    anchors = np.asarray(a.all("Anchors")[level]).reshape(-1, 4)[rows]
    boxes = _decode(anchors, np.asarray(a.all("BBoxes")[level])[image][rows]) / info[2]
    height, width = np.round(info[:2] / info[2]) - 1
    return np.clip(boxes, 0, np.array([width, height] * 2)), flat[order], labels


@operator("retinanet_detection_output")
def _retinanet_detection_output(a: Operands) -> Outputs:
    """Rows of label (from 1), score and box, best first; the last level has no threshold of scores."""
    rows, counts = [], []
    for image, info in enumerate(a.host("ImInfo")):
        levels = range(len(a.all("Scores")))
        limits = [a.attr("score_threshold", 0.05)] * (len(levels) - 1) + [0.0]
        predictions = [_level_boxes(a, level, image, limits[level], info) for level in levels]
        boxes, scores, labels = (np.concatenate(column) for column in zip(*predictions))
        detections: list[tuple[int, float, np.ndarray]] = []
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            order = members[np.argsort(-scores[members], kind="stable")]
            stay = _suppress(boxes, order, a.attr("nms_threshold", 0.3), a.attr("nms_eta", 1.0), False)
            detections += [(int(label) + 1, float(scores[index]), boxes[index]) for index in stay]
        detections.sort(key=lambda row: -row[1])
        detections = _best(detections, a.attr("keep_top_k", 200))
        counts.append(len(detections))
        rows += [np.concatenate([[label, score], box]) for label, score, box in detections]
    return {"Out": _detections(rows, counts, np.dtype(np.float32))}


# -- mean average precision --------------------------------------------------------------------------------------------

_Scores = dict[int, list[tuple[float, int]]]
"""Of each class the scores of its detections, and whether each counts."""


def _has_state(a: Operands) -> bool:
    return a.get("HasState") is not None and bool(a.host("HasState").any())


def _earlier(a: Operands, slot: str) -> _Scores:
    if not _has_state(a) or not a.lod(slot):
        return {}
    pairs, offsets = a.host(slot), offsets_of(a.lengths(slot))
    bounds = enumerate(itertools.pairwise(offsets))
    return {
        label: [(float(score), int(count)) for score, count in pairs[start:end]]
        for label, (start, end) in bounds
    }


def _judge_image(
    a: Operands, truths: np.ndarray, detections: np.ndarray, hits: _Scores, misses: _Scores
) -> None:
    """Enter the detections of one image: each box of the truth serves one detection, that of the greatest score."""
    offset = truths.shape[1] - 4
    difficult = truths[:, 1].astype(bool) if offset == 2 else np.zeros(len(truths), bool)
    threshold, all_count = a.attr("overlap_threshold", 0.5), a.attr("evaluate_difficult", True)
    for label in np.unique(detections[:, 0]):
        rows = detections[detections[:, 0] == label]
        true = np.flatnonzero(truths[:, 0] == label)
        used = np.zeros(len(truths), bool)
        for row in rows[np.argsort(-rows[:, 1], kind="stable")]:
            overlaps = (
                iou(np.clip(row[None, 2:6], 0, 1), truths[true, offset:])[0] if len(true) else np.zeros(1)
            )
            best = overlaps.argmax()
            is_hit = len(true) > 0 and overlaps[best] > threshold
            if is_hit and difficult[true[best]] and not all_count:
                continue
            is_hit = is_hit and not used[true[best]]
            if is_hit:
                used[true[best]] = True
            hits.setdefault(int(label), []).append((float(row[1]), int(is_hit)))
            misses.setdefault(int(label), []).append((float(row[1]), int(not is_hit)))


def _average_precision(
    hits: list[tuple[float, int]], misses: list[tuple[float, int]], count: int, kind: str
) -> float:
    true, false = (
        np.cumsum([number for _, number in sorted(pairs, key=lambda pair: -pair[0])])
        for pairs in (hits, misses)
    )
    precision, recall = true / (true + false), true / count
    if kind == "11point":
        at_least = [precision[recall >= point / 10] for point in range(11)]
        return float(sum(values.max() if len(values) else 0.0 for values in at_least) / 11)
    steps = np.abs(np.diff(recall, prepend=0.0))
    return float((precision * np.where(steps > 1e-6, steps, 0)).sum())


def _mean_precision(a: Operands, positives: Mapping[int, int], hits: _Scores, misses: _Scores) -> float:
    values = []
    for label, count in positives.items():
        if count in (0, a.attr("background_label", 0)):  # Paddle compares the count, not the label
            continue
        scored = label in hits
        values.append(
            _average_precision(hits[label], misses[label], count, a.attr("ap_type", "integral"))
            if scored
            else 0.0
        )
    return sum(values) / len(values) if values else 0.0


@operator("detection_map")
def _detection_map(a: Operands) -> Outputs:
    """MAP, and what the next batch adds to: true boxes of each class, and scores of right and wrong detections."""
    truths, detections = a.host("Label"), a.host("DetectRes")
    classes = a.attr("class_num", 1)
    hits, misses = _earlier(a, "TruePos"), _earlier(a, "FalsePos")
    before = a.host("PosCount").ravel() if _has_state(a) else np.zeros(classes, np.int64)
    positives = {label: int(count) for label, count in enumerate(before)}
    for row in truths:
        counts = len(row) == 5 or not row[1] or a.attr("evaluate_difficult", True)
        positives[int(row[0])] = positives.get(int(row[0]), 0) + int(counts)
    bounds = [itertools.pairwise(offsets_of(a.lengths(slot))) for slot in ("Label", "DetectRes")]
    for true, rows in zip(*bounds):
        _judge_image(a, truths[slice(*true)], detections[slice(*rows)], hits, misses)
    outputs: dict[str, Ragged] = {}
    for slot, pairs in (("AccumTruePos", hits), ("AccumFalsePos", misses)):
        rows = [pair for label in range(classes) for pair in pairs.get(label, [])]
        array = jnp.asarray(np.array(rows, np.float32).reshape(-1, 2))
        outputs[slot] = Ragged(array, [[len(pairs.get(label, [])) for label in range(classes)]])
    total = np.array([positives.get(label, 0) for label in range(classes)], np.int32)
    mean = np.array([_mean_precision(a, positives, hits, misses)], np.float32)
    return {"MAP": mean, "AccumPosCount": total[:, None], **outputs}
