"""Which labelled regions of a page a detected line shows, and what its label can be believed in. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from ocr.data.labels import Region
from ocr.text.scores import edit_distance

MatchProblem = Literal["", "no label", "cut otherwise", "unreadable"]
_COVERED, _TOUCHED = 0.6, 0.15  # share of a region's area in the line
_SAME_ROW = 0.55  # of the lower of both heights
_END = 0.8  # of the line's height, by which its ends and those of its regions may differ
_RUN = re.compile(r"([^\w\s])\1*")
_STROKES = frozenset("Il")  # one glyph in many fonts


class Match(NamedTuple):
    """The numbers of the regions that a line shows, in reading order; or none, and why."""

    regions: tuple[int, ...]
    problem: MatchProblem = ""


def match_line(line: np.ndarray, regions: Sequence[Region], *, vertical: bool = False) -> Match:
    """The regions whose texts together are the text of a detected line.

    Regions are measured along the line and across it, so that turned lines match as upright ones do. A region belongs
    to the line where most of it lies in it, at about the same height. The line is "cut otherwise" than its label where
    it holds a part of a region only, where regions in it stand above one another, or where it begins or ends elsewhere
    than its regions. "unreadable" is a line that shows a region that nobody can read or
    whose text is not said.

    Args:
        line: Quad [4, 2], clockwise from the text's own top-left corner.
        vertical: Whether the text runs from top to bottom, in the direction of the quad's second edge.
    """
    own = _bounds(line, line, vertical)
    height = max(own[3] - own[1], 1e-6)
    covered: list[tuple[float, float, int]] = []
    for number, region in enumerate(regions):
        start, top, end, bottom = _bounds(region.polygon, line, vertical)
        along, across = min(end, own[2]) - max(start, own[0]), min(bottom, own[3]) - max(top, own[1])
        if along <= 0 or across <= 0:
            continue
        share = along * across / max((end - start) * (bottom - top), 1e-6)
        if share <= _TOUCHED:
            continue
        if not region.has_text:
            return Match((), "unreadable")
        if share <= _COVERED or across <= _SAME_ROW * min(height, bottom - top):
            return Match((), "cut otherwise")
        covered.append((start, end, number))
    if not covered:
        return Match((), "no label")
    covered.sort()
    ends = max(abs(covered[0][0] - own[0]), abs(max(end for _, end, _ in covered) - own[2]))
    if ends > _END * height or any(_one_above_another(*pair) for pair in pairwise(covered)):
        return Match((), "cut otherwise")
    return Match(tuple(number for *_, number in covered))


def _one_above_another(one: tuple[float, float, int], other: tuple[float, float, int]) -> bool:
    shared = min(one[1], other[1]) - other[0]
    return shared > 0.5 * min(one[1] - one[0], other[1] - other[0])


def _bounds(points: np.ndarray, line: np.ndarray, vertical: bool) -> tuple[float, float, float, float]:
    """(start, top, end, bottom) of points [P, 2], in pixels along the line and across it from its first corner."""
    corners = np.asarray(line, np.float64)
    right = corners[1] - corners[0]
    right = right / max(float(np.hypot(*right)), 1e-9)
    axes = np.stack([right, (-right[1], right[0])])
    placed = (np.asarray(points, np.float64) - corners[0]) @ (axes[::-1] if vertical else axes).T
    (start, top), (end, bottom) = placed.min(axis=0).tolist(), placed.max(axis=0).tolist()
    return start, top, end, bottom


def take_case(label: str, reading: str) -> str:
    """The label with capital and small letters as they were read: for labels in capitals whatever is printed.

    A letter takes the case of the letter that was read in its place, even of another one; where there is none, that of
    the nearest letter of its word that has one, those behind it first. I and l, read for one another, say nothing of
    the case. Letters that neither tells of stay as they are.
    """
    one, other = label.upper(), reading.upper()
    if len(one) != len(label) or len(other) != len(reading):  # such as ß: places would not be the same
        return label
    upper: list[bool | None] = [None] * len(label)
    for tag, start, stop, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and stop - start == last - first):
            for place, read in zip(range(start, stop), reading[first:last]):
                stroke = tag == "replace" and read in _STROKES and one[place] in "IL"
                upper[place] = None if stroke or not read.isalpha() else read.isupper()
    for word in re.finditer(r"[^\W\d_]+", label):
        known = [place for place in range(*word.span()) if upper[place] is not None]
        for place in set(range(*word.span())).difference(known) if known else ():
            behind = [other for other in known if other > place]
            upper[place] = upper[behind[0] if behind else known[-1]]
    return "".join(
        char if high is None else char.upper() if high else char.lower() for char, high in zip(label, upper)
    )


def longest_run(text: str) -> int:
    """How often the same sign stands in a row at most; letters, digits and spaces are no signs."""
    return max((len(run.group()) for run in _RUN.finditer(text)), default=0)


def says_another(label: str, reading: str, max_cer: float) -> bool:
    """Whether a reading is so far from a label that this may be another line's: more than `max_cer` of its characters,
    and more than one of them, are inserted, deleted or replaced. Spaces and case are not seen.
    """
    one, other = (text.replace(" ", "").casefold() for text in (label, reading))
    return edit_distance(one, other) > max(1.0, max_cer * len(one))
