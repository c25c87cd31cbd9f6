"""Cells between two rows, and ruled rows that hold several: no line is lost where their places are taken."""

from __future__ import annotations

from ocr.results.blocks import Cell, Table
from ocr.results.geometry import box_polygon
from ocr.results.lines import Line
from ocr.tables.middle_cells import MiddleCell, add_middle_cells, middle_cells
from ocr.tables.text_segments import Segment
from ocr.tables.unruled_rows import CellArea, part_rows


def line(text: str, left: float, top: float) -> Line:
    return Line(text, 1.0, box_polygon((left, top, left + 6.0 * len(text), top + 10.0)))


def segment(text: str, left: float, top: float) -> Segment:
    one = line(text, left, top)
    return Segment(one, (left, top, left + 6.0 * len(text), top + 10.0))


def test_two_texts_between_two_rows_in_one_column():
    rows = [
        [segment("Summer", 100, 0), segment("Winter", 200, 0)],
        [segment("City", 0, 7), segment("of", 30, 7)],
        [segment("Day", 100, 14), segment("Night", 200, 14)],
    ]
    placed = [[(1, 1), (2, 2)], [(0, 0), (0, 0)], [(1, 1), (2, 2)]]
    remaining, middle = middle_cells(rows, placed, 10.0)
    assert remaining == [0, 2] and [one.above for one in middle] == [0, 0]
    cells = [Cell(r, c + 1, row[c].line.text) for r, row in enumerate((rows[0], rows[2])) for c in range(2)]
    cells = add_middle_cells(cells, middle, [[0], [1]])
    below = Table(tuple(cells), 2, 3).grid()[1][0]
    assert below is not None and below.text == "City of"
    assert [(cell.text, cell.rowspan) for cell in cells if cell.column == 0] == [("City of", 2)]


def test_a_text_between_the_lines_of_one_row_is_of_that_row():
    cells = add_middle_cells([Cell(0, 1, "a")], [MiddleCell(segment("City", 0, 7), 0, 0, 0)], [[0, 1]])
    assert [(cell.text, cell.row, cell.rowspan) for cell in cells] == [("a", 0, 1), ("City", 0, 1)]


def test_lines_that_stand_out_of_their_area_stay_in_it():
    names = [line(name, 4, 12.0 * n - 8) for n, name in enumerate(("Oslo", "Rome", "Bern"))]
    areas = [
        CellArea(0, 0, 1, 1, (0.0, 0.0, 100.0, 20.0), names),
        CellArea(0, 1, 1, 1, (100.0, 0.0, 200.0, 20.0), [line(str(n), 104, 12.0 * n - 8) for n in range(3)]),
    ]
    parted, rows = part_rows(areas, 1)
    assert rows == 3
    assert [[one.text for one in area.lines] for area in parted] == [
        ["Oslo"], ["0"], ["Rome"], ["1"], ["Bern"], ["2"]
    ]  # fmt: skip
