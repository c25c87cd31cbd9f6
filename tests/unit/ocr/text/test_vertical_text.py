"""Pages of vertical text: their paragraphs, where those stand, and what is read first."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.documents.assemble import arrange
from ocr.results.blocks import Block
from ocr.results.geometry import box_polygon
from ocr.results.lines import Line, LineStyle
from ocr.text.paragraphs import make_text_blocks
from ocr.text.vertical_text import column_box, is_vertical_text, level_box, level_line

LONG = "吾輩は猫である名前はまだ無いどこで生れたか"


def column(text: str, right: float, size: float = 10.0, top: float = 0.0) -> Line:
    box = (right - size, top, right, top + size * len(text))
    return Line(
        text,
        1.0,
        box_polygon(box),
        orientation=0,
        vertical=True,
        style=LineStyle(size, False, False, "Mincho"),
    )


def test_turned_boxes_come_back() -> None:
    box = (10.0, 20.0, 30.0, 90.0)
    assert level_box(box, 100.0) == (20.0, 70.0, 90.0, 90.0)
    assert column_box(level_box(box, 100.0), 100.0) == box
    row = level_line(column("いろは", 100.0, top=5.0), 120.0)
    assert row.polygon == box_polygon((5.0, 20.0, 35.0, 30.0)) and not row.vertical


@pytest.mark.parametrize("tiers", [1, 2])
def test_paragraphs_of_columns_are_read_from_right_to_left(tiers: int) -> None:
    paragraphs, lines = ["題名である"], [column("題名である", 400.0, 20.0)]
    for tier in range(tiers):
        right, top = 350.0, 300.0 * tier
        for number in range(3):
            said = [LONG, LONG, "何年何月" if number < 2 else LONG[:7]]
            lines += [column(text, right - 15.0 * n, top=top) for n, text in enumerate(said)]
            paragraphs.append("".join(said))
            right -= 15.0 * len(said) + 15.0
    assert is_vertical_text(lines)
    for seed in range(3):
        shuffled = [lines[i] for i in np.random.default_rng(seed).permutation(len(lines))]
        blocks = arrange(make_text_blocks(shuffled, height=600.0), 600.0)
        assert [block.text for block in blocks] == paragraphs
        assert [block.label for block in blocks][:2] == ["doc_title", "text"]
        assert sorted(line.text for block in blocks for line in block.lines) == sorted(
            map(str, [x.text for x in lines])
        )
        assert all(line.vertical for block in blocks for line in block.lines)
        assert blocks[0].bbox == (380.0, 0.0, 400.0, 100.0)


def test_a_page_with_one_vertical_line_is_level() -> None:
    level = Line("A line of level text that is long", 1.0, box_polygon((0, 0, 300, 10)))
    assert not is_vertical_text([level, column("縦書き", 400.0)])
    first, second = (
        Block("text", (200, 0, 300, 50), "b", (level,)),
        Block("text", (0, 0, 100, 50), "a", (level,)),
    )
    assert [block.text for block in arrange([first, second], 100.0)] == ["a", "b"]
