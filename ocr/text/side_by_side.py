"""Level rows of text with white inside: labels with their values, or short columns.

Rows are read one after the other by default: labels and values, words and their translations, names and prices. Columns
are told by heads ("Bill to:" beside "Ship to:") over lines that are none, and by prose on both sides of the white.
Columns whose rows are not level, and longer ones, are those of `ocr.text.columns`.

Sources: receipts of SROIE; KOMA-Script's letters; invoices of LibreOffice and Chromium; pages of DocBank.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from ocr.results.geometry import Box, line_box
from ocr.results.lines import Line

COLUMN_GAP = 0.6  # of the height of lines: the least white between columns
RUN_GAP = 1.0  # of the height, between rows: more ends a run of rows
PROSE_WORDS = 2.0  # the least mean words of the lines of columns
EDGE = 0.3  # of the height: how far the right edges of values differ
COLONS = 0.5  # of the lines of labels end so, or with a question mark, at least
VALUES = 0.5  # of the lines beside labels have digits, at least
LABEL_WORDS, LABEL_DIGITS = 3.0, 0.1  # mean words of labels; their share with digits, at most
LABELLED = 0.6  # of the lines of a column of labels with their values
_LABELLED = re.compile(r"[^\W\d_][^:]{0,30}:\s*\S")
_HEAD = re.compile(
    r"(\b(to|from|address|sender|recipient|customer|client|seller|buyer|supplier|vendor)"
    r"|adresse|anschrift|absender|empfänger|kunde|käufer|verkäufer|lieferant|destinataire|client[e]?|fournisseur)$",
    re.IGNORECASE,
)
_Rows = list[list[Line]]


def split_columns(rows: _Rows) -> list[_Rows]:
    """The rows of a region, or parts of it in reading order, each the rows of one column or of what spans columns."""
    lines = [line for row in rows for line in row]
    if len(lines) == len(rows) or any(line.orientation or line.vertical for line in lines):
        return [rows]
    height = float(np.median([box[3] - box[1] for box in map(line_box, lines)]))
    regions: list[tuple[_Rows, bool]] = []  # each with whether it is a column beside others
    for run in (runs := _runs(rows, height)):
        columns = _columns_of(run, height, whole=len(runs) == 1)
        if len(columns) == 1 and regions and not regions[-1][1]:
            regions[-1][0].extend(run)
        else:
            regions += [(column, len(columns) > 1) for column in columns]
    return [region for region, _ in regions]


def _stripes(boxes: Sequence[Box], gap: float) -> list[tuple[float, float]]:
    """The white (left, right) between the boxes that is free from top to bottom."""
    ordered = sorted(boxes)
    stripes, end = [], ordered[0][2]
    for box in ordered[1:]:
        if box[0] - end >= gap:
            stripes.append((end, box[0]))
        end = max(end, box[2])
    return stripes


def _runs(rows: _Rows, height: float) -> list[_Rows]:
    """Rows that follow one another closely and have a stripe in common, or none of which has one."""
    gap = COLUMN_GAP * height
    runs: list[_Rows] = []
    boxes: list[Box] = []  # of the last run
    striped = False
    for row in rows:
        own = [line_box(line) for line in row]
        near = bool(boxes) and min(box[1] for box in own) - max(box[3] for box in boxes) <= RUN_GAP * height
        shared = bool(_stripes([*boxes, *own], gap))
        if near and shared == striped and (shared or not _stripes(own, gap)):
            runs[-1].append(row)
            boxes += own
            continue
        runs.append([row])
        boxes, striped = own, bool(_stripes(own, gap))
    return runs


def _columns_of(run: _Rows, height: float, whole: bool) -> list[_Rows]:
    """The columns of a run, or the run as the only one; prose tells columns of a `whole` region alone."""
    stripes = _stripes([line_box(line) for row in run for line in row], COLUMN_GAP * height)
    if len(run) < 2 or not stripes:
        return [run]
    starts = [right for _, right in stripes]

    def within(row: list[Line], column: int) -> list[Line]:
        return [line for line in row if bisect_right(starts, line_box(line)[0]) == column]

    columns = [[within(row, column) for row in run] for column in range(len(starts) + 1)]
    if _have_heads(columns) or _are_labelled_right(columns):
        return [[row for row in column if row] for column in columns]
    if not whole or _end_at_one_edge(columns[-1], height):
        return [run]
    columns = [[row for row in column if row] for column in columns]
    texts = [[line.text for row in column for line in row] for column in columns]
    words = [sum(len(text.split()) for text in column) / len(column) for column in texts]
    if min(map(len, texts)) < 2 or min(words) < PROSE_WORDS or _are_labels(*texts[:2]):
        return [run]
    return columns


def _have_heads(columns: Sequence[_Rows]) -> bool:
    """Whether the first row has a head over each column, and no other row has one: in bold, ending with a colon, or
    naming a party ("Ship to").
    """
    first = [column[0] for column in columns]
    below = [[line for row in column[1:] for line in row] for column in columns]
    if not all(first) or not all(below):
        return False
    heads = [line for cell in first for line in cell]
    others = [line for column in below for line in column]
    colons = all(_ends_with_colon(cell[-1]) for cell in first) and not any(map(_ends_with_colon, others))
    bold = all(line.is_bold for line in heads) and not any(line.is_bold for line in others)
    # The head of a table stands over amounts.
    letters = [line for line in others if sum(map(str.isalpha, line.text)) >= 3]
    parties = all(_HEAD.search(cell[-1].text.strip()) for cell in first) and len(columns[0]) > 2
    return (colons or bold or parties) and 2 * len(letters) > len(others) and len(columns) == 2


def _end_at_one_edge(column: _Rows, height: float) -> bool:
    """Whether the lines of a column begin unevenly and end at its right edge, as values do and prose never."""
    boxes = [line_box(row[-1]) for row in column if row]
    lefts, rights = ([box[side] for box in boxes] for side in (0, 2))
    return max(rights) - min(rights) <= EDGE * height and max(lefts) - min(lefts) > height


def _are_labelled_right(columns: Sequence[_Rows]) -> bool:
    """Whether the lines of the right one of two columns are labels with their values, and no line of the left one is a
    label: an address beside the number and date of its letter.
    """
    if len(columns) != 2:
        return False
    left, right = ([line.text.strip() for row in column for line in row] for column in columns)
    if len(left) < 2 or len(right) < 2 or any(":" in text for text in left):
        return False
    return sum(_LABELLED.match(text) is not None for text in right) >= LABELLED * len(right)


def _are_labels(labels: Sequence[str], values: Sequence[str]) -> bool:
    """Whether the left lines name what the right ones say."""
    colons = sum(text.rstrip().endswith((":", "：", "?", "？")) for text in labels)
    if colons >= COLONS * len(labels):
        return True
    numbers = [sum(any(map(str.isdigit, text)) for text in side) / len(side) for side in (labels, values)]
    words = sum(len(text.split()) for text in labels) / len(labels)
    return words <= LABEL_WORDS and numbers[0] <= LABEL_DIGITS and numbers[1] >= VALUES


def _ends_with_colon(line: Line) -> bool:
    return line.text.rstrip().endswith((":", "："))
