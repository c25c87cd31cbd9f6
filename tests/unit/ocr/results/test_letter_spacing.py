"""Words whose letters are set apart: by a program's letter spacing, letter by letter, with and without spaces."""

from __future__ import annotations

import pytest

from framework.workflow.files.pdf import PdfReader
from ocr.results.page_text import read_text_layer
from tests.unit.ocr.documents.pdf_pages import HEIGHT, PdfPage, make_pdf


def lines_of(page: PdfPage) -> list[str]:
    with PdfReader(make_pdf(page), dpi=144) as pages:
        return [line.text for line in read_text_layer(pages.content(0)).lines]


def letters(page: PdfPage, x: float, y: float, said: str, distance: float, space: float = 3.0) -> float:
    """Letters of Courier 10, each drawn by itself and `distance` from the next one, and no spaces; returns the end of
    the last one.
    """
    end = x
    for letter in said:
        if letter == " ":
            x += space
            continue
        page.text(x, y, letter, 10, "Mono")
        end = x + 6
        x = end + distance
    return end


@pytest.mark.parametrize("spacing", [3, 5, 8, 12])
def test_spacing_of_a_program_keeps_words_whole(spacing: int) -> None:
    page = PdfPage().text(20, 20, "An ordinary line with spaces stands above")
    for y, said in ((40, "Sum of the bill is 24"), (60, "ANNUAL REPORT")):
        page.raw(f"BT /Regular 10 Tf {spacing} Tc 1 0 0 1 20 {HEIGHT - y} Tm ({said}) Tj ET")
    assert lines_of(page)[1:] == ["Sum of the bill is 24", "ANNUAL REPORT"]


@pytest.mark.parametrize("distance", [3.5, 5, 8, 9.5])
def test_a_word_within_a_line_is_whole_without_spaces(distance: float) -> None:
    page = PdfPage()
    end = letters(page, 20, 20, "pay the", 0, 3)
    end = letters(page, end + 3, 20, "TOTAL", distance)
    letters(page, end + distance + 3, 20, "on time", 0, 3)
    assert lines_of(page) == ["pay the TOTAL on time"]


def test_a_heading_of_two_words_is_read_as_two() -> None:
    page = PdfPage()
    end = letters(page, 20, 20, "Annual", 12)
    letters(page, end + 27, 20, "Report", 12)
    assert lines_of(page) == ["Annual Report"]


def test_letters_that_are_words_stay_apart() -> None:
    page = PdfPage()
    letters(page, 20, 20, "lines A B C D meet here", 0, 3)
    letters(page, 20, 40, "sides a b c d", 0, 3)
    for column, said in enumerate("ABCDE"):
        page.text(20 + 20 * column, 60, said, 10, "Mono")
        page.text(20 + 20 * column, 80, str(column + 1), 10, "Mono")
    first, second, *cells = lines_of(page)
    assert (first, second) == ("lines A B C D meet here", "sides a b c d")
    assert sorted(cells) == sorted("ABCDE12345")


def test_ends_of_words_are_not_joined_beside_a_word_that_is_set_apart() -> None:
    page = PdfPage().text(20, 20, "An ordinary line with spaces stands above")
    page.raw(
        f"BT /Regular 10 Tf 1 0 0 1 20 {HEIGHT - 40} Tm "
        "[(Read)-300(the)-300(b)-400(i)-400(l)-400(l)-700(on)-300(top)] TJ ET"
    )
    assert lines_of(page)[1] == "Read the bill on top"
