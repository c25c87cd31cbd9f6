"""Spans: what is raised, lowered, struck out or a link within a text, and texts with marks where spans begin and end.

Words hold the spans of their characters; those of a block or a cell follow from its lines, since its text is theirs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from framework.core.errors import InputError
from framework.core.types import JSON

if TYPE_CHECKING:
    from ocr.results.lines import Line

SPAN_STYLES = ("superscript", "subscript", "strike", "link")
MARK = "\ufdd0"  # a noncharacter: no text holds it
_ORDER = ("link", "strike", "superscript", "subscript")  # from the outer to the inner one
_RAISED = dict(zip("0123456789+-=()−ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾⁻ⁿⁱ", strict=True))
_LOWERED = dict(zip("0123456789+-=()−aeoxhklmnpst", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎₋ₐₑₒₓₕₖₗₘₙₚₛₜ", strict=True))


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end`, exclusive, of a text that are set in a way that says something.

    `style` is one of SPAN_STYLES; `target` is the address of a link.
    """

    start: int
    end: int
    style: str
    target: str = ""

    def __post_init__(self) -> None:
        if self.style not in SPAN_STYLES or not 0 <= self.start < self.end:
            raise InputError(
                "no span of a text",
                where="Span",
                received=f"{self.style} from {self.start} to {self.end}",
                allowed=f"{', '.join(SPAN_STYLES)}; from 0, at least one character long",
            )


def span_to_dict(span: Span) -> dict[str, JSON]:
    """{"start", "end", "style"}, of a link "target" too."""
    target = {"target": span.target} if span.target else {}
    return {"start": span.start, "end": span.end, "style": span.style} | target


def spans_in(text: str, lines: Iterable[Line]) -> tuple[Span, ...]:
    """The spans of a text that lines say, line ends and white space aside; sorted, outer ones first.

    What the text leaves out of the lines, such as hyphens at their ends, belongs to no span.
    """
    words = [word for line in lines for word in line.words]
    if not any(word.spans for word in words):
        return ()
    said: list[str] = []
    marks: list[frozenset[tuple[str, str]]] = []  # (style, target) of each character
    for word in words:
        of_word = [frozenset[tuple[str, str]]()] * len(word.text)
        for span in word.spans:
            for at in range(span.start, min(span.end, len(of_word))):
                of_word[at] |= {(span.style, span.target)}
        for char, mark in zip(word.text, of_word, strict=True):
            if not char.isspace():
                said.append(char)
                marks.append(mark)
    places = [at for at, char in enumerate(text) if not char.isspace()]
    marked: dict[int, frozenset[tuple[str, str]]] = {}
    if [text[at] for at in places] == said:
        marked = dict(zip(places, marks, strict=True))
    else:
        matcher = SequenceMatcher(None, [text[at] for at in places], said, autojunk=False)
        for first, second, size in matcher.get_matching_blocks():
            marked |= {places[first + n]: marks[second + n] for n in range(size)}
    return _runs(text, marked)


def _runs(text: str, marked: dict[int, frozenset[tuple[str, str]]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for style, target in {mark for marks in marked.values() for mark in marks}:
        at = sorted(place for place, marks in marked.items() if (style, target) in marks)
        start = at[0]
        for before, after in pairwise([*at, len(text) + 1]):
            # White space between two words of a span belongs to it, but not between two notes' numbers.
            gap = text[before + 1 : after]
            whole = after <= len(text) and (not gap or (gap.isspace() and style in ("link", "strike")))
            if not whole:
                spans.append(Span(start, before + 1, style, target))
                start = after
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, _ORDER.index(span.style))))


def mark_spans(text: str, spans: Sequence[Span]) -> tuple[str, list[tuple[Span, bool]]]:
    """The text with MARK where a span begins or ends, and what each mark is: (span, whether it begins).

    Spans are nested: one that ends within another one is ended there, and goes on behind its end.
    """
    text = text.replace(MARK, "\ufffd")
    if not spans:
        return text, []
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    events: list[tuple[Span, bool]] = []
    said: list[str] = [text[: edges[0]]]
    opened: list[Span] = []
    for edge, following in pairwise([*edges, len(text)]):
        ending = [span for span in opened if span.end <= edge]
        while any(span in opened for span in ending):
            events.append((opened.pop(), False))
            said.append(MARK)
        for span in spans:
            if span.start <= edge < span.end and span not in opened:
                opened.append(span)
                events.append((span, True))
                said.append(MARK)
        said.append(text[edge:following])
    return "".join(said), events


def replace_marks(text: str, events: Sequence[tuple[Span, bool]], shown: Callable[[Span, bool], str]) -> str:
    """A text of `mark_spans`, escaped or not, with what `shown` gives for each mark."""
    if not events:
        return text
    parts = text.split(MARK)
    if len(parts) != len(events) + 1:
        return "".join(parts)
    return parts[0] + "".join(shown(*event) + part for event, part in zip(events, parts[1:], strict=True))


def plain_text(text: str, spans: Sequence[Span]) -> str:
    """The text alone: raised and lowered characters as those of Unicode, or after "^" and "_" where it has none."""
    said = text
    for span in sorted(spans, key=lambda span: -span.start):
        if span.style in ("superscript", "subscript"):
            said = said[: span.start] + _raise(text[span.start : span.end], span.style) + said[span.end :]
    return said


def _raise(text: str, style: str) -> str:
    table, sign = (_RAISED, "^") if style == "superscript" else (_LOWERED, "_")
    if all(char in table for char in text):
        return "".join(table[char] for char in text)
    if not any(unicodedata.category(char)[0] in "LN" for char in text):
        return text  # a note's star or dagger
    return sign + (text if len(text) == 1 else f"({text})")
