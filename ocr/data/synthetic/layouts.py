"""Where the lines of a synthetic page stand: scattered, in paragraphs, on a receipt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from framework.vision import degrade
from framework.vision.warp import Size, Warp
from ocr.data.synthetic.backgrounds import draw_background, draw_text_colour
from ocr.data.synthetic.base import Material
from ocr.data.synthetic.glyphs import draw_column, draw_line, measure_line
from ocr.data.synthetic.ink import wear, widen
from ocr.data.synthetic.lines import bend, draw_spacing
from ocr.data.synthetic.receipts import draw_date, draw_item, draw_number, draw_price, draw_total
from ocr.data.synthetic.style import TextStyle

Layout = Literal["scattered", "page", "receipt", "document"]
_TRIES = 20  # places that are tried for a scattered line
_MARGIN = 0.06  # around the ink, as a share of its height: annotators leave some, too
_INK = 0.75  # height of a line's ink as a share of the font size


class Placed(NamedTuple):
    """A line on the page."""

    text: str
    quad: np.ndarray
    """[4, 2] float64, clockwise from the text's own top-left corner."""


class Paper:
    """A canvas with lines on it that do not overlap.

    Its lines are in one font of one width, drawn at random, but for those that ask for any and characters that it has
    not.

    Args:
        background: `[H, W, 3]` uint8; it is drawn on.
    """

    def __init__(
        self, background: np.ndarray, style: TextStyle, material: Material, rng: np.random.Generator
    ) -> None:
        self.canvas, self.style, self.material, self.rng = background, style, material, rng
        self.lines: list[Placed] = []
        fonts = material.fonts.sources
        self.font = fonts[int(rng.integers(len(fonts)))]
        self.stretch = style.ink.draw_stretch(rng)
        self._taken = np.zeros((0, 4))

    @property
    def size_hw(self) -> Size:
        """(height, width) in pixels."""
        return self.canvas.shape[0], self.canvas.shape[1]

    def is_free(self, box: tuple[float, float, float, float]) -> bool:
        """Whether the box xyxy lies on the canvas and touches no line's bounds."""
        height, width = self.size_hw
        x0, y0, x1, y1 = box
        if x0 < 0 or y0 < 0 or x1 > width or y1 > height:
            return False
        taken = self._taken
        return not ((taken[:, 0] < x1) & (x0 < taken[:, 2]) & (taken[:, 1] < y1) & (y0 < taken[:, 3])).any()

    def put(
        self,
        ink: np.ndarray,
        text: str,
        place: tuple[float, float],
        colour: np.ndarray | None,
        degrees: float = 0.0,
    ) -> bool:
        """Draws `ink [H, W]` with its bounds' top-left corner at `place`, unless it does not fit there.

        Args:
            colour: [3]; None draws one. `degrees`: how far the line is turned clockwise.
        """
        turned = Warp.rotate((ink.shape[0], ink.shape[1]), degrees, expand=True)
        (x, y), (high, wide) = (round(place[0]), round(place[1])), turned.size_hw
        if not self.is_free((x, y, x + wide, y + high)):
            return False
        worn = wear(ink, self.style.ink, self.rng)
        coverage = turned.image(worn) if degrees else worn
        part = self.canvas[y : y + high, x : x + wide]
        if colour is None:
            colour = draw_text_colour(part, self.style, self.rng, coverage)
        part[...] = degrade.blend(part, coverage, colour)
        margin = max(1.0, _MARGIN * ink.shape[0])
        x0, y0, x1, y1 = -margin, -margin, ink.shape[1] + margin, ink.shape[0] + margin
        quad = turned.points(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])) + np.array((x, y))
        self.lines.append(Placed(text, quad))
        bounds = np.concatenate([quad.min(axis=0) - 1, quad.max(axis=0) + 1])
        self._taken = np.vstack([self._taken, bounds])
        return True

    def draw_text(self, most: int, *, any_font: bool = False) -> tuple[str, str]:
        """A font and a text of at most `most` characters; the paper's font where it has them all."""
        text = self.material.texts.draw(self.rng, most)
        return self.material.fonts.choose(text, self.rng, None if any_font else self.font)


def scatter(paper: Paper, count: int, text_height: tuple[int, int], vertical: float) -> None:
    """Lines of different sizes, fonts, colours and directions at random places; fewer than `count` where it is full."""
    rng, (height, width) = paper.rng, paper.size_hw
    for _ in range(count):
        size = draw_size(text_height, rng)
        kind = rng.random()
        degrees = 0.0 if kind < 0.6 else rng.normal(0, 8) if kind < 0.9 else rng.uniform(-180, 180)
        along = width if abs(math.cos(math.radians(degrees))) > 0.7 else height
        font, text = paper.draw_text(max(1, int(0.9 * along / (0.6 * size))), any_font=True)
        spacing = draw_spacing(paper.style, rng)
        if rng.random() < vertical:
            ink = draw_column(font, text, size, spacing)
        else:
            ink = draw_line(font, text, size, spacing)
            if rng.random() < paper.style.p_curve:
                ink = bend(ink, rng.uniform(-paper.style.curve, paper.style.curve))
        high, wide = Warp.rotate((ink.shape[0], ink.shape[1]), degrees, expand=True).size_hw
        if high >= height or wide >= width:
            continue
        for _ in range(_TRIES):
            place = rng.uniform(0, width - wide), rng.uniform(0, height - high)
            if paper.put(ink, text, place, None, degrees):
                break


def set_paragraphs(paper: Paper, count: int, text_height: tuple[int, int]) -> None:
    """Paragraphs of one size in one or two columns, each begun by a larger line at times, up to `count` lines."""
    rng, (height, width) = paper.rng, paper.size_hw
    size = draw_size(text_height, rng)
    columns = 2 if width > 30 * size and rng.random() < 0.4 else 1
    margin = rng.uniform(0.03, 0.1) * width
    room = (width - margin * (columns + 1)) / columns
    leading = rng.uniform(1.25, 1.9)
    colour = draw_text_colour(paper.canvas, paper.style, rng)
    for column in range(columns):
        left, y = margin + column * (room + margin), margin
        while y + size < height - margin and len(paper.lines) < count:
            is_head = rng.random() < 0.08
            own = round(size * 1.5) if is_head else size
            ink, text = fit_line(paper, own, room)
            indent = rng.uniform(0, 0.3) * (room - ink.shape[1]) if rng.random() < 0.1 else 0.0
            paper.put(ink, text, (left + indent, y), colour)
            y += leading * own + (size if rng.random() < 0.1 else 0)


def print_receipt(paper: Paper, count: int, text_height: tuple[int, int], images: tuple[Path, ...]) -> None:
    """A strip of light paper with a head, items with their prices on the right, and totals, up to `count` texts."""
    rng, (height, width) = paper.rng, paper.size_hw
    wide = round(width * rng.uniform(0.5, 0.95))
    left, top = int(rng.integers(width - wide + 1)), int(rng.integers(max(1, height // 12)))
    strip = draw_background((height - top, wide), paper.style, images, rng, dark=False)
    paper.canvas[top:, left : left + wide] = strip
    colour = draw_text_colour(strip, paper.style, rng)
    size = min(draw_size(text_height, rng), max(text_height[0], wide // 14))
    margin, leading = rng.uniform(0.03, 0.1) * wide, rng.uniform(1.2, 1.9)
    y, row = top + margin, 0
    rows, head = int(rng.integers(6, 40)), int(rng.integers(1, 5))
    while y + 1.3 * size < height - margin and len(paper.lines) < count and row < rows:
        if row < head:
            ink, text = fit_line(paper, size, wide - 2 * margin)
            if row and rng.random() < 0.5:
                ink, text = set_text(paper, (draw_date, draw_number)[row % 2](rng), size, wide - 2 * margin)
            paper.put(ink, text, (left + (wide - ink.shape[1]) / 2, y), colour)
        else:
            own = round(1.3 * size) if row > rows - 3 and rng.random() < 0.5 else size
            price, price_text = set_text(paper, draw_price(rng), own, 0.4 * wide)
            label = draw_total(rng) if row > rows - 5 else draw_item(rng)
            item, item_text = set_text(paper, label, own, wide - 3 * margin - price.shape[1])
            paper.put(item, item_text, (left + margin, y), colour)
            paper.put(price, price_text, (left + wide - margin - price.shape[1], y), colour)
        y += leading * size * (2 if rng.random() < 0.06 else 1)
        row += 1


def draw_size(text_height: tuple[int, int], rng: np.random.Generator) -> int:
    """A font size in pixels whose ink is of a height in these bounds; small ones are as frequent as large ones."""
    least, most = (math.log(side) for side in text_height)
    return max(4, round(math.exp(rng.uniform(least, most)) / _INK))


def fit_line(paper: Paper, size: int, room: float) -> tuple[np.ndarray, str]:
    """A line of a text that is drawn, as wide as fits into `room` pixels, and the text."""
    font, text = paper.draw_text(max(1, int(room / (0.4 * size))))
    return _cut_to(font, text, size, room, paper.stretch)


def set_text(paper: Paper, text: str, size: int, room: float) -> tuple[np.ndarray, str]:
    """A given text, or what the fonts have of it."""
    kept = paper.material.texts.keep(text) or paper.material.texts.draw(paper.rng, len(text))
    font, kept = paper.material.fonts.choose(kept, paper.rng, paper.font)
    return _cut_to(font, kept, size, room, paper.stretch)


def _cut_to(font: str, text: str, size: int, room: float, stretch: float) -> tuple[np.ndarray, str]:
    """The line, `stretch` times as wide as the font has it, and the beginning of the text that is not wider than `room`
    pixels; at least one character."""
    while len(text) > 1 and (wide := measure_line(font, text) * size * stretch) > room:
        text = text[: max(1, min(len(text) - 1, int(len(text) * room / wide)))].rstrip()
    return widen(draw_line(font, text, size), stretch), text
