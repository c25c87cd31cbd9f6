"""Letters that stand each by itself: those that a detector missed, and digits that are letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ocr.results.geometry import box_polygon
from ocr.results.lines import Char, Line, Word
from ocr.text.letters_apart import add_missed, as_letters

PLACES = (10, 60, 110, 160, 210)


def form(thin: int, *, ruled: bool = False, missed: Sequence[int] = (3,)) -> tuple[np.ndarray, np.ndarray]:
    """An image of a row of letters 24 pixels high, `thin` pixels wide where they are missed."""
    image = np.full((80, 260, 3), 255, np.uint8)
    quads = []
    for number, x in enumerate(PLACES):
        wide = thin if number in missed else 20
        image[28:52, x + 10 - wide // 2 : x + 10 + (wide + 1) // 2] = 20
        if ruled:
            image[14:66, x - 13 : x - 12] = 20
        if number not in missed:
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


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("thin", [3, 16])
@pytest.mark.parametrize("missed", [(0,), (4,), (3, 4), (0, 4), (0, 1, 4), (1, 2, 3, 4)])
def test_missed_letters_at_the_ends_of_a_row(missed: tuple[int, ...], thin: int, ruled: bool) -> None:
    image, quads = form(thin, ruled=ruled, missed=missed)
    added = add_missed(image, quads)[len(quads) :]
    middles = sorted(float(quad[:, 0].mean()) for quad in added)
    assert middles == pytest.approx([PLACES[number] + 10 for number in missed], abs=1)


def test_a_quad_around_a_thin_letter_is_made_wide_enough_to_be_read() -> None:
    image, quads = form(3)
    thin = np.array([box_polygon((164, 24, 176, 56))], np.float32)
    mended = add_missed(image, np.concatenate([quads, thin]))
    assert len(mended) == 5 and np.array_equal(mended[:4], quads)
    assert np.ptp(mended[4][:, 0]) >= 24


def test_what_stands_at_another_pitch_height_or_line_is_no_letter_of_the_row() -> None:
    image, quads = form(20, missed=())
    for rows, columns in ((slice(28, 52), 251), (slice(48, 52), 256), (slice(20, 44), 256)):
        other = np.pad(image, ((0, 0), (0, 100), (0, 0)), constant_values=255)
        other[rows, columns + (50 if columns == 251 else 0) : columns + 64] = 20
        assert len(add_missed(other, quads)) == 5


def test_a_line_of_the_form_and_an_empty_box_are_no_letters() -> None:
    image, quads = form(0)
    image[:, 170:172] = 0
    assert len(add_missed(image, quads)) == len(quads)
    assert len(add_missed(form(0)[0], quads)) == len(quads)
    assert len(add_missed(image, quads[:0])) == 0


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
        ("1ND1G0", "INDIGO"),
        ("一二三四", "一二三四"),
    ],
)
def test_what_looks_like_a_letter_among_letters(texts: str, expected: str) -> None:
    lines = as_letters(row(*texts))
    assert "".join(line.text for line in lines) == expected
    assert "".join(line.words[0].chars[0].text for line in lines) == expected


def test_letters_apart_of_one_line_are_letters_of_its_row() -> None:
    lines = [*row("1", "N"), *row("D1GO")]
    wide = box_polygon((80.0, 0.0, 260.0, 30.0))
    lines[2] = Line("D1GO", 0.9, wide, (Word("D1GO", 0.9, wide),))
    assert [line.text for line in as_letters(lines)] == ["I", "N", "DIGO"]
    close = box_polygon((80.0, 0.0, 140.0, 30.0))
    lines[2] = Line("D1GO", 0.9, close, (Word("D1GO", 0.9, close),))
    assert as_letters(lines) == lines
