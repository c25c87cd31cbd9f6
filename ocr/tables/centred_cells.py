"""Cells of two lines beside cells of one, centred on one another: lines stand half a line apart, and so in no row.

The lines of such a cell are joined into one that is level with its neighbours, and parted again once tables are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ocr.results.blocks import Block, Table
from ocr.results.geometry import Box, bounding_box, box_polygon, line_box
from ocr.results.lines import Line, Word
from ocr.tables.cell_text import cell_text, is_number

# Of the text's height: how far middles and edges differ; the least and the most between the middles of two lines of a
# cell and of its neighbour.
EXACT, LEAST, MOST = 0.2, 0.35, 0.8
FURTHER = 1.1  # times the distance of the two lines: the next one above and below, which is of another cell


class CentredCells:
    """The lines of a page with those of centred cells joined.

    Attributes:
        lines: Each a line of the page, or one in the place of two.
    """

    lines: tuple[Line, ...]

    def __init__(self, lines: Sequence[Line]) -> None:
        self._originals: dict[int, tuple[Line, Line]] = {}
        upright = [
            line for line in lines if line.orientation == 0 and not line.vertical and line.text.strip()
        ]
        boxes = [line_box(line) for line in upright]
        pairs = _centred_pairs(boxes, [line.text.strip() for line in upright])
        joined: dict[int, Line | None] = {id(upright[below]): None for _, below in pairs}
        for above, below in pairs:
            line = _join(upright[above], upright[below])
            self._originals[id(line)] = (upright[above], upright[below])
            joined[id(upright[above])] = line
        placed = [joined.get(id(line), line) for line in lines]
        self.lines = tuple(line for line in placed if line is not None)

    def are_joined(self, lines: Sequence[Line]) -> bool:
        """Whether two of the lines or more are cells of two lines."""
        return sum(id(line) in self._originals for line in lines) > 1

    def originals(self, lines: Sequence[Line]) -> tuple[Line, ...]:
        """The lines of the page that these are."""
        return tuple(one for line in lines for one in self._originals.get(id(line), (line,)))

    def restore_cells(self, block: Block) -> Block:
        """The block of a table with the page's lines in its cells."""
        table = block.content
        if not isinstance(table, Table):
            return block
        cells = []
        for cell in table.cells:
            lines = self.originals(cell.lines)
            if len(lines) > len(cell.lines):
                text, ordered = cell_text(lines)
                cell = replace(cell, text=text, lines=ordered, bbox=bounding_box(map(line_box, ordered)))
            cells.append(cell)
        table = replace(table, cells=tuple(cells))
        lines = self.originals(block.lines)
        box = bounding_box([block.bbox, *map(line_box, lines)])
        return replace(block, bbox=box, text=table.text, lines=lines, content=table)


def _centred_pairs(boxes: Sequence[Box], texts: Sequence[str]) -> list[tuple[int, int]]:
    """(upper, lower): two lines of one column that have a line beside them whose middle is between theirs. Two numbers
    are two rows, beside a name that spans both, unless the lower one stands in brackets, as errors do.
    """
    pairs: list[tuple[int, int]] = []
    rows: list[
        tuple[float, float]
    ] = []  # the middles of two rows, as others stand as far apart in their column
    used: set[int] = set()
    order = sorted(range(len(boxes)), key=lambda i: boxes[i][1] + boxes[i][3])
    middles = [(boxes[i][1] + boxes[i][3]) / 2 for i in order]
    for at, upper in enumerate(order):
        if upper in used:
            continue
        left, top, right, bottom = boxes[upper]
        height = bottom - top
        after = [
            (order[n], middles[n] - middles[at])
            for n in range(at + 1, len(order))
            if middles[n] - middles[at] <= 2 * MOST * height
        ]
        below = [(i, step) for i, step in after if _in_one_column(boxes[upper], boxes[i])]
        if not below or below[0][0] in used or below[0][1] < 2 * LEAST * height:
            continue
        lower, step = below[0]
        edges = max(right, boxes[lower][2]), min(left, boxes[lower][0])
        between = [i for i, half in after if abs(half - step / 2) <= EXACT * height and i not in used]
        if not any(boxes[i][0] > edges[0] or boxes[i][2] < edges[1] for i in between):
            continue
        steps = [middle - middles[at] - step for middle in _middles_of(boxes, lower)]
        steps += [middles[at] - middle for middle in _middles_of(boxes, upper)]
        numbers = all(is_number(texts[i]) for i in (upper, lower)) and texts[lower][0] not in "([±"
        if numbers or any(EXACT * height < one < FURTHER * step for one in steps):
            rows.append((middles[at], middles[at] + step))
        else:
            pairs.append((upper, lower))
            used |= {upper, lower}
    return [pair for pair in pairs if not _are_rows(boxes, pair, rows)]


def _are_rows(boxes: Sequence[Box], pair: tuple[int, int], rows: Sequence[tuple[float, float]]) -> bool:
    """Whether two lines stand on two of the heights that other columns tell to be rows."""
    near = EXACT * (boxes[pair[0]][3] - boxes[pair[0]][1])
    heights = [(boxes[i][1] + boxes[i][3]) / 2 for i in pair]
    return any(all(abs(a - b) <= near for a, b in zip(heights, two, strict=True)) for two in rows)


def _middles_of(boxes: Sequence[Box], number: int) -> list[float]:
    """The middles of what stands above and below a box."""
    left, _, right, _ = boxes[number]
    return [
        (top + bottom) / 2
        for i, (x0, top, x1, bottom) in enumerate(boxes)
        if i != number and x0 < right and x1 > left
    ]


def _in_one_column(upper: Box, lower: Box) -> bool:
    height = upper[3] - upper[1]
    alike = abs((lower[3] - lower[1]) - height) <= 2 * EXACT * height
    edges = (upper[0] - lower[0], upper[2] - lower[2], (upper[0] + upper[2] - lower[0] - lower[2]) / 2)
    return alike and min(map(abs, edges)) <= EXACT * height and lower[0] < upper[2] and upper[0] < lower[2]


def _join(upper: Line, lower: Line) -> Line:
    text, _ = cell_text([upper, lower])
    polygon = box_polygon(bounding_box([line_box(upper), line_box(lower)]))
    score = min(upper.score, lower.score)
    return replace(upper, text=text, score=score, polygon=polygon, words=(Word(text, score, polygon),))
