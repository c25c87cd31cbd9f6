"""Numbers of lines in the margin, and numbers that are none: of rows of tables and items of lists."""

from __future__ import annotations

import pytest

from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf
from tests.unit.ocr.documents.test_pages_of_others import READ, WORDS, markdown


def numbered(x: float, step: int = 1) -> PdfPage:
    """Ten rows of prose, each `step`th one with its number at x."""
    page = PdfPage()
    for row in range(10 * min(step, 3)):
        y = 30 + 9 * row
        page.text(50, y, " ".join(WORDS[(7 * row + k) % len(WORDS)] for k in range(11)), 8)
        if (row + 1) % step == 0:
            page.text(x, y, str(row + 1), 6)
    return page


@pytest.mark.parametrize(("x", "step"), [(30, 1), (340, 1), (30, 5)])
def test_numbers_of_lines_are_not_read_along(x: float, step: int) -> None:
    page = READ(make_pdf(numbered(x, step))).pages[0]
    asides = [block.text for block in page.blocks if block.label == "aside_text"]
    rows = 10 * min(step, 3)
    assert asides == [" ".join(str(number) for number in range(step, rows + 1, step))]
    read = " ".join(block.text for block in page.blocks if block.label != "aside_text")
    assert not any(char.isdigit() for char in read)
    assert len(read.split()) == 11 * rows


@pytest.mark.parametrize("capital", [False, True])
def test_numbers_of_rows_and_items_stay(capital: bool) -> None:
    page = PdfPage()
    for row in range(8):
        text = " ".join(WORDS[5 * row : 5 * row + (9 if capital else 2)])
        page.text(30, 40 + 12 * row, str(row + 1), 8)
        page.text(60, 40 + 12 * row, f"{text.capitalize()}." if capital else text, 8)
        if not capital:
            page.text(320, 40 + 12 * row, f"{row}.50", 8)
    # Numbers of items have a stop behind them in Markdown, whatever the page has.
    said = [word.rstrip(".") for word in markdown(page).replace("|", " ").split()]
    assert all(str(number) in said for number in range(1, 9))
