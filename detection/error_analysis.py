"""What a detector gets wrong: which classes it takes for which, precision over recall, and the images with most errors.

Boxes from LEAST_SCORE on are joined with the objects of their image, whatever their classes, those that overlap most
first; what overlaps less than LEAST_IOU is missed, or found where nothing is.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from framework.engine.details import Cell, ClassTable, Curve
from framework.vision import boxes as box_ops
from framework.vision import draw

LEAST_SCORE, LEAST_IOU = 0.25, 0.5
WORST = 12  # images that are kept
NOTHING = "(nothing)"
_RIGHT, _FALSE, _MISSED = 2, 1, 0  # whose colours mark the boxes of an image


class LabelledBoxes(NamedTuple):
    """Boxes of one image with their classes; `ignored` marks objects that may be found or not."""

    boxes: np.ndarray
    labels: np.ndarray
    ignored: np.ndarray | None = None


@dataclass
class ErrorAnalysis:
    """Counts over the images of an evaluation."""

    names: Sequence[str]
    confusion: np.ndarray = field(init=False)
    """[C + 1, C + 1] by object and box; the last row is of boxes where nothing is, the last column of missed objects"""

    def __post_init__(self) -> None:
        size = len(self.names) + 1
        self.confusion = np.zeros((size, size), np.int64)
        self._worst: list[tuple[int, int, list[Cell], np.ndarray | None]] = []
        self._count = 0

    def add(
        self,
        name: str,
        truth: LabelledBoxes,
        boxes: LabelledBoxes,
        scores: np.ndarray,
        image: np.ndarray | None,
    ) -> None:
        """An image and what was found on it, in its own pixels where it is given: uint8 [H, W, 3]."""
        size, counts = len(self.names), scores >= LEAST_SCORE
        labels = boxes.labels[counts]
        pairs = match(truth.boxes, boxes.boxes[counts])
        ignored = np.zeros(len(truth.labels), bool) if truth.ignored is None else truth.ignored
        of_box = dict((column, row) for row, column in pairs)
        of_object = dict(pairs)
        missed = [i for i in range(len(truth.labels)) if i not in of_object and not ignored[i]]
        false = [j for j in range(len(labels)) if j not in of_box]
        wrong = [(i, j) for i, j in pairs if not ignored[i] and int(truth.labels[i]) != int(labels[j])]
        for i, j in pairs:
            if not ignored[i]:
                self.confusion[min(int(truth.labels[i]), size), min(int(labels[j]), size)] += 1
        for i in missed:
            self.confusion[min(int(truth.labels[i]), size), size] += 1
        for j in false:
            self.confusion[size, min(int(labels[j]), size)] += 1
        errors = len(missed) + len(false) + len(wrong)
        self._count += 1
        if not errors or (len(self._worst) == WORST and errors <= self._worst[0][0]):
            return
        row: list[Cell] = [name, errors, len(missed), len(false), len(wrong), len(truth.labels)]
        drawn = None
        if image is not None and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
            bad = {*false, *(j for _, j in wrong)}
            drawn = self._draw(image, truth, LabelledBoxes(boxes.boxes[counts], labels), missed, bad)
        entry = (errors, -self._count, row, drawn)
        if len(self._worst) < WORST:
            heapq.heappush(self._worst, entry)
        else:
            heapq.heapreplace(self._worst, entry)

    def _draw(
        self,
        image: np.ndarray,
        truth: LabelledBoxes,
        boxes: LabelledBoxes,
        missed: Sequence[int],
        bad: set[int],
    ) -> np.ndarray:
        texts = [f"missed {self._name(truth.labels[i])}" for i in missed]
        texts += [
            f"{'false ' if j in bad else ''}{self._name(label)}" for j, label in enumerate(boxes.labels)
        ]
        kinds = [_MISSED] * len(missed) + [_FALSE if j in bad else _RIGHT for j in range(len(boxes.labels))]
        outlines = np.concatenate([truth.boxes[list(missed)].reshape(-1, 4), boxes.boxes])
        return draw.boxes(image, outlines, labels=texts, ids=kinds)

    def _name(self, label: int) -> str:
        return self.names[int(label)] if int(label) < len(self.names) else str(int(label))

    def worst(self) -> tuple[ClassTable, tuple[np.ndarray, ...]]:
        """A row for each of the images with most errors, the worst first, and those images with their boxes."""
        entries = sorted(self._worst, reverse=True)
        columns = ("image", "errors", "missed", "false", "wrong class", "objects")
        images = tuple(drawn for *_, drawn in entries if drawn is not None)
        return ClassTable(columns, tuple(tuple(row) for _, _, row, _ in entries)), images


def match(objects: np.ndarray, boxes: np.ndarray) -> list[tuple[int, int]]:
    """(object, box) that belong together: of all pairs that overlap enough those with the largest IoU first, each
    object and each box once."""
    overlap = box_ops.iou(objects, boxes)
    order = np.argsort(-overlap, axis=None, kind="stable")
    pairs: list[tuple[int, int]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for row, column in zip(*np.unravel_index(order, overlap.shape)) if overlap.size else ():
        if overlap[row, column] < LEAST_IOU:
            break
        if row not in used[0] and column not in used[1]:
            pairs.append((int(row), int(column)))
            used[0].add(row)
            used[1].add(column)
    return pairs


def precision_recall(scores: np.ndarray, right: np.ndarray, counted: np.ndarray, objects: int) -> Curve:
    """Recall and precision [T] of the boxes of a class as the least score falls; `counted` leaves out those on objects
    that may be found or not."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(right[order][counted[order]])
    return Curve(hits / max(objects, 1), hits / np.arange(1, len(hits) + 1))
