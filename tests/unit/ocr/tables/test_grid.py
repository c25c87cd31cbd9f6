"""Rows, columns and merges as a network learns them, and back to cells."""

import numpy as np

from ocr.tables.grid import BIN, make_targets, read_grid
from ocr.tables.structure import GridCell

CELLS = [
    GridCell(0, 0, 1, 2, True),
    GridCell(1, 0, 2, 1),
    GridCell(1, 1),
    GridCell(2, 1),
]
BOXES = np.array([[2, 2, 30, 8], [2, 12, 12, 18], [20, 12, 30, 18], [20, 22, 30, 28]], np.float32)
MORE = [GridCell(1, 0), GridCell(2, 0)]


def outputs(cells, boxes, filled=None, most=(4, 3), size=(32, 40)):
    filled = np.ones(len(cells), bool) if filled is None else filled
    return make_targets(cells, boxes, filled, size, most)


def test_targets_by_hand():
    # Without a cell in the first column alone, its extent is not known.
    assert outputs(CELLS, BOXES).counts == 1
    found = outputs(CELLS, BOXES)
    assert found.between_rows.tolist() == [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1]
    assert found.between_columns.tolist() == [1] + [0] * 5 + [1] * 4 + [0] * 5 + [1] * 5
    assert found.head.tolist() == [1] * 5 + [0] * 11
    assert found.right[:3, :2].tolist() == [[1, 0], [0, 0], [0, 0]]
    assert found.down[:3, :2].tolist() == [[0, 0], [1, 0], [0, 0]]
    assert found.grid.sum() == 6


def test_targets_become_the_cells_again():
    found = outputs(CELLS, BOXES)
    grid = read_grid(found._asdict(), (30, 34))
    assert grid.cells == CELLS and grid.rows == 3
    assert grid.boxes[0].tolist() == [0, 0, 34, 10] and grid.boxes[3].tolist() == [16, 20, 34, 30]
    assert (grid.scores > 0.9).all()


def test_tables_that_cannot_be_split_do_not_count():
    touching = BOXES.copy()
    touching[3, [1, 3]] = 12, 18  # two rows at one height
    for cells, boxes, filled, most in (
        (CELLS, BOXES, np.array([True, True, True, False]), (4, 3)),  # a row without text
        (CELLS, touching, None, (4, 3)),
        (CELLS, BOXES, None, (2, 3)),
        ([], np.zeros((0, 4), np.float32), None, (4, 3)),
    ):
        found = outputs(cells, boxes, filled, most)
        assert found.counts == 0 and found.grid.sum() == 0 and found.between_rows.all()


def test_nothing_found_is_an_empty_grid():
    nothing = {name: np.ones(16) for name in ("between_rows", "head", "between_columns")}
    nothing |= {name: np.zeros((4, 3)) for name in ("right", "down")}
    assert read_grid(nothing, (32, 32)).cells == []


def test_any_probabilities_give_cells_that_do_not_overlap():
    rng = np.random.default_rng(1)
    for _ in range(50):
        drawn = {name: rng.random(40) for name in ("between_rows", "head", "between_columns")}
        drawn |= {name: rng.random((5, 4)) for name in ("right", "down")}
        found = read_grid(drawn, (40 * BIN, 40 * BIN))
        places = [
            (y, x)
            for cell in found.cells
            for y in range(cell.row, cell.row + cell.rowspan)
            for x in range(cell.column, cell.column + cell.colspan)
        ]
        assert len(places) == len(set(places)) and (np.diff(found.boxes[:, [0, 2]]) > 0).all()
