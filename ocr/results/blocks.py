"""What stands on a page besides lines: Block > Table > Cell, Formula, Figure; and Field, a value with its name.

Frozen and comparable, as the lines of `ocr.results.lines`. Boxes are (left, top, right, bottom) in pixels of the
page's image, right and bottom exclusive; scores are in [0, 1]. Cells are what a table is made of: its HTML is derived
from them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeVar

import numpy as np

from framework.core.errors import InputError
from framework.core.types import JSON
from ocr.results.geometry import Box as Box
from ocr.results.lines import Line, line_from_dict, line_to_dict
from ocr.results.spans import Span, span_to_dict, spans_in

# Names of PP-DocLayout's 23 classes (PaddleX, PP-DocLayout-L.yaml), and "list_item", which it counts as text.
T = TypeVar("T")
BLOCK_LABELS = (
    "doc_title",
    "paragraph_title",
    "text",
    "list_item",
    "abstract",
    "content",
    "reference",
    "algorithm",
    "aside_text",
    "table",
    "table_title",
    "image",
    "figure_title",
    "chart",
    "chart_title",
    "formula",
    "formula_number",
    "seal",
    "header",
    "header_image",
    "footer",
    "footer_image",
    "footnote",
    "number",
)
# What may stand within a paragraph, and how many of them at most.
FLOATS = ("table", "table_title", "image", "figure_title", "chart", "chart_title")
MOST_FLOATS = 6


def as_box(values: Iterable[float], where: str) -> Box:
    """Four Python floats. Raises: InputError unless they are finite, with left <= right and top <= bottom."""
    box = tuple(float(value) for value in values)
    if len(box) != 4 or not all(map(math.isfinite, box)) or box[0] > box[2] or box[1] > box[3]:
        raise InputError(
            "not a box",
            where=where,
            received=list(box),
            allowed="left, top, right, bottom in pixels, finite, left <= right, top <= bottom",
        )
    return box  # type: ignore[return-value]


class _Scored(Protocol):
    @property
    def score(self) -> float: ...


def _freeze(item: _Scored, where: str, *, box: str = "bbox") -> None:
    """Plain Python values instead of numpy ones, so that == and hash work."""
    if getattr(item, box) is not None:
        object.__setattr__(item, box, as_box(getattr(item, box), where))
    object.__setattr__(item, "score", float(item.score))
    if not math.isfinite(item.score):
        raise InputError("a score is not finite", where=where, received=item.score)


@dataclass(frozen=True)
class Cell:
    """One cell of a table: rows `row` to `row + rowspan - 1`, columns `column` to `column + colspan - 1`, from 0.

    `bbox` is the cell's own box, None where nobody knows it; `lines` are the lines of text in it and `text` what they
    say, with newlines where the cell's author broke the line.
    """

    row: int
    column: int
    text: str = ""
    rowspan: int = 1
    colspan: int = 1
    bbox: Box | None = None
    score: float = 1.0
    header: bool = False
    lines: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        where = f"cell {self.row}, {self.column}"
        for name, least in (("row", 0), ("column", 0), ("rowspan", 1), ("colspan", 1)):
            value = int(getattr(self, name))
            if value < least:
                raise InputError(f"{name} is too small", where=where, received=value, allowed=f">= {least}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "header", bool(self.header))
        object.__setattr__(self, "lines", tuple(self.lines))
        _freeze(self, where)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Those of its text, which its lines say."""
        return spans_in(self.text, self.lines)


@dataclass(frozen=True)
class Table:
    """Cells on a grid of `rows` times `columns`, in row order. Places without a cell are empty.

    Raises: InputError, where two cells lie on one place of the grid, or one stands outside of it.
    """

    cells: tuple[Cell, ...]
    rows: int = 0  # 0: as many as the cells need
    columns: int = 0

    def __post_init__(self) -> None:
        cells = tuple(sorted(self.cells, key=lambda cell: (cell.row, cell.column)))
        rows = max((cell.row + cell.rowspan for cell in cells), default=0)
        columns = max((cell.column + cell.colspan for cell in cells), default=0)
        if (self.rows and self.rows < rows) or (self.columns and self.columns < columns):
            raise InputError(
                "a cell stands outside of the table",
                where="Table",
                received=f"cells of {rows} rows and {columns} columns, {self.rows} x {self.columns} are given",
                fix="leave rows and columns out, or cut the spans",
            )
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "rows", self.rows or rows)
        object.__setattr__(self, "columns", self.columns or columns)
        self.grid()

    def grid(self) -> list[list[Cell | None]]:
        """[rows][columns]: the cell that covers each place, or None."""
        places: list[list[Cell | None]] = [[None] * self.columns for _ in range(self.rows)]
        for cell in self.cells:
            for row in range(cell.row, cell.row + cell.rowspan):
                for column in range(cell.column, cell.column + cell.colspan):
                    other = places[row][column]
                    if other is not None:
                        raise InputError(
                            "two cells lie on one place of the grid",
                            where=f"row {row}, column {column}",
                            received=f"cells that start at {other.row}, {other.column} and {cell.row}, {cell.column}",
                        )
                    places[row][column] = cell
        return places

    @property
    def has_spans(self) -> bool:
        return any(cell.rowspan > 1 or cell.colspan > 1 for cell in self.cells)

    @property
    def text(self) -> str:
        """Cells apart by tabs, rows by newlines; a cell with spans stands at its first place."""
        return "\n".join(
            "\t".join(
                cell.text.replace("\n", " ") if cell and (cell.row, cell.column) == (y, x) else ""
                for x, cell in enumerate(row)
            )
            for y, row in enumerate(self.grid())
        )

    def to_html(self) -> str:
        """`<table><thead>…</thead><tbody>…</tbody></table>`. Leading rows whose cells are all headers are the head."""
        places = self.grid()
        head = 0
        while head < self.rows and all(cell is not None and cell.header for cell in places[head]):
            head += 1
        parts = ["<table>"]
        for tag, first, last in (("thead", 0, head), ("tbody", head, self.rows)):
            if first < last:
                rows = "".join(self._row_html(places[row], row) for row in range(first, last))
                parts.append(f"<{tag}>{rows}</{tag}>")
        return "".join([*parts, "</table>"])

    @staticmethod
    def _row_html(places: Sequence[Cell | None], row: int) -> str:
        parts = ["<tr>"]
        for column, cell in enumerate(places):
            if cell is None:
                parts.append("<td></td>")
            elif (cell.row, cell.column) == (row, column):
                spans = "".join(
                    f' {name}="{value}"'
                    for name, value in (("rowspan", cell.rowspan), ("colspan", cell.colspan))
                    if value > 1
                )
                parts.append(
                    f"<td{spans}>{html.escape(cell.text, quote=False).replace(chr(10), '<br>')}</td>"
                )
        return "".join([*parts, "</tr>"])


@dataclass(frozen=True)
class Formula:
    """LaTeX without its delimiters. `inline` says that it stands in a line of text."""

    latex: str
    inline: bool = False


@dataclass(frozen=True)
class Figure:
    """The cut-out image of a figure, [H, W, 3] uint8 RGB; it takes no part in comparison. `path` is that of its file
    once an export has written one.
    """

    image: np.ndarray | None = field(default=None, repr=False, compare=False)
    path: str = ""


Content = Table | Formula | Figure


@dataclass(frozen=True)
class Block:
    """A part of a page: a paragraph, a heading, a table, a figure.

    Attributes:
        label: One of BLOCK_LABELS.
        bbox: Where it stands.
        text: What it says, its lines joined as a person would type them; of a table `Table.text`, of a formula LaTeX.
        lines: Its lines of text, in reading order.
        score: That of the layout.
        order: Its place in the reading order of the page, from 0; None of what is not read along (headers, numbers).
        level: Of a heading, 1 to 6; of a list item, its depth from 1; else 0.
        content: What a table, formula or figure holds besides text.
        children: Captions and notes that belong to it.
        polygon: Its outline where that is no upright box.
        continued: That it goes on from the block that is read before it, over a break of the column or the page.
    """

    label: str
    bbox: Box
    text: str = ""
    lines: tuple[Line, ...] = ()
    score: float = 1.0
    order: int | None = None
    level: int = 0
    content: Content | None = None
    children: tuple[Block, ...] = ()
    polygon: tuple[tuple[float, float], ...] | None = None
    continued: bool = False

    def __post_init__(self) -> None:
        where = f"{self.label} block"
        if self.label not in BLOCK_LABELS:
            raise InputError(
                "unknown kind of block",
                where="Block.label",
                received=self.label,
                allowed=", ".join(BLOCK_LABELS),
            )
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "children", tuple(self.children))
        object.__setattr__(self, "continued", bool(self.continued))
        if self.polygon is not None:
            object.__setattr__(self, "polygon", tuple((float(x), float(y)) for x, y in self.polygon))
        _freeze(self, where)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Those of its text, which its lines say; none of a table, whose cells have theirs."""
        return () if isinstance(self.content, Table) else spans_in(self.text, self.lines)

    def walk(self) -> Iterator[Block]:
        """This block and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Field:
    """A value that a document gives under a name: {"total": "12.50"}.

    `key` is the text that names it on the page ("Total:"), "" where none does. `boxes` are those of the value's lines
    on page number `page` (from 1). `text` is the value as it is written: of the value "2018-03-25", "25/03/18".
    """

    name: str
    value: str
    score: float = 1.0
    key: str = ""
    page: int = 1
    boxes: tuple[Box, ...] = ()
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes", tuple(as_box(box, f"field {self.name}") for box in self.boxes))
        object.__setattr__(self, "score", float(self.score))


# ---- plain data for JSON: coordinates with 1 decimal, scores with 4; what has its default is left out


def _plain_box(box: Box | None) -> list[float] | None:
    return None if box is None else [round(value, 1) for value in box]


def _without_defaults(item: Cell | Block, plain: Mapping[str, JSON]) -> dict[str, JSON]:
    return {
        f.name: plain[f.name] for f in fields(item) if f.name in plain and getattr(item, f.name) != f.default
    }


def _cell_to_dict(cell: Cell) -> dict[str, JSON]:
    plain = {f.name: getattr(cell, f.name) for f in fields(cell)}
    plain |= {
        "bbox": _plain_box(cell.bbox),
        "score": round(cell.score, 4),
        "lines": [line_to_dict(line) for line in cell.lines],
    }
    spans = {"spans": list(map(span_to_dict, cell.spans))} if cell.spans else {}
    said = {"row": cell.row, "column": cell.column, "text": cell.text} | spans
    return said | _without_defaults(cell, plain)


def _content_to_dict(content: Content) -> dict[str, JSON]:
    if isinstance(content, Table):
        return {
            "type": "table",
            "rows": content.rows,
            "columns": content.columns,
            "cells": [_cell_to_dict(cell) for cell in content.cells],
        }
    if isinstance(content, Formula):
        return {"type": "formula", "latex": content.latex, "inline": content.inline}
    return {"type": "figure", "path": content.path}


def block_to_dict(block: Block) -> dict[str, JSON]:
    """{"label", "bbox", "text", "score", "order", …}; "content" is {"type": "table" | "formula" | "figure", …}, "spans"
    [{"start", "end", "style", …}, …] where the text has some.
    """
    plain: dict[str, JSON] = {
        "lines": [line_to_dict(line) for line in block.lines],
        "level": block.level,
        "content": None if block.content is None else _content_to_dict(block.content),
        "children": [block_to_dict(child) for child in block.children],
        "polygon": None if block.polygon is None else [[round(x, 1), round(y, 1)] for x, y in block.polygon],
        "continued": block.continued,
    }
    return (
        {
            "label": block.label,
            "bbox": _plain_box(block.bbox),
            "text": block.text,
            "score": round(block.score, 4),
            "order": block.order,
        }
        | ({"spans": list(map(span_to_dict, spans))} if (spans := block.spans) else {})
        | _without_defaults(block, plain)
    )


def _content_from_dict(data: Mapping[str, Any]) -> Content:
    kinds = {"table": Table, "formula": Formula, "figure": Figure}
    values = {name: value for name, value in data.items() if name != "type"}
    if data["type"] == "table":
        values["cells"] = tuple(
            Cell(**{**_known(cell), "lines": tuple(map(line_from_dict, cell.get("lines", ())))})
            for cell in data["cells"]
        )
    return kinds[data["type"]](**values)


def _known(data: Mapping[str, T]) -> dict[str, T]:
    """Without the spans, which follow from the lines."""
    return {name: value for name, value in data.items() if name != "spans"}


def block_from_dict(data: Mapping[str, Any]) -> Block:
    """The block that `block_to_dict` wrote; KeyError, TypeError or InputError where keys or values do not fit."""
    values = _known(data)
    values["lines"] = tuple(line_from_dict(line) for line in data.get("lines", ()))
    values["children"] = tuple(block_from_dict(child) for child in data.get("children", ()))
    if data.get("content") is not None:
        values["content"] = _content_from_dict(data["content"])
    return Block(**values)


def field_to_dict(item: Field) -> dict[str, JSON]:
    """{"name", "value", "score", "key", "page", "boxes", "text"}"""
    plain = {f.name: getattr(item, f.name) for f in fields(item)}
    return plain | {"score": round(item.score, 4), "boxes": [_plain_box(box) for box in item.boxes]}


def field_from_dict(data: Mapping[str, Any]) -> Field:
    """The field that `field_to_dict` wrote."""
    return Field(**data)
