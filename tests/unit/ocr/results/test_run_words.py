"""Words of a line of a PDF's text, from the places of its characters."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.results.run_words import Chars, split_words


def words_of(said: str, gaps: dict[int, float], *, spaces: bool = False, seen: bool = False) -> list[str]:
    """Words of characters of size 10 that touch but for `gaps` before some, in which the document has a space, or
    PDFium sees one.
    """
    count = len(said)
    left, right, place = [], [], 0.0
    for number, letter in enumerate(said):
        place += gaps.get(number, 0.0)
        left.append(place)
        place += 10.0 if ord(letter) > 0x2E80 else 5.0
        right.append(place)
    before = np.cumsum([number in gaps for number in range(count)]).tolist()
    none = [0] * count
    chars = Chars(
        np.arange(count),
        list(said),
        left,
        right,
        [0.0] * count,
        [10.0] * count,
        [10.0] * count,
        [8.0] * count,
        none,
        before if spaces else none,
        before if seen else none,
        [False] * count,
    )
    return ["".join(said[i] for i in word) for word in split_words(chars, list(range(count)), False)]


@pytest.mark.parametrize("gap", [1.3, 2.5])
def test_white_that_programs_set_beside_chinese_is_no_space(gap: float) -> None:
    assert words_of("签订后30日内交货", {3: gap, 5: gap}, seen=True) == ["签订后30日内交货"]
    assert words_of("在平等、自愿的基础上", {4: gap}, seen=True) == ["在平等、自愿的基础上"]


def test_spaces_beside_chinese() -> None:
    assert words_of("使用Python编写的程序", {2: 2.5, 8: 2.5}, spaces=True) == ["使用", "Python", "编写的程序"]
    assert words_of("姓名张三和李四两个人", {2: 10.0}) == ["姓名", "张三和李四两个人"]
    assert words_of("due in30days from now", {6: 2.5}, seen=True) == ["due in", "30days from now"]


@pytest.mark.parametrize("said", ["5<6&7>2", "a=b+c", "010110", "12345"])
def test_signs_between_spaces_of_the_document_are_words(said: str) -> None:
    gaps = dict.fromkeys(range(1, len(said)), 2.8)
    assert words_of(said, gaps, spaces=True) == list(said)


def test_single_letters_beside_a_word_are_words() -> None:
    assert words_of("Iamabc", {1: 2.8, 3: 2.8, 4: 2.8, 5: 2.8}, spaces=True) == ["I", "am", "a", "b", "c"]


def test_letters_between_spaces_alone_are_one_word() -> None:
    assert words_of("TOTAL", dict.fromkeys(range(1, 5), 2.8), spaces=True) == ["TOTAL"]
