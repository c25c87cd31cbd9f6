"""Pages as reports and articles have them: headings, justified columns, lists, tables, figures, numbers of pages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ocr.data.synthetic.backgrounds import draw_text_colour
from ocr.data.synthetic.layouts import Paper, draw_size, fit_line, set_text
from ocr.data.synthetic.receipts import draw_number, draw_price


class _Column:
    """A place for blocks under one another.

    Attributes:
        y: Where the next block begins.
    """

    def __init__(
        self,
        paper: Paper,
        left: float,
        width: float,
        top: float,
        bottom: float,
        size: int,
        colour: np.ndarray,
    ) -> None:
        self.paper, self.left, self.width, self.y, self.bottom = paper, left, width, top, bottom
        self.size, self.colour, self.rng = size, colour, paper.rng
        self.leading = paper.rng.uniform(1.2, 1.7)

    def is_full(self, height: float | None = None) -> bool:
        """Whether nothing of `height` pixels, of a line where that is None, fits in."""
        return self.y + (self.size * self.leading if height is None else height) > self.bottom

    def set_line(self, size: int, room: float, indent: float = 0.0, *, centred: bool = False) -> None:
        """One line of at most `room` pixels; the next block is below it."""
        ink, text = fit_line(self.paper, size, room)
        shift = (room - ink.shape[1]) / 2 if centred else 0.0
        self.paper.put(ink, text, (self.left + indent + shift, self.y), self.colour)
        self.y += size * self.leading

    def set_title(self) -> None:
        """A heading of one or two larger lines."""
        size, centred = round(self.size * self.rng.uniform(1.1, 2.2)), bool(self.rng.random() < 0.3)
        for _ in range(int(self.rng.integers(1, 3))):
            if not self.is_full(1.3 * size):
                self.set_line(size, self.width * self.rng.uniform(0.4, 1.0), centred=centred)
        self.y += self.rng.uniform(0, 1) * self.size

    def set_paragraph(self) -> None:
        """Lines that fill the column but the last; the first may be indented."""
        count = int(self.rng.integers(2, 14))
        indent = 1.5 * self.size if self.rng.random() < 0.4 else 0.0
        ragged = bool(self.rng.random() < 0.3)
        for number in range(count):
            if self.is_full():
                return
            room = self.width - (indent if number == 0 else 0.0)
            if number == count - 1:
                room *= self.rng.uniform(0.15, 0.9)
            elif ragged:
                room *= self.rng.uniform(0.8, 1.0)
            self.set_line(self.size, room, indent if number == 0 else 0.0)
        self.y += self.rng.uniform(0, 1.2) * self.size

    def set_list(self) -> None:
        """Items with a dot or a number before each."""
        numbered, indent = bool(self.rng.random() < 0.5), 1.8 * self.size
        for number in range(1, int(self.rng.integers(3, 8))):
            if self.is_full():
                return
            mark = f"{number}." if numbered else "-"
            ink, text = set_text(self.paper, mark, self.size, indent)
            self.paper.put(ink, text, (self.left, self.y), self.colour)
            self.set_line(self.size, (self.width - indent) * self.rng.uniform(0.3, 1.0), indent)
        self.y += 0.6 * self.size

    def set_table(self) -> None:
        """Cells in rows and columns, between rules or without any."""
        rows, columns = int(self.rng.integers(3, 12)), int(self.rng.integers(2, 6))
        high = self.size * self.leading * self.rng.uniform(1.0, 1.5)
        rows = min(rows, int((self.bottom - self.y) / high) - 1)
        if rows < 2:
            return
        top, wide = self.y, self.width / columns
        numeric = self.rng.random(columns) < 0.6
        for row in range(rows):
            for column in range(columns):
                room = 0.85 * wide
                if row and numeric[column]:
                    text = (draw_number if self.rng.random() < 0.5 else draw_price)(self.rng)
                    ink, shown = set_text(self.paper, text, self.size, room)
                else:
                    ink, shown = fit_line(self.paper, self.size, room)
                x = self.left + column * wide + 0.05 * wide
                self.paper.put(ink, shown, (x, top + row * high + 0.15 * high), self.colour)
        ruled = self.rng.random()
        if ruled < 0.8:
            places = range(rows + 1) if ruled < 0.4 else (0, 1, rows)
            for row in places:
                self._rule(self.left, top + row * high, self.width, 1)
        if ruled < 0.25:
            for column in range(columns + 1):
                self._rule(self.left + column * wide, top, 1, rows * high)
        self.y = top + rows * high + self.size
        if self.rng.random() < 0.5 and not self.is_full():
            self.set_line(max(6, round(0.85 * self.size)), self.width * self.rng.uniform(0.4, 1))

    def set_figure(self) -> None:
        """A plot with axes, a tinted box or a photograph of the backgrounds, with a caption."""
        high = min(self.bottom - self.y - 2 * self.size, self.width * self.rng.uniform(0.4, 0.9))
        if high < 4 * self.size:
            return
        left, top, right, bottom = (
            round(side) for side in (self.left, self.y, self.left + self.width, self.y + high)
        )
        part = self.paper.canvas[top:bottom, left:right]
        if not part.size:
            return
        if self.rng.random() < 0.5:
            self._plot(part)
        else:
            shade = self.rng.integers(0, 256, (int(self.rng.integers(2, 9)), int(self.rng.integers(2, 9)), 3))
            y = np.arange(part.shape[0]) * shade.shape[0] // part.shape[0]
            x = np.arange(part.shape[1]) * shade.shape[1] // part.shape[1]
            part[...] = shade[y[:, None], x[None]]
        self.y = bottom + 0.5 * self.size
        for _ in range(int(self.rng.integers(0, 4))):
            if not self.is_full():
                self.set_line(max(6, round(0.85 * self.size)), self.width * self.rng.uniform(0.5, 1))
        self.y += self.size

    def _plot(self, part: np.ndarray) -> None:
        """Axes with bars or a curve, drawn into `part`."""
        height, width = part.shape[:2]
        floor, wall = round(0.9 * height) - 1, round(0.1 * width)
        colour = self.rng.integers(0, 200, 3)
        part[: floor + 1, wall] = part[floor, wall:] = self.colour.astype(np.uint8)
        count = int(self.rng.integers(4, 20))
        steps = np.linspace(wall + 2, width - 2, count + 1).astype(int)
        values = self.rng.uniform(0.1, 0.85, count)
        bars = bool(self.rng.random() < 0.5)
        for start, stop, value in zip(steps, steps[1:], values):
            level = floor - round(value * floor)
            end = floor if bars else min(level + 2, floor)
            part[level:end, start : max(start + 1, stop - (2 if bars else 0))] = colour

    def _rule(self, x: float, y: float, wide: float, high: float) -> None:
        left, top = round(x), round(y)
        self.paper.canvas[top : top + max(1, round(high)), left : left + max(1, round(wide))] = self.colour


def set_document(paper: Paper, text_height: tuple[int, int]) -> None:
    """One to three columns of blocks from top to bottom, below a title that may span them all."""
    rng, (height, width) = paper.rng, paper.size_hw
    size = draw_size(text_height, rng)
    colour = draw_text_colour(paper.canvas, paper.style, rng)
    margin, gap = rng.uniform(0.04, 0.12) * width, rng.uniform(1.2, 3) * size
    top, bottom = rng.uniform(0.03, 0.1) * height, height * rng.uniform(0.9, 0.97)
    if rng.random() < 0.5:  # the last page of a chapter is not full
        bottom -= rng.uniform(0, 0.5) * (bottom - top)
    whole = _Column(paper, margin, width - 2 * margin, top, bottom, size, colour)
    if rng.random() < 0.5:  # the running head
        whole.set_line(max(6, round(0.8 * size)), whole.width * rng.uniform(0.2, 0.8))
        whole.y += size
    if rng.random() < 0.4:
        whole.set_title()
    if rng.random() < 0.2:
        whole.set_figure()
    most = int(np.clip(whole.width / (12 * size), 1, 3))
    columns = int(rng.integers(1, most + 1))
    wide = (whole.width - gap * (columns - 1)) / columns
    for number in range(columns):
        column = _Column(paper, margin + number * (wide + gap), wide, whole.y, bottom, size, colour)
        kinds: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.16, column.set_title),
            (0.54, column.set_paragraph),
            (0.1, column.set_list),
            (0.1, column.set_table),
            (0.1, column.set_figure),
        )
        weights = [share for share, _ in kinds]
        for _ in range(60):  # a block that has no room leaves `y` where it is
            if column.is_full():
                break
            kinds[int(rng.choice(len(kinds), p=weights))][1]()
    if rng.random() < 0.6:
        foot = height - 1.6 * size
        ink, text = set_text(paper, str(int(rng.integers(1, 1000))), size, 6.0 * size)
        paper.put(ink, text, (rng.choice([margin, (width - ink.shape[1]) / 2]), foot), colour)
