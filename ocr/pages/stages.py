"""The two models that prepare a page: which way up it is, and how it is bent.

As in `ocr.text.stages` a stage is an engine and a frozen dataclass of options, and imports no model code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.core.errors import ConfigError
from framework.inference import Engine
from framework.vision.grid_warp import GridWarp
from framework.vision.image import resize
from framework.vision.normalize import Normalize
from ocr.text.preprocess import PAGE_TURNS, choose_patches, resize_short_hw


@dataclass(frozen=True)
class PageOrientationOptions:
    """How the classifier of pages, 0, 90, 180 or 270 degrees, sees a page.

    Attributes:
        short_side: Pixels that the page's shorter side is scaled to.
        size_hw: Of what the network sees.
        patches: 0: the middle of the page is seen. Else at most so many parts of the page, those with the most edges,
            whose probabilities are combined: a page shrunk to 256 pixels has letters of one or two pixels.
        thresh: The probability from which a page is turned.
        turn_all: Whether the program averages what it reads in all four directions; see PageOrientation.
    """

    normalize: Normalize
    short_side: int = 256
    size_hw: tuple[int, int] = (224, 224)
    patches: int = 0
    thresh: float = 0.5
    turn_all: bool = False

    def __post_init__(self) -> None:
        if self.short_side < 1 or min(self.size_hw) < 1 or self.patches < 0 or not 0 <= self.thresh <= 1:
            raise ConfigError(
                "this is no way to look at a page",
                where="document_orientation.options",
                received=f"short_side {self.short_side}, size_hw {self.size_hw}, patches {self.patches}, "
                f"thresh {self.thresh}",
                allowed="sides from 1, patches from 0, thresh 0 to 1",
            )


class PageOrientationClassifier:
    """By how much pages are turned."""

    buckets = 1

    def __init__(self, engine: Engine, options: PageOrientationOptions) -> None:
        self.engine, self.options = engine, options

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """image [H, W, 3] uint8 RGB -> [4] float32, the probabilities of PAGE_TURNS."""
        options = self.options
        (rows, columns), size_hw = options.size_hw, image.shape[:2]
        scaled_hw = resize_short_hw(size_hw, options.short_side, options.size_hw)
        shrinks = scaled_hw[0] < size_hw[0]
        # Upstream's rule is linear at any scale; parts are read at a scale at which letters count.
        scaled = resize(image, scaled_hw, "area" if options.patches and shrinks else "linear")
        if options.patches:
            places = choose_patches(scaled, options.size_hw, options.patches)
        else:
            places = [((scaled_hw[0] - rows) // 2, (scaled_hw[1] - columns) // 2)]
        batch = np.zeros((max(1, options.patches), rows, columns, 3), np.uint8)
        for row, (top, left) in zip(batch, places):
            row[...] = scaled[top : top + rows, left : left + columns]
        return _combine(self.engine({"image": batch})["probability"][: len(places)])

    def find_angle(self, image: np.ndarray) -> int:
        """By how many degrees the page is turned clockwise: 0, 90, 180 or 270; 0 where that is not clear."""
        probabilities = self(image)
        turns = int(probabilities.argmax())
        return int(PAGE_TURNS[turns]) if probabilities[turns] >= self.options.thresh else 0


def _combine(probabilities: np.ndarray) -> np.ndarray:
    """[N, 4] of N parts -> [4]: their geometric mean, made to sum to 1. A part that is sure counts for more than many
    that are not, and a floor keeps a single one from deciding alone."""
    if len(probabilities) == 1:
        return probabilities[0]
    mean = np.exp(np.log(probabilities + _FLOOR).mean(axis=0))
    return mean / mean.sum()


@dataclass(frozen=True)
class UnwarpOptions:
    """How the network that finds out how a page is bent sees it.

    Attributes:
        size_hw: Rows and columns that the page is resized to, corner to corner.
        normalize: What the program does to the pixels.
    """

    normalize: Normalize
    size_hw: tuple[int, int] = (712, 488)


class Unwarper:
    """Where in a photograph of a page the points of the flat page are."""

    buckets = 1

    def __init__(self, engine: Engine, options: UnwarpOptions) -> None:
        self.engine, self.options = engine, options

    def __call__(self, image: np.ndarray) -> GridWarp:
        """image [H, W, 3] uint8 RGB -> the warp to the flat page, of the same size."""
        size_hw = image.shape[0], image.shape[1]
        # Upstream's program resizes by linear interpolation with aligned corners, which is such a warp.
        seen = GridWarp.from_unit_grid(_CORNERS, size_hw, self.options.size_hw).image(image)
        grid = np.asarray(self.engine({"image": seen[None]})["grid"][0], np.float32)
        return GridWarp.from_unit_grid(grid, size_hw)


_FLOOR = 1e-3
_CORNERS = np.array([[[-1, -1], [1, -1]], [[-1, 1], [1, 1]]], np.float32)
