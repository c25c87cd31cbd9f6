"""How well the classes of pixels are found, all of it from one confusion matrix over the evaluation's pixels.

`MeanIoU().start(class_names)` gives the Metric that collects. The outputs have `labels` [N, H, W] or `scores`
[N, H, W, C], the batch `mask` [N, H, W]; pixels of `ignore_index` count nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.engine.details import ClassTable, Details
from framework.vision import masks
from segmentation.contracts import DEFAULT_IGNORED


class ClassScore(NamedTuple):
    """One row of the table by class; what is 0 / 0 is None."""

    name: str
    pixels: int
    iou: float | None
    dice: float | None
    precision: float | None
    recall: float | None


@register("metric")
@dataclass(frozen=True)
class MeanIoU:
    """The mean over the classes of intersection / union, and what else the confusion matrix tells.

    Scores: `mIoU`, `accuracy` (share of the pixels that are right), `kappa` (Cohen's), `mDice`, and `iou/<class>`.

    A class without a pixel in labels and predictions has no IoU. With `absent` "skip" the means leave it out, and so
    does the list of classes; with "zero" it counts as 0, as in PaddleSeg. A class that is predicted and has no label
    has an IoU of 0 in both.

    With `boundary` the scores have `boundary_mIoU` and `boundary_iou/<class>` too: the IoU of the pixels of a class
    that are near its contour, at most this share of the image's diagonal (0.02 in the paper) from it, over the pixels
    of all images. The edge of the image, and of ignored pixels, is a contour.

    Source: Cheng et al., "Boundary IoU", https://arxiv.org/abs/2103.16562, equation 3.

    Raises:
        ConfigError: `boundary` is not between 0 and 1.
    """

    absent: Literal["skip", "zero"] = "skip"
    ignore_index: int = DEFAULT_IGNORED
    boundary: float | None = None

    def __post_init__(self) -> None:
        if self.boundary is not None and not 0 < self.boundary < 1:
            raise ConfigError(
                "the width of a boundary is out of range",
                where="MeanIoU.boundary",
                received=self.boundary,
                allowed="a share of the image's diagonal, above 0 and below 1, such as 0.02; or null",
            )

    def start(self, class_names: Sequence[str]) -> ConfusionCollector:
        if self.ignore_index == DEFAULT_IGNORED < len(class_names):
            raise ConfigError(
                "the metric would ignore a class",
                where="MeanIoU.ignore_index",
                received=f"{self.ignore_index}, and {len(class_names)} classes",
                allowed=f"{len(class_names)} to 65535",
                fix="set ignore_index: 65535 for the data sets, the losses, the metric and the transforms that have it",
            )
        return ConfusionCollector(class_names, self.absent, self.ignore_index, self.boundary)


class ConfusionCollector:
    """The Metric of MeanIoU. `confusion` [C, C] int64 counts pixels by label and prediction; `near_contours` [2, C]
    int64 those near the contours of a class in both, and in either."""

    higher_is_better = True

    def __init__(
        self,
        class_names: Sequence[str],
        absent: str = "skip",
        ignore_index: int = DEFAULT_IGNORED,
        boundary: float | None = None,
    ) -> None:
        self._names, self._absent, self._ignore_index = tuple(class_names), absent, ignore_index
        self._boundary = boundary
        self.confusion = np.zeros((len(self._names),) * 2, np.int64)
        self.near_contours = np.zeros((2, len(self._names)), np.int64)

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        truth, classes = batch["mask"], len(self._names)
        predicted = outputs["labels"] if "labels" in outputs else outputs["scores"].argmax(-1)
        if predicted.shape != truth.shape:
            raise ShapeError(
                "predictions and labels have different sizes",
                where="MeanIoU",
                received=f"{list(predicted.shape)} and {list(truth.shape)}",
                allowed="[N, H, W] both",
                fix="transforms of the evaluation must change images and masks alike",
            )
        counted = truth != self._ignore_index
        maps = [np.where(counted, one.astype(np.int32), -1) for one in (truth, predicted)]
        truth, predicted = truth[counted].astype(np.int64), predicted[counted].astype(np.int64)
        for what, values in (("the labels", truth), ("the predictions", predicted)):
            if values.size and not 0 <= values.min() <= values.max() < classes:
                raise ConfigError(
                    f"{what} have classes that are not there",
                    where="MeanIoU",
                    received=f"{values.min()} to {values.max()}",
                    allowed=f"0 to {classes - 1}, or {self._ignore_index} in labels to ignore",
                    fix="check the data: python -m segmentation.data check -c <config.yml>",
                )
        pairs = np.bincount(truth * classes + predicted, minlength=classes**2)
        self.confusion += pairs.reshape(classes, classes)
        if self._boundary is not None:
            for true_map, found_map in zip(*maps, strict=True):
                self._count_near_contours(true_map, found_map, self._boundary)

    def _count_near_contours(self, truth: np.ndarray, predicted: np.ndarray, share: float) -> None:
        """Of two class maps [H, W], in which -1 is ignored."""
        width = max(1, round(share * float(np.hypot(*truth.shape))))
        for index in sorted({*np.unique(truth).tolist(), *np.unique(predicted).tolist()} - {-1}):
            near, predicted_near = (masks.find_boundary(one == index, width) for one in (truth, predicted))
            self.near_contours[:, index] += (near & predicted_near).sum(), (near | predicted_near).sum()

    def result(self) -> dict[str, float]:
        """Raises InputError when no pixel was counted."""
        total = self.confusion.sum()
        if not total:
            raise InputError(
                "the evaluation data has no pixel with a class",
                where="MeanIoU",
                received=f"masks of nothing but {self._ignore_index}",
                fix="check the data: python -m segmentation.data check -c <config.yml>",
            )
        rows = self.score_classes()
        right = np.trace(self.confusion) / total
        # In floats: products of pixel counts overflow whole numbers from some thousand images on.
        chance = float((self.confusion.sum(0) / total) @ (self.confusion.sum(1) / total))
        return {
            "mIoU": self._mean([row.iou for row in rows]),
            "accuracy": float(right),
            "kappa": float((right - chance) / (1 - chance)) if chance < 1 else 1.0,
            "mDice": self._mean([row.dice for row in rows]),
            **{f"iou/{row.name}": row.iou for row in rows if row.iou is not None},
            **self._score_boundaries(),
        }

    def _score_boundaries(self) -> dict[str, float]:
        if self._boundary is None:
            return {}
        ious = [_ratio(both, either) for both, either in self.near_contours.T]
        named = {f"boundary_iou/{name}": iou for name, iou in zip(self._names, ious) if iou is not None}
        return {"boundary_mIoU": self._mean(ious), **named}

    def score_classes(self) -> list[ClassScore]:
        """The scores of each class, in the order of the labels."""
        common, predicted_counts, truth = (
            np.diag(self.confusion),
            self.confusion.sum(0),
            self.confusion.sum(1),
        )
        return [
            ClassScore(
                name,
                int(labelled),
                _ratio(both, predicted + labelled - both),
                _ratio(2 * both, predicted + labelled),
                _ratio(both, predicted),
                _ratio(both, labelled),
            )
            for name, both, predicted, labelled in zip(self._names, common, predicted_counts, truth)
        ]

    def details(self) -> Details:
        """The scores of each class, and the confusion matrix in pixels."""
        rows = tuple((r.name, r.iou, r.dice, r.precision, r.recall, r.pixels) for r in self.score_classes())
        columns = ("class", "iou", "dice", "precision", "recall", "pixels")
        return Details(ClassTable(columns, rows), self.confusion)

    def _mean(self, scores: Sequence[float | None]) -> float:
        there = [score for score in scores if score is not None]
        return sum(there) / (len(there) if self._absent == "skip" else len(scores))


def _ratio(count: int, whole: int) -> float | None:
    return float(count / whole) if whole else None
