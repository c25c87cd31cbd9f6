"""Numbers of lines in a page's margin, as manuscripts under review, contracts and pleadings have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ocr.results.geometry import Box, bounding_box, line_box, rows_of
from ocr.results.lines import Line, Word
from ocr.tables.cell_text import part_of_line

LEAST = 5  # numbers that count on
STEPS = (1, 2, 5, 10)
# Of the text's height: the least white beside a number, how far numbers are out of line, the usual length of a piece of
# a row, and the white that parts pieces.
GAP, ALIGNED, LONG, WHITE = 0.7, 0.5, 12.0, 1.5
FULL, REACH = 0.5, 0.25  # of the rows reach so near their right side, of the text's width
READS_ON = 0.3  # of the rows begin in the middle of a sentence, at least
_NUMBER = re.compile(r"\d{1,4}")
_END = re.compile(r"[.!?:;][\"'”’)\]]*$")


class _Candidate(NamedTuple):
    value: int
    box: Box
    line: Line
    number: Line  # of the line, the number alone
    text: Line | None  # of the line, what is beside the number


def find_line_numbers(lines: Sequence[Line]) -> tuple[list[list[Line]], list[Line]]:
    """(the numbers of lines in each margin, the other lines without them).

    Numbers are those of lines where they count on by one step, stand below one another beside white, and what stands
    beside them is prose, which goes on from row to row. Rows of a table and items of a list do not.
    """
    columns: list[list[Line]] = []
    rest = list(lines)
    for side in (0, -1):
        level = [line for line in rest if line.orientation == 0 and not line.vertical and line.text.strip()]
        if len(level) < LEAST:
            break
        height = float(np.median([line_box(line)[3] - line_box(line)[1] for line in level]))
        rows = rows_of(level)
        column = _counting([_at_margin(row, side, height) for row in rows], side, height)
        numbered = {id(one.line): one.text for one in column}
        texts = [_replaced(row, numbered) for row in rows if any(id(line) in numbered for line in row)]
        if column and _is_prose([row for row in texts if row], height):
            columns.append([one.number for one in column])
            rest = _replaced(rest, numbered)
    return columns, rest


def _replaced(lines: Sequence[Line], numbered: Mapping[int, Line | None]) -> list[Line]:
    """The lines, of those with a number what is beside it."""
    texts = [numbered.get(id(line), line) for line in lines]
    return [line for line in texts if line is not None]


def _at_margin(row: Sequence[Line], side: int, height: float) -> _Candidate | None:
    """The number at a row's left (`side` 0) or right (-1) end, where white parts it from the row's text."""
    ordered = sorted(row, key=lambda line: line_box(line)[0])
    line = ordered[side]
    words = list(line.words) or [Word(line.text, line.score, line.polygon)]
    word = words.pop(side)
    if not _NUMBER.fullmatch(word.text):
        return None
    box = line_box(word)
    near: list[Line | Word] = [*words, *(other for other in ordered if other is not line)]
    if near:
        beside = bounding_box(map(line_box, near))
        white = beside[0] - box[2] if side == 0 else box[0] - beside[2]
        if white < GAP * height:
            return None
    number = part_of_line(line, [word]) if words else line
    return _Candidate(int(word.text), box, line, number, part_of_line(line, words) if words else None)


def _counting(candidates: Sequence[_Candidate | None], side: int, height: float) -> list[_Candidate]:
    """Those that stand below one another and count on."""
    numbers = [one for one in candidates if one is not None]
    best: list[_Candidate] = []
    for edge in (2, 0) if side == 0 else (0, 2):
        if not numbers:
            break
        middle = float(np.median([one.box[edge] for one in numbers]))
        below = [one for one in numbers if abs(one.box[edge] - middle) < ALIGNED * height]
        runs = [below[:1]]
        for before, one in pairwise(below):
            step = one.value - before.value
            first = runs[-1]
            if step in STEPS and (len(first) < 2 or step == first[1].value - first[0].value):
                first.append(one)
            else:
                runs.append([one])
        best = max([best, *runs], key=len)
    return best if len(best) >= LEAST else []


def _is_prose(rows: Sequence[Sequence[Line]], height: float) -> bool:
    """Whether rows are of long pieces, mostly full, and go on from one to the next."""
    if len(rows) < LEAST - 1:
        return False
    boxes = np.array([bounding_box(map(line_box, row)) for row in rows])
    left, right = boxes[:, 0].min(), boxes[:, 2].max()
    long = np.median([length for row in rows for length in _lengths(row, height)]) >= LONG * height
    full = np.mean(boxes[:, 2] >= right - REACH * (right - left)) >= FULL
    texts = [min(row, key=lambda line: line_box(line)[0]).text.strip() for row in rows]
    going_on = [after[:1].islower() and not _END.search(before) for before, after in pairwise(texts)]
    return bool(long and full and sum(going_on) >= READS_ON * len(going_on))


def _lengths(row: Sequence[Line], height: float) -> list[float]:
    """Of the pieces of a row between white that is wider than between words."""
    words = sorted(line_box(word) for line in row for word in (line.words or (line,)))
    cuts = [
        number for number in range(1, len(words)) if words[number][0] - words[number - 1][2] > WHITE * height
    ]
    return [words[end - 1][2] - words[start][0] for start, end in pairwise([0, *cuts, len(words)])]
