"""The pieces of cells that the words of a row are, told by the white between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ocr.results.geometry import Box, line_box, median
from ocr.results.lines import Line, Word
from ocr.tables.cell_text import part_of_line

WORD_JOIN = 0.5  # of the text height: closer words are one piece of a cell
OVERLAP = 0.1  # of the text height, by which a text must lie on another one to be another cell's
STRIPE = 0.6  # of the text height: the least white between columns


@dataclass(frozen=True)
class Segment:
    """Words of one row that stand together."""

    line: Line
    box: Box


def text_height(lines: Sequence[Line]) -> float:
    """The median height of lines."""
    return median(bottom - top for _, top, _, bottom in map(line_box, lines))


def has_several_segments(row: Sequence[Line], height: float) -> bool:
    """Whether the words of a row make more than one segment: a line makes one, at least."""
    return len(row) > 1 or any(len(_words_together(line, height, ())) > 1 for line in row)


def _words_together(line: Line, height: float, cuts: Sequence[tuple[float, float]]) -> list[list[Word]]:
    """The words of a line that stand close together."""
    least = -OVERLAP * height if line.style is not None else -np.inf
    groups: list[list[Word]] = []
    last: Box | None = None
    for word in line.words:
        box = line_box(word)
        if (
            last is not None
            and least < box[0] - last[2] < WORD_JOIN * height
            and not any(last[0] + last[2] < a + b < box[0] + box[2] for a, b in cuts)
        ):
            groups[-1].append(word)
        else:
            groups.append([word])
        last = box
    return groups


def segments_of(
    row: Sequence[Line], height: float, cuts: Sequence[tuple[float, float]] = ()
) -> list[Segment]:
    """The words of a row, joined where they stand close together and none of the stripes `cuts` parts them.

    A text on whose end another one begins, as in a cell that is too narrow for it, ends before that one.
    """
    segments: list[Segment] = []
    for line in row:
        groups = _words_together(line, height, cuts)
        for text in [part_of_line(line, group) for group in groups] or [line]:
            segments.append(Segment(text, line_box(text)))
    segments.sort(key=lambda segment: segment.box[0])
    for number, (segment, after) in enumerate(pairwise(segments)):
        left, top, right, bottom = segment.box
        if segment.line.style is not None and right - after.box[0] > OVERLAP * height:
            end = max(left, after.box[0] - 1.5 * STRIPE * height)
            segments[number] = Segment(segment.line, (left, top, end, bottom))
    return segments
