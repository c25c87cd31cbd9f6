"""Word, Excel and HTML files of documents: they open again, and hold every text, number and span."""

from __future__ import annotations

import random
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError, MissingExtraError
from ocr.exporters._numbers import parse_number, uses_decimal_comma
from ocr.exporters.html import table_html
from ocr.exporters.xlsx import write_xlsx
from ocr.results.blocks import Block, Cell, Figure, Formula, Table
from ocr.results.pages import Document, Page
from ocr.tables.cell_grid import place_cells

docx = pytest.importorskip("docx")
openpyxl = pytest.importorskip("openpyxl")


def page_of(*blocks: Block, **more) -> Page:
    return Page((), blocks=blocks, width=600, height=800, **more)


def random_table(seed: int) -> Table:
    """A table of cells with spans that overlap, reach out of it, and leave holes."""
    rng = random.Random(seed)
    rows, columns = rng.randint(1, 7), rng.randint(1, 7)
    cells = [
        Cell(r, c, f"r{r} c{c}\n<&>", rng.choice([1, 1, 1, 2, 9]), rng.choice([1, 1, 1, 2, 9]), header=r == 0)
        for r in range(rows)
        for c in range(columns)
        if rng.random() < 0.8
    ] or [Cell(0, 0, "r0 c0\n<&>")]
    return place_cells(cells)


TABLES = [random_table(seed) for seed in range(50)]


def spans(table: Table) -> set[tuple[int, int, int, int]]:
    return {(c.row, c.column, c.rowspan, c.colspan) for c in table.cells if c.rowspan > 1 or c.colspan > 1}


def test_cells_with_overlapping_spans_are_placed():
    cells = [Cell(0, 0, "a", 9, 9), Cell(0, 2, "b"), Cell(1, 1, "c", 2), Cell(1, 1, "d"), Cell(0, 0, "e")]
    assert [(c.text, c.row, c.column, c.rowspan, c.colspan) for c in place_cells(cells).cells] == [
        *(("a", 0, 0, 2, 1), ("e", 0, 1, 1, 1), ("b", 0, 2, 1, 1)),
        *(("c", 1, 1, 1, 1), ("d", 1, 2, 1, 1)),
    ]
    assert place_cells([]).cells == ()
    assert any(spans(table) for table in TABLES)


def docx_spans(word_table) -> tuple[set[tuple[int, int, int, int]], set[str]]:
    """(row, column, rows, columns) of merged cells as python-docx understands the file, and the texts."""
    places: dict[int, list[tuple[int, int]]] = {}
    texts, keep = {}, []
    for r, row in enumerate(word_table.rows):
        for c, cell in enumerate(row.cells):
            keep.append(cell)
            places.setdefault(id(cell._tc), []).append((r, c))
            texts[id(cell._tc)] = cell.text
    found = set()
    for at in places.values():
        (top, left), (bottom, right) = min(at), max(at)
        assert len(at) == (bottom - top + 1) * (right - left + 1)
        if len(at) > 1:
            found.add((top, left, bottom - top + 1, right - left + 1))
    return found, {text for text in texts.values() if text}


def test_every_span_of_a_table_in_word_and_excel(tmp_path: Path):
    document = Document((page_of(*(Block("table", (0, 0, 600, 100), content=table) for table in TABLES)),))
    document.to_docx(tmp_path / "a.docx")
    document.to_xlsx(tmp_path / "a.xlsx")
    word, book = docx.Document(str(tmp_path / "a.docx")), openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert len(word.tables) == len(book.worksheets) == len(TABLES)
    for table, written, sheet in zip(TABLES, word.tables, book.worksheets, strict=True):
        found, texts = docx_spans(written)
        assert found == spans(table) and texts == {cell.text for cell in table.cells if cell.text}
        merged = {
            (m.min_row - 1, m.min_col - 1, m.max_row - m.min_row + 1, m.max_col - m.min_col + 1)
            for m in sheet.merged_cells.ranges
        }
        assert merged == spans(table)
        assert all(sheet.cell(c.row + 1, c.column + 1).value == c.text for c in table.cells)


class _Tables(HTMLParser):
    """(tag, spans) of cells, by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, int, int]]] = []
        self.opened: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            given = dict(attributes)
            self.rows[-1].append((tag, int(given.get("rowspan", 1)), int(given.get("colspan", 1))))
        if tag not in ("br", "meta", "img"):
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag


@pytest.mark.parametrize("table", TABLES[:10])
def test_rows_of_html_fill_the_grid(table: Table):
    parsed = _Tables()
    parsed.feed(table_html(table))
    assert not parsed.opened and len(parsed.rows) == table.rows
    assert (
        sum(height * width for row in parsed.rows for _, height, width in row) == table.rows * table.columns
    )


IMAGE = np.zeros((20, 40, 3), np.uint8)
BLOCKS = (
    Block("doc_title", (0, 0, 600, 40), "The <title>", level=1),
    Block("paragraph_title", (0, 50, 600, 70), "1 Part", level=2),
    Block("text", (0, 80, 600, 120), "A text with a \x00 and & <b>"),
    Block("list_item", (0, 130, 600, 140), "• first"),
    Block("list_item", (0, 140, 600, 150), "2. second"),
    Block("table", (0, 160, 600, 200), content=Table((Cell(0, 0, "=1+1"), Cell(0, 1, "1,234.50"))),
          children=(Block("table_title", (0, 150, 600, 160), "Table 1: sums [a/b]"),)),
    Block("image", (0, 210, 300, 360), content=Figure(IMAGE),
          children=(Block("figure_title", (0, 360, 1, 361), "Figure 1"),)),
    Block("formula", (0, 370, 600, 380), content=Formula("a < b")),
    Block("footnote", (0, 700, 600, 710), "1 a note"),
    Block("header", (0, 0, 600, 10), "not read along"),
    Block("text", (0, 720, 600, 730), "goes"),
)  # fmt: skip
DOCUMENT = Document(
    (page_of(*BLOCKS), page_of(Block("text", (0, 0, 600, 10), "on.", continued=True), page=2)), "in/file.pdf"
)


def test_html_of_every_kind():
    text = DOCUMENT.to_html()
    parsed = _Tables()
    parsed.feed(text)
    assert not parsed.opened and "not read along" not in text
    for part in (
        "<title>file</title>",
        '<h1 id="b1">The &lt;title&gt;</h1>',
        "A text with a \ufffd and &amp; &lt;b&gt;",
        '<ul>\n<li id="b4">first</li>\n</ul>\n<ol>\n<li id="b5" value="2">second</li>\n</ol>',
        "<caption>Table 1: sums [a/b]</caption>",
        '<img src="data:image/png;base64,iVBORw0KGgo',
        "<figcaption>Figure 1</figcaption>",
        '<div id="b8" class="formula">a &lt; b</div>',
        '<p id="b9" class="footnote">1 a note</p>',
        "goes on.",
    ):
        assert part in text


def test_word_file_of_every_kind(tmp_path: Path):
    DOCUMENT.to_docx(tmp_path / "a.docx")
    word = docx.Document(str(tmp_path / "a.docx"))
    said = [(p.style.name, p.text) for p in word.paragraphs if p.text]
    assert said == [
        ("Heading 1", "The <title>"),
        ("Heading 2", "1 Part"),
        ("Normal", "A text with a \ufffd and & <b>"),
        ("List Bullet", "first"),
        ("List Paragraph", "2. second"),
        ("Caption", "Table 1: sums [a/b]"),
        ("Caption", "Figure 1"),
        ("Normal", "a < b"),
        ("Normal", "1 a note"),
        ("Normal", "goes on."),
    ]
    (shape,) = word.inline_shapes
    section = word.sections[0]
    inside = section.page_width - section.left_margin - section.right_margin
    assert shape.width == min(section.page_width // 2, inside) and shape.height == shape.width // 2
    assert section.page_height.pt == 792 and section.page_width.pt == 594


def test_wide_tables_of_word_files_are_text(tmp_path: Path):
    table = Table(tuple(Cell(0, c, f"c{c}") for c in range(70)))
    Document((page_of(Block("table", (0, 0, 600, 10), content=table)),)).to_docx(tmp_path / "a.docx")
    word = docx.Document(str(tmp_path / "a.docx"))
    assert not word.tables and word.paragraphs[0].text.split("\t")[-1] == "c69"


def test_excel_file(tmp_path: Path):
    twice = (page_of(*BLOCKS), page_of(BLOCKS[5], Block("table", (0, 0, 9, 9), content=TABLES[0]), page=2))
    Document(twice).to_xlsx(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book.sheetnames == ["Table 1 sums a b", "Table 1 sums a b (2)", "Table 3"]
    sheet = book.worksheets[0]
    assert (sheet["A1"].value, sheet["A1"].data_type) == ("=1+1", "s")
    assert (sheet["B1"].value, sheet["B1"].number_format) == (1234.5, "#,##0.00")
    Document((page_of(),)).to_xlsx(tmp_path / "b.xlsx")
    assert (
        openpyxl.load_workbook(tmp_path / "b.xlsx")["No tables"]["A1"].value == "The document has no tables."
    )


def test_a_table_larger_than_a_sheet(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("ocr.exporters.xlsx.MOST_COLUMNS", 1)
    with pytest.raises(InputError, match="larger than a sheet"):
        write_xlsx(DOCUMENT, tmp_path / "a.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("12", 12, "General"),
        ("-1.50", -1.5, "0.00"),
        ("1,234", 1234, "#,##0"),
        ("1,234,567.5", 1234567.5, "#,##0.0"),
        ("(1,234.00)", -1234, "#,##0.00"),
        ("$ 3.20", 3.2, '"$"0.00'),
        ("−7", -7, "General"),
        ("12.5 %", 0.125, "0.0%"),
        ("3,5", 3.5, "0.0"),
        ("1 234,5", 1234.5, "#,##0.0"),
        ("7 €", 7, '0\\ "€"'),
        ("0.05", 0.05, "0.00"),
    ],
)
def test_numbers(text, value, shown):
    found = parse_number(text)
    assert found is not None and found.value == pytest.approx(value, abs=1e-12) and found.format == shown


@pytest.mark.parametrize(
    "text", ["", "007", "1.2.3", "12/05/2019", "2019-05-12", "3 kg", "1234567890123456", "(5",
             "1,23,4", "+", "12-14", "1.234.56"],
)  # fmt: skip
def test_what_is_no_number(text):
    assert parse_number(text) is None


def test_decimal_commas():
    assert parse_number("1,234", decimal_comma=True).value == 1.234  # type: ignore[union-attr]
    assert parse_number("1.234", decimal_comma=True).value == 1234  # type: ignore[union-attr]
    assert parse_number("1.234,5", decimal_comma=True).value == 1234.5  # type: ignore[union-attr]
    assert uses_decimal_comma(["3,50", "1.234,00", "7"]) and not uses_decimal_comma(["3.50", "1,234"])


def test_missing_packages(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for write in (DOCUMENT.to_docx, DOCUMENT.to_xlsx):
        with pytest.raises(MissingExtraError, match=r"oar-toolkit\[office\]"):
            write(tmp_path / "a")


def test_keys_of_paddle():
    first, second = DOCUMENT.to_paddle()
    assert (first["input_path"], first["page_index"], first["page_count"]) == ("", 0, 2)
    assert [(b["block_label"], b["block_order"]) for b in first["parsing_res_list"][:6]] == [
        ("doc_title", 1),
        ("paragraph_title", 2),
        ("text", 3),
        ("text", 4),
        ("text", 5),
        ("table", 6),
    ]
    (table,) = first["table_res_list"]
    assert table["pred_html"].startswith("<html><body><table>") and table["neighbor_texts"].startswith(
        "Table 1"
    )
    assert first["formula_res_list"][0]["rec_formula"] == "a < b"
    assert {b["block_label"]: b["block_order"] for b in first["parsing_res_list"]}["header"] is None
    assert DOCUMENT.pages[1].to_paddle()["page_count"] is None and second["page_index"] == 1


def test_blocks_are_drawn():
    page = page_of(*BLOCKS, image=np.full((800, 600, 3), 255, np.uint8))
    drawn = page.draw()
    assert drawn.shape[0] == 1200 and drawn.shape[1] > 1800  # enlarged, and side by side
    overlay = page.overlay()
    assert (
        overlay.shape == (800, 600, 3)
        and (overlay[160:200] != 255).any()
        and (overlay[220:350, 10:290] != 255).any()
    )
    assert page_of(BLOCKS[2]).draw().shape[0] == 1200  # without an image on white


def test_no_sheet_has_the_title_that_excel_keeps_for_itself(tmp_path: Path):
    caption = (Block("table_title", (0, 0, 1, 1), "History"),)
    table = Table((Cell(0, 0, "a"),), 1, 1)
    Document((page_of(Block("table", (0, 0, 9, 9), content=table, children=caption)),)).to_xlsx(
        tmp_path / "a.xlsx"
    )
    assert openpyxl.load_workbook(tmp_path / "a.xlsx").sheetnames == ["History (2)"]
