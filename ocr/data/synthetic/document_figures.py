"""Figures of synthetic documents: charts, diagrams, textures that stand for photographs, several panels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from framework.vision import degrade, image
from framework.vision.canvas import Canvas, Colour
from ocr.data.synthetic.document_type import Words, measure
from ocr.results.blocks import Box

_PALETTES: tuple[tuple[Colour, ...], ...] = (
    ((31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189)),
    ((0, 0, 0), (90, 90, 90), (150, 150, 150), (200, 200, 200)),
    ((68, 114, 196), (237, 125, 49), (165, 165, 165), (255, 192, 0)),
    ((200, 30, 30), (30, 30, 200), (30, 150, 60)),
)


class FigureArtist:
    """Draws figures into boxes of a page.

    Args:
        font, size: Of the letters in figures; `size` in pixels.
    """

    def __init__(
        self, canvas: Canvas, words: Words, font: str, size: float, rng: np.random.Generator
    ) -> None:
        self.canvas, self.words, self.font, self.size, self.rng = canvas, words, font, size, rng
        self._colours = _PALETTES[int(rng.integers(len(_PALETTES)))]

    def draw(self, box: Box) -> str:
        """Draws a figure that fills the box; returns "chart" or "image"."""
        wide = (box[2] - box[0]) / max(box[3] - box[1], 1.0)
        if min(box[2] - box[0], box[3] - box[1]) > 12 * self.size and self.rng.random() < 0.3:
            return self._panels(box, 2 if wide < 1.6 else 3)
        return self._one(box)

    def _one(self, box: Box) -> str:
        kinds: tuple[tuple[Callable[[Box], None], str], ...] = (
            (self._bars, "chart"),
            (self._curves, "chart"),
            (self._points, "chart"),
            (self._pie, "chart"),
            (self._photo, "image"),
            (self._photo, "image"),
            (self._blots, "image"),
            (self._diagram, "image"),
        )
        draw, label = kinds[int(self.rng.integers(len(kinds)))]
        draw(box)
        return label

    def _panels(self, box: Box, columns: int) -> str:
        rows = int(self.rng.integers(1, 3))
        gap = self.size * 1.2
        width, height = (
            (box[2] - box[0] - gap * (columns - 1)) / columns,
            (box[3] - box[1] - gap * (rows - 1)) / rows,
        )
        label = "image"
        alike = self.rng.random() < 0.6
        state = self.rng.integers(1 << 30)
        for row in range(rows):
            for column in range(columns):
                x, y = box[0] + column * (width + gap), box[1] + row * (height + gap)
                if alike:  # panels of one kind, with other values
                    kinds = (self._bars, self._curves, self._photo, self._blots)
                    kind = int(state % len(kinds))
                    kinds[kind]((x, y, x + width, y + height))
                    label = "chart" if kind < 2 else "image"
                else:
                    label = self._one((x, y, x + width, y + height))
                letter = "ABCDEFGH"[row * columns + column]
                self.canvas.text((x + 1, y + self.size * 1.1), letter, self.font, self.size * 1.2)
        return label

    def _colour(self, number: int) -> Colour:
        return self._colours[number % len(self._colours)]

    def _label(self, x: float, y: float, text: str, *, centre: bool = True) -> None:
        shift = measure(text, self.font, self.size) / 2 if centre else 0.0
        self.canvas.text((x - shift, y), text, self.font, self.size, (40, 40, 40))

    def _axes(self, box: Box) -> Box:
        """Axes with ticks and names along the box's edges; returns the room within them."""
        size, rng = self.size, self.rng
        left, top, right, bottom = (
            box[0] + 3.2 * size,
            box[1] + 0.8 * size,
            box[2] - 0.5 * size,
            box[3] - 2.8 * size,
        )
        if right - left < 2 * size or bottom - top < 2 * size:
            return box
        if rng.random() < 0.5:
            self.canvas.box((left, top, right, bottom), None, (0, 0, 0))
        self.canvas.line([(left, top), (left, bottom), (right, bottom)], (0, 0, 0))
        ticks = int(rng.integers(3, 7))
        grid = rng.random() < 0.4
        most = float(10 ** rng.integers(0, 4))
        for tick in range(ticks + 1):
            y = bottom - (bottom - top) * tick / ticks
            if grid and tick:
                self.canvas.line([(left, y), (right, y)], (210, 210, 210))
            self.canvas.line([(left - 0.3 * size, y), (left, y)])
            text = f"{most * tick / ticks:g}"[:5]
            self.canvas.text(
                (left - 0.5 * size - measure(text, self.font, size), y + 0.3 * size), text, self.font, size
            )
            x = left + (right - left) * tick / ticks
            self.canvas.line([(x, bottom), (x, bottom + 0.3 * size)])
            if (right - left) / ticks > 2.5 * size:
                self._label(x, bottom + 1.3 * size, str(tick))
        self._label((left + right) / 2, box[3] - 0.2 * size, " ".join(self.words.phrase(2))[:20])
        return left, top, right, bottom

    def _legend(self, box: Box, count: int) -> None:
        if count > 1 and self.rng.random() < 0.6 and box[2] - box[0] > 12 * self.size:
            for number in range(count):
                x, y = box[2] - 8 * self.size, box[1] + (1.4 * number + 0.5) * self.size
                self.canvas.box((x, y, x + self.size, y + 0.8 * self.size), self._colour(number))
                self._label(
                    x + 1.5 * self.size, y + 0.8 * self.size, self.words.phrase(1)[0][:8], centre=False
                )

    def _bars(self, box: Box) -> None:
        left, top, right, bottom = inner = self._axes(box)
        groups, series = int(self.rng.integers(2, 9)), int(self.rng.integers(1, 4))
        step = (right - left) / groups
        for group in range(groups):
            for number in range(series):
                x = left + step * (group + 0.15 + 0.7 * number / series)
                y = bottom - (bottom - top) * self.rng.uniform(0.05, 0.95)
                wide = 0.7 * step / series
                self.canvas.box((x, y, x + wide, bottom), self._colour(number), (0, 0, 0))
        self._legend(inner, series)

    def _curves(self, box: Box) -> None:
        left, top, right, bottom = inner = self._axes(box)
        series = int(self.rng.integers(1, 5))
        for number in range(series):
            count = int(self.rng.integers(4, 40))
            values = np.cumsum(self.rng.normal(0, 1, count))
            values = (values - values.min()) / max(float(np.ptp(values)), 1e-6) * self.rng.uniform(0.4, 0.95)
            x = np.linspace(left, right, count)
            y = bottom - (bottom - top) * values
            points = list(zip(x.tolist(), y.tolist(), strict=True))
            self.canvas.line(points, self._colour(number), max(1.0, self.size * 0.12))
            if count < 15:
                for px, py in points:
                    r = 0.25 * self.size
                    self.canvas.ellipse((px - r, py - r, px + r, py + r), self._colour(number))
        self._legend(inner, series)

    def _points(self, box: Box) -> None:
        left, top, right, bottom = inner = self._axes(box)
        series, r = int(self.rng.integers(1, 4)), 0.22 * self.size
        for number in range(series):
            middle, spread = self.rng.uniform(0.2, 0.8, 2), self.rng.uniform(0.05, 0.25)
            for x, y in np.clip(
                self.rng.normal(middle, spread, (int(self.rng.integers(15, 120)), 2)), 0.02, 0.98
            ).tolist():
                px, py = left + (right - left) * x, top + (bottom - top) * y
                self.canvas.ellipse((px - r, py - r, px + r, py + r), self._colour(number))
        self._legend(inner, series)

    def _pie(self, box: Box) -> None:
        side = min(box[2] - box[0], box[3] - box[1])
        x, y = (box[0] + box[2] - side) / 2, (box[1] + box[3] - side) / 2
        shares = self.rng.dirichlet(np.full(int(self.rng.integers(3, 7)), 1.5)) * 360
        start = -90.0
        for number, share in enumerate(shares.tolist()):
            self.canvas.slice(
                (x, y, x + side, y + side), start, start + share, self._colour(number), (255, 255, 255)
            )
            middle = math.radians(start + share / 2)
            if share > 25:
                cx, cy = (
                    x + side / 2 * (1 + 0.6 * math.cos(middle)),
                    y + side / 2 * (1 + 0.6 * math.sin(middle)),
                )
                self._label(cx, cy, f"{share / 3.6:.0f}%")
            start += share
        # What stands for the figure's frame: a pie fills only the middle of its box.
        self.canvas.box(box, None, (170, 170, 170))

    def _photo(self, box: Box) -> None:
        """Noise of several scales in one colour or in many, with spots as of cells or stains."""
        height, width = max(2, round(box[3] - box[1])), max(2, round(box[2] - box[0]))
        rng = self.rng
        pixels = np.zeros((height, width, 3), np.float32)
        grey = rng.random() < 0.5
        for scale in (64, 16, 5):
            small = rng.normal(0, 1, (height // scale + 2, width // scale + 2, 1 if grey else 3)).astype(
                np.float32
            )
            small = np.repeat(small, 3, axis=2) if grey else small
            pixels += image.resize(small, (height, width), "cubic") * float(rng.uniform(5, 45))
        pixels += rng.uniform(30, 220, 1 if grey else 3).astype(np.float32)
        if rng.random() < 0.5:
            yy, xx = np.mgrid[0:height, 0:width]
            for _ in range(int(rng.integers(3, 30))):
                cy, cx, r = (
                    rng.uniform(0, height),
                    rng.uniform(0, width),
                    rng.uniform(0.02, 0.15) * min(height, width),
                )
                near = (yy - cy) ** 2 + ((xx - cx) * rng.uniform(0.6, 1.6)) ** 2 < max(r, 1.0) ** 2
                pixels[near] += rng.normal(0, 60, 1 if grey else 3).astype(np.float32)
        noisy = degrade.add_noise(pixels.clip(0, 255).astype(np.uint8), rng.uniform(0, 12), rng, grey=grey)
        self.canvas.paste(noisy, (round(box[0]), round(box[1])))

    def _blots(self, box: Box) -> None:
        """Bands on lanes, as of a gel."""
        light = self.rng.random() < 0.6
        ground = int(self.rng.uniform(190, 235)) if light else int(self.rng.uniform(5, 40))
        self.canvas.box(box, (ground, ground, ground), (0, 0, 0))
        lanes, rows = int(self.rng.integers(3, 9)), int(self.rng.integers(1, 6))
        for lane in range(lanes):
            for row in range(rows):
                x = box[0] + (box[2] - box[0]) * (lane + 0.15) / lanes
                y = box[1] + (box[3] - box[1]) * (row + self.rng.uniform(0.3, 0.6)) / rows
                wide, high = (
                    (box[2] - box[0]) * 0.7 / lanes,
                    (box[3] - box[1]) * self.rng.uniform(0.05, 0.2) / rows,
                )
                shade = int(self.rng.uniform(0, 120)) if light else int(self.rng.uniform(120, 255))
                self.canvas.ellipse((x, y, x + wide, y + max(high, 2.0)), (shade, shade, shade))

    def _diagram(self, box: Box) -> None:
        """Boxes with words, joined by arrows."""
        size = self.size
        columns = max(1, min(4, int((box[2] - box[0]) / (9 * size))))
        rows = max(1, min(5, int((box[3] - box[1]) / (4 * size))))
        wide, high = (box[2] - box[0]) / columns, (box[3] - box[1]) / rows
        fill = None if self.rng.random() < 0.5 else (232, 238, 248)
        for row in range(rows):
            for column in range(columns):
                x, y = box[0] + column * wide, box[1] + row * high
                part = (x, y, x + 0.72 * wide, y + 0.62 * high)
                self.canvas.box(part, fill, (0, 0, 0))
                text = " ".join(self.words.phrase(2))
                while len(text) > 1 and measure(text, self.font, size) > 0.66 * wide:
                    text = text[:-1]
                self._label((part[0] + part[2]) / 2, (part[1] + part[3]) / 2 + 0.3 * size, text)
                if column + 1 < columns:
                    self._arrow(part[2], (part[1] + part[3]) / 2, x + wide, (part[1] + part[3]) / 2)
                if row + 1 < rows:
                    self._arrow((part[0] + part[2]) / 2, part[3], (part[0] + part[2]) / 2, y + high)

    def _arrow(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.canvas.line([(x0, y0), (x1, y1)])
        head, angle = 0.4 * self.size, math.atan2(y1 - y0, x1 - x0)
        ends = [
            (x1 - head * math.cos(angle + turn), y1 - head * math.sin(angle + turn)) for turn in (-0.5, 0.5)
        ]
        self.canvas.polygon([(x1, y1), *ends], (0, 0, 0))
