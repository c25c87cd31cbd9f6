"""The structure of a table as tokens of HTML, as cells on a grid, and as numbers for a network.

Source: PubTabNet, https://arxiv.org/abs/1911.10683; PaddleOCR ppocr/data/imaug/label_ops.py (TableLabelEncode,
TableMasterLabelEncode) and ppocr/utils/dict/table_structure_dict{,_ch}.txt, table_master_structure_dict.txt
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.core.errors import ConfigError, InputError
from ocr.results.blocks import Cell, Table

START, END, UNKNOWN, PADDING = "sos", "eos", "unknown", "padding"
MERGED = "<td></td>"
CELL_TOKENS = ("<td", MERGED, "<td>")  # those with which a cell begins
# TableMaster's tokens of cells that show nothing, by what is in them.
EMPTY_CELLS = {
    "": "<eb></eb>",
    " ": "<eb1></eb1>",
    "<b> </b>": "<eb2></eb2>",
    "\u2028\u2028": "<eb3></eb3>",
    "<sup> </sup>": "<eb4></eb4>",
    "<b></b>": "<eb5></eb5>",
    "<i> </i>": "<eb6></eb6>",
    "<b><i></i></b>": "<eb7></eb7>",
    "<b><i> </i></b>": "<eb8></eb8>",
    "<i></i>": "<eb9></eb9>",
    "<b> \u2028 \u2028 </b>": "<eb10></eb10>",
}
_EMPTY_TOKENS = frozenset(EMPTY_CELLS.values())
_MOST_SPAN = 100

# In upstream's order; tokens of spans begin with a space.
_ENGLISH = (
    *(
        "<thead>",
        "<tr>",
        "<td>",
        "</td>",
        "</tr>",
        "</thead>",
        "<tbody>",
        "</tbody>",
        "<td",
        ' colspan="5"',
        ">",
    ),
    *(
        ' colspan="2"',
        ' colspan="3"',
        ' rowspan="2"',
        ' colspan="4"',
        ' colspan="6"',
        ' rowspan="3"',
        ' colspan="9"',
    ),
    *(' colspan="10"', ' colspan="7"', ' rowspan="4"', ' rowspan="5"', ' rowspan="9"', ' colspan="8"'),
    *(' rowspan="8"', ' rowspan="6"', ' rowspan="7"', ' rowspan="10"'),
)
_CHINESE = (
    *("<thead>", "</thead>", "<tbody>", "</tbody>", "<tr>", "</tr>", "<td>", "<td", ">", "</td>"),
    *(f' colspan="{n}"' for n in range(2, 21)),
    *(f' rowspan="{n}"' for n in range(2, 21)),
)
_TABLE_MASTER = (
    *(
        "<thead>",
        "<tr>",
        MERGED,
        "</tr>",
        "</thead>",
        "<tbody>",
        "<eb></eb>",
        "</tbody>",
        "<td",
        ' colspan="5"',
        ">",
    ),
    *("</td>", ' colspan="2"', ' colspan="3"', "<eb2></eb2>", "<eb1></eb1>", ' rowspan="2"', ' colspan="4"'),
    *(' colspan="6"', ' rowspan="3"', ' colspan="9"', ' colspan="10"', ' colspan="7"', ' rowspan="4"'),
    *(' rowspan="5"', ' rowspan="9"', ' colspan="8"', ' rowspan="8"', ' rowspan="6"', ' rowspan="7"'),
    *(' rowspan="10"', *(f"<eb{n}></eb{n}>" for n in range(3, 11))),
)
_LISTS = {"en": _ENGLISH, "ch": _CHINESE, "table_master": _TABLE_MASTER}


@dataclass(frozen=True)
class TableDictionary:
    """The tokens that a network writes, by their numbers.

    Attributes:
        name: Upstream's list for PubTabNet, "en", for its Chinese models, "ch", or TableMaster's, with tokens of empty
            cells.
        file: A list of one's own instead, one token a line; `name` still says where the start is.
        merge: Whether a cell without spans is one token, "<td></td>".
    """

    name: Literal["en", "ch", "table_master"] = "en"
    file: Path | None = None
    merge: bool = True

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """With "sos" first and "eos" last; of "table_master" both stand last, between "unknown" and "padding".

        Raises:
            ConfigError: the file cannot be read, or has no "<td>".
        """
        found = list(_LISTS[self.name])
        if self.file is not None:
            try:
                found = [line for line in self.file.read_text(encoding="utf-8").splitlines() if line.strip()]
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError("the tokens cannot be read", where=self.file, received=error) from None
            if not {"<tr>", "</tr>"} <= set(found) or not {"<td>", MERGED} & set(found):
                raise ConfigError(
                    "this is no list of a table's tokens",
                    where=self.file,
                    received=", ".join(found[:5]) or "nothing",
                    allowed="one a line: <tr>, </tr>, <td>, </td>, <td, >, spans such as ' colspan=\"2\"'",
                )
        if self.merge:
            found = [token for token in found if token != "<td>"] + [MERGED] * (MERGED not in found)
        if self.name == "table_master":
            return (*found, UNKNOWN, START, END, PADDING)
        return (START, *found, END)

    @property
    def padding(self) -> int:
        """The number that stands behind a table's end: of "padding", where there is one, else of the start."""
        return self.numbers.get(PADDING, self.numbers[START])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each token."""
        return {token: number for number, token in enumerate(self.tokens)}

    def encode(self, tokens: Sequence[str]) -> np.ndarray | None:
        """[T] int32 of a structure's tokens, merged or not, without start and end; None where one is unknown."""
        tokens = merge_cells(tokens) if self.merge else split_cells(tokens)
        numbers = [self.numbers.get(token) for token in tokens]
        return None if None in numbers else np.array(numbers, np.int32)

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """The tokens until the first end; starts are left out."""
        found = []
        for number in numbers:
            token = self.tokens[number] if 0 <= number < len(self.tokens) else ""
            if token == END:
                break
            if token not in (START, UNKNOWN, PADDING, ""):
                found.append(token)
        return found


def merge_cells(tokens: Sequence[str]) -> list[str]:
    """Tokens with "<td>", "</td>" as one. PubTabNet's own "<td></td>" stay."""
    found: list[str] = []
    for token in tokens:
        if token == "</td>" and found and found[-1] == "<td>":
            found[-1] = MERGED
        else:
            found.append(token)
    return found


def split_cells(tokens: Sequence[str]) -> list[str]:
    """The reverse of `merge_cells`."""
    return [part for token in tokens for part in (("<td>", "</td>") if token == MERGED else (token,))]


def starts_cell(token: str) -> bool:
    """Whether a cell begins with this token."""
    return token in CELL_TOKENS or token in _EMPTY_TOKENS


def mark_empty(tokens: Sequence[str], contents: Sequence[str], shown: Sequence[bool]) -> list[str]:
    """Tokens in which cells that are not `shown`, which have no box, begin with the token of what is in them.

    Spans follow the token, as they would "<td"; a content that has no token counts as none at all.

    Args:
        contents: The HTML in each cell. shown: Whether it has a box.
    """
    found, number = [], -1
    for token in tokens:
        if starts_cell(token):
            number += 1
            if not shown[number]:
                token = EMPTY_CELLS.get(contents[number], EMPTY_CELLS[""])
        found.append(token)
    return found


def unmark_empty(tokens: Sequence[str]) -> tuple[list[str], list[bool]]:
    """The reverse of `mark_empty`: the tokens, and for each whether it began as one of an empty cell."""
    empty = [token in _EMPTY_TOKENS for token in tokens]
    after = [*tokens[1:], ""]
    found = [
        token if not marked else "<td" if next_.startswith((" colspan", " rowspan")) else MERGED
        for token, marked, next_ in zip(tokens, empty, after)
    ]
    return found, empty


@dataclass(frozen=True)
class GridCell:
    """Where a cell stands: rows `row` to `row + rowspan - 1`, columns likewise, from 0."""

    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    header: bool = False


def place_cells(tokens: Sequence[str]) -> list[GridCell]:
    """The cells of a structure in the order of their tokens, put on the grid as HTML says.

    A cell takes the first free place of its row. Spans that would reach over another cell, or over the last row, are
    cut. Tokens that are out of place are skipped, so every sequence gives a grid.
    """
    spans: list[tuple[int, int, int, bool]] = []  # row, rowspan, colspan, header
    row, header, rowspan, colspan, open_ = -1, False, 1, 1, False
    for token in tokens:
        if token in ("<thead>", "</thead>"):
            header = token == "<thead>"
        elif token == "<tr>":
            row += 1
        elif token in (MERGED, "<td>"):
            spans.append((max(row, 0), 1, 1, header))
        elif token == "<td":
            open_, rowspan, colspan = True, 1, 1
            spans.append((max(row, 0), 1, 1, header))
        elif open_ and token.startswith((" colspan", " rowspan")):
            digits = "".join(char for char in token if char.isdecimal())[:4]
            value = min(max(int(digits or 1), 1), _MOST_SPAN)
            rowspan, colspan = (value, colspan) if "row" in token else (rowspan, value)
            spans[-1] = (spans[-1][0], rowspan, colspan, header)
        elif token == ">":
            open_ = False
    rows = 1 + max((place for place, *_ in spans), default=-1)
    taken: set[tuple[int, int]] = set()
    cells = []
    for place, down, across, head in spans:
        column = 0
        while (place, column) in taken:
            column += 1
        down = min(down, rows - place)
        width = 1
        while width < across and (place, column + width) not in taken:
            width += 1
        taken |= {(y, x) for y in range(place, place + down) for x in range(column, column + width)}
        cells.append(GridCell(place, column, down, width, head))
    return cells


def structure_tokens(cells: Sequence[GridCell], rows: int) -> list[str]:
    """PubTabNet's tokens of cells, row by row; rows whose cells are all headers, at the top, are the head."""
    by_row: list[list[GridCell]] = [[] for _ in range(rows)]
    for cell in sorted(cells, key=lambda cell: (cell.row, cell.column)):
        by_row[cell.row].append(cell)
    head = 0
    while head < rows and all(cell.header for cell in by_row[head]) and (by_row[head] or head):
        head += 1
    found: list[str] = []
    for name, part in (("thead", by_row[:head]), ("tbody", by_row[head:])):
        if not part:
            continue
        found.append(f"<{name}>")
        for row in part:
            found.append("<tr>")
            for cell in row:
                found += _cell_tokens(cell)
            found.append("</tr>")
        found.append(f"</{name}>")
    return found


def _cell_tokens(cell: GridCell) -> list[str]:
    if cell.rowspan == cell.colspan == 1:
        return ["<td>", "</td>"]
    spans = [f' {name}span="{n}"' for name, n in (("row", cell.rowspan), ("col", cell.colspan)) if n > 1]
    return ["<td", *spans, ">", "</td>"]


def structure_html(tokens: Sequence[str], contents: Sequence[str] = ()) -> str:
    """HTML of a structure; `contents` are put into its cells in order."""
    found, rest = ["<table>"], iter(contents)
    for token in split_cells(tokens):
        if token == "</td>":
            found.append(next(rest, ""))
        found.append(token)
    return "".join([*found, "</table>"])


def make_table(
    tokens: Sequence[str],
    boxes: Sequence[Sequence[float] | None] = (),
    scores: Sequence[float] = (),
) -> Table:
    """A table without text from a structure, its cells' boxes (left, top, right, bottom), None where there is none.

    Raises:
        InputError: there are other numbers of boxes or scores than cells.
    """
    cells = place_cells(tokens)
    for name, given in (("boxes", boxes), ("scores", scores)):
        if len(given) and len(given) != len(cells):
            raise InputError(
                f"{name} and cells differ in number",
                where="make_table",
                received=f"{len(given)} of {len(cells)}",
            )
    made = []
    for number, cell in enumerate(cells):
        box = boxes[number] if len(boxes) else None
        if box is not None:
            left, top, right, bottom = (float(value) for value in box)
            box = (min(left, right), min(top, bottom), max(left, right), max(top, bottom))
        made.append(
            Cell(
                cell.row,
                cell.column,
                rowspan=cell.rowspan,
                colspan=cell.colspan,
                header=cell.header,
                bbox=box,
                score=float(scores[number]) if len(scores) else 1.0,
            )
        )
    return Table(tuple(made))
