"""Paragraphs whose first row hangs out, against those whose first row is indented."""

from __future__ import annotations

import pytest

from ocr.text.hanging_indents import hanging_rows
from tests.unit.ocr.documents.pdf_pages import PdfPage
from tests.unit.ocr.documents.test_pages_of_others import markdown

REACH = (8.0, 60.0)
ENTRIES = (
    ("Anderson, J. R., and Lebiere, C. (1998). The atomic parts of a thought", "and of a harbour. London."),
    ("Baker, M. (2016). One thousand fishermen lift the lid on their work and", "Nets of the north. Oslo."),
    ("Dahl, O. (1985). Tense and aspect. Oxford.",),
    (
        "Evans, N. (2009). The myth of one harbour, and why it is so important for",
        "every town. Paris: Seuil.",
    ),
)


@pytest.mark.parametrize("indent", [14, 30])
def test_each_entry_of_a_bibliography_is_a_paragraph(indent: float) -> None:
    page, y = PdfPage(), 40
    for entry in ENTRIES:
        for number, text in enumerate(entry):
            page.text(30 + indent * (number > 0), y, text, 10)
            y += 12
    assert markdown(page).strip().split("\n\n") == [" ".join(entry) for entry in ENTRIES]


def test_first_rows_that_are_indented_begin_paragraphs() -> None:
    texts = ["First", "goes on", "to its end.", "Next", "goes on as well", "and ends.", "Last", "goes on."]
    indents = [12.0, 0, 0, 12, 0, 0, 12, 0]
    full = {0, 1, 3, 4, 6}
    assert hanging_rows(indents, texts, full.__contains__, REACH) == (set(), set())
    # Rows that are full by chance do not change that, where they end a sentence.
    assert hanging_rows(indents, texts, range(7).__contains__, REACH) == (set(), set())


def test_rows_below_the_first() -> None:
    texts = ["Ann goes", "on and", "on.", "Bob.", "Cid.", "Dan goes", "on."]
    indents = [0.0, 20, 20, 0, 0, 0, 20]
    found = hanging_rows(indents, texts, {0, 1, 5}.__contains__, REACH)
    assert found == ({0, 3, 4, 5}, {1, 2, 6})
    assert hanging_rows([0.0, 90], ["Ann goes", "on."], {0}.__contains__, REACH) == (set(), set())
