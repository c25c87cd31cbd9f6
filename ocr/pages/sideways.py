"""Pages that lie on their side or stand on their head: seen upright for the layout, and their blocks turned back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocr.results.blocks import Block, Box, Table
from ocr.results.lines import Char, Line, Polygon, Word
from ocr.tables.ruling_lines import RulingLines

MOST = 0.6  # of a page's characters tell how the page lies


@dataclass(frozen=True)
class Rotation:
    """A page of `width` x `height` pixels whose text is turned clockwise by `angle`: 0, 90, 180 or 270 degrees."""

    angle: int
    width: float
    height: float

    @property
    def size(self) -> tuple[float, float]:
        """(width, height) of the page seen upright."""
        return (self.height, self.width) if self.angle in (90, 270) else (self.width, self.height)

    @property
    def inverse(self) -> Rotation:
        """From the upright page to the page as it is."""
        return Rotation(-self.angle % 360, *self.size)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the page stands on the upright page."""
        return {
            0: (x, y),
            90: (y, self.width - x),
            180: (self.width - x, self.height - y),
            270: (self.height - y, x),
        }[self.angle]

    def box(self, box: Box) -> Box:
        """An upright box, which stays one."""
        (x0, y0), (x1, y1) = self.point(box[0], box[1]), self.point(box[2], box[3])
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def line(self, line: Line) -> Line:
        """A line with its words and characters."""

        def polygon(points: Polygon) -> Polygon:
            return tuple(self.point(x, y) for x, y in points)

        words = tuple(
            Word(
                word.text,
                word.score,
                polygon(word.polygon),
                tuple(Char(char.text, char.score, polygon(char.polygon)) for char in word.chars),
                word.spans,
            )
            for word in line.words
        )
        angle = (line.orientation - self.angle) % 360
        return Line(line.text, line.score, polygon(line.polygon), words, angle, line.vertical, line.style)

    def ruling(self, ruling: RulingLines) -> RulingLines:
        """Ruling lines and filled boxes."""

        def ends(lines: np.ndarray, level: bool) -> np.ndarray:
            first = lines[:, [1, 0]] if level else lines[:, [0, 1]]
            second = lines[:, [2, 0]] if level else lines[:, [0, 2]]
            points = np.array(
                [
                    [*self.point(*a), *self.point(*b)]
                    for a, b in zip(first.tolist(), second.tolist(), strict=True)
                ]
            ).reshape(-1, 4)
            x = np.sort(points[:, [0, 2]], axis=1)
            y = np.sort(points[:, [1, 3]], axis=1)
            if level is (self.angle in (0, 180)):  # it stays level, or becomes so
                return np.column_stack([y[:, 0], x])
            return np.column_stack([x[:, 0], y])

        level, upright = ends(ruling.horizontal, True), ends(ruling.vertical, False)
        if self.angle in (90, 270):
            level, upright = upright, level
        fills = tuple((self.box(box), color) for box, color in ruling.fills)
        return RulingLines(level, upright, fills, ruling.unit)

    def block(self, block: Block, line: Callable[[Line], Line]) -> Block:
        """A block with all that it holds; `line` gives the lines, which may be known already."""
        content = block.content
        if isinstance(content, Table):
            cells = (
                replace(
                    cell,
                    bbox=None if cell.bbox is None else self.box(cell.bbox),
                    lines=tuple(map(line, cell.lines)),
                )
                for cell in content.cells
            )
            content = Table(tuple(cells), content.rows, content.columns)
        outline = block.polygon
        return replace(
            block,
            bbox=self.box(block.bbox),
            lines=tuple(map(line, block.lines)),
            content=content,
            children=tuple(self.block(child, line) for child in block.children),
            polygon=None if outline is None else tuple(self.point(x, y) for x, y in outline),
        )


def find_rotation(lines: Sequence[Line], width: float, height: float) -> Rotation:
    """How the page lies, by the lines of most of its characters; 0 where they disagree."""
    chars: Counter[int] = Counter()
    for line in lines:
        chars[line.orientation] += len(line.text)
    angle, most = chars.most_common(1)[0] if chars else (0, 0)
    return Rotation(angle if most >= MOST * sum(chars.values()) else 0, width, height)
