"""Markdown of pages that have blocks: headings, paragraphs, lists, tables, formulas and figures in reading order.

* Headers, footers and page numbers are left out, as PP-StructureV3 does; footnotes stand at the end of their page.
* A table whose cells span nothing and hold one line each is a Markdown table (GitHub's), any other one is HTML.
* What goes on over a break of the column or the page is joined; of a table, a head that is repeated is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ocr.blocks import Block, Formula, Table
from ocr.layout import is_unspaced

if TYPE_CHECKING:
    from ocr.results import Page

IGNORED = ("header", "header_image", "footer", "footer_image", "number", "aside_text")


def pages_to_markdown(
    pages: Sequence[Page], escape: Callable[[str], str], ignore: Sequence[str] = IGNORED
) -> str:
    """The blocks of pages as Markdown, without a newline at its end. `escape` is for a paragraph's text."""
    blocks: list[Block] = []
    for page in pages:
        for block in page.blocks:
            if block.label in ignore:
                continue
            last = _last_body(blocks) if block.continued else None
            if last is None:
                blocks.append(block)
            else:
                blocks[last] = _join(blocks[last], block)
    text, before = "", ""
    for block in blocks:
        for part in filter(None, _block_parts(block, escape)):
            listed = before == block.label == "list_item"
            text += (("\n" if listed else "\n\n") if text else "") + part
            before = block.label
    return text


def _last_body(blocks: Sequence[Block]) -> int | None:
    """Where the last block stands that is no footnote."""
    return next((i for i in reversed(range(len(blocks))) if blocks[i].label != "footnote"), None)


def _join(block: Block, more: Block) -> Block:
    if isinstance(block.content, Table) and isinstance(more.content, Table):
        table = join_tables(block.content, more.content)
        return replace(block, content=table, text=table.text, lines=(*block.lines, *more.lines))
    text = block.text.rstrip()
    start = more.text.lstrip()
    if text[-1:] in ("-", "\u00ad", "\u2010") and start[:1].islower():
        joined = text[:-1] + start
    else:
        apart = "" if text and start and is_unspaced(text[-1]) and is_unspaced(start[0]) else " "
        joined = text + apart + start
    return replace(block, text=joined, lines=(*block.lines, *more.lines))


def join_tables(first: Table, second: Table) -> Table:
    """Both tables below one another; leading rows of the second that repeat those of the first are left out."""

    def row(table: Table, number: int) -> list[tuple[int, int, str]]:
        return [
            (c.column, c.colspan, c.text.strip()) for c in table.cells if c.row == number and c.rowspan == 1
        ]

    repeated = 0
    while repeated < min(5, first.rows, second.rows) and row(first, repeated) == row(second, repeated) != []:
        repeated += 1
    shift = first.rows - repeated
    more = tuple(replace(c, row=c.row + shift, header=False) for c in second.cells if c.row >= repeated)
    return Table((*first.cells, *more), 0, max(first.columns, second.columns))


def _block_parts(block: Block, escape: Callable[[str], str]) -> list[str]:
    captions = [escape(child.text) for child in block.children]
    if isinstance(block.content, Table):
        return [*captions, table_to_markdown(block.content, escape)]
    if isinstance(block.content, Formula):
        mark = "$" if block.content.inline else "$$"
        return [f"{mark}{block.content.latex}{mark}", *captions]
    if block.label in ("image", "chart", "seal"):
        path = getattr(block.content, "path", "")
        return [f"![{' '.join(captions)}](<{path}>)"] if path else captions
    if block.label in ("doc_title", "paragraph_title"):
        text = escape(" ".join(block.text.split()))
        return [f"{'#' * max(block.level, 1)} {text}", *captions] if text else captions
    if block.label == "list_item":
        return [_list_item(block.text, block.level, escape), *captions]
    return [escape(block.text).replace("\n", "  \n"), *captions]


def _list_item(text: str, level: int, escape: Callable[[str], str]) -> str:
    """A bullet as Markdown's "-"; an item with a number or letter keeps it."""
    first, _, rest = text.partition(" ")
    indent = "  " * (max(level, 1) - 1)
    body = " ".join(rest.split())
    if len(first) == 1 and not first.isalnum():
        return f"{indent}- {escape(body)}"
    return f"{indent}{first} {escape(body)}" if first[:-1].isdecimal() and first[-1] in ".)" else escape(text)


def table_to_markdown(table: Table, escape: Callable[[str], str]) -> str:
    """A `|` table where no cell spans or breaks a line, else HTML."""
    if table.has_spans or any("\n" in cell.text for cell in table.cells) or not table.cells:
        return table.to_html()
    rows = [
        [escape(cell.text).replace("|", "\\|").replace("\\\\|", "\\|") if cell else "" for cell in row]
        for row in table.grid()
    ]
    if not all(cell is not None and cell.header for cell in table.grid()[0]):
        rows.insert(0, [""] * table.columns)  # a Markdown table needs a head
    rows.insert(1, ["---"] * table.columns)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
