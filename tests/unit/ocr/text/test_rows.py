"""Ends of rows: those of verse, addresses and lists are the author's, those of prose are not."""

from __future__ import annotations

import pytest

from ocr.text.rows import Row, own_ends
from tests.unit.ocr.documents.pdf_pages import PdfPage
from tests.unit.ocr.documents.test_pages_of_others import TEXT, markdown
from tests.unit.ocr.tables.test_text_tables import line

VERSES = [
    [
        "a lamp beside the window burns",
        "and nobody is home",
        "the road goes down, the road returns",
        "to where it started from",
    ],
    ["the snow is deep, the night is long", "the dog is in the yard", "who sings tonight the sailors' song"],
]


def rows_of(*paragraphs: list[str]) -> PdfPage:
    page, y = PdfPage(), 20
    for rows in paragraphs:
        for said in rows:
            page.text(20, y, said, 9)
            y += 11
        y += 11
    return page


def read(page: PdfPage) -> list[str]:
    return [line.rstrip() for line in markdown(page).splitlines() if line.strip()]


@pytest.mark.parametrize(
    "rows",
    [
        ["van Eyck, Jan", "de Hooch", "ter Borch, Gerard", "van Goyen"],
        ["care of the harbour office", "lower quay 14", "old town"],
        ["two spoons of oil", "flour", "a pinch of salt", "half a litre of warm milk"],
        ["lift the cover", "turn the red key to the left", "wait", "push it in again"],
    ],
)
def test_short_rows_that_begin_with_small_letters_stay_apart(rows: list[str]) -> None:
    assert read(rows_of(rows)) == rows


def test_verse_alone_keeps_its_lines() -> None:
    assert read(rows_of(*VERSES)) == [row for rows in VERSES for row in rows]


def filled(said: str, width: int) -> list[str]:
    """Words in rows of so many letters, as a program fills them."""
    rows = [""]
    for word in said.split():
        if rows[-1] and len(rows[-1]) + 1 + len(word) > width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return rows


@pytest.mark.parametrize("width", [45, 52])
def test_prose_below_verse_is_joined(width: int) -> None:
    page = rows_of(*VERSES)
    for number, row in enumerate(filled(TEXT, width)[: 300 // width]):
        page.text(20, 130 + 11 * number, row, 9, "Mono")
    lines = read(page)
    assert lines[:7] == [row for rows in VERSES for row in rows]
    assert len(lines) == 8


@pytest.mark.parametrize("width", [20, 24, 31])
def test_a_narrow_column_of_prose_is_joined(width: int) -> None:
    said = "we ask all who live here to close the gate at night since the cows of our neighbour walk in"
    page = PdfPage()
    for number, row in enumerate(filled(said, width)):
        page.text(20, 20 + 11 * number, row, 9, "Mono")
    assert said in markdown(page).replace("`", "")


def test_a_word_of_wide_letters_had_no_room() -> None:
    """Its width is its own, not that of as many letters of its row."""
    page = PdfPage()
    page.text(20, 20, "the little illicit mill still fills its tills until it fills", 9)
    page.text(20, 31, "MWMWM lit it till it is still, little lilli, until it tilts it", 9)
    assert "\n" not in markdown(page).strip()


def test_rows_without_spaces_are_no_short_rows() -> None:
    """A row of Chinese is one word, and the next one begins with no small letter."""
    rows = [
        Row.of([line(0, 15.0 * n, said)]) for n, said in enumerate(("桥梁建在河上", "很长时间以前", "人们"))
    ]
    assert own_ends([rows, rows], 0, 36) == [False, False]
    words = [Row.of([line(0, 15.0 * n, said)]) for n, said in enumerate(("four eggs", "oil", "salt"))]
    assert own_ends([words], 0, 54) == [True]
