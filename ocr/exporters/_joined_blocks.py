"""The blocks of a document as its exports write them: what goes on over a break is one block, whatever the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ocr.results.blocks import FLOATS, MOST_FLOATS, Block, Cell, Table
from ocr.tables.cell_text import is_number
from ocr.text.hyphens import join_at_hyphen
from ocr.text.reading_order import join_texts

if TYPE_CHECKING:
    from ocr.results.pages import Page

# What PP-StructureV3 leaves out of Markdown too (`markdown_ignore_labels`), but footnotes.
IGNORED = ("header", "header_image", "footer", "footer_image", "number", "aside_text")


def joined_blocks(pages: Iterable[Page], ignore: Sequence[str] = IGNORED) -> Iterator[Block]:
    """The blocks of the pages in reading order; those marked `continued` are joined with the last one of their kind, a
    table or text, before them. A paragraph that tables or figures cut so stands whole before them.

    Pages are taken one by one, and no more is held than a block that may still go on and what stood since: footnotes
    and a few tables and figures.
    """
    held: list[list[Block]] = []  # the parts of each block, from the one that may still go on
    for page in pages:
        for block in page.blocks:
            if block.label in ignore:
                continue
            earlier = (parts for parts in reversed(held) if block.continued and _is_of_kind(parts[0], block))
            parts = next(earlier, None)
            if parts is not None:
                parts.append(block)
                continue
            floats = sum(parts[0].label in FLOATS for parts in held)
            if block.label != "footnote" and (block.label not in FLOATS or floats > MOST_FLOATS):
                yield from map(join_blocks, held)
                held = []
            held.append([block])
    yield from map(join_blocks, held)


def _is_of_kind(block: Block, other: Block) -> bool:
    """Whether both are tables, or both texts that are read along."""
    if isinstance(other.content, Table):
        return isinstance(block.content, Table)
    return block.label not in (*FLOATS, "footnote")


def join_blocks(parts: Sequence[Block]) -> Block:
    """The parts of one table or paragraph as one block, with the box of the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    lines = tuple(line for part in parts for line in part.lines)
    tables = [part.content for part in parts if isinstance(part.content, Table)]
    if len(tables) == len(parts):
        table = join_tables(tables)
        return replace(first, content=table, text=table.text, lines=lines)
    text = first.text
    for part in parts[1:]:
        text = _join(text, part.text)
    return replace(first, text=text, lines=lines)


def join_tables(tables: Sequence[Table]) -> Table:
    """Tables below one another; leading rows of a later one that repeat those of the first are left out, and a first
    row that goes on in the row before it is joined with that.
    """
    first = tables[0]
    cells, rows = list(first.cells), first.rows
    for table in tables[1:]:
        repeated = 0
        while (
            repeated < min(5, first.rows, table.rows) and _row(first, repeated) == _row(table, repeated) != []
        ):
            repeated += 1
        shift = rows - repeated
        before = [cell for cell in cells if cell.row == rows - 1]
        after = [cell for cell in table.cells if cell.row == repeated]
        joins = _goes_on(before, after)
        if joins:
            cells = [cell for cell in cells if cell.row != rows - 1]
            cells += [_join_cells(cell, after) for cell in before]
            shift -= 1
        for cell in table.cells:
            if joins and cell.row == repeated:
                continue
            # A cell that starts in a repeated row and reaches below it stays, with what is left of it.
            top, bottom = max(cell.row, repeated), cell.row + cell.rowspan
            if top < bottom:
                cells.append(replace(cell, row=top + shift, rowspan=bottom - top, header=False))
        rows += table.rows - repeated - joins
    return Table(tuple(cells), rows, max(table.columns for table in tables))


def _goes_on(before: Sequence[Cell], after: Sequence[Cell]) -> bool:
    """Whether a row is the rest of the one before it, over the break of a page: its first cell is empty, and what it
    says goes on in cells that have text above, in one of them within a sentence. Amounts go on nowhere.
    """
    upper, lower = ({cell.column: cell for cell in row} for row in (before, after))
    spans = any(cell.rowspan > 1 or cell.colspan > 1 for cell in (*before, *after))
    filled = [cell for cell in after if cell.text.strip()]
    if spans or upper.keys() != lower.keys() or not filled or 0 not in lower or lower[0].text.strip():
        return False
    texts = [(upper[cell.column].text.rstrip(), cell.text.lstrip()) for cell in filled]
    if not all(above for above, _ in texts) or any(is_number(below) for _, below in texts):
        return False
    return any(below[0].islower() or not _SENTENCE_END.search(above) for above, below in texts)


def _join_cells(cell: Cell, after: Sequence[Cell]) -> Cell:
    rest = next(other for other in after if other.column == cell.column)
    return replace(cell, text=_join(cell.text, rest.text), lines=(*cell.lines, *rest.lines))


def _join(text: str, rest: str) -> str:
    """A text with its rest; hyphens between them: `join_at_hyphen`."""
    text, rest = text.rstrip(), rest.strip()
    joined = join_at_hyphen(text, rest)
    if joined is not None:
        return joined
    return join_texts(text, rest) if text and rest else text + rest


def _row(table: Table, number: int) -> list[tuple[int, int, str]]:
    """Where the cells of a row stand that are of this row alone, and what they say."""
    return [(c.column, c.colspan, c.text.strip()) for c in table.cells if c.row == number and c.rowspan == 1]


_SENTENCE_END = re.compile(r"[.!?:;。！？…][\"'”’)\]]*$")
_ORDERED = re.compile(r"\(?(\d{1,3})[.)]$")


def list_marker(text: str) -> tuple[str, int | None, str]:
    """(marker, its number, what the item says) of a list item: "• a" ("•", None, "a"), "2. b" ("2.", 2, "b").

    The marker is "" where the first word is none.
    """
    first, _, rest = text.strip().partition(" ")
    body = " ".join(rest.split())
    if len(first) == 1 and not first.isalnum() and body:
        return first, None, body
    number = _ORDERED.match(first)
    if number and body:
        return first, int(number[1]), body
    return "", None, " ".join(text.split())
