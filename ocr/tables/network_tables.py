"""Tables by a network: its cells, and the lines of text that stand in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ocr.results.blocks import Block, Box, Cell, Table
from ocr.results.crops import cut_box
from ocr.results.lines import Line
from ocr.results.page_text import line_box
from ocr.tables.cell_bands import place_by_words
from ocr.tables.cell_text import cell_text, part_of_line

# Of a piece of text: it stands in a cell that holds more of it. Source: PaddleX
# paddlex/inference/pipelines/table_recognition/table_recognition_post_processing_v2.py (match_table_and_ocr)
_INSIDE = 0.7


class TableReader(Protocol):
    """What gives the cells of an image of one table, such as `ocr.tables.stage.TableRecognizer`."""

    def __call__(self, image: np.ndarray) -> Table: ...


def fill_cells(table: Table, lines: Sequence[Line]) -> Table:
    """The table with its text: every word goes to the cell that holds most of it, else to the nearest cell.

    A line that lies in one cell stays whole; one that reaches over cells is divided between its words. No text is lost.
    Cells of a table in which none has a box get boxes from the places of the words.
    """
    if not table.cells or not lines:
        return table
    if all(cell.bbox is None for cell in table.cells):
        table = place_by_words(table, [line_box(word) for line in lines for word in line.words or (line,)])
    known = [number for number, cell in enumerate(table.cells) if cell.bbox is not None]
    boxes = np.array([table.cells[number].bbox for number in known], np.float64).reshape(-1, 4)
    found: list[list[Line]] = [[] for _ in table.cells]
    for line in lines:
        shares = _shares(line_box(line), boxes)
        if shares.max() > _INSIDE or not line.words:
            found[known[_choose(line_box(line), boxes, shares)]].append(line)
            continue
        places = [_choose(line_box(w), boxes, _shares(line_box(w), boxes)) for w in line.words]
        for place in dict.fromkeys(places):
            words = [word for word, at in zip(line.words, places) if at == place]
            found[known[place]].append(part_of_line(line, words))
    return replace(table, cells=tuple(_fill(cell, of_cell) for cell, of_cell in zip(table.cells, found)))


def _fill(cell: Cell, lines: Sequence[Line]) -> Cell:
    if not lines:
        return cell
    text, ordered = cell_text(lines)
    return replace(cell, text=text, lines=ordered)


def _shares(box: Box, cells: np.ndarray) -> np.ndarray:
    """[K]: how much of a box's area lies in each cell."""
    across = np.minimum(box[2], cells[:, 2]) - np.maximum(box[0], cells[:, 0])
    down = np.minimum(box[3], cells[:, 3]) - np.maximum(box[1], cells[:, 1])
    area = max((box[2] - box[0]) * (box[3] - box[1]), 1e-9)
    return np.maximum(across, 0) * np.maximum(down, 0) / area


def _choose(box: Box, cells: np.ndarray, shares: np.ndarray) -> int:
    if shares.max() > 0:
        return int(shares.argmax())
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    apart_x = np.maximum(np.maximum(cells[:, 0] - x, x - cells[:, 2]), 0)
    apart_y = np.maximum(np.maximum(cells[:, 1] - y, y - cells[:, 3]), 0)
    return int(np.hypot(apart_x, apart_y).argmin())


def read_table(reader: TableReader, image: np.ndarray, box: Box, lines: Sequence[Line]) -> Block:
    """The block of a table: cells by the network from the part of the page's image within `box`, text from `lines`.

    Args:
        image: The page, [H, W, 3] uint8 RGB. box: In its pixels. lines: Those of the table.
    """
    crop, place = cut_box(image, box)
    table = reader(crop)
    moved = tuple(
        replace(cell, bbox=_move(cell.bbox, *place[:2])) if cell.bbox is not None else cell
        for cell in table.cells
    )
    filled = fill_cells(replace(table, cells=moved), lines)
    score = float(np.mean([cell.score for cell in filled.cells])) if filled.cells else 0.0
    return Block("table", place, filled.text, tuple(lines), score, content=filled)


def _move(box: Box, x: float, y: float) -> Box:
    return box[0] + x, box[1] + y, box[2] + x, box[3] + y


def replace_tables(
    blocks: Sequence[Block], image: np.ndarray, open_reader: Callable[[], TableReader], margin: float = 2.0
) -> list[Block]:
    """Blocks in which each table that was found by the places of its words is read again by the network.

    A table that the network finds no cells in stays as it was.
    """
    found = []
    for block in blocks:
        if block.label != "table":
            found.append(block)
            continue
        left, top, right, bottom = block.bbox
        box = (left - margin, top - margin, right + margin, bottom + margin)
        again = read_table(open_reader(), image, box, block.lines)
        found.append(again if isinstance(again.content, Table) and again.content.cells else block)
    return found
