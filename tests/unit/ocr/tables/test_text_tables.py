"""Tables told by the places of words: what stands above a caption is none of theirs."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.results.lines import Line, Word
from ocr.tables.ruling_lines import Rules
from ocr.tables.text_tables import find_text_tables

CELLS = [("Muscle", "Origin", "Nerve"), ("Teres", "Border", "Axillary"), ("Deltoid", "Clavicle", "Axillary")]


def line(left: float, top: float, text: str) -> Line:
    right = left + 6.0 * len(text)
    quad = ((left, top), (right, top), (right, top + 10), (left, top + 10))
    return Line(text, 1.0, quad, (Word(text, 1.0, quad),))


def page(*first: Line) -> list[Line]:
    """The lines, and a table of three columns below them."""
    return [
        *first,
        *(
            line(100.0 * column, 60 + 16 * row, text)
            for row, cells in enumerate(CELLS)
            for column, text in enumerate(cells)
        ),
    ]


@pytest.mark.parametrize("ruled", [False, True])
def test_a_header_and_a_caption_above_the_first_row(ruled: bool) -> None:
    head = [line(0, 12, "4"), line(200, 12, "Anatomy"), line(0, 36, "Table 1: The muscles of the shoulder")]
    rules = np.array([(5.0, 0.0, 290.0), (54.0, 0.0, 290.0), (74.0, 0.0, 290.0), (112.0, 0.0, 290.0)])
    found = Rules(rules, np.zeros((0, 3)), unit=1.0) if ruled else None
    (block,), rest = find_text_tables(page(*head), found)
    assert [[cell.text for cell in block.content.cells if cell.row == row] for row in range(3)] == [  # type: ignore[union-attr]
        list(cells) for cells in CELLS
    ]
    assert block.bbox[1] > 46
    assert [one.text for one in rest] == ["4", "Anatomy", "Table 1: The muscles of the shoulder"]


def test_a_caption_below_is_left_out_too() -> None:
    lines = [*page(), line(0, 120, "Table 1: The muscles of the shoulder")]
    (block,), rest = find_text_tables(lines)
    assert "muscles" not in block.text and [one.text for one in rest] == [lines[-1].text]
