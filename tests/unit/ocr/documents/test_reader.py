"""Documents from PDFs: text layer, tables, headings, order, what goes on over breaks, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ocr
from framework.core.errors import ConfigError, InputError
from framework.workflow.files.pdf import PdfReader
from ocr.documents.layout_regions import Region
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader, parse_pages
from ocr.exporters._joined_blocks import join_tables
from ocr.results.blocks import Cell, Table
from ocr.results.geometry import box_polygon
from ocr.results.layer_check import is_usable
from ocr.results.lines import Line
from ocr.results.page_text import read_text_layer
from ocr.results.pages import Document
from ocr.tables.ruled_tables import find_ruled_tables
from ocr.tables.ruling_lines import ruling_lines_of_page
from ocr.tables.scanned_ruling_lines import ruling_lines_of_image
from ocr.text.paragraphs import heading_depth
from ocr.text.rows import Row, join_rows
from tests.unit.ocr.documents.pdf_pages import HEIGHT, WIDTH, PdfPage, make_pdf


def no_ocr():
    raise AssertionError("a page with a text layer was read by OCR")


READ = DocumentReader(Lazy(no_ocr), dpi=72.0)


def paragraph(page: PdfPage, x: float, y: float, *rows: str) -> PdfPage:
    for number, row in enumerate(rows):
        page.text(x, y + 12 * number, row)
    return page


def grid(page: PdfPage, xs: list[float], ys: list[float]) -> PdfPage:
    for x in xs:
        page.line(x, ys[0], x, ys[-1])
    for y in ys:
        page.line(xs[0], y, xs[-1], y)
    return page


LEFT = (
    "The left column begins with words",
    "and goes on in a second row, then",
    "ends with a third row that is cut",
)
RIGHT = (
    "off here, in the right column, which",
    "is as long as the left one of them",
    "and ends the sentence with a stop.",
)


def two_columns() -> PdfPage:
    page = PdfPage().text(80, 40, "A title over both", 20, "Bold").text(30, 70, "1 Introduction", 13, "Bold")
    return paragraph(paragraph(page, 30, 90, *LEFT), 220, 90, *RIGHT)


def test_columns_headings_and_what_goes_on():
    found = READ(make_pdf(two_columns()))
    blocks = found.pages[0].blocks
    assert [(b.label, b.level, b.continued) for b in blocks] == [
        ("doc_title", 1, False),
        ("paragraph_title", 2, False),
        ("text", 0, False),
        ("text", 0, True),
    ]
    assert found.to_markdown() == (
        "# A title over both\n\n## 1 Introduction\n\n" + " ".join((*LEFT, *RIGHT)) + "\n"
    )
    page = found.pages[0]
    assert (page.text_from, page.width, page.height) == ("text-layer", WIDTH, HEIGHT)
    assert page.to_points == pytest.approx((1, 0, 0, -1, 0, HEIGHT))
    assert Document.from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_lines_stand_where_the_page_draws_them():
    line = READ(make_pdf(PdfPage().text(50, 100, "Word and word"))).pages[0].lines[0]
    left, top = line.polygon[0]
    assert [word.text for word in line.words] == ["Word", "and", "word"]
    assert left == pytest.approx(50, abs=1.5) and 88 < top < 94


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_text_of_turned_pages(rotate):
    with PdfReader(make_pdf(two_columns(), rotate=rotate), dpi=72) as reader:
        layer = read_text_layer(reader.content(0))
        image = reader[0]
    assert {line.orientation for line in layer.lines} == {rotate}
    # Each line's box holds ink.
    for line in layer.lines:
        xs, ys = zip(*line.polygon, strict=True)
        inside = image[round(min(ys)) : round(max(ys)), round(min(xs)) : round(max(xs))]
        assert inside.min() < 128


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_blocks_of_turned_pages(rotate):
    """Tables, columns and headings of a page on its side are those of the upright one, where the page shows them."""
    upright, turned = (READ(make_pdf(table_page(), two_columns(), rotate=angle)) for angle in (0, rotate))
    assert turned.to_markdown() == upright.to_markdown()
    page = turned.pages[0]
    table = page.blocks[0]
    assert isinstance(table.content, Table)
    cell = table.content.cells[0]
    assert cell.text == "Name" and cell.bbox is not None
    x, y = np.mean([table.bbox[:2], table.bbox[2:]], axis=0)
    # The table's middle is 25 points left of and 20 above the page's.
    turns = {90: (150 + 20, 200 - 0), 180: (200, 300 - 130), 270: (130, 200)}
    assert (x, y) == pytest.approx(turns[rotate], abs=1)
    line = cell.lines[0]
    left, top, right, bottom = cell.bbox
    assert all(left - 1 <= px <= right + 1 and top - 1 <= py <= bottom + 1 for px, py in line.polygon)
    assert line in page.lines and line.orientation == rotate
    assert Document.from_dict(turned.to_dict()).to_dict() == turned.to_dict()


def test_headings_over_columns_and_short_columns():
    """A heading shorter than the first column spans all where both begin anew below it; level prose is two columns."""
    page = PdfPage().text(30, 40, "1 First", 14, "Bold").text(30, 120, "2 Second", 14, "Bold")
    for x, side in ((30, "left"), (220, "right")):
        for y, part in ((60, "one"), (140, "two")):
            paragraph(page, x, y, f"The {side} column of part {part}", f"and more of the {side} words.")
    found = READ(make_pdf(page))
    assert [b.text.split(" column")[0] for b in found.pages[0].blocks] == [
        "1 First", "The left", "The right", "2 Second", "The left", "The right"
    ]  # fmt: skip


def test_text_turned_at_the_margin_is_set_aside():
    page = two_columns()
    page.commands.append("BT /Regular 10 Tf 0 1 -1 0 15 60 Tm (a stamp of the library) Tj ET")
    blocks = READ(make_pdf(page)).pages[0].blocks
    assert [(b.text, b.order) for b in blocks if b.label == "aside_text"] == [
        ("a stamp of the library", None)
    ]


def table_page() -> PdfPage:
    page = grid(PdfPage(), [50, 150, 250, 350], [100, 120, 140, 160])
    page.fill(151, 100.5, 249, 101)  # a thin box is a line, too
    for y, row in (
        (114, ("Name", "Price", "Count")),
        (134, ("Apple", "1.50", "3")),
        (154, ("Pear", "2.25", "4")),
    ):
        for x, said in zip((55, 155, 255), row, strict=True):
            page.text(x, y, said)
    return page.text(50, 90, "Table 1: fruit of the day")


def test_ruled_table():
    (block,) = READ(make_pdf(table_page())).pages[0].blocks
    assert isinstance(block.content, Table)
    assert [[c.text for c in row if c] for row in block.content.grid()] == [
        ["Name", "Price", "Count"],
        ["Apple", "1.50", "3"],
        ["Pear", "2.25", "4"],
    ]
    assert [child.text for child in block.children] == ["Table 1: fruit of the day"]
    assert block.content.cells[0].header and block.bbox == pytest.approx((50, 100, 350, 160), abs=2)
    assert READ(make_pdf(table_page())).to_markdown() == (
        "Table 1: fruit of the day\n\n| Name | Price | Count |\n| --- | --- | --- |\n"
        "| Apple | 1.50 | 3 |\n| Pear | 2.25 | 4 |\n"
    )


def test_a_missing_line_is_a_span():
    page = PdfPage()
    for x0, y0, x1, y1 in (
        *((50, y, 250, y) for y in (100, 120, 140)),
        *((x, 100, x, 140) for x in (50, 250)),
        (150, 120, 150, 140),
    ):
        page.line(x0, y0, x1, y1)
    page.text(90, 114, "Both of them").text(55, 134, "left").text(155, 134, "right")
    (table,) = READ(make_pdf(page)).tables
    assert [(c.row, c.column, c.colspan, c.text) for c in table.cells] == [
        (0, 0, 2, "Both of them"),
        (1, 0, 1, "left"),
        (1, 1, 1, "right"),
    ]


def test_tables_of_an_image_need_no_text_layer():
    """The rules of the rendered page give the grid that the PDF's own lines give."""
    with PdfReader(make_pdf(table_page()), dpi=150) as reader:
        content, image = reader.content(0), reader[0]
    lines = read_text_layer(content).lines
    (drawn,), _ = find_ruled_tables(ruling_lines_of_page(content), lines)
    (seen,), _ = find_ruled_tables(ruling_lines_of_image(image, dpi=150), lines)
    assert isinstance(drawn.content, Table) and isinstance(seen.content, Table)
    assert [(c.row, c.column, c.text) for c in seen.content.cells] == [
        (c.row, c.column, c.text) for c in drawn.content.cells
    ]


def test_tables_of_a_layout_are_read_by_the_network():
    page = PdfPage().text(40, 60, "Apple").text(150, 60, "12").text(40, 90, "Pear").text(150, 90, "7")
    seen = []

    def read(image):
        seen.append(image.shape)
        return Table(tuple(Cell(n // 2, n % 2) for n in range(4)))

    def layout(image):
        return (Region("table", (30.0, 45.0, 190.0, 100.0), 0.9),)

    reader = DocumentReader(Lazy(no_ocr), dpi=72.0, layout=layout, table=Lazy(lambda: read))  # type: ignore[arg-type]
    (table,) = reader(make_pdf(page)).tables
    assert [cell.text for cell in table.cells] == ["Apple", "12", "Pear", "7"] and len(seen) == 1


def test_tables_can_be_left_out():
    found = DocumentReader(Lazy(no_ocr), tables=False)(make_pdf(table_page()))
    assert not found.tables and "Apple" in found.to_markdown()


def test_headers_and_numbers_are_not_read_along():
    pages = [
        paragraph(PdfPage(), 50, 100, f"Page text {word} of this page.")
        .text(150, 20, f"Report of {number} pages", 8)
        .text(195, 290, str(number), 8)
        for number, word in enumerate(("one", "two", "three"), 1)
    ]
    found = READ(make_pdf(*pages))
    assert [[b.label for b in page.blocks] for page in found.pages] == [["text", "header", "number"]] * 3
    assert (
        found.to_markdown()
        == "\n\n".join(f"Page text {w} of this page." for w in ("one", "two", "three")) + "\n"
    )


def test_lists():
    page = PdfPage()
    for number, word in enumerate(("first", "second", "third")):
        page.text(50, 100 + 12 * number, f"{number + 1}. the {word} thing.")
    assert (
        READ(make_pdf(page)).to_markdown()
        == "1. the first thing.\n2. the second thing.\n3. the third thing.\n"
    )


def test_a_table_over_a_page_break():
    head = (Cell(0, 0, "a", header=True), Cell(0, 1, "b", header=True))
    first = Table((*head, Cell(1, 0, "1"), Cell(1, 1, "2")))
    second = Table((*head, Cell(1, 0, "3"), Cell(1, 1, "4")))
    assert [c.text for c in join_tables([first, second]).cells] == ["a", "b", "1", "2", "3", "4"]
    other = Table((Cell(0, 0, "5"), Cell(0, 1, "6")))
    assert join_tables([first, other]).rows == 3
    spanning = Table((Cell(0, 0, "a", header=True), Cell(0, 1, "over", rowspan=2), Cell(1, 0, "7")))
    joined = join_tables([replace(spanning, cells=(*spanning.cells[:2], Cell(1, 0, "8"))), spanning])
    assert [(c.row, c.text) for c in joined.cells if c.row > 1] == [(2, "7"), (2, "over")]


@pytest.mark.parametrize(
    ("texts", "ends", "said"),
    [
        (("exam-", "ple text"), (100, 60), "example text"),
        (("a well-", "Known name"), (100, 60), "a well-Known name"),
        (("first line", "second line"), (100, 100), "first line second line"),
        (("short", "second line"), (30, 100), "short\nsecond line"),
        (("漢字", "漢字"), (100, 100), "漢字漢字"),
    ],
)
def test_join_rows(texts, ends, said):
    boxes = [(0.0, 12.0 * i, float(end), 12.0 * i + 10) for i, end in enumerate(ends)]
    lines = [Line(text, 1.0, box_polygon(box)) for text, box in zip(texts, boxes, strict=True)]
    assert join_rows([Row.of([line]) for line in lines], 0, 100) == said


def test_heading_depth():
    assert [heading_depth(x) for x in ("2 Method", "2.1. Data", "3.1.4 Pi", "Method")] == [1, 2, 3, None]


def test_pages():
    assert parse_pages("1-3,7", 9) == [1, 2, 3, 7]
    assert parse_pages("8-", 9) == [8, 9]
    assert parse_pages(None, 2) == [1, 2]
    found = READ(make_pdf(table_page(), two_columns()), pages="2")
    assert [page.page for page in found.pages] == [2]
    for wrong in ("0", "3", "2-1", "a", "1,,2"):
        with pytest.raises(InputError, match="there are no such pages"):
            parse_pages(wrong, 2)


def test_a_page_without_text_is_read_by_ocr_and_a_blank_one_is_not():
    with PdfReader(make_pdf(PdfPage())) as reader:
        content = reader.content(0)
        assert is_usable(read_text_layer(content), content)
    with pytest.raises(AssertionError, match="was read by OCR"):
        DocumentReader(Lazy(no_ocr), text_layer="never")(make_pdf(two_columns()))


def test_errors():
    with pytest.raises(InputError, match="no such way to use a text layer"):
        DocumentReader(Lazy(no_ocr), text_layer="maybe")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown text_layer"):
        ocr.document(make_pdf(PdfPage()), text_layer="maybe")
    with pytest.raises(ConfigError, match="unknown option"):
        ocr.document(make_pdf(PdfPage()), tabels=False)
    with pytest.raises(InputError, match="there are no such pages"):
        READ(np.zeros((9, 9, 3), np.uint8), pages="2")
    with pytest.raises(InputError, match="no PDF that can be read"):
        READ(make_pdf(two_columns())[:40])
