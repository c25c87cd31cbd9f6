"""Spans of texts: from lines, as marks, as plain text."""

from __future__ import annotations

import pytest

from framework.core.errors import InputError
from ocr.results.geometry import box_polygon
from ocr.results.lines import Line, Word, line_from_dict, line_to_dict
from ocr.results.spans import Span, mark_spans, plain_text, replace_marks, spans_in

BOX = box_polygon((0.0, 0.0, 10.0, 10.0))


def line(*words: tuple[str, tuple[Span, ...]]) -> Line:
    made = tuple(Word(text, 1.0, BOX, spans=spans) for text, spans in words)
    return Line(" ".join(word.text for word in made), 1.0, BOX, made)


LINK = "https://example.org"
FIRST = line(("see", ()), ("the", (Span(0, 3, "link", LINK),)), ("re-", (Span(0, 3, "link", LINK),)))
SECOND = line(("port", (Span(0, 4, "link", LINK),)), ("m2", (Span(1, 2, "superscript"),)))


def test_spans_follow_the_text():
    assert [(s.start, s.end, s.style) for s in spans_in("see the report m2", [FIRST, SECOND])] == [
        (4, 14, "link"),
        (16, 17, "superscript"),
    ]
    assert spans_in("see the", [line(("see", ()), ("the", ()))]) == ()
    assert FIRST.spans == (Span(4, 11, "link", LINK),)
    assert line_from_dict(line_to_dict(FIRST)) == FIRST and "spans" not in line_to_dict(FIRST)["words"][0]


def test_marks_are_nested():
    spans = (Span(0, 5, "link", LINK), Span(3, 8, "strike"))
    marked, events = mark_spans("abcdefghi", spans)
    said = replace_marks(marked, events, lambda span, begins: f"<{'' if begins else '/'}{span.style[0]}>")
    assert said == "<l>abc<s>de</s></l><s>fgh</s>i"
    assert mark_spans("plain", ()) == ("plain", [])


@pytest.mark.parametrize(
    ("text", "span", "said"),
    [
        ("10-3 mol", Span(2, 4, "superscript"), "10\u207b\u00b3 mol"),
        ("H2O", Span(1, 2, "subscript"), "H\u2082O"),
        ("xmax", Span(1, 4, "subscript"), "x\u2098\u2090\u2093"),
        ("4th", Span(1, 3, "superscript"), "4^(th)"),
        ("xq", Span(1, 2, "superscript"), "x^q"),
        ("name*", Span(4, 5, "superscript"), "name*"),
        ("old", Span(0, 3, "strike"), "old"),
    ],
)
def test_plain_text(text, span, said):
    assert plain_text(text, (span,)) == said


def test_errors():
    for wrong in ((0, 0, "strike"), (-1, 2, "strike"), (0, 1, "bold")):
        with pytest.raises(InputError, match="no span of a text"):
            Span(*wrong)
