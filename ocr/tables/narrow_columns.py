"""Columns of numbers that stand so close together that the white between them is hardly more than that of words.

One row does not tell them; many do: white that they all leave free at one place, beside numbers in most of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ocr.results.geometry import line_box
from ocr.results.lines import Line, Word, has_styles
from ocr.tables.cell_text import is_number

# Of the text height: a space and a half where the type is known; boxes of OCR stand out, above and at the ends.
NARROW = {True: 0.34, False: 0.12}
_GROUP = re.compile(r"\d{3}([.,]\d+)?")  # of a number's digits
MIN_ROWS = 5
CROSSED = 0.1  # of the rows at most have ink in the white
NUMBERS = 0.6  # of the words of a row of numbers; of the rows with a number at one side of the white
ALIKE = 0.6  # of the rows have one number of words, at least, where that tells the columns
MIN_WORDS = 4  # of such a row
# Of the white between columns, so much of which is narrower: where less is left it is white between words.
LIKE, USUAL = 0.4, 0.67
_SHARE = re.compile(r"[(\[{±+/]")  # what follows belongs to the number before, as in "33 (46)"


def words_of(row: Sequence[Line]) -> list[Line | Word]:
    """The words of a row from left to right; a line without words is one."""
    return sorted(
        (word for line in row for word in line.words or (line,)), key=lambda word: line_box(word)[0]
    )


def is_row_of_numbers(row: Sequence[Line]) -> bool:
    """Whether most of a row's words, four at least, are numbers."""
    texts = [word.text for line in row for word in line.words or (line,)]
    return len(texts) >= MIN_WORDS and sum(map(is_number, texts)) >= NUMBERS * len(texts)


def narrow_stripes(rows: Sequence[Sequence[Line]], height: float) -> list[tuple[float, float]]:
    """The white (left, right) of at least `NARROW` of the text height between columns of numbers; none of few rows."""
    known = has_styles([line for row in rows for line in row])
    words = [words_of(row) for row in rows]
    words = [row for row in words if len(row) >= MIN_WORDS]
    if len(words) < MIN_ROWS:
        return []
    boxes = [np.array([line_box(word) for word in row])[:, ::2] for row in words]
    if not known and (counted := _stripes_by_count(words, boxes)):
        return counted
    first, last = min(row[0, 0] for row in boxes), max(row[:, 1].max() for row in boxes)
    ink = np.zeros(int(last - first) + 2, np.int32)
    for row in boxes:
        for left, right in row - first:
            ink[max(0, round(left)) : max(0, round(right))] += 1
    free = np.concatenate([[False], ink <= CROSSED * len(boxes), [False]])
    edges = np.flatnonzero(np.diff(free.astype(np.int8))).reshape(-1, 2)
    stripes = [(first + a, first + b) for a, b in edges.tolist() if a and b - a >= NARROW[known] * height]
    stripes = [stripe for stripe in stripes if stripe[1] < last]
    least = LIKE * float(np.quantile([b - a for a, b in stripes], USUAL)) if stripes else 0.0
    return [one for one in stripes if one[1] - one[0] >= least and _beside_numbers(one, words)]


def _stripes_by_count(
    rows: Sequence[Sequence[Line | Word]], boxes: Sequence[np.ndarray]
) -> list[tuple[float, float]]:
    """The stripes between words of one number in rows of numbers, most of which have equally many words; none where
    those of one number do not stand below one another. OCR tells the ends of words not well, and their order well.
    """
    counts = [len(row) for row in rows]
    usual = max(set(counts), key=counts.count)
    alike = [box for box, count in zip(boxes, counts, strict=True) if count == usual]
    numbers = sum(sum(is_number(word.text) for word in row) >= NUMBERS * len(row) for row in rows)
    if usual <= MIN_WORDS or len(alike) < max(MIN_ROWS, ALIKE * len(rows)) or numbers < ALIKE * len(rows):
        return []
    ends = np.asarray(np.median(np.array(alike), axis=0), np.float64)  # [words, 2]
    middles = np.array(alike, np.float64).mean(axis=2)
    usual_middles = np.asarray(np.median(middles, axis=0), np.float64)
    pitch = np.asarray(np.diff(usual_middles), np.float64)
    apart = abs(middles - usual_middles).max(axis=0)
    white = ends[1:, 0] - ends[:-1, 1]
    if (apart[1:] > 0.5 * pitch).any() or (apart[:-1] > 0.5 * pitch).any():
        return []
    if (white < LIKE * np.median(white)).any():
        return []
    edges = (ends[:-1, 1] + ends[1:, 0]) / 2
    half = 0.25 * pitch  # a word that stands out a little does not span columns
    return list(zip((edges - half).tolist(), (edges + half).tolist(), strict=True))


def _beside_numbers(stripe: tuple[float, float], rows: Sequence[Sequence[Line | Word]]) -> bool:
    """Whether most rows have a number next to the white at the right of it, and the white does not part thousands."""
    middle = sum(stripe) / 2
    after = [next((word.text for word in row if line_box(word)[0] >= middle), "") for row in rows]
    before = [next((word.text for word in reversed(row) if line_box(word)[2] <= middle), "") for row in rows]
    thousands = [
        _GROUP.fullmatch(right) and (not left or left.isdigit()) for left, right in zip(before, after)
    ]
    if all(thousands[1:]) and (not before[0] or before[0].isdigit() or after[0].isdigit()):
        return False
    if sum(_SHARE.match(text) is not None for text in after) >= NUMBERS * len(rows):
        return False
    return sum(map(is_number, after)) >= NUMBERS * len(rows)
