"""Whether letters make words."""

from __future__ import annotations

import random

import pytest

from ocr.results.letter_statistics import is_doubtful

ENGLISH = (
    "The committee met on Tuesday to discuss the budget for the coming year. Several members asked for more details "
    "about the planned works at the harbour and the cost of the new bridge."
)


@pytest.mark.parametrize(
    "text",
    [
        ENGLISH,
        "Kaikki ihmiset syntyv\u00e4t vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu",
        "V\u0161ichni lid\u00e9 rod\u00ed se svobodn\u00ed a sob\u011b rovn\u00ed. Str\u010d prst skrz krk. Zmrzl vlk.",
        "Mae hen wlad fy nhadau yn annwyl i mi, gwlad beirdd a chantorion, enwogion o fri; ei gwrol ryfelwyr",
        "B\u00fct\u00fcn insanlar h\u00fcr, haysiyet ve haklar bak\u0131m\u0131ndan e\u015fit do\u011farlar",
        "Boeing Company Long Beach Layoff Unknown Symantec Corporation Mountain View Closure Permanent El Segundo",
        "KX-00123-QZ HTTPX XMLRPC BCDF JKL1 PQRS-99 TTL",
        "Dqqxdo dffr",  # too little to tell
        "\u0414\u043e\u0431\u0440\u043e \u043f\u043e\u0436\u0430\u043b\u043e\u0432\u0430\u0442\u044c " * 9,
    ],
)
def test_texts_of_languages(text):
    assert not is_doubtful([text])


def test_letters_that_were_moved():
    moved = "".join(chr(ord(char) + 3) if char.isalpha() else char for char in ENGLISH)
    assert is_doubtful([moved])


def test_letters_that_were_exchanged():
    letters = [chr(code) for code in range(97, 123)]
    found = 0
    for seed in range(20):
        others = letters[:]
        random.Random(seed).shuffle(others)
        found += is_doubtful([ENGLISH.lower().translate(str.maketrans("".join(letters), "".join(others)))])
    assert found >= 18
