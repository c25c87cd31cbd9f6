"""Tables of Arabic and Hebrew: their first column is the rightmost one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Table


def in_reading_order(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks; tables whose text runs from right to left with their columns counted from the right."""
    return tuple(_mirrored(block) for block in blocks)


def _mirrored(block: Block) -> Block:
    table = block.content
    if not isinstance(table, Table) or not starts_right("".join(cell.text for cell in table.cells)):
        return block
    cells = tuple(replace(cell, column=table.columns - cell.column - cell.colspan) for cell in table.cells)
    mirror = Table(cells, table.rows, table.columns)
    lines = tuple(line for cell in mirror.cells for line in cell.lines)
    return replace(block, text=mirror.text, lines=lines, content=mirror)
