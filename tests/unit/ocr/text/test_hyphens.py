"""Hyphens at the ends of lines."""

from __future__ import annotations

import pytest

from ocr.text.hyphens import WordList, join_at_hyphen


@pytest.mark.parametrize(
    ("text", "following", "said"),
    [
        ("an exam-", "ple of", "an example of"),
        ("the state-of-the-", "art bridge", "the state-of-the-art bridge"),
        ("the state-", "of-the-art bridge", "the state-of-the-art bridge"),
        ("a well-", "known name", "a well-known name"),
        ("\u201cwell-", "known", "\u201cwell-known"),
        ("(an exam-", "ple)", "(an example)"),
        ("twenty-", "five", "twenty-five"),
        ("a 30-", "day limit", "a 30-day limit"),
        ("an e-", "mail", "an e-mail"),
        ("to be re-", "elected", "to be re-elected"),
        ("much low-", "er than", "much lower than"),
        ("the Anglo-", "American side", "the Anglo-American side"),
        ("the AGREE-", "MENT", "the AGREEMENT"),
        ("Haupt-", "und Nebensatz", "Haupt- und Nebensatz"),
        ("soft\u00ad", "ware", "software"),
        ("in 1998\u2013", "2004", "in 1998\u20132004"),
        ("no hyphen", "here", None),
        ("a dash -", "and more", None),
        ("alone", "", None),
    ],
)
def test_join_at_hyphen(text, following, said):
    assert join_at_hyphen(text, following) == said


def test_the_page_tells_how_a_word_is_written():
    words = WordList(("A cooperative bank,", "and co-workers of co-", "operation"))
    assert join_at_hyphen("the co-", "workers", words) == "the co-workers"
    assert join_at_hyphen("a co-", "operative", words) == "a cooperative"
    assert join_at_hyphen("the work-", "shop", WordList(("workshop",))) == "the workshop"
    assert join_at_hyphen("cross-", "word", WordList(("a crossword",))) == "crossword"
