"""Letters that stand each by itself: those that a detector missed, and digits that are letters."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.results.geometry import box_polygon
from ocr.results.lines import Char, Line, Word
from ocr.text.letters_apart import add_missed, as_letters

PLACES = (10, 60, 110, 160, 210)


def form(thin: int, *, ruled: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """An image of a row of letters 24 pixels high, the fourth of them `thin` pixels wide and missed."""
    image = np.full((80, 260, 3), 255, np.uint8)
    quads = []
    for number, x in enumerate(PLACES):
        wide = thin if number == 3 else 20
        image[28:52, x + 10 - wide // 2 : x + 10 + (wide + 1) // 2] = 20
        if ruled:
            image[14:66, x - 13 : x - 12] = 20
        if number != 3:
            quads.append(box_polygon((x - 4, 24, x + 24, 56)))
    if ruled:
        image[14] = image[65] = 20
    return image, np.array(quads, np.float32)


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("thin", [3, 16])
def test_a_missed_letter_of_a_row(thin: int, ruled: bool) -> None:
    image, quads = form(thin, ruled=ruled)
    added = add_missed(image, quads)[len(quads) :]
    assert len(added) == 1
    left, top, right, bottom = (*added[0].min(0), *added[0].max(0))
    assert left < 170 - thin // 2 and right > 170 + thin // 2 and top < 28 and bottom > 52


def test_a_line_of_the_form_and_an_empty_box_are_no_letters() -> None:
    image, quads = form(0)
    image[:, 170:172] = 0
    assert len(add_missed(image, quads)) == len(quads)
    assert len(add_missed(form(0)[0], quads)) == len(quads)
    assert len(add_missed(image, quads[:2])) == 2


def row(*texts: str) -> list[Line]:
    lines = []
    for number, text in enumerate(texts):
        quad = box_polygon((40.0 * number, 0.0, 40.0 * number + 20, 30.0))
        lines.append(Line(text, 0.9, quad, (Word(text, 0.9, quad, (Char(text, 0.9, quad),)),)))
    return lines


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ("MAR1A", "MARIA"),
        ("0LAF", "OLAF"),
        ("1019", "1019"),
        ("A1B2", "A1B2"),
        ("A1", "A1"),
        ("L1L1TH", "LILITH"),
    ],
)
def test_what_looks_like_a_letter_among_letters(texts: str, expected: str) -> None:
    lines = as_letters(row(*texts))
    assert "".join(line.text for line in lines) == expected
    assert "".join(line.words[0].chars[0].text for line in lines) == expected
