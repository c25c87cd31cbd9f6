"""What a classifier says of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from framework.vision import draw
from framework.workflow.domain.result import ImageResult, Json


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

    @property
    def label(self) -> str:
        return self.classes[0].label

    @property
    def score(self) -> float:
        return self.classes[0].score

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


def best_classes(
    scores: np.ndarray, labels: tuple[str, ...], top: int, selected: frozenset[int] | None = None
) -> tuple[Class, ...]:
    """The best `top` of probabilities [C], best first; ties go to the lower class. Of `selected` classes alone their
    probabilities are those among all."""
    order = np.argsort(-scores, kind="stable").tolist()
    best = [index for index in order if selected is None or index in selected][:top]
    return tuple(Class(labels[i] if i < len(labels) else str(i), int(i), float(scores[i])) for i in best)
