"""Letters that follow a curve are one line."""

from __future__ import annotations

import math

import pytest

from framework.workflow.files.pdf import PdfReader
from ocr.results.page_text import read_text_layer
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

WIDTHS = dict(
    zip("GENUIAVRBWY", (0.778, 0.667, 0.722, 0.722, 0.278, 0.667, 0.667, 0.722, 0.667, 0.944, 0.667))
)


def curved(said: str, *, even: bool, space: bool) -> PdfPage:
    """A text around the upper half of a circle: its letters at equal angles, or as far apart as in a line."""
    page = PdfPage().text(20, 280, "A line below the seal.")
    size, radius, along = 14.0, 90.0, 0.0
    for letter in said:
        width = 0.7 * size if even else WIDTHS.get(letter, 0.278) * size
        turn = math.pi - (along + width / 2) / radius
        x, y = 200 + radius * math.cos(turn), 130 + radius * math.sin(turn)
        slant = turn - math.pi / 2
        cos, sin = math.cos(slant), math.sin(slant)
        half = WIDTHS.get(letter, 0.278) * size / 2
        if letter != " " or space:
            place = f"{cos:.4f} {sin:.4f} {-sin:.4f} {cos:.4f} {x - half * cos:.3f} {y - half * sin:.3f}"
            page.raw(f"BT /Regular {size} Tf {place} Tm ({letter}) Tj ET")
        along += width
    return page


def lines_of(page: PdfPage) -> list[str]:
    with PdfReader(make_pdf(page)) as pdf:
        return [line.text for line in read_text_layer(pdf.content(0)).lines]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("space", [True, False])
def test_letters_around_a_circle_are_one_line(even: bool, space: bool) -> None:
    said = "GENUINE BAVARIAN BREWERY"
    assert lines_of(curved(said, even=even, space=space)) == ["A line below the seal.", said]


def test_a_slanted_text_and_turned_words_are_no_curve() -> None:
    page = PdfPage().raw("BT /Regular 12 Tf .9397 .342 -.342 .9397 100 100 Tm (slanted words) Tj ET")
    page.raw("BT /Regular 12 Tf .9659 .2588 -.2588 .9659 200 200 Tm (a) Tj ET").text(205, 100, "b")
    assert sorted(lines_of(page)) == ["a", "b", "slanted words"]


@pytest.mark.parametrize("degrees", [-60, -20, 8, 30, 45, 70])
def test_slanted_text_keeps_its_spaces(degrees: int) -> None:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    place = f"{cos:.4f} {sin:.4f} {-sin:.4f} {cos:.4f} 180 140"
    page = PdfPage().raw(f"BT /Regular 12 Tf {place} Tm (I will tell all of it) Tj ET")
    assert lines_of(page) == ["I will tell all of it"]
