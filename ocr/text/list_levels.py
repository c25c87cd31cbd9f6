"""How deep the items of lists are, by where their marks stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SAME_LEVEL = 0.75  # of the size of the type: marks so near are of one level; "10." begins left of "9."
ANOTHER_COLUMN = 8.0  # multiples of the size: marks so far apart stand in different lists
DEEPEST = 6


class Mark(NamedTuple):
    """Where a paragraph begins, the size of its type, and whether it is an item of a list."""

    left: float
    size: float
    is_item: bool


def list_levels(marks: Sequence[Mark]) -> list[int]:
    """The depth of each paragraph in reading order, from 1; 0 of what is no item.

    An item right of the one before it is a level deeper. What is no item ends a list where it begins left of the list's
    marks or at them; else it belongs to an item.
    """
    levels: list[int] = []
    open_marks: list[float] = []
    for mark in marks:
        near = SAME_LEVEL * mark.size
        if open_marks and abs(mark.left - open_marks[-1]) > ANOTHER_COLUMN * mark.size:
            open_marks.clear()
        while open_marks and mark.left < open_marks[-1] - near:
            open_marks.pop()
        if not mark.is_item:
            if not open_marks or mark.left <= open_marks[0] + near:
                open_marks.clear()
            levels.append(0)
            continue
        if not open_marks or mark.left > open_marks[-1] + near:
            open_marks.append(mark.left)
        levels.append(min(len(open_marks), DEEPEST))
    return levels
