"""Rows of text that are one row of a table without rules: cells of several lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ocr.tables.cell_text import is_number

NUMERIC = 0.5  # of the pieces of a column of numbers, at least
# Of the text's height: the most white between lines of a cell, and how much more there is between rows.
WITHIN, MORE = 0.6, 0.2
LINES = 5  # of a row, at most, where the white between rows tells them
READS_ON = 0.5  # of the lines that fill all columns go on from the line before, at least

Positions = Sequence[
    Sequence[tuple[int, int]]
]  # (first column, last column) of each piece of each row of text


def group_rows(
    texts: Sequence[Sequence[str]],
    placed: Positions,
    tops: Sequence[float],
    bottoms: Sequence[float],
    columns: int,
    wide: np.ndarray,
    starts: Collection[int] = (),
) -> list[list[int]]:
    """Rows of text that are one row of the table, as lists of their numbers.

    A row goes on in the next one where that has few pieces, close below; not where that has a number in a column of
    numbers, such as a total, and the row has a number, too, or something else there, such as a head. Where there is
    clearly more white between some rows than between others, the rows of the table stand between the wide gaps.

    Args:
        texts, placed: What the pieces of each row of text say, and the columns over which each stands.
        tops, bottoms: Of the rows of text, in pixels.
        columns: Of the table.
        wide: Its rules [K, 3] from side to side, as (y, x0, x1).
        starts: Rows of text between which and the one before another text stands; such are rows of the table, where
            they stand as far apart as others do.
    """
    numbers = _columns_with_numbers(texts, placed, columns)
    inner = np.sort(wide[:, 0]) if len(wide) else np.zeros(0)
    band = np.searchsorted(inner, [(t + b) / 2 for t, b in zip(tops, bottoms, strict=True)])
    bands, sizes = np.unique(band, return_counts=True)
    by_rules = len(bands) >= 4 and np.median(sizes) <= 3
    gaps = [tops[i + 1] - bottoms[i] for i in range(len(tops) - 1)]
    height = float(np.median(np.subtract(bottoms, tops)))
    usual = float(np.median(gaps)) if gaps else 0.0
    cells = [{c for first, last in row for c in range(first, last + 1)} for row in placed]
    if not by_rules:
        groups = _groups_by_white(texts, placed, numbers, cells, gaps, height, band)
        if groups is not None:
            return groups
    # Above a row that fills all columns stands the gap between rows; less is the gap within a row of several lines.
    before_full = [gaps[i - 1] for i in range(1, len(placed)) if len(cells[i]) == columns]
    apart = float(np.median(before_full)) if len(before_full) > 1 else 0.0
    groups = [[0]]
    for i in range(1, len(placed)):
        filled = cells[i]
        same_band = band[i] == band[i - 1]
        spans = any(first != last for first, last in placed[i])
        wrapped = 0 not in filled and len(filled) <= columns / 2 and not spans and gaps[i - 1] <= usual + 1.0
        closer = apart - gaps[i - 1] > MORE * (bottoms[i] - tops[i])
        wrapped |= closer and len(filled) < columns and not spans and filled <= cells[groups[-1][0]]
        wrapped &= any(filled <= cells[k] for k in groups[-1])
        wrapped &= not (i in starts and gaps[i - 1] > usual - 1.0)
        wrapped &= not _has_other_number(i, groups[-1], numbers, cells)
        header_row = groups == [[0]] and len(placed[0]) < columns and len(placed[i]) > len(placed[0])
        # The names of some columns have a line above the one that all have.
        stacked = header_row and closer and cells[0] < filled and not spans
        stacked &= all(first == last for first, last in placed[0])
        stacked &= not any(map(is_number, [*texts[0], *texts[i]]))
        if same_band and (by_rules or stacked or (wrapped and not header_row)):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _has_other_number(
    row: int, group: Sequence[int], numbers: Sequence[set[int]], cells: Sequence[set[int]]
) -> bool:
    """Whether a row has a number where rows of the group have one, or something else."""
    return bool(numbers[row]) and any(numbers[k] or numbers[row] & cells[k] for k in group)


def _groups_by_white(
    texts: Sequence[Sequence[str]],
    placed: Positions,
    numbers: Sequence[set[int]],
    cells: Sequence[set[int]],
    gaps: Sequence[float],
    height: float,
    band: np.ndarray,
) -> list[list[int]] | None:
    """The rows between wide gaps; None where gaps are of one size, or rows stand in groups for another reason: such as
    have numbers in one column, or are whole rows by what they say.
    """
    sizes = np.sort(gaps)
    steps = np.diff(sizes)
    if len(gaps) < 4 or not steps.size:
        return None
    can_part = (sizes[:-1] < WITHIN * height) & (sizes[1:] > 0) & (steps > MORE * height)
    if not can_part.any():
        return None
    at = int(np.argmax(np.where(can_part, steps, 0)))
    limit = (sizes[at] + sizes[at + 1]) / 2
    groups: list[list[int]] = [[0]]
    for row, gap in enumerate(gaps, 1):
        if gap < limit and band[row] == band[row - 1]:
            groups[-1].append(row)
        else:
            groups.append([row])
    longest = max(map(len, groups))
    if len(groups) < 3 or not 1 < longest <= LINES:
        return None
    whole, going_on = 0, 0
    for group in groups:
        for number, row in enumerate(group[1:], 1):
            if _has_other_number(row, group[:number], numbers, cells):
                return None
            if any(first != last for first, last in placed[row]):
                return None
            before = group[number - 1]
            if cells[row] >= cells[before]:
                whole += 1
                going_on += _reads_on(texts[before], placed[before], texts[row], placed[row])
    return groups if going_on >= READS_ON * whole else None


def _reads_on(
    before: Sequence[str],
    before_at: Sequence[tuple[int, int]],
    row: Sequence[str],
    at: Sequence[tuple[int, int]],
) -> bool:
    """Whether a cell goes on from one row of text to the next: by a small letter, a hyphen or bracket, or from a number
    to words.
    """
    above = dict(zip(before_at, before, strict=True))
    for position, text in zip(at, row, strict=True):
        text_above = above.get(position, "")
        if not text_above:
            continue
        if text[:1].islower() or text[:1] == "(" or text_above.endswith(("-", ",", "/", "&", "(")):
            return True
        if is_number(text_above) and not any(char.isdigit() for char in text):
            return True
    return False


def _columns_with_numbers(texts: Sequence[Sequence[str]], placed: Positions, columns: int) -> list[set[int]]:
    """The columns of numbers, right of the first, in which each row of text has a number."""
    numbers: list[list[bool]] = [[] for _ in range(columns)]
    for row, positions in zip(texts, placed, strict=True):
        for text, (first, last) in zip(row, positions, strict=True):
            if first == last:
                numbers[first].append(is_number(text))
    numeric = [bool(column) and sum(column) >= NUMERIC * len(column) for column in numbers]
    return [
        {
            first
            for text, (first, last) in zip(row, positions, strict=True)
            if first == last > 0 and numeric[first] and is_number(text)
        }
        for row, positions in zip(texts, placed, strict=True)
    ]
