from __future__ import annotations

import numpy as np
import pytest

from framework.text.words import find_continuations, find_words, pieces, split_characters, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ann's dog doesn't bark.", ["Ann", "'s", "dog", "does", "n't", "bark", "."]),
        ("a well-known place: 3.5 km", ["a", "well-known", "place", ":", "3", ".", "5", "km"]),
        ("I’ve  won!", ["I", "’ve", "won", "!"]),
        ("", []),
        ("  \n", []),
    ],
)
def test_words_and_their_places(text: str, words: list[str]) -> None:
    found, spans = split_words(text)
    assert list(found) == words
    assert [text[start:end] for start, end in spans] == words
    assert spans.shape == (len(words), 2) and spans.dtype == np.int32


def test_characters_leave_white_space_out() -> None:
    found, spans = split_characters("天 气\n𠀀")
    assert found == ("天", "气", "𠀀") and spans.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_words_are_found_where_they_stand() -> None:
    assert find_words("a b a", ("a", "a", "x")).tolist() == [[0, 1], [4, 5], [5, 5]]


def test_pieces_end_with_sentences_and_are_the_text() -> None:
    text = "One. Two!  “Three?” Four 4.5\nfive"
    assert pieces(text, 40) == [
        (0, "One. "),
        (5, "Two!  "),
        (11, "“Three?” "),
        (20, "Four 4.5\n"),
        (29, "five"),
    ]
    assert pieces("", 4) == []
    long = "word " * 30 + "x" * 100
    found = pieces(long, 12)
    assert "".join(piece for _, piece in found) == long and max(len(piece) for _, piece in found) <= 12
    assert all(long[start:].startswith(piece) for start, piece in found)
    assert found[0] == (0, "word word ")


@pytest.mark.parametrize(
    ("text", "offsets", "expected"),
    [
        ("Washington-DC", [(0, 7), (7, 10), (10, 11), (11, 13)], [0, 1, 0, 0]),
        ("a b", [(0, 1), (2, 3)], [0, 0]),
        ("天气ab", [(0, 1), (1, 2), (2, 3), (3, 4)], [0, 0, 0, 1]),
        ("Bob's", [(0, 3), (3, 4), (4, 5)], [0, 0, 0]),
        ("e\u0301t", [(0, 2), (2, 3)], [0, 1]),  # an accent of its own belongs to the letter
        ("😀", [(0, 1), (0, 1), (0, 1)], [0, 1, 1]),  # bytes of one character
        ("", [], []),
        ("ab", [(0, 1), (1, 2), (2, 2)], [0, 1, 0]),  # nothing behind the end
    ],
)
def test_tokens_that_go_on_with_a_word(
    text: str, offsets: list[tuple[int, int]], expected: list[int]
) -> None:
    assert find_continuations(text, np.array(offsets, np.int32).reshape(-1, 2)).tolist() == list(
        map(bool, expected)
    )


@pytest.mark.parametrize(
    "text",
    [
        "Anna lives in St. Petersburg since 2010.",
        "John moved to Mt. Vernon from Ft. Worth.",
        "The Ste. Marie bridge is old.",
        "J. R. Smith met Dr. No.",
        "Inc. and Ltd. are endings, e.g. here.",
    ],
)
def test_the_point_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    assert pieces(text, 100) == [(0, text)]


def test_sentences_end_at_other_points() -> None:
    text = "He left in 2010. She stayed in Paris. Nobody came... Why? they asked.\nSt. Ives."
    assert [piece for _, piece in pieces(text, 100)] == [
        *(
            "He left in 2010. ",
            "She stayed in Paris. ",
            "Nobody came... ",
            "Why? ",
            "they asked.\n",
            "St. Ives.",
        ),
    ]
