"""Items of lists whose marks are bare numbers or letters, "1", "2" or "a", "b": they count on, one below another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ocr.results.geometry import line_box
from ocr.text.rows import Row

# Of the type's size: the least white behind a mark; how far the texts of a list begin apart.
APART, LEVEL = 0.5, 0.5
FROM_ONE, FROM_OTHERS = 2, 3  # items, at least, of a list that begins with its first number, and of others
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_MARK = re.compile(r"\d{1,2}|[a-zA-Z]|[ivx]{2,4}")


def mark_counted_items(rows: Sequence[Row]) -> list[Row]:
    """The rows of a column, those marked as `counted` that begin with such a mark.

    The texts behind the marks of one list begin below one another, and the marks count on by one from each to the next;
    rows between them may go on in an item.
    """
    candidates = [
        (n, row.lines[0].text.strip(), line_box(row.lines[1])[0])
        for n, row in enumerate(rows)
        if _has_mark(row)
    ]
    counted: set[int] = set()
    for values in (_numbers, _letters, _romans):
        # Of each item the row's number, the mark's value, and where its text begins.
        lists: list[list[tuple[int, int, float]]] = []
        for number, mark, left in candidates:
            value = values(mark)
            if value is None:
                continue
            near = LEVEL * rows[number].size
            before = next(
                (one for one in lists if one[-1][1] == value - 1 and abs(one[-1][2] - left) <= near), None
            )
            if before is not None:
                before.append((number, value, left))
            else:
                lists.append([(number, value, left)])
        for one in lists:
            if len(one) >= (FROM_ONE if one[0][1] == 1 else FROM_OTHERS):
                counted.update(number for number, _, _ in one)
    return [replace(row, counted=True) if n in counted else row for n, row in enumerate(rows)]


def _has_mark(row: Row) -> bool:
    """Whether a row is a mark and one cell of text behind it."""
    first, *rest = row.lines
    if not rest or row.rightward or not _MARK.fullmatch(first.text.strip()):
        return False
    gap = line_box(rest[0])[0] - line_box(first)[2]
    cells = len(row.cells) - (len(row.cells[0]) == 1)
    return cells == 1 and gap >= APART * row.size and any(map(str.isalpha, rest[0].text))


def _numbers(mark: str) -> int | None:
    return int(mark) if mark.isdecimal() else None


def _letters(mark: str) -> int | None:
    return ord(mark.lower()) - ord("a") + 1 if len(mark) == 1 and mark.isalpha() else None


def _romans(mark: str) -> int | None:
    return _ROMANS.index(mark) + 1 if mark in _ROMANS else None
