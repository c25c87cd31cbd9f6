"""One synthetic page: columns of paragraphs, headings, lists, tables, figures, formulas, and what is around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from framework.vision.canvas import Canvas
from ocr.data.synthetic.document_figures import FigureArtist
from ocr.data.synthetic.document_tables import TablePlan
from ocr.data.synthetic.document_type import (
    ASCENT,
    DESCENT,
    Row,
    TextSetting,
    Typeface,
    Words,
    around,
    box_of,
    break_lines,
    measure,
    rows_height,
    set_rows,
)
from ocr.results.blocks import Block, Box, Figure, Formula
from ocr.results.lines import Line

_SIZES = ((595, 842), (612, 792), (596, 794), (595, 791), (540, 720))  # of pages, in points
_GREEK = "αβγδελμπσφω"


@dataclass
class _Column:
    """Room that is filled from the top: x, the next free y, the width, and where it ends."""

    x: float
    y: float
    width: float
    bottom: float

    @property
    def room(self) -> float:
        return self.bottom - self.y


class PageDrawing:
    """Composes one page as it draws it; `blocks` are in reading order, then what is not read along.

    Args:
        columns: Least and most columns of text.
        dpi: Pixels an inch.
    """

    def __init__(
        self,
        faces: list[Typeface],
        make_words: Callable[[np.random.Generator], Words],
        rng: np.random.Generator,
        *,
        columns: tuple[int, int],
        dpi: float,
    ) -> None:
        self.rng, unit = rng, dpi / 72
        width, height = _SIZES[int(rng.integers(len(_SIZES)))]
        self.size_hw = round(height * unit), round(width * unit)
        tint = 255 if rng.random() < 0.8 else int(rng.integers(235, 256))
        self.canvas = Canvas(self.size_hw, (255, 255, tint))
        self.unit = unit
        self.face = faces[int(rng.integers(len(faces)))]
        self.head_face = self.face if rng.random() < 0.6 else faces[int(rng.integers(len(faces)))]
        self.words = make_words(rng)
        self.columns = int(rng.integers(columns[0], columns[1] + 1))
        size = rng.uniform(8.0, 11.5 if self.columns < 3 else 9.5) * unit
        ink = (0, 0, 0) if rng.random() < 0.8 else (35, 31, 32)
        align = "justified" if rng.random() < 0.75 else "left"
        self.body = TextSetting(self.face.regular, size, rng.uniform(1.12, 1.5), align, ink)
        colours = ((0, 0, 0), (0, 0, 0), (0, 60, 120), (150, 20, 30), (60, 60, 60))
        self.head = TextSetting(
            self.head_face.bold, size * rng.uniform(1.0, 1.35), 1.2, "left", colours[int(rng.integers(5))]
        )
        self.small = TextSetting(
            self.face.regular, size * rng.uniform(0.75, 0.95), rng.uniform(1.1, 1.3), "left", ink
        )
        self.gap = size * rng.uniform(0.2, 0.8) if rng.random() < 0.7 else 0.0
        self.indent = 0.0 if self.gap > 0.4 * size else size * rng.uniform(0.8, 2.0)
        self.artist = FigureArtist(
            self.canvas, self.words, self.head_face.regular, max(5.0, 0.75 * size), rng
        )
        self.blocks: list[Block] = []
        self._edges: list[Block] = []
        self._notes: list[Block] = []
        self._figures = self._tables = self._formulas = 0

    # ---- the page

    def compose(self) -> tuple[Block, ...]:
        """Draws the page; returns its blocks."""
        height, width = self.size_hw
        rng = self.rng
        margin_x, margin_y = width * rng.uniform(0.06, 0.13), height * rng.uniform(0.06, 0.1)
        area = _Column(margin_x, margin_y, width - 2 * margin_x, height - margin_y)
        self._draw_edges(area)
        if rng.random() < 0.3:
            self._draw_front(area)
        references = rng.random() < 0.12
        if rng.random() < 0.2:
            self._draw_spanning(area)
        last: _Column | None = None
        if rng.random() < 0.18:  # something at the foot of the page, below the columns
            last = self._reserve_foot(area)
        middle = self.columns > 1 and rng.random() < 0.15
        if middle:
            upper = replace(area, bottom=area.y + area.room * rng.uniform(0.35, 0.6))
            self._fill_columns(upper, references=False, notes=False)
            area.y = upper.bottom + self.body.size
            self._draw_spanning(area)
        self._fill_columns(area, references, notes=True)
        if last is not None:
            self._draw_spanning(last)
        self.blocks += self._notes
        ordered = [replace(block, order=number) for number, block in enumerate(self.blocks)]
        return (*ordered, *self._edges)

    def _reserve_foot(self, area: _Column) -> _Column:
        room = area.room * self.rng.uniform(0.2, 0.35)
        foot = _Column(area.x, area.bottom - room, area.width, area.bottom)
        area.bottom = foot.y - 1.5 * self.body.size
        return foot

    def _add(self, label: str, lines: tuple[Line, ...], **more: object) -> Block | None:
        if not lines:
            return None
        text = " ".join(line.text for line in lines)
        block = Block(label, box_of(lines), text, lines, **more)  # type: ignore[arg-type]
        self.blocks.append(block)
        return block

    def _set(
        self, label: str, words: list[str], column: _Column, how: TextSetting, **more: object
    ) -> Block | None:
        """Text at the column's next place, where it fits as a whole."""
        rows = break_lines(words, how.font, how.size, column.width, justify=how.align == "justified")
        if rows_height(len(rows), how) > column.room:
            return None
        lines = set_rows(self.canvas, rows, column.x, column.y, column.width, how)
        column.y += rows_height(len(rows), how)
        return self._add(label, lines, **more)

    # ---- around the text

    def _draw_edges(self, area: _Column) -> None:
        """Running header, footer and number, and text on the margin; none of them is read along."""
        rng, how = self.rng, self.small
        kept, self.blocks = self.blocks, []
        if rng.random() < 0.65:
            room = replace(area, y=area.y * rng.uniform(0.4, 0.6), bottom=area.y)
            aligned = replace(how, align=("left", "centre", "right")[int(rng.integers(3))])
            self._set("header", self.words.phrase(int(rng.integers(3, 9))), room, aligned)
            if rng.random() < 0.4:
                y = room.y + 0.3 * how.size
                self.canvas.line([(area.x, y), (area.x + area.width, y)], (60, 60, 60), 0.7 * self.unit)
            area.y = max(area.y, room.y + 1.2 * how.size)
        number = str(int(rng.integers(1, 1200)))
        foot = area.bottom + (self.size_hw[0] - area.bottom) * rng.uniform(0.3, 0.5)
        room = replace(area, y=foot, bottom=float(self.size_hw[0]))
        kind = rng.random()
        if kind < 0.5:
            self._set(
                "number",
                [number],
                room,
                replace(how, align=("left", "centre", "right")[int(rng.integers(3))]),
            )
        elif kind < 0.8:
            self._set(
                "footer",
                self.words.phrase(int(rng.integers(3, 10))),
                replace(room),
                replace(how, align="left"),
            )
            self._set("number", [number], room, replace(how, align="right"))
        self._edges, self.blocks = self.blocks, kept

    def _draw_front(self, area: _Column) -> None:
        """Title, authors and abstract, over all columns."""
        rng, size = self.rng, self.body.size
        align = "centre" if rng.random() < 0.5 else "left"
        title = replace(self.head, size=size * rng.uniform(1.5, 2.4), align=align)
        area.y += size
        self._set("doc_title", self.words.phrase(int(rng.integers(5, 18))), area, title, level=1)
        area.y += size * rng.uniform(0.6, 1.5)
        self._set("text", self._names(), area, replace(self.body, align=align))
        area.y += 0.6 * size
        if rng.random() < 0.7:
            self._set(
                "text", self.words.phrase(int(rng.integers(8, 30))), area, replace(self.small, align=align)
            )
            area.y += size
        if rng.random() < 0.75:
            inner = area
            if rng.random() < 0.4:
                inset = area.width * rng.uniform(0.03, 0.1)
                inner = replace(area, x=area.x + inset, width=area.width - 2 * inset)
            if rng.random() < 0.7:
                self._set("paragraph_title", ["Abstract"], inner, self.head, level=2)
                inner.y += 0.3 * size
            how = replace(self.body, size=size * rng.uniform(0.9, 1.0))
            self._set("abstract", self.words.draw(int(rng.integers(60, 200))), inner, how)
            area.y = inner.y
        area.y += size * rng.uniform(1.0, 2.0)

    def _names(self) -> list[str]:
        words = []
        for _ in range(int(self.rng.integers(2, 9))):
            first, second = (self.words.phrase(1)[0].capitalize() for _ in range(2))
            words += [first, second + ","]
        return [*words[:-1], words[-1].rstrip(",")]

    # ---- columns

    def _fill_columns(self, area: _Column, references: bool, notes: bool) -> None:
        gutter = self.body.size * self.rng.uniform(1.4, 2.8)
        width = (area.width - gutter * (self.columns - 1)) / self.columns
        waiting: list[Row] = []  # of a paragraph that goes on in the next column
        for number in range(self.columns):
            column = _Column(area.x + number * (width + gutter), area.y, width, area.bottom)
            if notes and self.rng.random() < (0.2 if number == 0 else 0.06):
                self._draw_footnote(column)
            waiting = self._fill_column(column, waiting, references)
            if number == self.columns - 1 and self.rng.random() < 0.25:
                break

    def _fill_column(self, column: _Column, waiting: list[Row], references: bool) -> list[Row]:
        rng, size = self.rng, self.body.size
        if waiting:
            waiting = self._draw_rows("text", waiting, column, continued=True)
        short = column.y + column.room * rng.uniform(0.3, 1.0) if rng.random() < 0.2 else column.bottom
        pieces: tuple[tuple[float, Callable[[_Column], list[Row]]], ...] = (
            (0.5, self._draw_paragraph),
            (0.16, self._draw_heading),
            (0.09, self._draw_list),
            (0.09, self._draw_figure),
            (0.09, self._draw_table),
            (0.07, self._draw_formula),
        )
        weights = np.array([weight for weight, _ in pieces])
        misses = 0
        while column.room > 2 * self.body.step and column.y < short and misses < 4 and not waiting:
            before = column.y
            if references:
                self._draw_references(column)
                references = False
                continue
            piece = pieces[int(rng.choice(len(pieces), p=weights / weights.sum()))][1]
            waiting = piece(column)
            if column.y == before:
                misses += 1
            elif column.room > 0:
                column.y += max(self.gap, 0.35 * size) if piece is not self._draw_paragraph else self.gap
        return waiting

    def _draw_rows(self, label: str, rows: list[Row], column: _Column, **more: object) -> list[Row]:
        """As many rows as there is room for; returns the others. One row alone does not begin or end a column."""
        how = self.body
        fitting = (
            int((column.room - (ASCENT + DESCENT) * how.size) / how.step) + 1 if column.room > how.step else 0
        )
        fitting = min(fitting, len(rows))
        if len(rows) - fitting == 1 and fitting > 2:
            fitting -= 1
        if fitting < min(2, len(rows)):
            return rows
        lines = set_rows(self.canvas, rows[:fitting], column.x, column.y, column.width, how)
        column.y += rows_height(fitting, how) + (how.step - (ASCENT + DESCENT) * how.size)
        self._add(label, lines, **more)
        return rows[fitting:]

    def _draw_paragraph(self, column: _Column) -> list[Row]:
        words = self.words.draw(int(self.rng.integers(12, 160)))
        how = self.body
        rows = break_lines(
            words, how.font, how.size, column.width, indent=self.indent, justify=how.align == "justified"
        )
        left = self._draw_rows("text", rows, column)
        return [] if len(left) == len(rows) else left

    def _draw_heading(self, column: _Column) -> list[Row]:
        """Only where two lines of text have room below it."""
        rng, how = self.rng, self.head
        second = rng.random() < 0.4
        if second:
            how = replace(how, size=max(0.9 * how.size, self.body.size), font=self.head_face.italic)
        words = self.words.phrase(int(rng.integers(1, 8)))
        if rng.random() < 0.4:
            words = [f"{int(rng.integers(1, 9))}." + (f"{int(rng.integers(1, 9))}" if second else ""), *words]
        if column.room > 2 * how.step + 3 * self.body.step:
            column.y += 0.5 * self.body.size
            self._set("paragraph_title", words, column, how, level=2 + second)
            column.y += 0.25 * self.body.size
            return self._draw_paragraph(column)
        return []

    def _draw_list(self, column: _Column) -> list[Row]:
        rng, how = self.rng, self.body
        inset = how.size * rng.uniform(1.2, 2.5)
        bullet = ("•", "–", "1.", "(a)", "1)")[int(rng.integers(5))]
        space = how.size * rng.uniform(0.0, 0.4)
        for number in range(int(rng.integers(2, 8))):
            mark = bullet.replace("1", str(number + 1)).replace("a", chr(97 + number))
            self._draw_item(mark, self.words.draw(int(rng.integers(4, 40))), column, inset, how, "list_item")
            column.y += space
        return []

    def _draw_item(
        self, mark: str, words: list[str], column: _Column, inset: float, how: TextSetting, label: str
    ) -> None:
        rows = break_lines(words, how.font, how.size, column.width - inset, justify=how.align == "justified")
        if rows_height(len(rows), how) > column.room:
            return
        marker = break_lines([mark], how.font, how.size, inset)
        first = set_rows(self.canvas, marker, column.x, column.y, inset, replace(how, align="left"))
        lines = set_rows(self.canvas, rows, column.x + inset, column.y, column.width - inset, how)
        joined = Line(
            f"{mark} {lines[0].text}",
            1.0,
            (first[0].polygon[0], lines[0].polygon[1], lines[0].polygon[2], first[0].polygon[3]),
        )
        column.y += rows_height(len(rows), how) + (how.step - (ASCENT + DESCENT) * how.size)
        self._add(label, (joined, *lines[1:]), level=int(label == "list_item"))

    def _draw_references(self, column: _Column) -> None:
        self._set("paragraph_title", ["References"], column, self.head, level=2)
        column.y += 0.4 * self.body.size
        for number in range(1, 60):
            before = column.y
            words = [*self._names(), *self.words.draw(int(self.rng.integers(8, 25)))]
            self._draw_item(f"[{number}]", words, column, 2.4 * self.small.size, self.small, "reference")
            if column.y == before:
                return

    def _draw_formula(self, column: _Column) -> list[Row]:
        """Symbols, fractions and sums on one line, with a number at the right at times."""
        rng, size = self.rng, self.body.size
        if column.room < 5 * size:
            return []
        column.y += 0.4 * size
        y, parts, x = column.y + 1.6 * size, [], 0.0
        italic = self.face.italic
        has_greek = measure("α", italic, size) > 0
        letters = "xyzabcnkij" + (_GREEK if has_greek else "")
        for _ in range(int(rng.integers(3, 9))):
            text = letters[int(rng.integers(len(letters)))]
            kind = int(rng.integers(4))
            parts.append((x, text, kind, letters[int(rng.integers(len(letters)))]))
            x += (1.5 if kind == 3 else 1.1) * size
            operator = "=+−·"[int(rng.integers(4))]
            parts.append((x, operator, 0, ""))
            x += 1.1 * size
        parts = parts[:-1]
        x -= 1.1 * size
        if x > 0.8 * column.width:
            return []
        start = column.x + (column.width - x) / 2
        latex = []
        for place, text, kind, other in parts:
            left = start + place
            if kind == 3:
                self.canvas.text((left + 0.3 * size, y - 0.5 * size), text, italic, size)
                self.canvas.text((left + 0.3 * size, y + 0.95 * size), other, italic, size)
                self.canvas.line([(left, y - 0.25 * size), (left + 1.2 * size, y - 0.25 * size)])
                latex.append(f"\\frac{{{text}}}{{{other}}}")
                continue
            self.canvas.text((left, y), text, italic, size)
            latex.append(text)
            if kind:
                raised = kind == 2
                self.canvas.text(
                    (left + 0.55 * size, y + (-0.4 if raised else 0.25) * size), other, italic, 0.65 * size
                )
                latex[-1] += f"{'^' if raised else '_'}{{{other}}}"
        box: Box = (start, y - 1.3 * size, start + x, y + 1.15 * size)
        self._formulas += 1
        said = " ".join(latex)
        self.blocks.append(Block("formula", box, said, content=Formula(said)))
        if rng.random() < 0.5:
            label = f"({self._formulas})"
            rows = break_lines([label], self.face.regular, size, column.width)
            how = replace(self.body, align="right")
            self._add(
                "formula_number", set_rows(self.canvas, rows, column.x, y - ASCENT * size, column.width, how)
            )
        column.y = y + (1.15 + 0.4) * size
        return []

    def _draw_footnote(self, column: _Column) -> None:
        """At the column's foot, below a short rule; it is read after all columns."""
        how = replace(self.small, size=max(4.0, 0.85 * self.small.size))
        rows = break_lines(
            ["*", *self.words.draw(int(self.rng.integers(8, 40)))], how.font, how.size, column.width
        )
        height = rows_height(len(rows), how)
        if height > 0.25 * column.room:
            return
        top = column.bottom - height
        if self.rng.random() < 0.6:
            y = top - 0.5 * how.size
            self.canvas.line([(column.x, y), (column.x + 0.3 * column.width, y)], (0, 0, 0), 0.5 * self.unit)
        kept, self.blocks = self.blocks, []
        self._add("footnote", set_rows(self.canvas, rows, column.x, top, column.width, how))
        self._notes += self.blocks
        self.blocks = kept
        column.bottom = top - 1.2 * how.size

    # ---- figures and tables

    def _caption(self, kind: str, number: int, width: float) -> tuple[list[Row], TextSetting]:
        rng = self.rng
        size = self.small.size
        centred = rng.random() < 0.3
        how = replace(self.small, align="centre" if centred else "left")
        name = {"figure": ("Figure", "Fig.", "FIG."), "table": ("Table", "TABLE", "Table")}[kind][
            int(rng.integers(3))
        ]
        words = [
            name,
            f"{number}" + (".", ":", "")[int(rng.integers(3))],
            *self.words.draw(int(rng.integers(4, 45))),
        ]
        return break_lines(words, how.font, size, width), how

    def _draw_spanning(self, area: _Column) -> None:
        """A figure or table over all columns."""
        if self.rng.random() < 0.5:
            self._draw_figure(area)
        else:
            self._draw_table(area)
        area.y += self.body.size * self.rng.uniform(0.8, 1.6)

    def _draw_figure(self, column: _Column) -> list[Row]:
        rng, size = self.rng, self.body.size
        width = column.width * (1.0 if rng.random() < 0.6 else rng.uniform(0.55, 1.0))
        height = min(width * rng.uniform(0.35, 1.1), 0.5 * self.size_hw[0])
        rows, how = self._caption("figure", self._figures + 1, column.width)
        needed = 1.6 * size + height + rows_height(len(rows), how)
        if needed > column.room:
            height -= needed - column.room
        if height < 6 * size or width < 8 * size:
            return []
        self._figures += 1
        column.y += 0.5 * size
        x = column.x + (column.width - width) / 2
        box: Box = (x, column.y, x + width, column.y + height)
        label = self.artist.draw(box)
        self.blocks.append(Block(label, box, content=Figure(None)))
        column.y += height + 0.6 * size
        if rng.random() < 0.9:
            lines = set_rows(self.canvas, rows, column.x, column.y, column.width, how)
            self._add("figure_title", lines)
            column.y += rows_height(len(rows), how)
        column.y += 0.5 * size
        return []

    def _draw_table(self, column: _Column) -> list[Row]:
        rng, size = self.rng, self.body.size
        width = column.width * (1.0 if rng.random() < 0.7 else rng.uniform(0.6, 1.0))
        type_size = max(4.0, size * rng.uniform(0.72, 0.95))
        face = self.face if rng.random() < 0.7 else self.head_face
        plan = TablePlan(width, face, type_size, self.words, rng)
        rows, how = self._caption("table", self._tables + 1, column.width)
        caption = rows_height(len(rows), how) if rng.random() < 0.9 else 0.0
        if plan.height + caption + 2 * size > column.room:
            return []
        self._tables += 1
        below = rng.random() < 0.15
        column.y += 0.5 * size

        def draw_caption() -> None:
            if caption:
                self._add("table_title", set_rows(self.canvas, rows, column.x, column.y, column.width, how))
                column.y += caption + 0.35 * size

        if not below:
            draw_caption()
        block = plan.draw(self.canvas, column.x + (column.width - width) / 2, column.y)
        self.blocks.append(block)
        column.y += plan.height + 0.4 * size
        if below:
            draw_caption()
        elif rng.random() < 0.3:
            note = replace(self.small, size=0.9 * type_size)
            self._set("text", self.words.draw(int(rng.integers(5, 30))), column, note)
        column.y += 0.5 * size
        return []


def group_lists(blocks: tuple[Block, ...], labels: tuple[str, ...]) -> list[Block]:
    """Blocks in which items that follow one another below each other in a column are one."""
    grouped: list[Block] = []
    for block in blocks:
        last = grouped[-1] if grouped else None
        if (
            last is not None
            and block.label == last.label
            and block.label in labels
            and block.bbox[1] >= last.bbox[3] - 2
            and min(block.bbox[2], last.bbox[2]) > max(block.bbox[0], last.bbox[0])
            and block.bbox[1] - last.bbox[3] < 3 * (block.bbox[3] - block.bbox[1]) / max(len(block.lines), 1)
        ):
            grouped[-1] = replace(
                last,
                bbox=around([last.bbox, block.bbox]),
                text=f"{last.text}\n{block.text}",
                lines=(*last.lines, *block.lines),
            )
        else:
            grouped.append(block)
    return grouped
