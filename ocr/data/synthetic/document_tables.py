"""Tables of synthetic documents: ruled, with horizontal rules, striped or bare, with spans over columns."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from framework.vision.canvas import Canvas
from ocr.data.synthetic.document_type import (
    Row,
    TextSetting,
    Typeface,
    Words,
    break_lines,
    measure,
    rows_height,
    set_rows,
)
from ocr.results.blocks import Block, Box, Cell, Table

Rules = Literal["grid", "booktabs", "rows", "stripes", "none"]


class Content(NamedTuple):
    """One cell before it has a place."""

    row: int
    column: int
    colspan: int
    words: tuple[str, ...]
    header: bool


class TablePlan:
    """A table that is drawn from the start but for its place: `height` tells the room that it needs.

    Args:
        width: Of the table, in pixels.
        size: Of its type.
    """

    def __init__(
        self, width: float, face: Typeface, size: float, words: Words, rng: np.random.Generator
    ) -> None:
        self.width, self.face, self.size, self.rng = width, face, size, rng
        kinds: tuple[Rules, ...] = ("grid", "booktabs", "booktabs", "booktabs", "rows", "stripes", "none")
        self.rules: Rules = kinds[int(rng.integers(len(kinds)))]
        most = max(2, int(width / (6.5 * size)))
        self.columns = int(rng.integers(2, min(most, 9) + 1))
        self.rows = int(rng.integers(3, 18))
        self.contents = self._fill(words)
        self._pad = size * rng.uniform(0.15, 0.6)
        self._edges = self._place_columns()
        self._bold_head = rng.random() < 0.6
        self._aligns = [
            "left",
            *(("left", "centre", "right")[int(k)] for k in rng.integers(0, 3, self.columns - 1)),
        ]
        self._rows = {(c.row, c.column): self._break(c) for c in self.contents}
        self._heights = self._row_heights()

    @property
    def height(self) -> float:
        """In pixels."""
        return float(sum(self._heights))

    def _fill(self, words: Words) -> list[Content]:
        rng, contents, first = self.rng, [], 0
        groups = self.columns >= 4 and rng.random() < 0.35
        if groups:
            contents.append(Content(0, 0, 1, (), True))
            column, first = 1, 1
            while column < self.columns:
                span = min(int(rng.integers(1, 4)), self.columns - column)
                contents.append(Content(0, column, span, tuple(words.phrase(int(rng.integers(1, 3)))), True))
                column += span
        wide = rng.random(self.columns) < 0.25
        wide[0] = rng.random() < 0.7
        numeric = rng.random(self.columns) < 0.7
        for row in range(first, self.rows):
            head = row == first
            for column in range(self.columns):
                if head:
                    text = words.phrase(int(rng.integers(1, 3)))
                elif column == 0:
                    text = words.phrase(int(rng.integers(1, 4)))
                elif numeric[column] and not wide[column]:
                    text = [self._number()]
                else:
                    text = words.phrase(int(rng.integers(1, 7 if wide[column] else 2)))
                if not head and column and rng.random() < 0.05:
                    text = []
                contents.append(Content(row, column, 1, tuple(text), head))
        return contents

    def _number(self) -> str:
        rng = self.rng
        kind = int(rng.integers(5))
        if kind == 0:
            return str(int(rng.integers(0, 2000)))
        if kind == 1:
            return f"{rng.uniform(0, 100):.1f} ({int(rng.integers(1, 99))}%)"
        if kind == 2:
            return f"{rng.uniform(0, 50):.2f} ± {rng.uniform(0, 5):.2f}"
        return f"{rng.uniform(-2, 100):.{int(rng.integers(1, 4))}f}"

    def _place_columns(self) -> np.ndarray:
        wants = np.ones(self.columns)
        for content in self.contents:
            if content.colspan == 1:
                natural = measure(" ".join(content.words), self.face.regular, self.size) + 2 * self.size
                wants[content.column] = max(wants[content.column], min(natural, 0.4 * self.width))
        return np.concatenate([[0.0], np.cumsum(wants / wants.sum() * self.width)])

    def _how(self, content: Content) -> TextSetting:
        font = self.face.bold if content.header and self._bold_head else self.face.regular
        align = "centre" if content.colspan > 1 else self._aligns[content.column]
        return TextSetting(font, self.size, 1.15, align)  # type: ignore[arg-type]

    def _inner(self, content: Content) -> tuple[float, float]:
        left, right = self._edges[content.column], self._edges[content.column + content.colspan]
        return float(left) + 0.4 * self.size, float(right) - 0.4 * self.size

    def _break(self, content: Content) -> list[Row]:
        left, right = self._inner(content)
        return (
            break_lines(content.words, self._how(content).font, self.size, right - left)
            if content.words
            else []
        )

    def _row_heights(self) -> list[float]:
        heights = [1.1 * self.size] * self.rows
        for content in self.contents:
            rows = self._rows[content.row, content.column]
            heights[content.row] = max(heights[content.row], rows_height(len(rows), self._how(content)))
        return [height + 2 * self._pad for height in heights]

    def draw(self, canvas: Canvas, x: float, y: float) -> Block:
        """Draws the table with its upper left corner at (x, y); returns it with cells and their boxes."""
        tops = np.concatenate([[0.0], np.cumsum(self._heights)]) + y
        edges = self._edges + x
        right, bottom = float(edges[-1]), float(tops[-1])
        head = 1 + max((content.row for content in self.contents if content.header), default=-1)
        if self.rules == "stripes":
            for row in range(head, self.rows, 2):
                canvas.box((x, tops[row], right, tops[row + 1]), (232, 232, 232))
        cells = []
        for content in self.contents:
            rows = self._rows[content.row, content.column]
            left, end = self._inner(content)
            lines = set_rows(
                canvas, rows, x + left, tops[content.row] + self._pad, end - left, self._how(content)
            )
            box: Box = (
                float(edges[content.column]),
                float(tops[content.row]),
                float(edges[content.column + content.colspan]),
                float(tops[content.row + 1]),
            )
            text = " ".join(line.text for line in lines)
            cells.append(
                Cell(content.row, content.column, text, 1, content.colspan, box, 1.0, content.header, lines)
            )
        self._draw_rules(canvas, edges, tops, head)
        table = Table(tuple(cells), self.rows, self.columns)
        lines = tuple(line for cell in table.cells for line in cell.lines)
        return Block("table", (x, y, right, bottom), table.text, lines, content=table)

    def _draw_rules(self, canvas: Canvas, edges: np.ndarray, tops: np.ndarray, head: int) -> None:
        left, right = float(edges[0]), float(edges[-1])
        width = max(1.0, 0.08 * self.size)
        if self.rules == "none":
            return
        level = {0, head, self.rows}
        if self.rules in ("grid", "rows"):
            level = set(range(self.rows + 1))
        for row in level:
            canvas.line(
                [(left, tops[row]), (right, tops[row])],
                (0, 0, 0),
                width * (1.5 if row in (0, self.rows) else 1),
            )
        for content in self.contents:
            if content.colspan > 1 and self.rules == "booktabs":
                first, last = self._inner(content)
                canvas.line([(left + first, tops[1]), (left + last, tops[1])], (0, 0, 0), width)
        if self.rules == "grid":
            for content in self.contents:
                for edge in (edges[content.column], edges[content.column + content.colspan]):
                    canvas.line([(edge, tops[content.row]), (edge, tops[content.row + 1])], (0, 0, 0), width)
