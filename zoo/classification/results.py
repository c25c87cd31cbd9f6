"""What a classifier says of an image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framework.vision import draw


@dataclass(frozen=True)
class Class:
    """A class with its probability in [0, 1]. `label` is its name, or its number where it has none."""

    label: str
    category_id: int
    score: float


@dataclass(frozen=True)
class Classification:
    """The best classes of an image, best first. `image` is the image, [H, W, 3] uint8 RGB."""

    source: str
    size: tuple[int, int]
    """(height, width)"""
    classes: tuple[Class, ...]
    image: np.ndarray = field(repr=False, compare=False)

    @property
    def label(self) -> str:
        return self.classes[0].label

    @property
    def score(self) -> float:
        return self.classes[0].score

    def to_dict(self) -> dict[str, Any]:
        classes = [
            {"label": c.label, "category_id": c.category_id, "score": round(c.score, 6)} for c in self.classes
        ]
        return {"input": self.source, "size": list(self.size), "classes": classes}

    def overlay(self) -> np.ndarray:
        """The image with the best classes in its corner, [H, W, 3] uint8 RGB."""
        image, step = self.image, round(1.4 * draw.font_size(self.size))
        for row, c in enumerate(self.classes[:3], start=1):
            image = draw.text(image, f"{c.label} {c.score:.1%}", (0, row * step))
        return image

    draw = overlay


def interpret(scores: np.ndarray, labels: tuple[str, ...], top: int) -> tuple[Class, ...]:
    """The best `top` of probabilities [C], best first; ties go to the lower class."""
    best = np.argsort(-scores, kind="stable")[:top]
    return tuple(Class(labels[i] if i < len(labels) else str(i), int(i), float(scores[i])) for i in best)
