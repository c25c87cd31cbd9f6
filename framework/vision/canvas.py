"""Shapes and text drawn on one image, for images that are made to learn from.

Coordinates are in pixels, x to the right and y downwards; colours are RGB, 0 to 255. Fonts are named as in
`framework.vision.fonts`: the path of a file, or "" for the one inside Pillow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from framework.vision.fonts import open_font

Colour = tuple[int, int, int]
Point = tuple[float, float]


class Canvas:
    """An image that is drawn on; `pixels()` gives it as an array.

    Args:
        size_hw: Height and width in pixels.
        colour: Of the ground.
    """

    def __init__(self, size_hw: tuple[int, int], colour: Colour = (255, 255, 255)) -> None:
        self._image = Image.new("RGB", (size_hw[1], size_hw[0]), colour)
        self._draw = ImageDraw.Draw(self._image)

    def pixels(self) -> np.ndarray:
        """[H, W, 3] uint8 RGB."""
        return np.asarray(self._image).copy()

    def text(self, xy: Point, text: str, font: str, size: float, colour: Colour = (0, 0, 0)) -> None:
        """One line of text, whose baseline begins at `xy`."""
        self._draw.text(xy, text, fill=colour, font=open_font(font, max(1, round(size))), anchor="ls")

    def line(self, points: Sequence[Point], colour: Colour = (0, 0, 0), width: float = 1.0) -> None:
        """A line through `points`, at least a pixel wide."""
        self._draw.line([tuple(point) for point in points], fill=colour, width=max(1, round(width)))

    def box(
        self,
        box: tuple[float, float, float, float],
        fill: Colour | None = None,
        outline: Colour | None = None,
        width: float = 1.0,
    ) -> None:
        """A rectangle, right and bottom exclusive."""
        x0, y0, x1, y1 = (round(value) for value in box)
        if x1 > x0 and y1 > y0:
            self._draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill, outline, max(1, round(width)))

    def ellipse(
        self,
        box: tuple[float, float, float, float],
        fill: Colour | None = None,
        outline: Colour | None = None,
    ) -> None:
        """The ellipse that fills a box."""
        if box[2] > box[0] and box[3] > box[1]:
            self._draw.ellipse(box, fill, outline)

    def slice(
        self,
        box: tuple[float, float, float, float],
        start: float,
        end: float,
        fill: Colour,
        outline: Colour | None = None,
    ) -> None:
        """A slice of the ellipse that fills a box, from `start` to `end` degrees clockwise from the right."""
        self._draw.pieslice(box, start, end, fill, outline)

    def polygon(
        self, points: Sequence[Point], fill: Colour | None = None, outline: Colour | None = None
    ) -> None:
        """A closed shape."""
        self._draw.polygon([tuple(point) for point in points], fill, outline)

    def paste(self, image: np.ndarray, xy: tuple[int, int]) -> None:
        """`image` [H, W, 3] uint8 with its top-left corner at `xy`."""
        self._image.paste(Image.fromarray(np.ascontiguousarray(image)), xy)


def measure_text(text: str, font: str, size: float) -> float:
    """How far a line of text drawn by `Canvas.text` advances, in pixels."""
    return open_font(font, max(1, round(size))).getlength(text)
