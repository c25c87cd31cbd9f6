"""How well boxes and keypoints are found: COCO's average precision, its keypoints, Pascal VOC's average precision.

What is registered is a frozen dataclass; `start(class_names)` gives the Metric that collects over an evaluation. All is
measured in pixels of the source images. The keys of a batch, for N images with room for M objects:

* `boxes` [N, M, 4] xyxy in pixels of the network's input; `labels` [N, M];
* `kinds` [N, M]: 0 padding, 1 an object, 2 one to ignore (crowds, difficult ones), which may be found or not;
* `matrix` [N, 3, 3] from the network's input to the source; `size` [N, 2], (height, width) of the source;
* `left_out` [N], where it is known: objects for which M was too small; an evaluation without them would be wrong;
* `areas` [N, M], where there are annotated ones, in source pixels; else the boxes' areas stand for them;
* `keypoints` [N, M, J, 3] and `image_id` [N, 2], two halves of a number, for CocoKeypoints.

Of the outputs, `boxes` [N, K, 4], `scores` [N, K] and `labels` [N, K], what has a score of 0 is padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from detection.data.keypoints import COCO_KEYPOINTS, sigmas
from detection.error_analysis import LEAST_IOU, NOTHING, ErrorAnalysis, LabelledBoxes, precision_recall
from detection.keypoint_details import keypoint_table
from framework.config.registry import register
from framework.core.errors import ConfigError, InputError, MissingExtraError
from framework.engine.details import ClassTable, Curve, Details
from framework.engine.evaluator import SAMPLE_ID
from framework.vision import boxes as box_ops
from framework.vision.warp import Warp

_IGNORED = 2
_Arrays = Mapping[str, np.ndarray]
_Entry = dict[str, object]


class _Evaluation(Protocol):
    """What is used of faster-coco-eval's COCOeval."""

    stats: np.ndarray
    eval: Mapping[str, np.ndarray]


class ClassScore(NamedTuple):
    """One row of the table by class; the scores are None where the class has no object."""

    name: str
    objects: int
    ap: float | None
    ap50: float | None


def class_table(rows: Sequence[ClassScore]) -> str:
    """The rows as lines of text: name, objects, AP and AP50 in per cent."""
    width = max(len("class"), *(len(row.name) for row in rows))
    lines = [f"{'class':<{width}}  objects     AP   AP50"]
    for row in rows:
        ap, ap50 = ("     -" if score is None else f"{100 * score:6.1f}" for score in (row.ap, row.ap50))
        lines.append(f"{row.name:<{width}}  {row.objects:7d} {ap} {ap50}")
    return "\n".join(lines)


@register("metric")
@dataclass(frozen=True)
class CocoMap:
    """Average precision as COCO's evaluation defines it, by faster-coco-eval; objects to ignore count as crowds.

    Scores: AP (mean over IoU 0.5 to 0.95 and the classes with objects), AP50, AP75; AP_small, AP_medium and AP_large by
    the objects' areas (below 32^2, 96^2, above); AR_1, AR_10 and AR_100 with so many boxes an image; AR_small and so
    on. Scores of sizes that no object has are left out. The 100 best boxes of a class on an image are looked at.
    """

    def start(self, class_names: Sequence[str]) -> CocoCollector:
        return CocoCollector(class_names)


@register("metric")
@dataclass(frozen=True)
class CocoKeypoints:
    """Average precision by object keypoint similarity, as COCO's evaluation defines it, by faster-coco-eval.

    The batch has `keypoints` (x, y, visibility) in pixels of the network's input, and the outputs `keypoints`
    [N, K, J, 2 or 3] with `scores` [N, K]; rows with one `image_id` are parts of one image, as when persons are
    looked at one by one. `sigmas` are the spreads of the J points; without them those of the keypoints' names, which
    are the class names, or of COCO's 17 keypoints of a person where there are no names.

    Scores: AP, AP50, AP75, AP_medium, AP_large, AR, AR50, AR75, AR_medium, AR_large; those of sizes that no object has
    are left out.

    Raises:
        ConfigError: a sigma is not above 0; or, at the start, there are none for keypoints of such names.
    """

    sigmas: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.sigmas is not None and (not self.sigmas or min(self.sigmas) <= 0):
            raise ConfigError(
                "sigmas must be a number above 0 for each keypoint",
                where="CocoKeypoints.sigmas",
                received=self.sigmas,
                allowed="a number above 0 for each keypoint",
            )

    def start(self, class_names: Sequence[str]) -> KeypointCollector:
        spreads = self.sigmas or sigmas(class_names or COCO_KEYPOINTS)
        if spreads is None:
            raise ConfigError(
                "nobody knows how well these keypoints can be placed",
                where="CocoKeypoints.sigmas",
                received=f"no sigmas for {', '.join(class_names[:5])}",
                allowed="a number above 0 for each keypoint, such as 0.05",
                fix="-o task.metric.sigmas=[...]",
            )
        return KeypointCollector(spreads, class_names)


@register("metric")
@dataclass(frozen=True)
class VocMap:
    """Average precision at one IoU, as Pascal VOC's development kit computes it.

    `method`: "area" below the precision that never rises (VOC 2010 on), or "11point", its mean at recalls 0, 0.1, ... 1
    (VOC 2007). A box is right when it and the object of its class that it overlaps most, with at least `iou_threshold`,
    are each other's first; objects to ignore are not counted. Scores: mAP over the classes with objects.

    Raises:
        ConfigError: the threshold is not from 0 (not included) to 1.
    """

    iou_threshold: float = 0.5
    method: Literal["area", "11point"] = "area"

    def __post_init__(self) -> None:
        if not 0 < self.iou_threshold <= 1:
            raise ConfigError(
                "iou_threshold is out of range",
                where="VocMap.iou_threshold",
                received=self.iou_threshold,
                allowed="above 0, to 1",
            )

    def start(self, class_names: Sequence[str]) -> VocCollector:
        return VocCollector(class_names, self.iou_threshold, self.method)


class _Truth(NamedTuple):
    """The objects of one image, in source pixels."""

    boxes: np.ndarray
    labels: np.ndarray
    ignored: np.ndarray
    areas: np.ndarray


class _Detections(NamedTuple):
    """The boxes that a model found on one image, in source pixels."""

    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray


def _truth(batch: _Arrays, row: int) -> _Truth:
    kinds = batch["kinds"][row]
    there = kinds > 0
    boxes = _to_source(batch, row).boxes(batch["boxes"][row][there].astype(np.float64))
    areas = batch["areas"][row][there] if "areas" in batch else box_ops.area(boxes)
    return _Truth(boxes, batch["labels"][row][there], kinds[there] == _IGNORED, areas)


def _detections(outputs: _Arrays, batch: _Arrays, row: int) -> _Detections:
    """Cut at the edges of the image, as a user sees them."""
    there = outputs["scores"][row] > 0
    boxes = _to_source(batch, row).boxes(outputs["boxes"][row][there].astype(np.float64))
    height, width = batch["size"][row]
    return _Detections(
        box_ops.clip(boxes, (int(height), int(width))),
        outputs["scores"][row][there].astype(np.float64),
        outputs["labels"][row][there],
    )


def _to_source(batch: _Arrays, row: int) -> Warp:
    height, width = (int(side) for side in batch["size"][row])
    return Warp(batch["matrix"][row], (height, width), (height, width))


def _check_room(batch: _Arrays, setting: str = "max_objects") -> None:
    missed, room = int(np.max(batch.get("left_out", 0))), batch["kinds"].shape[1]
    if missed:
        raise InputError(
            "an image has more objects than there is room for, so its scores would be wrong",
            where=f"task.{setting}",
            received=f"{room + missed} objects",
            allowed=f"at most {room}",
            fix=f"-o task.{setting}={room + missed}",
        )


class _BoxCollector(ABC):
    """Keeps the objects and the boxes found of every image."""

    higher_is_better = True

    def __init__(self, class_names: Sequence[str]) -> None:
        self._class_names = tuple(class_names)
        self._errors = ErrorAnalysis(self._class_names)
        self._images: list[tuple[_Truth, _Detections]] = []

    def update(self, outputs: _Arrays, batch: _Arrays) -> None:
        """Raises InputError when objects of an image were left out."""
        _check_room(batch)
        for row in range(len(batch["kinds"])):
            truth, detections = _truth(batch, row), _detections(outputs, batch, row)
            self._images.append((truth, detections))
            self._note_errors(outputs, batch, row, truth)

    def _note_errors(self, outputs: _Arrays, batch: _Arrays, row: int, truth: _Truth) -> None:
        """In pixels of the network's input, in which the worst images are shown."""
        there = outputs["scores"][row] > 0
        image = batch["image"][row] if "image" in batch else None
        name = str(batch[SAMPLE_ID][row]) if SAMPLE_ID in batch else f"image {len(self._images)}"
        objects = batch["boxes"][row][batch["kinds"][row] > 0]
        boxes = LabelledBoxes(outputs["boxes"][row][there].astype(np.float64), outputs["labels"][row][there])
        of_image = LabelledBoxes(objects.astype(np.float64), truth.labels, truth.ignored)
        self._errors.add(name, of_image, boxes, outputs["scores"][row][there], image)

    @abstractmethod
    def by_class(self) -> list[ClassScore]:
        """The scores of each class, in the order of the labels."""

    def details(self) -> Details:
        """The rows of `by_class`, which classes are taken for which, curves at IoU 0.5, and the worst images."""
        worst, images = self._errors.worst()
        named = len(self._class_names) > 0
        return Details(
            ClassTable(
                ("class", "ap", "ap50", "objects"),
                tuple((row.name, row.ap, row.ap50, row.objects) for row in self.by_class()),
            ),
            self._errors.confusion if named else None,
            (NOTHING,) if named else (),
            dict(self._curves()),
            worst,
            images,
        )

    def _curves(self) -> Iterator[tuple[str, Curve]]:
        for label, (name, count) in enumerate(zip(self._class_names, self._count().tolist())):
            if count:
                columns = zip(*(match_class(label, *one, LEAST_IOU) for one in self._images))
                scores, right, counted = (np.concatenate(column) for column in columns)
                yield name, precision_recall(scores, right, counted, count)

    def _count(self) -> np.ndarray:
        """The objects of each class, without those to ignore."""
        labels = [truth.labels[~truth.ignored] for truth, _ in self._images]
        return np.bincount(np.concatenate([np.zeros(0, int), *labels]), minlength=len(self._class_names))

    def _check_some(self) -> None:
        _check_some(any((~truth.ignored).any() for truth, _ in self._images))


class CocoCollector(_BoxCollector):
    """The Metric of CocoMap."""

    def __init__(self, class_names: Sequence[str]) -> None:
        super().__init__(class_names)
        _coco_eval()  # what is missing is told before an evaluation, not after it
        self._evaluation: _Evaluation | None = None

    def update(self, outputs: _Arrays, batch: _Arrays) -> None:
        super().update(outputs, batch)
        self._evaluation = None

    def result(self) -> dict[str, float]:
        """Raises InputError when there was no object to find."""
        stats = self._evaluate().stats
        sizes = ("small", "medium", "large")
        names = (
            *("AP", "AP50", "AP75", *(f"AP_{size}" for size in sizes)),
            *("AR_1", "AR_10", "AR_100", *(f"AR_{size}" for size in sizes)),
        )
        return _name_scores(names, stats)

    def by_class(self) -> list[ClassScore]:
        """AP and AP50 of each class, in the order of the labels."""
        precision = self._evaluate().eval["precision"]  # [IoU, recall, class, area range, most boxes]
        rows, counts = [], self._count().tolist()
        for label, name in enumerate(self._class_names):
            ours = precision[:, :, label, 0, -1]
            has_scores = bool((ours > -1).all())
            scores = (float(ours.mean()), float(ours[0].mean())) if has_scores else (None, None)
            rows.append(ClassScore(name, counts[label], *scores))
        return rows

    def _evaluate(self) -> _Evaluation:
        if self._evaluation is None:
            self._check_some()
            truths: list[_Entry] = []
            guesses: list[_Entry] = []
            for image, (truth, detections) in enumerate(self._images, start=1):
                for box, label, ignored, area in zip(truth.boxes, truth.labels, truth.ignored, truth.areas):
                    truths.append(_entry(len(truths) + 1, image, box, int(label), bool(ignored), float(area)))
                for box, label, score in zip(detections.boxes, detections.labels, detections.scores):
                    guess = _entry(len(guesses) + 1, image, box, int(label))
                    guesses.append(guess | {"score": float(score)})
            self._evaluation = _run_evaluation(len(self._images), self._class_names, truths, guesses, "bbox")
        return self._evaluation


class KeypointCollector:
    """The Metric of CocoKeypoints."""

    higher_is_better = True

    def __init__(self, sigmas: Sequence[float], names: Sequence[str] = ()) -> None:
        _coco_eval()
        self._sigmas, self._names = tuple(sigmas), tuple(names)
        self._images: dict[tuple[int, ...], int] = {}
        self._truths: list[_Entry] = []
        self._detections: list[_Entry] = []

    def update(self, outputs: _Arrays, batch: _Arrays) -> None:
        _check_room(batch, "max_people")
        if batch["keypoints"].shape[2] != len(self._sigmas):
            raise ConfigError(
                "sigmas do not fit the keypoints",
                where="CocoKeypoints.sigmas",
                received=f"{len(self._sigmas)} sigmas",
                allowed=f"one for each of the {batch['keypoints'].shape[2]} keypoints",
            )
        for row, image_id in enumerate(batch["image_id"].tolist()):
            image = self._images.setdefault(tuple(image_id), len(self._images) + 1)
            truth, warp = _truth(batch, row), _to_source(batch, row)
            true_points = _move_points(batch["keypoints"][row][batch["kinds"][row] > 0], warp)
            for points, box, ignored, area in zip(true_points, truth.boxes, truth.ignored, truth.areas):
                entry = _entry(len(self._truths) + 1, image, box, 0, bool(ignored), float(area))
                entry["num_keypoints"] = int((points[:, 2] > 0).sum())
                self._truths.append(entry | {"keypoints": points.ravel().tolist()})
            scores = outputs["scores"][row]
            for points, score in zip(
                _move_points(outputs["keypoints"][row][scores > 0], warp), scores[scores > 0]
            ):
                box = np.concatenate([points[:, :2].min(axis=0), points[:, :2].max(axis=0)])
                entry = _entry(len(self._detections) + 1, image, box, 0)
                self._detections.append(entry | {"score": float(score), "keypoints": points.ravel().tolist()})

    def result(self) -> dict[str, float]:
        """Raises InputError when there was no object to find."""
        _check_some(any(one["num_keypoints"] and not one["iscrowd"] for one in self._truths))
        evaluation = _run_evaluation(
            len(self._images), ("object",), self._truths, self._detections, "keypoints", self._sigmas
        )
        names = ("AP", "AP50", "AP75", "AP_medium", "AP_large", "AR", "AR50", "AR75", "AR_medium", "AR_large")
        return _name_scores(names, evaluation.stats)

    def details(self) -> Details:
        """A row for each keypoint; by number where they have no name."""
        count = len(self._sigmas)
        keypoint_names = self._names or (COCO_KEYPOINTS if count == len(COCO_KEYPOINTS) else ())
        names = keypoint_names if len(keypoint_names) == count else tuple(map(str, range(count)))
        return Details(keypoint_table(names, self._sigmas, self._truths, self._detections))


class VocCollector(_BoxCollector):
    """The Metric of VocMap."""

    def __init__(self, class_names: Sequence[str], iou_threshold: float, method: str) -> None:
        super().__init__(class_names)
        self._iou_threshold, self._method = iou_threshold, method

    def result(self) -> dict[str, float]:
        """Raises InputError when there was no object to find."""
        self._check_some()
        return {"mAP": float(np.mean([row.ap for row in self.by_class() if row.ap is not None]))}

    def by_class(self) -> list[ClassScore]:
        """The AP of each class, in the order of the labels; AP50 is given where the IoU is 0.5."""
        rows = []
        for label, (name, count) in enumerate(zip(self._class_names, self._count().tolist())):
            ap = self._average_precision(label, count) if count else None
            rows.append(ClassScore(name, count, ap, ap if self._iou_threshold == 0.5 else None))
        return rows

    def _average_precision(self, label: int, count: int) -> float:
        scores, right, counted = (
            np.concatenate(column)
            for column in zip(*(match_class(label, *one, self._iou_threshold) for one in self._images))
        )
        order = np.argsort(-scores, kind="stable")
        right, counted = right[order], counted[order]
        right = right[counted]
        hits = np.cumsum(right)
        recall, precision = hits / count, hits / np.arange(1, len(hits) + 1)
        return voc_ap(recall, precision, self._method)


def match_class(
    label: int, truth: _Truth, detections: _Detections, iou_threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the boxes of a class on an image: scores, whether they are right, whether they count."""
    mine = detections.labels == label
    order = np.argsort(-detections.scores[mine], kind="stable")
    scores, boxes = detections.scores[mine][order], detections.boxes[mine][order]
    right, counted = np.zeros(len(boxes), bool), np.ones(len(boxes), bool)
    of_label = truth.labels == label
    if not of_label.any():
        return scores, right, counted
    ignored, matched = truth.ignored[of_label], np.zeros(int(of_label.sum()), bool)
    overlaps = box_ops.iou(boxes, truth.boxes[of_label])
    for rank, row in enumerate(overlaps):
        best = int(row.argmax())
        if row[best] < iou_threshold:
            continue
        counted[rank] = not ignored[best]
        right[rank] = not ignored[best] and not matched[best]
        matched[best] = True
    return scores, right, counted


def voc_ap(recall: np.ndarray, precision: np.ndarray, method: str = "area") -> float:
    """The average precision of a curve [T] by falling score; recalls rise."""
    if method == "11point":
        levels = np.arange(11) / 10  # the recalls are quotients: a level that is met exactly is met
        return float(np.mean([precision[recall >= level].max(initial=0) for level in levels]))
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall, prepend=0) * best).sum())


def _entry(
    number: int, image: int, box: np.ndarray, label: int, ignored: bool = False, area: float | None = None
) -> _Entry:
    """An annotation as COCO's files have them, of a box xyxy."""
    x0, y0, x1, y1 = (float(side) for side in box)
    return {
        "id": number,
        "image_id": image,
        "category_id": label,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "area": (x1 - x0) * (y1 - y0) if area is None else area,
        "iscrowd": int(ignored),
    }


def _move_points(points: np.ndarray, warp: Warp) -> np.ndarray:
    """[K, J, 2 or 3] in source pixels as [K, J, 3]."""
    third = points[..., 2:] if points.shape[-1] == 3 else np.ones((*points.shape[:-1], 1))
    return np.concatenate([warp.points(points[..., :2].astype(np.float64)), third], axis=-1)


def _check_some(any_object: bool) -> None:
    if not any_object:
        raise InputError(
            "the evaluation data has no object to find",
            allowed="images with annotated objects that are not to be ignored",
            fix="check the annotations: python -m detection.data check <folder or file>",
        )


def _name_scores(names: Sequence[str], stats: np.ndarray) -> dict[str, float]:
    """COCO says -1 where there is nothing to average."""
    return {name: float(value) for name, value in zip(names, stats, strict=True) if value > -1}


def _coco_eval() -> tuple[Any, Any]:
    try:
        from faster_coco_eval import COCO, COCOeval_faster
    except ImportError:
        raise MissingExtraError("faster-coco-eval", "detection", "COCO's average precision") from None
    return COCO, COCOeval_faster


def _run_evaluation(
    images: int,
    class_names: Sequence[str],
    truths: list[_Entry],
    detections: list[_Entry],
    kind: str,
    sigmas: Sequence[float] | None = None,
) -> _Evaluation:
    coco, evaluator = _coco_eval()
    shared = {
        "images": [{"id": number} for number in range(1, images + 1)],
        "categories": [{"id": label, "name": name} for label, name in enumerate(class_names)],
    }
    evaluation = evaluator(
        coco({**shared, "annotations": truths}),
        coco({**shared, "annotations": detections}),
        kind,
        kpt_oks_sigmas=sigmas,
    )
    evaluation.run()
    return evaluation
