"""What a segmentation model says of an image."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from framework.inference.outputs import write_json
from framework.vision import draw, masks
from framework.vision import image as vision_image
from segmentation.background import Background, background_class

OPACITY = 0.4


@dataclass(frozen=True)
class Segmentation:
    """The class of every pixel of an image.

    Attributes:
        names: Of the classes; without names they are numbered.
        palette: [num_classes, 3] uint8 RGB, the colours of the classes.
        image: The image, [H, W, 3] uint8 RGB.
        opacity: Of the colours in `overlay`, 0 to 1.
        background: Where it is given, `overlay` shows the image's foreground on it instead of colours.
    """

    source: str
    size: tuple[int, int]
    """(height, width)"""
    labels: np.ndarray = field(repr=False, compare=False)
    """[H, W] uint8, from 257 classes on uint16: indices of classes"""
    names: tuple[str, ...]
    palette: np.ndarray = field(repr=False, compare=False)
    image: np.ndarray = field(repr=False, compare=False)
    opacity: float = OPACITY
    background: Background | None = field(default=None, repr=False, compare=False)

    @cached_property
    def pixels(self) -> dict[str, int]:
        """How many pixels each class has that has any, by its name, in the order of the classes."""
        counts = np.bincount(self.labels.ravel(), minlength=len(self.names))
        return {self._name(index): int(counts[index]) for index in np.flatnonzero(counts).tolist()}

    def _name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else str(index)

    def to_dict(self) -> dict[str, Any]:
        """{"input", "size": [height, width], "classes": {name: {"pixels", "share"}}}; shares have four decimals."""
        total = self.labels.size
        return {
            "input": self.source,
            "size": list(self.size),
            "classes": {
                name: {"pixels": count, "share": round(count / total, 4)}
                for name, count in self.pixels.items()
            },
        }

    def overlay(self) -> np.ndarray:
        """The image under the colours of its classes, or on another background, [H, W, 3] uint8 RGB."""
        if self.background is not None:
            return self.background.behind(self.image, self.labels != background_class(self.names))
        return draw.classes(self.image, self.labels, colors=self.palette, opacity=self.opacity, ignore=None)

    draw = overlay

    def write_further(self, path: Path) -> None:
        """Writes the map of classes: a PNG of indices with a palette."""
        masks.write_classes(path, self.labels, self.palette)

    def save(self, folder: str | os.PathLike[str], stem: str | None = None) -> list[Path]:
        """Writes <stem>.png (the overlay), <stem>_label.png (indices, with a palette), <stem>.json; returns the paths.

        `stem` is by default that of the source's file name, or "image".
        """
        stem = stem or Path(self.source).stem or "image"
        drawn, label, facts = (Path(folder) / f"{stem}{end}" for end in (".png", "_label.png", ".json"))
        vision_image.write(drawn, self.overlay())
        self.write_further(label)
        write_json(facts, self.to_dict())
        return [drawn, label, facts]
