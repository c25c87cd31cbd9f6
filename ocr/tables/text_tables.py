"""Tables without vertical lines, from the places of words: columns are the white stripes that most rows leave free.

Precision comes first. Horizontal rules of one length (booktabs) and a caption "Table 3" are strong hints; without
them, prose in columns, lists, tables of contents, addresses and code must not become tables. Works on the lines of a
text layer and on those of OCR alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ocr.results.blocks import Block, Box, Cell, Table
from ocr.results.geometry import bounding_box, line_box, rows_of
from ocr.results.lines import Line, has_styles
from ocr.tables.cell_text import (
    cell_text,
    count_header_rows,
    is_number,
    split_lines,
)
from ocr.tables.centred_cells import CentredCells
from ocr.tables.full_heads import headed_regions
from ocr.tables.middle_cells import (
    add_middle_cells,
    is_between,
    middle_cells,
    places_between,
    spanning_columns,
)
from ocr.tables.narrow_columns import MIN_WORDS, is_row_of_numbers, narrow_stripes, words_of
from ocr.tables.row_groups import group_rows
from ocr.tables.ruling_lines import RulingLines, merge_lines
from ocr.tables.table_evidence import is_list, looks_like_table
from ocr.tables.text_segments import (
    STRIPE,
    Segment,
    has_several_segments,
    segments_of,
    text_height,
)
from ocr.text.columns import find_columns
from ocr.text.paragraphs import TABLE_CAPTION
from ocr.text.reading_order import DETECTOR_MARGIN, slope_of

# Of the text height: neighbours in a row are so level; boxes of OCR are not as exact.
LEVEL = {True: 0.25, False: 0.35}
FULL_ROWS = 0.4  # of the rows of what may be a table have several pieces, at least
# Of the text height, between rows: usually at most; at most where all rows are REGULAR, to the row before.
ROW_GAP, WIDE_ROW_GAP, REGULAR = 1.8, 3.5, 1.25
SAME_START, LIKE_HEAD = 0.25, 0.95  # of the text height; of the pieces below a head, at least
SPARSE = {True: 0.3, False: 0.6}  # of the cells are filled, at least; below a head that tells the columns
NUMBERS = 0.75  # of the pieces behind a row's name, at least
CAPTION_ROWS = 4  # at the top of what looks like a table, one of which may be its caption
_YEAR = re.compile(r"(19|20)\d\d")


def find_text_tables(
    lines: Sequence[Line],
    ruling: RulingLines | None = None,
    others: Sequence[Block] = (),
) -> tuple[tuple[Block, ...], tuple[Line, ...]]:
    """Tables that only words and horizontal rules tell, and the lines that stand in none of them.

    Args:
        lines: Upright lines of text that stand in no other table, with their styles where they are known.
        ruling: The page's ruling lines; None of a scan without them.
        others: Tables, figures and headings that stand on the page, too: they bound its columns.
    """
    upright = [line for line in lines if line.orientation == 0 and not line.vertical and line.text.strip()]
    if len(upright) < 4:
        return (), tuple(lines)
    blocks: list[Block] = []
    centred = CentredCells(lines)
    rest = list(centred.lines)
    for box, level in _ruled_regions(ruling, upright):
        inside, outside = split_lines(rest, box)
        above, inside, level = _cut_caption(inside, level)
        block = _build(inside, level, hinted=True)
        if block is not None:
            blocks.append(block)
            rest = [*outside, *above]
    level_lines = [line for line in rest if line.orientation == 0 and not line.vertical]
    for region in headed_regions(level_lines):
        block = _build(region, np.zeros((0, 3)), hinted=False, headed=True)
        if block is not None:
            blocks.append(block)
            used = set(map(id, region))
            rest = [line for line in rest if id(line) not in used]
            level_lines = [line for line in level_lines if id(line) not in used]
    margin = 0.0 if has_styles(lines) else DETECTOR_MARGIN
    for region in _aligned_regions(level_lines, [block.bbox for block in (*others, *blocks)], margin):
        caption = _has_caption(rest, region)
        _, region, _ = _cut_caption(region, np.zeros((0, 3)))
        wrapped = centred.are_joined(region)
        block = _build(region, np.zeros((0, 3)), hinted=caption, wrapped=wrapped)
        if block is not None:
            blocks.append(block)
            used = set(map(id, region))
            rest = [line for line in rest if id(line) not in used]
    blocks = [centred.restore_cells(block) for block in blocks]
    return tuple(sorted(blocks, key=lambda block: (block.bbox[1], block.bbox[0]))), centred.originals(rest)


def build_text_table(lines: Sequence[Line], ruling: RulingLines | None = None) -> Block | None:
    """The table that lines are which are known to be one; None where they stand in a single column or row."""
    upright = [line for line in lines if line.orientation == 0 and not line.vertical]
    level = np.zeros((0, 3)) if ruling is None else ruling.horizontal
    if ruling is not None and len(level) and upright:
        left, top, right, bottom = bounding_box(map(line_box, upright))
        reach = 3 * text_height(upright)
        level = merge_lines(level, 1.5 * ruling.unit, 3 * ruling.unit)
        inside = (level[:, 0] > top - reach) & (level[:, 0] < bottom + reach)
        level = level[inside & (level[:, 2] > left) & (level[:, 1] < right)]
    return _build(upright, level, hinted=True)


def _ruled_regions(ruling: RulingLines | None, lines: list[Line]) -> list[tuple[Box, np.ndarray]]:
    """Boxes between horizontal rules of one length, and all rules in them."""
    if ruling is None or len(ruling.horizontal) < 2:
        return []
    unit = ruling.unit
    level = merge_lines(ruling.horizontal, 1.5 * unit, 3 * unit)
    long = level[level[:, 2] - level[:, 1] > 50 * unit]
    height = text_height(lines)
    left = list(range(len(long)))
    regions = []
    while left:
        first = long[left[0]]
        group = [i for i in left if abs(long[i][1:] - first[1:]).max() < 6 * unit]
        left = [i for i in left if i not in group]
        run: list[int] = []
        for i in [*group, -1]:
            if i >= 0 and (not run or _is_tabular(lines, long[run[-1]], long[i], height)):
                run.append(i)
                continue
            if len(run) >= 2:
                top, bottom = long[run[0]][0], long[run[-1]][0]
                if len(run) > 2:  # rules under each row: the first row stands above all of them
                    above = long[run[0]] - [float(np.median(np.diff(long[run][:, 0]))), 0, 0]
                    if _is_tabular(lines, above, long[run[0]], height):
                        top = above[0]
                pad = 2 * unit
                box = (float(first[1]) - pad, float(top), float(first[2]) + pad, float(bottom))
                at = (level[:, 0] >= top - 1) & (level[:, 0] <= bottom + 1)
                at &= (level[:, 2] > box[0]) & (level[:, 1] < box[2])
                regions.append((box, level[at]))
            run = [i]
    return regions


def _is_tabular(lines: list[Line], above: np.ndarray, below: np.ndarray, height: float) -> bool:
    """Whether the text between two rules stands in columns: more than one piece in the first of its rows, or in four of
    ten; cells of several lines have rows of one piece. A line that goes on beyond the rules is a paragraph's.
    """
    box = (float(above[1]) - 4, float(above[0]), float(above[2]) + 4, float(below[0]))
    inside, _ = split_lines(lines, box)
    if not set(map(id, inside)) <= set(map(id, lines)):
        return False
    several = [has_several_segments(row, height) for row in rows_of(inside)]
    return bool(several) and (several[0] or sum(several) >= 0.4 * len(several))


def _aligned_regions(lines: list[Line], obstacles: Sequence[Box], margin: float) -> list[list[Line]]:
    """Runs of rows with several pieces each, whose white stripes agree, in the page's columns."""
    if len(lines) < 4:
        return []
    found: list[list[Line]] = []
    texts, slope = [line.text for line in lines], slope_of(lines)
    boxes = [line_box(line) for line in lines]
    columns = find_columns(boxes, texts, obstacles, margin=margin, slope=slope)
    for part in ([lines[i] for i in column.lines] for column in columns):
        found += _runs_of_rows(rows_of(part), slope)
    return found


def _runs_of_rows(rows: Sequence[Sequence[Line]], slope: float) -> list[list[Line]]:
    """The lines of rows with several pieces that follow one another closely, with what goes on below their pieces."""
    found: list[list[Line]] = []
    run: list[Sequence[Line]] = []
    full: Sequence[Line] = ()  # the last row of the run with several pieces
    starts: list[float] = []  # where the pieces of its rows begin, right of the first column
    count = 0  # of such rows
    steady = 0.0  # white between its last rows
    for number, row in enumerate([*rows, []]):
        height = text_height(row) if row else 1.0
        several = bool(row) and (has_several_segments(row, height) or _is_close_set(rows, number))
        gap = _white_between(run[-1], row) if run and row else 0.0
        near = (
            bool(run) and bool(row) and gap < (WIDE_ROW_GAP if gap < REGULAR * steady else ROW_GAP) * height
        )
        goes_on = near and (
            _is_continuation(row, full, run[-1])
            or _is_part_of_row(row, starts, rows[number + 1 : number + 2])
            or any(is_between(row, run[-1], below) for below in rows[number + 1 : number + 2])
        )
        if row and ((several and (not run or near)) or goes_on):
            run.append(row)
            starts += [line_box(line)[0] for line in row[1:]]
            full = row if several else full
            count += several
            # Rows that stand far apart are told by their even distance, or by the table's next row.
            steady = gap if len(run) > 1 else _gap_after(rows, number)
            continue
        if len(run) >= 3 and count >= FULL_ROWS * len(run) and _are_level(run, slope):
            found.append([line for row_ in run for line in row_])
        run, full, count = ([row], row, 1) if several else ([], (), 0)
        starts = [line_box(line)[0] for line in row[1:]] if several else []
        steady = _gap_after(rows, number) if several else 0.0
    return found


def _gap_after(rows: Sequence[Sequence[Line]], number: int) -> float:
    """The white below the next row, where that and the one below it have as many lines as this one."""
    after = rows[number + 1 : number + 3]
    if len(after) < 2 or any(len(row) != len(rows[number]) for row in after):
        return 0.0
    return _white_between(*after)


def _white_between(row: Sequence[Line], below: Sequence[Line]) -> float:
    return min(line_box(line)[1] for line in below) - max(line_box(line)[3] for line in row)


def _is_close_set(rows: Sequence[Sequence[Line]], number: int) -> bool:
    """Whether a row is one of numbers, or the head above one: a word a column."""
    if is_row_of_numbers(rows[number]):
        return True
    below = rows[number + 1] if number + 1 < len(rows) else ()
    if not below or not is_row_of_numbers(below):
        return False
    words = len(words_of(rows[number]))
    return words >= MIN_WORDS and abs(words - len(words_of(below))) <= 1


def _are_level(rows: Sequence[Sequence[Line]], slope: float) -> bool:
    """Whether most rows of several lines stand at one height from end to end, as those of a table do; the numbers of a
    row may stand a little higher or lower than its name.
    """
    flat = []
    for row in (row for row in rows if len(row) > 1):
        boxes = np.array([line_box(line) for line in row])
        middles = boxes[:, 1::2].mean(axis=1) - slope * boxes[:, ::2].mean(axis=1)
        level = LEVEL[has_styles(row)] * np.median(boxes[:, 3] - boxes[:, 1])
        numbers = sum(is_number(line.text) for line in row[1:]) >= NUMBERS * (len(row) - 1)
        flat.append((numbers and len(row) > 2) or abs(np.diff(middles)).max() <= level)
    return not flat or float(np.mean(flat)) >= 0.5


def _is_continuation(row: Sequence[Line], full: Sequence[Line], before: Sequence[Line]) -> bool:
    """One piece, straight below a piece of the last full row: at any distance right of the first column, in the first
    column close below the row before and no wider than the column.
    """
    if len(row) != 1 or len(full) < 2:
        return False
    left, top, right, bottom = line_box(row[0])
    height = bottom - top
    if any(abs(left - line_box(line)[0]) < 0.5 * height for line in full[1:]):
        return True
    first = line_box(full[0])
    return (
        abs(left - first[0]) < 0.5 * height
        and top - line_box(before[0])[3] < 0.4 * height
        and right < line_box(full[1])[0]
    )


def _is_part_of_row(row: Sequence[Line], starts: Sequence[float], below: Sequence[Sequence[Line]]) -> bool:
    """One piece that begins where pieces of the rows above do, with a row of several pieces close below it."""
    if len(row) != 1 or not below or len(below[0]) < 2:
        return False
    left, top, _, bottom = line_box(row[0])
    close = min(line_box(line)[1] for line in below[0]) - bottom < 0.6 * (bottom - top)
    return close and any(abs(left - start) < 0.25 * (bottom - top) for start in starts)


def _cut_caption(lines: Sequence[Line], level: np.ndarray) -> tuple[list[Line], list[Line], np.ndarray]:
    """(lines, lines, rules): up to a caption "Table 3" among the first rows, such as one below a page's header, and the
    table's own lines and rules behind it. Without a caption all are the table's.
    """
    rows = rows_of(list(lines))
    for number, row in reversed(list(enumerate(rows[:CAPTION_ROWS]))):
        if TABLE_CAPTION.match(row[0].text.lstrip()) and len(rows) - number > 2:
            end = max(line_box(line)[3] for line in row)
            above = [line for one in rows[: number + 1] for line in one]
            return above, [line for one in rows[number + 1 :] for line in one], level[level[:, 0] > end - 1]
    return [], list(lines), level


def _has_caption(lines: Sequence[Line], region: Sequence[Line]) -> bool:
    left, top, right, bottom = bounding_box(map(line_box, region))
    reach = 4 * text_height(region)
    return any(
        TABLE_CAPTION.match(line.text.lstrip()) and top - reach < line_box(line)[1] < bottom + reach
        for line in lines
        if line_box(line)[0] < right and line_box(line)[2] > left
    )


def _stripes(rows: list[list[Segment]], height: float) -> list[tuple[float, float]]:
    """White stripes (x0, x1) that the rows leave free, between the first and the last piece of the table."""
    most = max(map(len, rows))
    full = [row for row in rows if len(row) >= max(2, 0.6 * most)]
    if not full:
        return []
    first = min(segment.box[0] for row in full for segment in row)
    last = max(segment.box[2] for row in full for segment in row)
    count = np.zeros(int(last - first) + 2, np.int32)
    for row in full:
        for segment in row:
            count[max(0, int(segment.box[0] - first)) : int(np.ceil(segment.box[2] - first)) + 1] += 1
    free = np.concatenate([[False], count <= int(0.1 * len(full)), [False]])
    edges = np.flatnonzero(np.diff(free.astype(np.int8)))
    stripes = [
        (first + a, first + b)
        for a, b in edges.reshape(-1, 2).tolist()
        if b - a >= STRIPE * height and b < len(count)
    ]
    return [(a, b) for a, b in stripes if a > first]


def _stripes_below(
    rows: list[list[Segment]], stripes: list[tuple[float, float]], height: float
) -> list[tuple[float, float]]:
    """The stripes of the rows below the first one where those of all make more columns than any row has pieces, and
    those below as many as the first row has: heads at the left over numbers at the right, as spreadsheets print them.
    """
    if len(rows) < 4 or len(stripes) + 1 <= max(map(len, rows)):
        return []
    below = _stripes(rows[1:], height)
    return below if len(below) + 1 == len(rows[0]) == max(map(len, rows)) else []


def _stripes_of_head(
    rows: list[list[Segment]], stripes: list[tuple[float, float]], height: float
) -> list[tuple[float, float]]:
    """White just before each name of a head which has more of them than the stripes of most rows make columns, where
    what stands below begins where its names do: many cells of some columns are empty.
    """
    if len(rows) < 4 or len(stripes) + 1 >= len(rows[0]) or len(rows[0]) < max(map(len, rows)):
        return []
    if any(is_number(segment.line.text) for segment in rows[0]):
        return []
    starts = [segment.box[0] for segment in rows[0]]
    below = [segment.box[0] for row in rows[1:] for segment in row]
    near = sum(min(abs(left - start) for start in starts) < SAME_START * height for left in below)
    if near < LIKE_HEAD * len(below):
        return []
    return [(start - 0.15 * height, start - 0.05 * height) for start in starts[1:]]


def _build(
    lines: Sequence[Line],
    level: np.ndarray,
    *,
    hinted: bool,
    wrapped: bool = False,
    headed: bool = False,
) -> Block | None:
    lines = [line for line in lines if line.text.strip()]
    if len(lines) < 3:
        return None
    height = text_height(lines)
    rows_of_lines = rows_of(lines)
    narrow = narrow_stripes(rows_of_lines, height)
    rows = [segments_of(row, height, narrow) for row in rows_of_lines]
    stripes = _stripes(rows, height)
    apart = [cut for cut in narrow if not any(a < cut[1] and cut[0] < b for a, b in stripes)]
    stripes = sorted([*stripes, *apart])
    below = _stripes_below(rows, stripes, height)
    names = _stripes_of_head(rows, stripes, height)
    stripes = below or names or stripes
    columns = len(stripes) + 1
    if columns < 2 or len(rows) < 2:
        return None
    middles = [(a + b) / 2 for a, b in stripes]
    placed = [_place(row, stripes, middles) for row in rows]
    if below:
        placed[0] = [(column, column) for column in range(columns)]
    remaining, middle = middle_cells(rows, placed, height)
    rows, placed = [rows[number] for number in remaining], [placed[number] for number in remaining]
    box = bounding_box(map(line_box, lines))
    tops = [min(segment.box[1] for segment in row) for row in rows]
    bottoms = [max(segment.box[3] for segment in row) for row in rows]
    wide = level[(level[:, 2] - level[:, 1]) > 0.8 * (box[2] - box[0])] if len(level) else level
    texts = [[segment.line.text for segment in row] for row in rows]
    groups = group_rows(texts, placed, tops, bottoms, columns, wide, {one.above + 1 for one in middle})
    if is_list(rows, placed, columns) or not (
        hinted
        or looks_like_table(
            rows, placed, groups, columns, SPARSE[headed or bool(names)], wrapped, places_between(middle)
        )
    ):
        return None
    edges = [box[0], *middles, box[2]]
    cells: list[Cell] = []
    bold: list[bool] = []
    for number, members in enumerate(groups):
        parts: dict[tuple[int, int], list[Line]] = {}
        for member in members:
            for segment, (first, last) in zip(rows[member], placed[member], strict=True):
                first, last = _widened(segment, first, last, level, edges, height, box)
                parts.setdefault((first, last), []).append(segment.line)
        taken = -1
        for first, last in _apart(parts):
            if first <= taken:
                continue
            taken = last
            text, ordered = cell_text(parts[first, last])
            cell_box = bounding_box(map(line_box, ordered))
            cells.append(Cell(number, first, text, 1, last - first + 1, cell_box, 0.9, False, ordered))
            bold.append(all(line.is_bold for line in ordered))
    cells = spanning_columns(add_middle_cells(cells, middle, groups), middle, len(groups))
    bold += [cell.lines[0].is_bold for cell in cells[len(bold) :]]
    head = _rows_above_rule(cells, [bottoms[members[-1]] for members in groups], wide, 0.3 * height)
    if not 0 < head < len(groups):
        head = count_header_rows(cells, len(groups), bold, [None] * len(cells))
    cells = [replace(cell, header=cell.row < head) for cell in cells]
    filled = {
        (row, column)
        for cell in cells
        for row in range(cell.row, cell.row + cell.rowspan)
        for column in range(cell.column, cell.column + cell.colspan)
    }
    cells += [
        Cell(r, c, header=r < head)
        for r in range(len(groups))
        for c in range(columns)
        if (r, c) not in filled
    ]
    table = Table(tuple(cells), len(groups), columns)
    ordered_lines = tuple(line for cell in table.cells for line in cell.lines)
    if len(wide):
        box = (box[0], min(box[1], float(wide[:, 0].min())), box[2], max(box[3], float(wide[:, 0].max())))
    return Block("table", box, table.text, ordered_lines, 0.9 if hinted else 0.7, content=table)


def _rows_above_rule(cells: Sequence[Cell], bottoms: Sequence[float], wide: np.ndarray, near: float) -> int:
    """How many rows stand above the rule below the head: the second one of three or more, or the first one where the
    names of the columns stand above it; 0 where no rule tells.

    Args:
        bottoms: Of the rows of the table.
        wide: Its rules [K, 3] from side to side, as (y, x0, x1).
        near: By how much a row may reach below its rule.
    """
    if len(wide) < 2:
        return 0
    first, second = np.sort(wide[:, 0])[:2]
    head = sum(bottom < first + near for bottom in bottoms)
    if head:
        names = [cell.text for cell in cells if cell.row < head]
        return 0 if any(is_number(name) and not _YEAR.fullmatch(name) for name in names) else head
    return sum(bottom < second + near for bottom in bottoms) if len(wide) >= 3 else 0


def _apart(parts: dict[tuple[int, int], list[Line]]) -> list[tuple[int, int]]:
    """The column spans of a row; one that overlaps another is joined with it in `parts`."""
    spans = sorted(parts)
    out: list[tuple[int, int]] = []
    for first, last in spans:
        if out and first <= out[-1][1]:
            before = out.pop()
            joined = (before[0], max(before[1], last))
            lines = parts.pop(before) + (parts.pop((first, last)) if (first, last) in parts else [])
            parts[joined] = lines
            out.append(joined)
        else:
            out.append((first, last))
    return out


def _place(
    row: list[Segment], stripes: list[tuple[float, float]], middles: list[float]
) -> list[tuple[int, int]]:
    """(first column, last column) of each piece. A piece over a whole stripe spans its columns."""
    placed = []
    for segment in row:
        centre = (segment.box[0] + segment.box[2]) / 2
        covered = [
            i
            for i, (a, b) in enumerate(stripes)
            if segment.box[0] <= a + 0.2 * (b - a) and segment.box[2] >= b - 0.2 * (b - a)
        ]
        if covered:
            placed.append((covered[0], covered[-1] + 1))
        else:
            column = int(np.searchsorted(middles, centre))
            placed.append((column, column))
    return placed


def _widened(
    segment: Segment, first: int, last: int, level: np.ndarray, edges: list[float], height: float, box: Box
) -> tuple[int, int]:
    """The columns over which a short rule just below the piece runs: the rule of a group of columns."""
    for y, x0, x1 in level:
        if x1 - x0 > 0.8 * (box[2] - box[0]) or not -0.5 * height < y - segment.box[3] < 0.8 * height:
            continue
        if x0 - height <= segment.box[0] and segment.box[2] <= x1 + height:
            covered = [
                c
                for c in range(len(edges) - 1)
                if min(x1, edges[c + 1]) - max(x0, edges[c]) > 0.4 * (edges[c + 1] - edges[c])
            ]
            if covered:
                return min(first, covered[0]), max(last, covered[-1])
    return first, last
