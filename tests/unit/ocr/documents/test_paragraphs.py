"""Blocks of text of scans, where nobody knows how lines are set: numbered headings, and what is none."""

from __future__ import annotations

import pytest

from ocr.documents.paragraphs import make_text_blocks
from ocr.results.lines import Line

PROSE = "Words of a paragraph that fill their line up to its right end"


def lines_of(*texts: str, gaps: dict[int, float] | None = None) -> list[Line]:
    """Lines below one another, 6 pixels a character; `gaps` stand above lines by their numbers."""
    found, top = [], 0.0
    for number, text in enumerate(texts):
        top += (gaps or {}).get(number, 0.0)
        right = 6.0 * len(text)
        found.append(Line(text, 1.0, ((0.0, top), (right, top), (right, top + 10), (0.0, top + 10))))
        top += 12.0
    return found


def blocks_of(*texts: str, gaps: dict[int, float] | None = None) -> list[tuple[str, str]]:
    blocks = make_text_blocks(lines_of(*texts, gaps=gaps), height=1000)
    return [(block.label, block.text[:20]) for block in blocks]


@pytest.mark.parametrize("title", ["3. Results and more", "3.2 Results", "12 Ergebnisse", "2. 结果与讨论"])
def test_a_numbered_heading_over_a_paragraph(title: str) -> None:
    expected = [("paragraph_title", title[:20]), ("text", PROSE[:20])]
    assert blocks_of(title, PROSE, PROSE, gaps={1: 8.0}) == expected
    assert blocks_of(title, PROSE, PROSE) == expected  # without a gap: it ends early


@pytest.mark.parametrize(
    "texts",
    [
        ("1. Apples", "2. Pears", PROSE, PROSE),  # a list, then a paragraph
        ("3. An item of a list ends.", PROSE, PROSE),
        ("12 Main Street", "London", "England"),  # an address
        ("3. Results", PROSE),  # one line below
        ("2 coffee", PROSE, PROSE),
    ],
)
def test_what_is_no_numbered_heading(texts: tuple[str, ...]) -> None:
    gaps = {number: 8.0 for number, text in enumerate(texts) if number and texts[number - 1] != text == PROSE}
    assert "paragraph_title" not in dict(blocks_of(*texts, gaps=gaps))


def test_an_item_that_goes_on_stays_whole() -> None:
    """Its second line begins with a small letter."""
    (block,) = make_text_blocks(
        lines_of("3. An item", "of a list that goes on up to the right end"), height=1000
    )
    assert block.text.startswith("3. An item") and len(block.lines) == 2


def test_an_address_stays_with_the_line_below_it() -> None:
    """Neither of its lines fills the column."""
    assert blocks_of("14 Harbour Street", "Tel 020 7946", PROSE, gaps={2: 8.0})[0] == (
        "text",
        "14 Harbour Street\nTe",
    )
