"""Boxes for the cells of a table whose structure is known and whose cells are not, from where its words stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ocr.results.blocks import Box, Table


def find_bands(spans: np.ndarray, count: int) -> np.ndarray:
    """[count + 1]: where `count` rows or columns begin and end, from what words [K, 2], first and last, cover.

    Bands are parted in the middle of the widest gaps that the fewest words reach over; with too few gaps, all bands are
    of one size.
    """
    low, high = float(spans[:, 0].min()), float(spans[:, 1].max())
    places = np.unique(spans)
    middle = (places[1:] + places[:-1]) / 2
    covered = ((spans[:, :1] < middle) & (middle < spans[:, 1:])).sum(axis=0)  # [P - 1]
    for level in range(int(covered.max(initial=0)) if count > 1 else 0):
        free = np.concatenate([[False], covered <= level, [False]])
        turns = np.flatnonzero(free[1:] != free[:-1]).reshape(-1, 2)
        gaps = [(places[first], places[last]) for first, last in turns if first > 0 and last < len(covered)]
        if len(gaps) >= count - 1:
            widest = sorted(gaps, key=lambda gap: gap[0] - gap[1])[: count - 1]
            return np.array([low, *sorted(sum(gap) / 2 for gap in widest), high])
    return np.linspace(low, high, count + 1)


def place_by_words(table: Table, words: Sequence[Box]) -> Table:
    """The table with boxes for its cells: bands of rows and columns of the boxes of `words`, at least one.

    For networks that say the structure alone, such as SLANeXt.
    """
    boxes = np.array(words, np.float64)
    columns = find_bands(boxes[:, [0, 2]], table.columns)
    rows = find_bands(boxes[:, [1, 3]], table.rows)
    return replace(
        table,
        cells=tuple(
            replace(
                cell,
                bbox=(
                    float(columns[cell.column]),
                    float(rows[cell.row]),
                    float(columns[cell.column + cell.colspan]),
                    float(rows[cell.row + cell.rowspan]),
                ),
            )
            for cell in table.cells
        ),
    )
