"""Every exporter of OCR results, on the same documents: nothing recognised, everyday, and everything at once."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ocr.exporters.block_drawing import draw_blocks
from ocr.exporters.paddle_structure import plain
from ocr.results.blocks import Block, Cell, Table
from ocr.results.pages import Char, Document, Line, Page, Polygon, Word

FOLDER = Path(__file__).resolve().parents[2] / "ocr" / "exporters"
SIZE = (320, 240)


def quad(left: float, top: float, right: float, bottom: float) -> Polygon:
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def line(text: str, left: float, top: float, size: float = 12.0) -> Line:
    """Words and characters stand one after the other, each character `size` wide."""
    words, x = [], left
    for word in text.split(" "):
        chars = tuple(
            Char(char, 0.9, quad(x + size * i, top, x + size * (i + 1), top + 2 * size))
            for i, char in enumerate(word)
        )
        end = x + size * len(word)
        words.append(Word(word, 0.9, quad(x, top, end, top + 2 * size), chars))
        x = end + size
    return Line(text, 0.9, quad(left, top, x - size, top + 2 * size), tuple(words))


def page(*lines: Line, number: int = 1) -> Page:
    image = np.full((SIZE[1], SIZE[0], 3), 250, np.uint8)
    return Page(lines, number, source="scan.png", width=SIZE[0], height=SIZE[1], image=image)


def turned(text: str, left: float, top: float, size: float = 12.0) -> Line:
    """A line without words, read from bottom to top."""
    right, bottom = left + 2 * size, top + size * len(text)
    return Line(text, 0.5, ((left, bottom), (left, top), (right, top), (right, bottom)))


DOCUMENTS = {
    "no page": Document(()),
    "empty page": Document((page(),), "scan.png"),
    "everyday": Document((page(line("Total 12.50", 10, 20), line("Thank you", 10, 60)),), "scan.png"),
    "everything": Document(
        (
            page(
                line('<b>&"amp"</b>', 10, 20),
                line("# *no* `heading`", 10, 60),
                line("日本 Straße", 10, 100),
                turned("side", 280, 20),
            ),
            page(number=2),
            page(line("last", 100, 100), number=3),
        ),
        "a & b.pdf",
    ),
}


def lines_of(document: Document) -> list[str]:
    return [line.text for page in document.pages for line in page.lines]


def squeezed(text: str) -> str:
    return "".join(text.split())


def check_json(document: Document, folder: Path) -> None:
    assert Document.from_dict(document.to_dict()) == document
    assert Document.from_dict(json.loads(document.to_json())) == document
    for page in document.pages:
        assert Page.from_dict(page.to_dict()) == page


def check_paddle(document: Document, folder: Path) -> None:
    for page, v2, v3 in zip(document.pages, document.to_v2(), document.to_predict_dict(), strict=True):
        texts = [line.text for line in page.lines]
        assert [entry[1][0] for entry in v2] == list(v3["rec_texts"]) == texts
        for line, (corners, (_, score)), polygon, upright in zip(
            page.lines, v2, v3["rec_polys"], v3["rec_boxes"], strict=True
        ):
            points = np.array(line.polygon)
            assert math.isclose(score, line.score)
            np.testing.assert_allclose(corners, points)
            np.testing.assert_allclose(polygon, points, atol=0.5)
            np.testing.assert_allclose(upright, [*points.min(0), *points.max(0)], atol=1)


def check_markdown(document: Document, folder: Path) -> None:
    text = document.to_markdown().replace("\\", "")
    for name, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", '"')):
        text = text.replace(name, sign)
    assert all(squeezed(line) in squeezed(text) for line in lines_of(document))


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode("utf-8"))
    names = [value for node in root.iter() for key, value in node.items() if key in ("id", "ID")]
    assert len(names) == len(set(names))
    return root


def check_hocr(document: Document, folder: Path) -> None:
    for chars in (False, True):
        root = parsed(document.to_hocr(chars=chars))
        pages = [node for node in root.iter() if node.get("class") == "ocr_page"]
        found = [node for node in root.iter() if node.get("class") in ("ocr_line", "ocrx_line", "ocr_header")]
        assert len(pages) == len(document.pages)
        assert ["".join(node.itertext()).strip() for node in found] == lines_of(document)


def check_tsv(document: Document, folder: Path) -> None:
    names, *rows = [row.split("\t") for row in document.to_tsv().splitlines()]
    assert all(len(row) == len(names) for row in rows)
    level, text = names.index("level"), names.index("text")
    assert sum(row[level] == "1" for row in rows) == len(document.pages)
    words = [row[text] for row in rows if row[level] == "5"]
    assert "".join(words) == "".join("".join(lines_of(document)).split())


def check_alto(document: Document, folder: Path) -> None:
    for chars in (False, True):
        root = parsed(document.to_alto(chars=chars))
        local = [(node.tag.rpartition("}")[2], node) for node in root.iter()]
        assert sum(tag == "Page" for tag, _ in local) == len(document.pages)
        found = [
            " ".join(str(child.get("CONTENT")) for child in node if child.tag.endswith("}String"))
            for tag, node in local
            if tag == "TextLine"
        ]
        assert found == lines_of(document)


def check_searchable_pdf(document: Document, folder: Path) -> None:
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 reads the PDF back")
    if not document.pages:
        pytest.skip(
            "a PDF has at least one page; tests/unit/ocr/exporters/test_searchable_pdf.py has the error"
        )
    document.to_searchable_pdf(folder / "out.pdf", dpi=144)
    with pdfium.PdfDocument(folder / "out.pdf") as pdf:
        assert len(pdf) == len(document.pages)
        for index, page in enumerate(document.pages):
            text = squeezed(pdf[index].get_textpage().get_text_range())
            assert pdf[index].get_size() == pytest.approx((SIZE[0] / 2, SIZE[1] / 2), abs=0.01)
            assert all(squeezed(line.text) in text for line in page.lines)
            assert len(text) == sum(len(squeezed(line.text)) for line in page.lines)


def check_drawing(document: Document, folder: Path) -> None:
    for page in document.pages:
        assert page.image is not None
        overlay, both = page.overlay(), page.draw()
        assert overlay.dtype == both.dtype == np.uint8
        assert overlay.shape == page.image.shape
        assert both.shape[0] >= SIZE[1] and both.shape[1] >= 2 * SIZE[0] and both.shape[2] == 3
        assert (overlay != page.image).any() == bool(page.lines)


def box_of(line: Line) -> tuple[float, float, float, float]:
    (left, top), (right, bottom) = np.min(line.polygon, axis=0), np.max(line.polygon, axis=0)
    return float(left), float(top), float(right), float(bottom)


def with_blocks(document: Document) -> tuple[Document, list[str]]:
    """Each line as a paragraph, then a table of all lines of the page, one of them over both columns; the texts."""
    pages, said = [], []
    for page in document.pages:
        texts = [line.text for line in page.lines]
        blocks = [
            Block("text", box_of(line), line.text, (line,), order=i) for i, line in enumerate(page.lines)
        ]
        if texts:
            cells = [Cell(row, column, text) for row, text in enumerate(texts) for column in range(2)]
            table = Table((Cell(len(texts), 0, texts[0], colspan=2), *cells))
            blocks.append(Block("table", (0, 0, *SIZE), table.text, order=len(texts), content=table))
        pages.append(dataclasses.replace(page, blocks=tuple(blocks)))
        said += [*texts, *texts[:1], *texts, *texts]
    return dataclasses.replace(document, pages=tuple(pages)), said


def check_html(document: Document, folder: Path) -> None:
    blocks, said = with_blocks(document)
    root = ElementTree.fromstring(re.sub(r"<meta[^>]*>|<!DOCTYPE html>|<br>", "", blocks.to_html()))
    article = next(iter(root.iter("article")))
    assert Counter(squeezed("".join(article.itertext()))) == Counter(squeezed("".join(said)))
    cells = [node for node in article.iter() if node.tag in ("td", "th")]
    assert sum(int(node.get("colspan", "1")) for node in cells) == sum(
        2 + 2 * len(page.lines) for page in document.pages if page.lines
    )


def check_docx(document: Document, folder: Path) -> None:
    docx = pytest.importorskip("docx", reason="python-docx reads the file back")
    blocks, said = with_blocks(document)
    blocks.to_docx(folder / "a.docx")
    word = docx.Document(str(folder / "a.docx"))
    texts = [paragraph.text for paragraph in word.paragraphs if paragraph.text]
    assert texts == lines_of(document)
    rows = [[cell.text for cell in row.cells] for table in word.tables for row in table.rows]
    assert all(first == second for first, second in rows)
    assert len(texts) + sum(map(len, rows)) == len(said) + len(
        [page for page in document.pages if page.lines]
    )


def check_xlsx(document: Document, folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl reads the file back")
    blocks, _ = with_blocks(document)
    blocks.to_xlsx(folder / "a.xlsx")
    tables = [page for page in document.pages if page.lines]
    sheets = openpyxl.load_workbook(folder / "a.xlsx").worksheets
    assert len(sheets) == max(1, len(tables))
    for sheet, page in zip(sheets, tables, strict=False):
        texts = [line.text for line in page.lines]
        assert [row[0].value for row in sheet.rows] == [*texts, texts[0]]
        assert [str(merged) for merged in sheet.merged_cells.ranges] == [
            f"A{len(texts) + 1}:B{len(texts) + 1}"
        ]


def check_paddle_structure(document: Document, folder: Path) -> None:
    blocks, _ = with_blocks(document)
    for page, entry in zip(blocks.pages, blocks.to_paddle(), strict=True):
        assert json.loads(json.dumps(plain(entry))) == plain(entry)
        found = [part for part in entry["parsing_res_list"] if part["block_label"] == "text"]
        assert [part["block_content"] for part in found] == [line.text for line in page.lines]
        assert len(entry["table_res_list"]) == bool(page.lines)


def check_block_drawing(document: Document, folder: Path) -> None:
    blocks, _ = with_blocks(document)
    for page in blocks.pages:
        drawn = draw_blocks(page, side_by_side=False)
        both = draw_blocks(page)
        assert drawn.dtype == both.dtype == np.uint8 and both.shape[1] >= 2 * SIZE[0]
        assert page.image is not None and drawn.shape == page.image.shape
        assert (drawn != page.image).any() == bool(page.blocks)


# By module of ocr/exporters: a new one needs a row.
CHECKS: dict[str, Callable[[Document, Path], None]] = {
    "alto": check_alto,
    "block_drawing": check_block_drawing,
    "docx": check_docx,
    "drawing": check_drawing,
    "hocr": check_hocr,
    "html": check_html,
    "json": check_json,
    "markdown": check_markdown,
    "paddle": check_paddle,
    "paddle_structure": check_paddle_structure,
    "searchable_pdf": check_searchable_pdf,
    "tsv": check_tsv,
    "xlsx": check_xlsx,
}


def test_every_exporter_has_a_check() -> None:
    # JSON is a method of the results; `files` writes what the others make.
    assert {path.stem for path in FOLDER.glob("[!_]*.py")} - {"files"} == CHECKS.keys() - {"json"}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("exporter", CHECKS)
def test_nothing_is_lost(exporter: str, document: Document, tmp_path: Path) -> None:
    CHECKS[exporter](document, tmp_path)
