"""A few rows of a grid that have every pair of values of every two settings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any


def pairwise(*settings: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows of one value of each setting: each pair of values of two settings is in one row at least.

    Greedy: of all rows the one with most pairs that are missing comes next, the first of equals.
    """
    rows = list(itertools.product(*(range(len(values)) for values in settings)))

    def pairs(row: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(itertools.combinations(enumerate(row), min(2, len(row))))

    missing = set().union(*map(pairs, rows))
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        chosen.append(tuple(values[place] for values, place in zip(settings, best)))
    return chosen
