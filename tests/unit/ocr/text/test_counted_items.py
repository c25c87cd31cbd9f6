"""Items of lists whose marks are bare numbers and letters."""

from __future__ import annotations

import pytest

from ocr.results.geometry import box_polygon
from ocr.results.lines import Line, LineStyle
from ocr.text.counted_items import mark_counted_items
from ocr.text.paragraphs import find_paragraphs
from ocr.text.rows import Row


def line(text: str, x: float, y: float, size: float = 10.0) -> Line:
    box = (x, y, x + 5.0 * len(text), y + size)
    return Line(text, 1.0, box_polygon(box), (), 0, False, LineStyle(size, False, False, ""))


def rows_of(*marks: str, apart: float = 20.0) -> list[Row]:
    return [
        Row.of([line(mark, 0, 20 * n), line("Open the box", apart, 20 * n)]) for n, mark in enumerate(marks)
    ]


@pytest.mark.parametrize(
    "marks", [("1", "2"), ("5", "6", "7"), ("a", "b"), ("i", "ii", "iii"), ("A", "B", "C")]
)
def test_marks_that_count_on_begin_items(marks: tuple[str, ...]) -> None:
    assert all(row.counted for row in mark_counted_items(rows_of(*marks)))


@pytest.mark.parametrize("marks", [("1",), ("1", "3"), ("7", "8"), ("4", "4"), ("x", "y"), ("12", "7", "30")])
def test_other_numbers_begin_none(marks: tuple[str, ...]) -> None:
    assert not any(row.counted for row in mark_counted_items(rows_of(*marks)))


def test_a_number_close_to_its_word_is_a_part_of_the_sentence() -> None:
    assert not any(row.counted for row in mark_counted_items(rows_of("1", "2", apart=8.0)))


def test_rows_of_several_cells_are_no_items() -> None:
    rows = [
        Row.of([line(str(n), 0, 20 * n), line("Pear", 20, 20 * n), line("9.50", 200, 20 * n)]) for n in (1, 2)
    ]
    assert not any(row.counted for row in mark_counted_items(rows))


def test_a_mark_in_larger_type_makes_no_heading() -> None:
    words = "and all of them agreed that this was as it should be"
    lines = [line(words, 0, 14.0 * n) for n in range(4)]
    for n in (1, 2):
        lines += [line(str(n), 0, 70.0 + 20 * n, 13.0), line("Open the box", 25, 71.0 + 20 * n)]
    found = find_paragraphs(lines, height=800)
    assert [one.label for one in found] == ["text", "list_item", "list_item"]
    assert [one.text for one in found[1:]] == ["1 Open the box", "2 Open the box"]


def test_the_row_of_the_page_number_stands_behind_all_columns() -> None:
    words = "and all of them agreed that it was so"
    lines = [line(words, x, 14.0 * n) for x in (0.0, 220.0) for n in range(1, 40)]
    lines += [line("Journal of Tests", 0, 700), line("7", 400, 700)]
    found = find_paragraphs(lines, height=760)
    assert found[-1].text == "Journal of Tests 7"
    assert len(found) == 3
