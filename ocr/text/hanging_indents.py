"""Paragraphs whose first row hangs out to the left: bibliographies, glossaries, descriptions of terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

FULL = 0.8  # of the rows that hang out fill their row
WITHIN = 0.5  # and end within a sentence
_END = re.compile(r"[.!?…。！？][\"'”’)\]]*$")


def _goes_on(text: str) -> bool:
    """Whether a row ends within a sentence."""
    return _END.search(text.rstrip()) is None


def hanging_rows(
    indents: Sequence[float], texts: Sequence[str], is_full: Callable[[int], bool], reach: tuple[float, float]
) -> tuple[set[int], set[int]]:
    """(the rows with which such paragraphs begin, the rows below them), by their numbers; none where indents are those
    of first rows, below paragraphs that end in the middle of their last row.

    Args:
        indents: How far each row of a column begins from its side, in pixels.
        texts: What the rows say.
        is_full: Whether the row of a number has no room for the first word of the next one.
        reach: How far rows are indented, at least and at most; half of the least is no indent.
    """
    out = [indent < reach[0] / 2 for indent in indents]
    inside = [reach[0] <= indent <= reach[1] for indent in indents]
    steps = [
        n for n, (before, after) in enumerate(pairwise(range(len(out)))) if out[before] and inside[after]
    ]
    full = [n for n in steps if is_full(n)]
    going_on = [n for n in full if _goes_on(texts[n])]
    if not steps or len(full) < FULL * len(steps) or len(going_on) < WITHIN * len(steps):
        return set(), set()
    # A row that goes on in one that hangs out as well is one of an ordinary paragraph.
    level_rows = [
        n for n in range(len(out) - 1) if out[n] and out[n + 1] and is_full(n) and _goes_on(texts[n])
    ]
    if len(level_rows) >= len(going_on):
        return set(), set()
    below: set[int] = set()
    for n in range(1, len(out)):
        level = n - 1 in below and abs(indents[n] - indents[n - 1]) < reach[0] / 2
        if inside[n] and (level or n - 1 in full):
            below.add(n)
    first: set[int] = set()
    for n in range(len(out)):
        after_one_row = n - 1 in first and (not is_full(n - 1) or not _goes_on(texts[n - 1]))
        if out[n] and (n + 1 in below or n - 1 in below or after_one_row):
            first.add(n)
    return first, below
