"""Rules across a page, which end its columns: above a footer, below a header, between the articles of a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocr.results.blocks import Block, Box
from ocr.results.geometry import bounding_box, line_box
from ocr.results.lines import Line
from ocr.tables.ruling_lines import RulingLines, merge_lines

ACROSS = 0.8  # of the text's width, at least
NEAR, GAP = 1.5, 3.0  # points: strokes of one rule
INSIDE = 1.0  # points: how far a rule on the edge of a table may lie inside it


def separators_of(
    ruling: RulingLines | None, lines: Sequence[Line], blocks: Sequence[Block]
) -> tuple[Box, ...]:
    """The level rules that run across all of the text, as boxes without height. Those that belong to a table or figure
    among the blocks, or strike text through, are none.
    """
    boxes = [*map(line_box, lines), *(block.bbox for block in blocks)]
    if ruling is None or not len(ruling.horizontal) or not boxes:
        return ()
    left, _, right, _ = bounding_box(boxes)
    level = merge_lines(ruling.horizontal, NEAR * ruling.unit, GAP * ruling.unit)
    reach = np.minimum(level[:, 2], right) - np.maximum(level[:, 1], left)
    level = level[reach >= ACROSS * (right - left)]
    across: list[Box] = []
    for y, first, last in level.tolist():
        slack = INSIDE * ruling.unit
        crossed = any(top - slack <= y <= bottom + slack for _, top, _, bottom in (b.bbox for b in blocks))
        struck = any(
            top + 0.25 * (bottom - top) < y < bottom - 0.25 * (bottom - top)
            for _, top, _, bottom in map(line_box, lines)
        )
        if not (crossed or struck):
            across.append((min(first, left), y, max(last, right), y))
    return tuple(across)
