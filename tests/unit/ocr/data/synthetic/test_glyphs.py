"""Text as coverage, and which characters a font has."""

from __future__ import annotations

import numpy as np
import pytest

from framework.vision import fonts
from ocr.data.synthetic.glyphs import can_shape, draw_column, draw_line, measure_line, needs_shaping

OWN = ""  # the font inside Pillow


def test_fonts_are_found_and_tell_what_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fonts.FONT_VARIABLE, raising=False)
    assert fonts.find_fonts()[0] == OWN
    assert fonts.has_ink(OWN, "a") and fonts.has_ink(OWN, "-")
    assert not fonts.has_ink(OWN, " ") and not fonts.has_ink(OWN, "漢") and not fonts.has_ink(OWN, "\u200b")


def test_lines_grow_with_size_text_and_spacing() -> None:
    small, large = draw_line(OWN, "Hamburg", 20), draw_line(OWN, "Hamburg", 60)
    assert large.dtype == np.uint8 and large.max() == 255
    for side in (0, 1):
        assert large.shape[side] == pytest.approx(3 * small.shape[side], rel=0.1)
    assert large.shape[1] == pytest.approx(60 * measure_line(OWN, "Hamburg"), rel=0.05)
    wide = draw_line(OWN, "Hamburg", 60, 0.5)
    assert wide.shape[1] == pytest.approx(large.shape[1] + 6 * 30, abs=4)


def test_spaced_letters_are_those_of_the_line() -> None:
    pieces = [draw_line(OWN, char, 60) for char in "AB"]
    spaced = draw_line(OWN, "AB", 60, 1.0)
    first, second = (np.flatnonzero(piece.max(axis=0)) for piece in pieces)
    assert np.array_equal(spaced[:, : len(first)], pieces[0])
    assert np.array_equal(spaced[:, -len(second) :], pieces[1])


def test_low_and_high_signs_keep_their_place_in_the_line() -> None:
    dot, quote, dash = (draw_line(OWN, char, 40) for char in ".'-")
    assert len(dot) == len(quote) == len(dash) == 20  # half of the size
    assert dot[-1].any() and not dot[:10].any()
    assert quote[0].any() and not quote[-3:].any()
    assert not dash[0].any() and not dash[-1].any()


def test_nothing_to_draw_gives_an_empty_line() -> None:
    assert not draw_line(OWN, " ", 30).any() and not draw_column(OWN, " ", 30).any()


def test_columns_stack_their_characters() -> None:
    column, single = draw_column(OWN, "HHH", 40), draw_column(OWN, "H", 40)
    assert column.shape[1] == single.shape[1] and len(column) == pytest.approx(len(single) + 84, abs=2)
    assert np.array_equal(column[: len(single)], single)
    spaced = draw_column(OWN, "HHH", 40, 0.5)
    assert len(spaced) == len(column) + 40


def test_scripts_with_joined_letters_need_shaping() -> None:
    assert [needs_shaping(char) for char in "aж漢한"] == [False] * 4
    assert [needs_shaping(char) for char in "عשहก\u0301"] == [True] * 5
    assert isinstance(can_shape(), bool)
