"""Boxes of cells from a detector: drawn tables whose boxes are known, what is missed, and which networks are chosen."""

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.inference import Runtime
from ocr.documents import table_models
from ocr.documents.options import DocumentOptions
from ocr.documents.table_models import KindTableReader, make_table_opener
from ocr.results.blocks import Cell, Table
from ocr.results.lines import Line
from ocr.tables.detected_cells import DetectedTableReader, align_in_order, place_by_cells, thin_boxes
from ocr.tables.network_tables import read_table

XS, YS = (0.0, 50.0, 130.0, 160.0, 300.0), (0.0, 20.0, 60.0, 84.0, 120.0, 130.0)


def drawn(rng: np.random.Generator, spans: bool = True) -> tuple[Table, np.ndarray]:
    """A table of 5 rows and 4 columns, some of them joined, and the boxes of its cells [K, 4]."""
    free = np.ones((5, 4), bool)
    cells = []
    for row in range(5):
        for column in range(4):
            if not free[row, column]:
                continue
            down = 1 + int(spans and row < 4 and rng.random() < 0.2)
            across = 1 + int(spans and column < 3 and free[row, column + 1] and rng.random() < 0.2)
            free[row : row + down, column : column + across] = False
            cells.append(Cell(row, column, rowspan=down, colspan=across))
    boxes = [(XS[c.column], YS[c.row], XS[c.column + c.colspan], YS[c.row + c.rowspan]) for c in cells]
    return Table(tuple(cells)), np.array(boxes)


def boxes_of(table: Table) -> np.ndarray:
    return np.array([cell.bbox for cell in table.cells], np.float64)


@pytest.mark.parametrize("seed", range(8))
def test_every_cell_gets_its_box(seed):
    rng = np.random.default_rng(seed)
    table, boxes = drawn(rng)
    order = rng.permutation(len(boxes))
    moved = boxes + rng.uniform(-1, 1, boxes.shape)
    found = place_by_cells(table, moved[order], rng.uniform(0.5, 1, len(boxes)))
    np.testing.assert_allclose(boxes_of(found), moved, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_cells_that_were_missed_are_where_their_row_and_column_are(seed):
    rng = np.random.default_rng(seed)
    table, boxes = drawn(rng, spans=False)
    kept = rng.permutation(20)[:16]
    found = place_by_cells(table, boxes[kept], np.ones(16))
    np.testing.assert_allclose(boxes_of(found), boxes, atol=1e-6)


def test_a_missed_row_is_between_its_neighbours():
    table, boxes = drawn(np.random.default_rng(0), spans=False)
    kept = np.delete(np.arange(20), range(8, 12))
    found = place_by_cells(table, boxes[kept], np.ones(16))
    np.testing.assert_allclose(boxes_of(found), boxes, atol=1e-6)


def test_too_many_and_too_few_boxes():
    table, boxes = drawn(np.random.default_rng(1))
    twice = np.concatenate([boxes, boxes + 1, [[0, 0, 300, 130]]])  # overlaps, and one of the whole table
    scores = np.array([0.9] * len(boxes) + [0.5] * len(boxes) + [0.4])
    np.testing.assert_array_equal([c.bbox for c in place_by_cells(table, twice, scores).cells], boxes)
    few = place_by_cells(table, boxes[: len(boxes) // 2], np.ones(len(boxes) // 2))
    assert [cell.bbox for cell in few.cells] == [None] * len(boxes)
    assert [c.bbox for c in place_by_cells(table, np.zeros((0, 4)), np.zeros(0)).cells] == [None] * len(boxes)
    assert len(thin_boxes(boxes, np.ones(len(boxes)), 3)) == 3
    assert place_by_cells(Table(()), boxes, np.ones(len(boxes))).cells == ()


def test_boxes_in_no_rows_give_every_cell_a_box():
    rng = np.random.default_rng(2)
    for _ in range(50):
        table, boxes = drawn(rng)
        corners = rng.uniform(0, 300, (2, len(boxes), 2))
        anywhere = np.concatenate([corners.min(axis=0), corners.max(axis=0)], axis=1)
        found = place_by_cells(table, anywhere, np.ones(len(boxes)))  # Cell refuses what is no box
        assert len({cell.bbox is None for cell in found.cells}) == 1


def test_pairs_are_in_order_and_of_the_least_cost():
    cost = np.array([[5.0, 1.0, 9.0], [1.0, 9.0, 2.0]])
    assert align_in_order(cost) == [(0, 1), (1, 2)]
    assert align_in_order(cost.T) == [(1, 0), (2, 1)]
    assert align_in_order(np.zeros((2, 2))) == [(0, 0), (1, 1)]


def quad(left, top, right, bottom):
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def test_text_goes_to_the_detected_cells():
    """Words that stand at the edge of wide cells: gaps between words would part them elsewhere."""
    structure = Table((Cell(0, 0), Cell(0, 1), Cell(1, 0), Cell(1, 1)))
    boxes = np.array([[0, 0, 40, 20], [40, 0, 200, 20], [0, 20, 40, 40], [40, 20, 200, 40]], float)
    lines = [
        Line(text, 1.0, quad(*box))
        for text, box in {
            "a": (2, 2, 9, 18),
            "b": (42, 2, 50, 18),
            "c": (2, 22, 38, 38),
            "d": (190, 22, 198, 38),
        }.items()
    ]
    lines.append(Line("right", 1.0, quad(150, 2, 198, 18)))
    reader = DetectedTableReader(lambda image: structure, lambda image: (boxes, np.ones(4)))
    block = read_table(reader, np.zeros((40, 200, 3), np.uint8), (0, 0, 200, 40), lines)
    assert isinstance(block.content, Table)
    assert [cell.text for cell in block.content.cells] == ["a", "b right", "c", "d"]
    empty = DetectedTableReader(lambda image: Table(()), lambda image: (boxes, np.ones(4)))
    assert empty(np.zeros((40, 200, 3), np.uint8)).cells == ()


def test_the_kind_of_a_table_chooses_its_networks(monkeypatch):
    opened = []
    table, boxes = drawn(np.random.default_rng(1))

    def open_structure(name, runtime):
        opened.append(name)
        return lambda image: table

    def open_cells(name, runtime):
        opened.append(name)
        return lambda image: (boxes, np.ones(len(boxes)))

    monkeypatch.setattr(table_models, "open_structure", open_structure)
    monkeypatch.setattr(table_models, "open_cells", open_cells)
    monkeypatch.setattr(
        table_models, "open_kinds", lambda name, runtime: lambda image: "wired" if image.any() else "wireless"
    )
    read = make_table_opener("SLANeXt", Runtime(), "RT-DETR-L_table_cell_det")()
    dark, light = np.zeros((4, 4, 3), np.uint8), np.ones((4, 4, 3), np.uint8)
    for image in (light, dark, light):
        assert read(image).cells[0].bbox is not None
    wired, wireless = (["SLANeXt_" + k, f"RT-DETR-L_{k}_table_cell_det"] for k in ("wired", "wireless"))
    assert opened == wired + wireless
    opened.clear()
    plain = make_table_opener("SLANet", Runtime(), "cells")
    assert plain() is plain() and plain()(dark).cells[0].bbox and opened == ["SLANet", "cells"]
    opened.clear()
    both = make_table_opener("SLANet", Runtime(), "cells_{kind}")()
    assert both(dark).cells and both(light).cells and isinstance(both, KindTableReader)
    assert opened == ["SLANet", "cells_wireless", "cells_wired"]


def test_wrong_models_and_options(monkeypatch):
    with pytest.raises(InputError, match=r"boxes of cells are for a table's structure(.|\n)*table_model"):
        DocumentOptions(cell_model="RT-DETR-L_wired_table_cell_det")
    with pytest.raises(FormatError, match=r"does not find the cells(.|\n)*classes text, title(.|\n)*RT-DETR"):
        table_models.open_cells("picodet_s_layout_synthetic")
    told = type("Told", (), {"label": "cat"})()
    monkeypatch.setattr(table_models, "open_predictor", lambda *_, **__: lambda image: told)
    with pytest.raises(FormatError, match=r"does not tell tables(.|\n)*'cat'(.|\n)*wired_table"):
        table_models.open_kinds("any")(np.zeros((4, 4, 3), np.uint8))
