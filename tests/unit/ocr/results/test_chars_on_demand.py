"""Words of a text layer make their characters when they are asked for, and are words like all others."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from ocr.results import lines
from ocr.results.lines import Char, CharTable, Word

SAID, LEFT, RIGHT = ["x", "a", "b", "c"], [0.0, 1.0, 2.5, 9.0], [0.5, 2.0, 4.0, 8.0]
TABLE = CharTable(SAID, LEFT, [5.0] * 4, RIGHT, [7.0] * 4)
POLYGON = ((1.0, 5.0), (9.0, 5.0), (9.0, 7.0), (1.0, 7.0))


def box(text: str, left: float, right: float) -> Char:
    return Char(text, 1.0, ((left, 5.0), (right, 5.0), (right, 7.0), (left, 7.0)))


PLAIN = Word("abc", 1.0, POLYGON, (box("a", 1.0, 2.0), box("b", 2.5, 4.0), box("c", 9.0, 9.0)))


def made() -> Word:
    return Word.of_table("abc", POLYGON, TABLE, [1, 2, 3], ())


def test_they_are_those_of_a_plain_word() -> None:
    assert made().chars == PLAIN.chars
    assert made() == PLAIN and hash(made()) == hash(PLAIN)
    assert Word("abc", 1.0, POLYGON).chars == ()


def test_copies_have_them_too() -> None:
    assert pickle.loads(pickle.dumps(made())) == PLAIN
    assert copy.deepcopy(made()) == PLAIN
    assert replace(made(), text="abd") == replace(PLAIN, text="abd")
    assert replace(made(), chars=()).chars == ()


def test_they_are_made_once_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    char = lines.CharTable.char

    def counted(table: CharTable, number: int) -> Char:
        nonlocal count
        count += 1
        return char(table, number)

    monkeypatch.setattr(lines.CharTable, "char", counted)
    word = made()
    replace(word, chars=())
    assert count == 0
    assert word.chars is word.chars
    assert count == 3
