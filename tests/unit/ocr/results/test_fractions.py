"""Fractions in a PDF's own text: over several lines on the page, on one as text."""

from __future__ import annotations

from framework.core.errors import InputError
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader
from ocr.pipeline.predictor import OCRPredictor
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

PROSE = "the members of the council spoke of the bridge for an hour"


def no_ocr() -> OCRPredictor:
    raise InputError("OCR was asked for")


READ = DocumentReader(Lazy(no_ocr), figures=False)


def lines_of(page: PdfPage) -> list[str]:
    text = READ(make_pdf(page)).to_markdown()
    return [line.strip() for line in text.splitlines() if line.strip()]


def around(page: PdfPage) -> PdfPage:
    """The page with a paragraph above and one below."""
    for y in (30, 42, 54, 200, 212, 224):
        page.text(30, y, f"{PROSE} and {PROSE}"[:80], 9)
    return page


def fraction(page: PdfPage, x: float, y: float, over: str, below: str, size: float = 10) -> float:
    """A fraction with its rule at the height `y`, from `x` on; returns the rule's end."""
    wide = 0.6 * size * max(len(over), len(below))
    for said, down in ((over, -0.4), (below, 0.95)):
        page.text(x + (wide - 0.6 * size * len(said)) / 2, y + down * size, said, size, "Mono")
    page.line(x, y, x + wide, y)
    return x + wide


def test_a_fraction_beside_an_operator_is_one_line_with_its_number() -> None:
    page = around(PdfPage()).text(100, 113, "x =", 10)
    fraction(page, 120, 110, "a + b", "2c")
    page.text(330, 113, "(1)", 10)
    said = lines_of(page)
    assert any(line.startswith("x = (a + b) / 2c") and line.endswith("(1)") for line in said), said


def test_fractions_that_follow_one_another_are_one_line() -> None:
    page = around(PdfPage()).text(60, 113, "y =", 10)
    end = fraction(page, 82, 110, "n - 1", "n")
    page.text(end + 5, 113, "+", 10)
    end = fraction(page, end + 16, 110, "k", "m + 2")
    page.text(end + 5, 113, "- 4", 10)
    assert "y = (n - 1) / n + k / (m + 2) - 4" in " ".join(lines_of(page)).replace("\\", "")


def test_a_fraction_of_names_alone_is_one_and_a_small_one_stays_in_its_line() -> None:
    page = around(PdfPage())
    fraction(page, 180, 110, "dy", "dx")
    page.text(30, 150, "where the ratio", 10)
    fraction(page, 103, 147, "1", "2", 6)
    page.text(109, 150, "is one half of all", 10)
    said = lines_of(page)
    assert "dy / dx" in said and "where the ratio 1 / 2 is one half of all" in said


def test_raised_characters_stay_raised_in_brackets() -> None:
    page = around(PdfPage()).text(60, 113, "r =", 10)
    page.text(82, 106, "a", 10, "Mono").text(88, 102, "2", 7, "Mono").text(95, 106, "+ b", 10, "Mono")
    page.text(95, 119.5, "c", 10, "Mono").line(82, 110, 113, 110)
    assert any("(a<sup>2</sup> + b) / c" in line for line in lines_of(page)), lines_of(page)


def test_sums_cells_and_underlined_words_are_no_fractions() -> None:
    page = around(PdfPage())
    page.text(60, 106, "12.00", 10, "Mono").text(60, 119.5, "13.50", 10, "Mono").line(60, 110, 90, 110)
    page.text(160, 106, "Score", 10, "Mono").text(160, 119.5, "Class", 10, "Mono").line(160, 110, 190, 110)
    page.text(30, 150, "the word ", 10, "Mono").text(84, 150, "bridge", 10, "Mono").line(84, 153, 120, 153)
    page.text(126, 150, "stands here", 10, "Mono").text(30, 163, "and over other words as well", 10, "Mono")
    assert "/" not in " ".join(lines_of(page))
