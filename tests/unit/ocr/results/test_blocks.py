"""Blocks, tables and fields: what they refuse, the grid, HTML, and the way to JSON and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from ocr.results.blocks import Block, Cell, Field, Figure, Formula, Table
from ocr.results.lines import Line
from ocr.results.pages import Document, Page

SQUARE = ((0, 0), (9, 0), (9, 5), (0, 5))


def table() -> Table:
    """A head of two columns under one span, and a body whose first cell goes over two rows."""
    return Table(
        (
            Cell(0, 0, "a & b", colspan=2, header=True),
            Cell(1, 0, "x", rowspan=2, bbox=(0, 1, 2, 3), score=0.5, lines=(Line("x", 0.9, SQUARE),)),
            Cell(1, 1, "1\n2"),
            Cell(2, 1, "3"),
        )
    )


def document() -> Document:
    blocks = (
        Block("doc_title", (0, 0, 9, 5), "Title", order=0, level=1, lines=(Line("Title", 1.0, SQUARE),)),
        Block(
            "table",
            np.array([0.0, 1, 5, 6]),  # type: ignore[arg-type]
            "t",
            score=np.float32(0.25),  # type: ignore[arg-type]
            order=1,
            content=table(),
            children=(Block("table_title", (0, 6, 5, 7), "Table 1", polygon=SQUARE),),
            continued=np.True_,  # type: ignore[arg-type]
        ),
        Block("formula", (0, 0, 1, 1), "x^2", content=Formula("x^2", inline=True)),
        Block("image", (0, 0, 1, 1), content=Figure(path="a.png")),
    )
    page = Page(
        (),
        3,
        {},
        blocks,
        text_from="text-layer",
        to_points=(0.5, 0.0, 0.0, -0.5, 0.0, 400.0),
        warnings=("no text",),
        source="a.pdf",
        width=20,
        height=10,
    )
    return Document((page,), "a.pdf", (Field("total", "1.00", 0.5, "Total:", 3, ((0, 0, 1, 1),)),))


def test_table_grid_and_html():
    grid = table().grid()
    assert [[cell.text if cell else None for cell in row] for row in grid] == [
        ["a & b", "a & b"],
        ["x", "1\n2"],
        ["x", "3"],
    ]
    assert table().to_html() == (
        '<table><thead><tr><td colspan="2">a &amp; b</td></tr></thead><tbody>'
        '<tr><td rowspan="2">x</td><td>1<br>2</td></tr><tr><td>3</td></tr></tbody></table>'
    )
    assert table().text == "a & b\t\nx\t1 2\n\t3"
    assert table().has_spans and not Table((Cell(0, 0),)).has_spans


def test_places_without_a_cell_are_empty_cells():
    assert Table((Cell(1, 1, "z"),)).to_html() == (
        "<table><tbody><tr><td></td><td></td></tr><tr><td></td><td>z</td></tr></tbody></table>"
    )
    assert Table(()).to_html() == "<table></table>"
    assert (Table((), 2, 3).rows, Table((), 2, 3).columns) == (2, 3)


def test_document_survives_json():
    assert Document.from_dict(json.loads(document().to_json())) == document()
    assert document().tables == (table(),)
    assert hash(document().pages[0].blocks[1]) == hash(document().pages[0].blocks[1])


def test_header_cells_of_numpy_are_plain():
    """A comparison with a number of rows that numpy counted gives one."""
    cell = Cell(0, 0, header=np.int64(0) < np.int64(1))  # type: ignore[arg-type]
    assert cell.header is True
    block = Block("table", (0, 0, 1, 1), content=Table((cell,)))
    Document((Page((), source="", width=1, height=1, blocks=(block,)),)).to_json()


def test_a_page_that_was_only_read_says_nothing_of_blocks():
    page = Page((), source="", width=1, height=1)
    assert set(page.to_dict()) == {"source", "width", "height", "page", "lines", "seconds"}
    assert "fields" not in Document((page,)).to_dict()


def test_walk_gives_the_children():
    assert [block.label for block in document().pages[0].blocks[1].walk()] == ["table", "table_title"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cell(-1, 0), "row is too small"),
        (lambda: Cell(0, 0, rowspan=0), "rowspan is too small"),
        (lambda: Cell(0, 0, bbox=(2, 0, 1, 1)), "not a box"),
        (lambda: Cell(0, 0, score=float("nan")), "a score is not finite"),
        (lambda: Table((Cell(0, 0, colspan=2), Cell(0, 1))), "two cells lie on one place of the grid"),
        (lambda: Table((Cell(0, 2),), columns=2), "a cell stands outside of the table"),
        (lambda: Block("paragraph", (0, 0, 1, 1)), "unknown kind of block"),
        (lambda: Block("text", (0, 0, 1, float("inf"))), "not a box"),
        (lambda: Field("total", "1", boxes=((0, 0, 1),)), "not a box"),  # type: ignore[arg-type]
    ],
)
def test_errors(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_unknown_keys_of_a_file_are_an_error():
    plain = document().to_dict()
    plain["pages"][0]["blocks"][0]["colour"] = "red"
    with pytest.raises(FormatError, match="no OCR result"):
        Document.from_dict(plain)
