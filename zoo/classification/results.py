"""What a classifier says of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from framework.vision import draw
from framework.workflow.domain.result import ImageResult, Json, read_result

MULTI_LABEL = "multi_label_threshold"
"""In the config of an artifact whose model has several classes an image: the least score of a class."""


class _ClassData(TypedDict):
    label: str
    category_id: int
    score: float


class _ResultData(TypedDict):
    source: str
    width: int
    height: int
    classes: list[_ClassData]


@dataclass(frozen=True)
class Class:
    """A class with its probability in [0, 1]. `label` is its name, or its number where it has none."""

    label: str
    category_id: int
    score: float


@dataclass(frozen=True)
class Classification(ImageResult):
    """The best classes of an image, best first."""

    classes: tuple[Class, ...]
    """Of a model of several classes an image all from the threshold on, which may be none."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Classification:
        """The result that `to_dict` wrote, without its image. Raises: FormatError."""
        return read_result(data, _read, "classes of an image: source, width, height, classes")

    @property
    def label(self) -> str:
        """Of the best class; "" where there is none."""
        return self.classes[0].label if self.classes else ""

    @property
    def score(self) -> float:
        """Of the best class; 0 where there is none."""
        return self.classes[0].score if self.classes else 0.0

    def _content(self) -> Mapping[str, Json]:
        return {
            "classes": [
                {"label": c.label, "category_id": c.category_id, "score": round(c.score, 6)}
                for c in self.classes
            ]
        }

    def overlay(self) -> np.ndarray:
        """The image with the best classes in its corner, [H, W, 3] uint8 RGB."""
        image, step = self.pixels, round(1.4 * draw.font_size(self.size_hw))
        for row, c in enumerate(self.classes[:3], start=1):
            image = draw.text(image, f"{c.label} {c.score:.1%}", (0, row * step))
        return image


def _read(data: _ResultData) -> Classification:
    return Classification(
        source=data["source"],
        width=data["width"],
        height=data["height"],
        classes=tuple(Class(**one) for one in data["classes"]),
    )


def classes_from(
    scores: np.ndarray, labels: tuple[str, ...], threshold: float, selected: frozenset[int] | None = None
) -> tuple[Class, ...]:
    """All classes of probabilities [C] from the threshold on, best first."""
    ranked = best_classes(scores, labels, len(scores), selected)
    return tuple(one for one in ranked if one.score >= threshold)


def best_classes(
    scores: np.ndarray, labels: tuple[str, ...], top: int, selected: frozenset[int] | None = None
) -> tuple[Class, ...]:
    """The best `top` of probabilities [C], best first; ties go to the lower class. Of `selected` classes alone their
    probabilities are those among all."""
    order = np.argsort(-scores, kind="stable").tolist()
    best = [index for index in order if selected is None or index in selected][:top]
    return tuple(Class(labels[i] if i < len(labels) else str(i), int(i), float(scores[i])) for i in best)


def draw_first(
    outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray], labels: tuple[str, ...]
) -> np.ndarray:
    """The first image of a batch with its three best classes, [H, W, 3] uint8 RGB."""
    image = batch["image"][0]
    height, width = image.shape[:2]
    classes = best_classes(outputs["scores"][0], labels, 3)
    return Classification(classes, width=width, height=height, image=image).overlay()
