"""Tables whose first column is the rightmost one, and white inside the cells of numbers."""

from __future__ import annotations

from ocr.results.blocks import Block, Cell, Table
from ocr.tables.right_to_left import in_reading_order
from ocr.tables.text_tables import find_text_tables
from tests.unit.ocr.tables.test_text_tables import line


def test_columns_of_hebrew_are_counted_from_the_right() -> None:
    cells = (
        Cell(0, 0, "שלל ונמל", 1, 2),
        Cell(0, 2, "עיר"),
        Cell(1, 0, "120"),
        Cell(1, 1, "14"),
        Cell(1, 2, "חיפה"),
    )
    (block,) = in_reading_order([Block("table", (0, 0, 9, 9), "", content=Table(cells))])
    assert block.text.split("\n") == ["עיר\tשלל ונמל\t", "חיפה\t14\t120"]
    latin = Block("table", (0, 0, 9, 9), "", content=Table((Cell(0, 0, "a"), Cell(0, 1, "b"))))
    assert in_reading_order([latin]) == (latin,)


def test_a_share_in_brackets_is_no_column() -> None:
    """OCR's boxes leave little white between a number and its share, and much between columns."""
    lines = []
    for number, name in enumerate(("Women", "Men", "Right", "Left", "Other", "Both")):
        y = 16.0 * number
        lines.append(line(0, y, name))
        for place, value in ((100, 30), (200, 40), (300, 50)):
            first, second = line(place, y, str(value + number)), line(place + 15, y, f"({value})")
            lines += [first, second]
    (block,), _ = find_text_tables([line(0, -16, "Table 1: Patients"), *lines])
    assert block.content.columns == 4  # type: ignore[union-attr]
