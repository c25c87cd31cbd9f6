"""Words into cells, and the tables of a page read again by a network."""

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.vision.normalize import Normalize
from ocr.results.blocks import Block, Cell, Table
from ocr.results.lines import Line, Word
from ocr.tables.cell_bands import find_bands
from ocr.tables.network_tables import fill_cells, read_table, replace_tables
from ocr.tables.stage import TableOptions, TableRecognizer
from ocr.tables.structure import TableDictionary


def quad(left: float, top: float, right: float, bottom: float):
    return ((left, top), (right, top), (right, bottom), (left, bottom))


GRID = Table((Cell(0, 0, bbox=(0, 0, 20, 10)), Cell(0, 1, bbox=(20, 0, 40, 10)), Cell(1, 0, colspan=2)))


def test_lines_go_to_cells_and_are_divided_between_their_words():
    words = (Word("left", 1.0, quad(2, 2, 15, 8)), Word("right", 1.0, quad(22, 2, 38, 8)))
    lines = [Line("left right", 0.9, quad(2, 2, 38, 8), words), Line("far", 0.9, quad(50, 30, 60, 38))]
    table = fill_cells(GRID, lines)
    assert [cell.text for cell in table.cells] == ["left", "right far", ""]
    assert fill_cells(Table(()), lines).cells == ()
    assert fill_cells(Table((Cell(0, 0),)), lines).cells[0].text == "left right far"


def test_cells_without_boxes_get_them_from_the_words():
    cells = (Cell(0, 0, colspan=2), Cell(1, 0), Cell(1, 1), Cell(2, 0), Cell(2, 1))
    places = {
        "over both": (10, 0, 70, 8),  # reaches over the gap between the columns
        "a b": (0, 20, 30, 28),
        "c": (50, 20, 60, 28),
        "d": (0, 40, 20, 48),
        "ee ff": (45, 40, 80, 48),
    }
    lines = [Line(text, 1.0, quad(*box)) for text, box in places.items()]
    table = fill_cells(Table(cells), lines)
    assert [cell.text for cell in table.cells] == list(places)
    assert [cell.bbox for cell in table.cells][:3] == [(0, 0, 80, 14), (0, 14, 37.5, 34), (37.5, 14, 80, 34)]
    assert fill_cells(Table(cells), []) == Table(cells)


def test_bands_are_parted_where_the_fewest_words_are():
    spans = np.array([[0, 4], [1, 4], [6, 9], [9.5, 12], [0, 3]], float)
    assert find_bands(spans, 2).tolist() == [0, 5, 12]
    assert find_bands(spans, 3).tolist() == [0, 5, 9.25, 12]
    assert find_bands(spans, 4).tolist() == [0, 3, 6, 9, 12]  # there are two gaps
    assert find_bands(np.array([[2.0, 2.0]]), 2).tolist() == [2, 2, 2]
    assert find_bands(spans, 1).tolist() == [0, 12]


def test_tables_of_a_page_are_read_from_their_part_of_the_image():
    seen = []

    def reader(image: np.ndarray) -> Table:
        seen.append(image.shape)
        return GRID

    page = np.zeros((60, 80, 3), np.uint8)
    line = Line("x", 0.9, quad(33, 12, 38, 18))
    block = read_table(reader, page, (10, 10, 50, 30), [line])
    assert seen == [(20, 40, 3)] and isinstance(block.content, Table)
    assert block.content.cells[1].bbox == (30, 10, 50, 20) and block.content.cells[1].text == "x"
    text = Block("text", (0, 0, 5, 5), "kept")
    found = replace_tables(
        [text, Block("table", (10, 10, 50, 30), lines=(line,), content=GRID)], page, lambda: reader
    )
    assert found[0] is text and found[1].text == "\tx\n\t" and found[1].bbox == (8, 8, 52, 32)
    old = Block("table", (70, 50, 90, 90), content=GRID)
    assert replace_tables([old], page, lambda: lambda image: Table(())) == [old]


class Program:
    """Stands in for an engine: gives what it is told, and keeps what it was given."""

    def __init__(self, **outputs: np.ndarray) -> None:
        self.outputs, self.inputs = outputs, {}

    def __call__(self, inputs):
        self.inputs = inputs
        return self.outputs


@pytest.mark.parametrize(
    ("scale", "box"), [("content", (0, 0, 50, 10)), ("padded", (0, 0, 50, 50)), ("none", None)]
)
def test_tokens_become_cells_with_boxes_in_the_images_pixels(scale, box):
    dictionary = TableDictionary().tokens
    numbers = [
        dictionary.index(token) for token in ("<tbody>", "<tr>", "<td></td>", "</tr>", "eos", "<td></td>")
    ]
    program = Program(
        tokens=np.array([numbers], np.int32),
        probabilities=np.full((1, 6), 0.5, np.float32),
        boxes=np.tile(np.array([0, 0, 0.5, 0.5], np.float32), (1, 6, 1)),
    )
    options = TableOptions(Normalize((0.5,) * 3, (0.5,) * 3), (64, 64), "tokens", dictionary, scale)
    table = TableRecognizer(program, options)(np.full((20, 100, 3), 9, np.uint8))  # type: ignore[arg-type]
    (cell,) = table.cells
    assert cell.bbox == (box and pytest.approx(box, abs=1)) and cell.score == 0.5
    assert program.inputs["size"].tolist() == [[13, 64]]
    assert program.inputs["image"][0, :13].all() and not program.inputs["image"][0, 13:].any()


def test_table_masters_boxes_are_centers_and_its_empty_cells_have_none():
    dictionary = TableDictionary("table_master").tokens
    said = (
        "<tr>",
        "<td></td>",
        "<eb1></eb1>",
        ' colspan="2"',
        ">",
        "</td>",
        "</tr>",
        "unknown",
        "eos",
        "<td",
    )
    program = Program(
        tokens=np.array([[dictionary.index(token) for token in said]], np.int32),
        probabilities=np.linspace(0, 0.9, 10, dtype=np.float32)[None],
        boxes=np.tile(np.array([0.5, 0.25, 0.5, 0.6], np.float32), (1, 10, 1)),
    )
    options = TableOptions(
        Normalize((0.5,) * 3, (0.5,) * 3), (64, 64), "tokens", dictionary, "padded", "center"
    )
    table = TableRecognizer(program, options)(np.full((64, 64, 3), 9, np.uint8))  # type: ignore[arg-type]
    first, second = table.cells
    assert first.bbox == pytest.approx((16, 0, 48, 0.55 * 64)) and second.bbox is None
    assert second.colspan == 2 and (first.score, second.score) == pytest.approx((0.1, 0.2))


def test_an_empty_image_is_refused():
    options = TableOptions(Normalize((0.5,) * 3, (0.5,) * 3))
    with pytest.raises(InputError, match="image of a table is empty"):
        TableRecognizer(Program(), options)(np.zeros((0, 5, 3), np.uint8))  # type: ignore[arg-type]
