"""What a segmentation model says of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from framework.vision import draw, masks
from framework.vision.legend import add_legend
from framework.workflow.domain.result import ImageResult, Json
from segmentation.background import Background, background_class

OPACITY = 0.4


@dataclass(frozen=True)
class Segmentation(ImageResult):
    """The class of every pixel of an image.

    Attributes:
        names: Of the classes; without names they are numbered.
        palette: [num_classes, 3] uint8 RGB, the colours of the classes.
        opacity: Of the colours in `overlay`, 0 to 1.
        left_out: The number in `labels` of pixels whose class was not asked for; None: all are there.
        background: Where it is given, `overlay` shows the image's foreground on it instead of colours.
    """

    labels: np.ndarray = field(repr=False, compare=False)
    """[H, W] uint8, from 257 classes on uint16: indices of classes"""
    names: tuple[str, ...]
    palette: np.ndarray = field(repr=False, compare=False)
    opacity: float = OPACITY
    background: Background | None = field(default=None, repr=False, compare=False)
    left_out: int | None = field(default=None, repr=False)

    extra_suffixes = ("_label.png",)

    @cached_property
    def class_pixels(self) -> dict[str, int]:
        """How many pixels each class has that has any, by its name, in the order of the classes."""
        return {self._name(index): count for index, count in self._counts.items()}

    @cached_property
    def _counts(self) -> dict[int, int]:
        """The pixels of each class that has any, by its index."""
        counts = np.bincount(self.labels.ravel(), minlength=len(self.names))
        if self.left_out is not None:
            counts = counts[: self.left_out]
        return {index: int(counts[index]) for index in np.flatnonzero(counts).tolist()}

    def _color(self, index: int) -> list[int]:
        return [int(value) for value in self.palette[index]]

    def _name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else str(index)

    def _content(self) -> Mapping[str, Json]:
        """Shares have four decimals; `color` is the RGB colour of the class in drawings."""
        total = self.labels.size
        return {
            "classes": {
                self._name(index): {
                    "pixels": count,
                    "share": round(count / total, 4),
                    "color": self._color(index),
                }
                for index, count in self._counts.items()
            }
        }

    def overlay(self) -> np.ndarray:
        """The image under the colours of its classes, or on another background, [H, W, 3] uint8 RGB; of one that was
        read by windows its overview."""
        labels = self.labels
        if self.pixels.shape[:2] != labels.shape:
            rows, columns = (
                np.arange(small) * large // small for small, large in zip(self.pixels.shape, labels.shape)
            )
            labels = labels[rows[:, None], columns]
        if self.background is not None:
            return self.background.behind(self.pixels, labels != background_class(self.names))
        return draw.classes(
            self.pixels, labels, colors=self.palette, opacity=self.opacity, ignore=self.left_out
        )

    def draw(self) -> np.ndarray:
        """The overlay, and below it a legend of the classes that are there, [H + rows, W, 3] uint8 RGB."""
        if self.background is not None:
            return self.overlay()
        return add_legend(self.overlay(), [(self._name(index), self._color(index)) for index in self._counts])

    def write_extra(self, suffix: str, path: Path) -> None:
        """Writes the map of classes: a PNG of indices with a palette."""
        masks.write_classes(path, self.labels, self.palette)
