"""Cells over several rows of tables without rules: in the middle of them, as browsers and WeasyPrint place them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ocr.results.blocks import Table
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf
from tests.unit.ocr.documents.test_pages_of_others import READ, prose

Place = tuple[float, int, str]  # the row in whose middle a text stands, its column, what it says
COLUMNS = (30, 110, 200, 280)


def rows_of_table(places: Sequence[Place]) -> list[list[tuple[str, int]]]:
    """The texts and row spans of the table on a page, between two paragraphs; each row stands 16 points lower."""
    page = PdfPage()
    prose(page, 20, 20, 2)
    for row, column, said in places:
        page.text(COLUMNS[column], 60 + 16 * row, said, 9)
    prose(page, 20, 60 + 16 * (max(row for row, _, _ in places) + 3), 2)
    tables = [block.content for block in READ(make_pdf(page)).pages[0].blocks if block.label == "table"]
    assert len(tables) == 1
    table = tables[0]
    assert isinstance(table, Table)
    return [
        [
            (cell.text, cell.rowspan)
            for cell in sorted(table.cells, key=lambda cell: cell.column)
            if cell.row == row
        ]
        for row in range(table.rows)
    ]


def singles(*texts: str) -> list[tuple[str, int]]:
    return [(text, 1) for text in texts]


def table_rows(*rows: Sequence[str], first: int = 0) -> list[Place]:
    return [(row, first + n, said) for row, cells in enumerate(rows) for n, said in enumerate(cells) if said]


def test_names_of_groups_span_two_and_three_rows() -> None:
    places = [(0, 0, "River"), (1.5, 0, "Esk"), (4, 0, "Tay")]
    places += table_rows(
        ("Gauge", "Depth", "Flow"),
        ("Langholm", "1.20", "33.1"),
        ("Canonbie", "0.90", "41.5"),
        ("Perth", "2.10", "160.2"),
        ("Caputh", "1.75", "144.0"),
        ("Aberfeldy", "1.05", "72.9"),
        first=1,
    )
    assert rows_of_table(places) == [
        singles("River", "Gauge", "Depth", "Flow"),
        [("Esk", 2), *singles("Langholm", "1.20", "33.1")],
        singles("Canonbie", "0.90", "41.5"),
        [("Tay", 3), *singles("Perth", "2.10", "160.2")],
        singles("Caputh", "1.75", "144.0"),
        singles("Aberfeldy", "1.05", "72.9"),
    ]


def test_words_alone_span_rows_on_both_sides() -> None:
    places = table_rows(("Shift", "Start", "Task", "Lead"))
    places += [(1.5, 0, "Early"), (3.5, 0, "Late"), (1.5, 3, "Olga")]
    places += [(1, 1, "06:00"), (1, 2, "Baking"), (2, 1, "08:00"), (2, 2, "Packing")]
    places += [
        (3, 1, "14:00"),
        (3, 2, "Loading"),
        (3, 3, "Henk"),
        (4, 1, "18:00"),
        (4, 2, "Cleaning"),
        (4, 3, "Ruth"),
    ]
    assert rows_of_table(places) == [
        singles("Shift", "Start", "Task", "Lead"),
        [("Early", 2), *singles("06:00", "Baking"), ("Olga", 2)],
        singles("08:00", "Packing"),
        [("Late", 2), *singles("14:00", "Loading", "Henk")],
        singles("18:00", "Cleaning", "Ruth"),
    ]


@pytest.mark.parametrize("note", ["late", "broken"])
def test_a_note_in_one_row_spans_none(note: str) -> None:
    """Nothing stands between two rows of its column: what is empty there is empty."""
    places = table_rows(
        ("Train", "Leaves", "Price", "Note"),
        ("IC 4", "9", "12.50", ""),
        ("RE 7", "11", "8.00", note),
        ("IC 6", "13", "12.50", ""),
        ("S 2", "14", "4.10", ""),
    )
    assert {span for row in rows_of_table(places) for _, span in row} == {1}
