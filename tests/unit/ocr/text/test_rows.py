"""Ends of rows: those of verse, addresses and lists are the author's, those of prose are not."""

from __future__ import annotations

import pytest

from ocr.results.geometry import box_polygon
from ocr.results.lines import Line, LineStyle, Word
from ocr.text.rows import Row, has_room, own_ends
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


def word_row(said: str, words: list[tuple[str, int, int]], y: int, height: int = 30) -> Row:
    """A row of words with their ends, of which each letter is as wide as the row's are in the mean, but its first."""
    style = LineStyle(26.0, False, False, "Serif")
    boxes = [Word(text, 1.0, box_polygon((left, y, right, y + height))) for text, left, right in words]
    box = (words[0][1], y, words[-1][2], y + height)
    return Row.of([Line(said, 1.0, box_polygon(box), tuple(boxes), style=style)])


@pytest.mark.parametrize(("first", "end"), [("if", 12), ("the", 36), ("mammoth", 130)])
@pytest.mark.parametrize("free", [3, 9])
def test_a_word_needs_its_own_width_and_that_of_the_letters_in_the_mean(
    first: str, end: int, free: int
) -> None:
    """Narrow words of rows in ragged setting leave less than a space over what they are wide."""
    mean = 13 * len(first)  # of a row whose letters are 13 wide
    needed = max(end, mean)
    said = first + " and what comes behind it"
    below = word_row(said, [(first, 0, end), ("and what comes behind it", end + 8, 13 * len(said))], 40)
    before = word_row("what stands above", [("what stands above", 0, 800)], 0)
    assert not has_room(before, below, said, 0, 800 + needed + free)
    assert has_room(before, below, said, 0, 800 + needed + 16)


def test_rows_without_spaces_are_no_short_rows() -> None:
    """A row of Chinese is one word, and the next one begins with no small letter."""
    rows = [
        Row.of([line(0, 15.0 * n, said)]) for n, said in enumerate(("桥梁建在河上", "很长时间以前", "人们"))
    ]
    assert own_ends([rows, rows], 0, 36) == [False, False]
    words = [Row.of([line(0, 15.0 * n, said)]) for n, said in enumerate(("four eggs", "oil", "salt"))]
    assert own_ends([words], 0, 54) == [True]
