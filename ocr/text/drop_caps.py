"""Initials that are as high as several lines: each is the first letter of the line at its top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ocr.results.blocks import Box
from ocr.results.geometry import bounding_box, box_polygon, line_box
from ocr.results.lines import Line, Word
from ocr.text.hyphens import WordList

LARGER = 1.7  # of the lines' type: an initial
NEAR = 1.5  # of the lines' type: the most white right of it
TOP = 0.9  # of the lines' height: how far the tops of both differ
LINES = (2, 6)  # beside it
SAME_LEFT = 0.8  # of the lines' type: how far their left sides differ
LONGEST = 2  # letters, with a quotation mark
LEAST_CHARS = 12  # of the first line


def join_drop_caps(lines: Sequence[Line]) -> list[Line]:
    """Lines of a text layer, each initial with the line that it begins. Its letter stands in that line's first word,
    whose box stays as it is, so that the rows of the paragraph keep their places.
    """
    lines = list(lines)
    for number, line in enumerate(lines):
        start = _initial(line)
        if start is None:
            continue
        initial, rest = start
        cap = line_box(initial)
        beside = _beside(cap, [*lines[:number], *([rest] if rest is not None else []), *lines[number + 1 :]])
        if not beside:
            continue
        first = min(beside, key=lambda one: line_box(one)[1])
        joined = _join(initial, first, [one.text for one in lines if one is not first and one is not line])
        if rest is None or first is not rest:
            at = next(n for n, one in enumerate(lines) if one is first)
            lines[at] = joined
            lines[number] = replace(line, text="") if rest is None else rest
        else:
            lines[number] = joined
    return [line for line in lines if line.text]


def _initial(line: Line) -> tuple[Word, Line | None] | None:
    """A line's large first letter, and the line without it; None where it has none."""
    if line.style is None or line.orientation or line.vertical or not line.words:
        return None
    first, *others = line.words
    letters = [char for char in first.text if char.isalpha()]
    if len(letters) != 1 or not letters[0].isupper() or len(first.text) > LONGEST:
        return None
    if not others:
        return first, None
    _, top, _, bottom = line_box(first)
    heights = sorted(line_box(word)[3] - line_box(word)[1] for word in others)
    if bottom - top < LARGER * heights[-1]:
        return None
    outer = box_polygon(bounding_box(map(line_box, others)))
    return first, replace(
        line, text=" ".join(word.text for word in others), words=tuple(others), polygon=outer
    )


def _beside(cap: Box, lines: Sequence[Line]) -> list[Line]:
    """The lines right of an initial, of one left side and smaller type; none where they are too few or too many."""
    beside: list[Line] = []
    for line in lines:
        if line.style is None or line.orientation or line.vertical:
            continue
        left, top, _, bottom = line_box(line)
        size = line.style.size
        if cap[3] - cap[1] < LARGER * (bottom - top):
            continue
        level = cap[1] - TOP * (bottom - top) < (top + bottom) / 2 < cap[3]
        if level and -0.3 * size < left - cap[2] < NEAR * size:
            beside.append(line)
    if not LINES[0] <= len(beside) <= LINES[1]:
        return []
    beside.sort(key=lambda line: line_box(line)[1])
    left, top, _, bottom = line_box(beside[0])
    size = beside[0].style.size if beside[0].style is not None else bottom - top
    same = all(abs(line_box(line)[0] - left) < SAME_LEFT * size for line in beside)
    begins = abs(top - cap[1]) < TOP * (bottom - top) and len(beside[0].text) >= LEAST_CHARS
    return beside if same and begins else []


def _join(initial: Word, line: Line, texts: Sequence[str]) -> Line:
    """A line behind its initial: one word with its first one, unless "A" or "I" stands before a word of the page."""
    first, *others = line.words or (Word(line.text, line.score, line.polygon),)
    alone = initial.text in ("A", "I", "O") and first.text.casefold() in WordList(texts).words
    if alone:
        words = (replace(initial, polygon=first.polygon), first, *others)
    else:
        shift = len(initial.text)
        spans = tuple(replace(span, start=span.start + shift, end=span.end + shift) for span in first.spans)
        chars = (*initial.chars, *first.chars)
        words = (Word(initial.text + first.text, first.score, first.polygon, chars, spans), *others)
    return replace(line, text=" ".join(word.text for word in words), words=words)
