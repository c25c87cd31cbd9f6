from __future__ import annotations

import numpy as np
import pytest

from ocr.results.lines import Line
from ocr.text.reading_order import reading_order, upright_boxes
from ocr.text.stacked_letters import add_missed_below, find_stacks, join_stack, letters_in_a_row


def letter(text: str, left: float, top: float, width: float = 40, height: float = 50) -> Line:
    right, bottom = left + width, top + height
    return Line(text, 0.9, ((left, top), (right, top), (right, bottom), (left, bottom)))


def stacks(*lines: Line) -> list[str]:
    found = find_stacks(upright_boxes([line.polygon for line in lines]), [line.text for line in lines])
    return ["".join(lines[i].text for i in stack) for stack in found]


def column(text: str, left: float, pitch: float = 60, top: float = 20) -> list[Line]:
    return [letter(one, left, top + pitch * row) for row, one in enumerate(text)]


def test_words_of_letters_below_one_another():
    assert sorted(stacks(*column("HOTEL", 20), *column("CAFE", 140))) == ["CAFE", "HOTEL"]
    assert stacks(*column("BAR", 20), letter("Open daily from noon", 200, 30, 400)) == ["BAR"]


def test_what_is_no_word():
    assert stacks(*column("AB", 20)) == []
    assert stacks(*column("1234", 20)) == []  # numbers of rows
    grid = [line for left in (20, 80, 140) for line in column("ABC", left)]
    assert stacks(*grid) == []  # as near beside one another
    rows = [letter("a description", 200, 20 + 60 * row, 400) for row in range(4)]
    assert stacks(*column("YNYN", 20), *rows) == []  # a column of a table
    assert stacks(letter("A", 20, 0), letter("B", 20, 60), letter("C", 20, 500)) == []


def test_a_stack_as_a_line():
    line = join_stack(column("H0TEL", 20), None)
    assert (line.text, line.vertical, line.orientation) == ("HOTEL", True, 0)
    assert line.polygon == ((20.0, 20.0), (60.0, 20.0), (60.0, 310.0), (20.0, 310.0))
    assert [char.text for char in line.words[0].chars] == list("HOTEL")
    assert (
        join_stack(column("abc", 20), "a,c").text == "abc"
        and join_stack(column("ab1", 20), "abl").text == "abl"
    )
    side_by_side = letters_in_a_row([np.zeros((20, 16, 3), np.uint8), np.zeros((40, 32, 3), np.uint8)])
    assert side_by_side.shape == (20, 20, 3)


def test_letters_in_boxes_of_one_row_are_read_along_it():
    """The detector's margins make boxes of neighbours overlap by more than a third of a narrow letter."""
    row = [letter(one, 30 + 45 * i, 40 + i % 2, 62, 60) for i, one in enumerate("MARIA")]
    order = reading_order([line.polygon for line in reversed(row)])
    assert [4 - i for i in order] == [0, 1, 2, 3, 4]


def sign(missed: tuple[int, ...], *, width: int = 16, letters: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Letters, 28 pixels high, below one another, and the quads of those that were not missed."""
    image, quads = np.full((60 * letters + 60, 120, 3), 250, np.uint8), []
    for number in range(letters):
        top = 40 + 50 * number
        wide = width if number in missed else 16
        image[top : top + 28, 60 - wide // 2 : 60 + wide // 2] = 10
        if number not in missed:
            quads.append([(46, top - 6), (74, top - 6), (74, top + 34), (46, top + 34)])
    return image, np.array(quads, np.float32).reshape(-1, 4, 2)


@pytest.mark.parametrize("missed", [(0,), (4,), (0, 4), (3, 4), (0, 1)])
def test_missed_letters_at_the_ends_of_a_stack(missed: tuple[int, ...]):
    image, quads = sign(missed)
    added = add_missed_below(image, quads)[len(quads) :]
    assert sorted(float(quad[:, 1].mean()) for quad in added) == pytest.approx(
        [54 + 50 * n for n in missed], abs=1
    )
    assert all(quad[:, 0].min() < 52 and quad[:, 0].max() > 68 for quad in added)


def test_what_is_no_missed_letter_of_a_stack():
    """A word below a column of digits, a rule across it, and what too few letters stand above."""
    assert len(add_missed_below(*sign((4,), width=90))) == 4
    image, quads = sign((4,))
    image[250] = 10
    assert len(add_missed_below(image, quads)) == 4
    assert len(add_missed_below(*sign((2, 3, 4)))) == 2
    assert len(add_missed_below(*sign(()))) == 5
