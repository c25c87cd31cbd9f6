"""Whether text that stands in columns is a table, where neither rules nor a caption say so."""

from __future__ import annotations

import re

import numpy as np

from ocr.results.lines import Line
from ocr.tables.cell_text import is_number
from ocr.tables.text_segments import Segment
from ocr.text.columns import BULLETS, LIST_MARK

_MARK = re.compile(rf"{LIST_MARK}$")
_ITEM = re.compile(rf"[{BULLETS}]\s+\S")  # of a list
_LEADER = re.compile(r"(\. ?){4,}|…{2,}|·{4,}|_{4,}")
_AMOUNT = re.compile(r"\W{0,3}\d[\d.,]*[.,]\d\d\W?")
_MONOSPACED = re.compile(r"mono|courier|consol|menlo|code|typewriter|cmtt", re.IGNORECASE)


def looks_like_table(
    rows: list[list[Segment]],
    placed: list[list[tuple[int, int]]],
    groups: list[list[int]],
    columns: int,
    least: float,
    joined: bool,
    spanned: int = 0,
) -> bool:
    """Without rules or caption: short cells, the share `least` of them filled, a column of numbers, no list or code;
    `joined` says that cells of several lines were told already, `spanned` how many places cells that stand between two
    rows fill.
    """
    segments = [segment for row in rows for segment in row]
    texts = [segment.line.text for segment in segments]
    if len(rows) < 3 or any(_LEADER.search(text) for text in texts):
        return False
    amounts = [_AMOUNT.fullmatch(row[-1].line.text) is not None for row in rows if len(row) > 1]
    code = sum(_is_monospaced(segment.line) for segment in segments) > 0.5 * len(segments)
    if code and not (amounts and all(amounts)):
        return False
    filled = spanned + sum(len({place for member in group for place in placed[member]}) for group in groups)
    if filled < least * len(groups) * columns:
        return False
    by_column: list[list[str]] = [[] for _ in range(columns)]
    for row, columns_of_row in zip(rows, placed, strict=True):
        for segment, (first, last) in zip(row, columns_of_row, strict=True):
            if first == last:
                by_column[first].append(segment.line.text)
    if any(not column for column in by_column):
        return False
    if sum(bool(_MARK.match(text)) for text in by_column[0]) > 0.5 * len(by_column[0]) and columns < 4:
        return False
    if sum(bool(_ITEM.match(text)) for text in texts) >= 0.2 * len(texts):
        return False
    if _is_prose_in_columns(rows, placed, columns):
        return False
    words = np.mean([len(text.split()) for text in texts])
    if words > 4.5 or max(np.mean([len(text) for text in column]) for column in by_column) > 45:
        return False
    numeric = [sum(map(is_number, column)) >= 0.6 * len(column) for column in by_column]
    if columns == 2:
        values = [float(text) for text in by_column[1] if text.isdecimal()]
        ascending = len(values) > 2 and values == sorted(values) and len(values) >= 0.8 * len(by_column[1])
        wrapped = len(groups) < len(rows) and filled >= 0.9 * len(groups) * columns
        return (numeric[1] and not ascending and len(rows) >= 4) or (wrapped and len(groups) >= 4)
    regular = len(groups) >= 4 and filled >= 0.85 * len(groups) * columns
    return any(numeric[1:]) or (regular and (joined or bool(words <= 2.5)))


def is_list(rows: list[list[Segment]], placed: list[list[tuple[int, int]]], columns: int) -> bool:
    """Whether the first of two columns holds nothing but bullets, as hanging indents set them."""
    marks = [
        segment.line.text.strip()
        for row, columns_of_row in zip(rows, placed, strict=True)
        for segment, (first, _) in zip(row, columns_of_row, strict=True)
        if first == 0
    ]
    return columns == 2 and all(len(mark) == 1 and mark in BULLETS + "–—-*" for mark in marks)


def _is_monospaced(line: Line) -> bool:
    return line.style is not None and bool(_MONOSPACED.search(line.style.font))


def _is_prose_in_columns(
    rows: list[list[Segment]], placed: list[list[tuple[int, int]]], columns: int
) -> bool:
    """Whether two columns, or one of long lines, are filled from side to side by most of their lines, as paragraphs
    are; justified ones have gaps between words as wide as those between cells.
    """
    prose = 0
    for column in range(columns):
        lines: list[tuple[float, float, str]] = []
        for row, columns_of_row in zip(rows, placed, strict=True):
            inside = [
                segment
                for segment, (first, last) in zip(row, columns_of_row, strict=True)
                if first == last == column
            ]
            if inside:
                text = " ".join(segment.line.text for segment in inside)
                lines.append((inside[0].box[0], inside[-1].box[2], text))
        words = np.mean([len(text.split()) for _, _, text in lines]) if lines else 0.0
        if len(lines) < 3 or words < 2.5:
            continue
        left, right = min(line[0] for line in lines), max(line[1] for line in lines)
        edge = 0.08 * (right - left)
        full = sum(start <= left + edge and end >= right - edge for start, end, _ in lines)
        letters = sum(char.isalpha() for _, _, text in lines for char in text)
        if words >= 5 and full >= 0.5 * len(lines):
            return True
        prose += full >= 0.6 * len(lines) and letters > 0.6 * sum(len(text) for _, _, text in lines)
    return prose >= 2
