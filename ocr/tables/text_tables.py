"""Tables without vertical lines, from the places of words: columns are the white stripes that most rows leave free.

Precision comes first. Horizontal rules of one length (booktabs) and a caption "Table 3" are strong hints; without
them, prose in columns, lists, tables of contents, addresses and code must not become tables. Works on the lines of a
text layer and on those of OCR alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocr.results.blocks import Block, Box, Cell, Table
from ocr.results.lines import Line
from ocr.results.page_text import LineStyle, line_box
from ocr.tables.cell_text import (
    cell_text,
    count_header_rows,
    is_number,
    part_of_line,
    rows_of,
    split_lines,
)
from ocr.tables.ruling_lines import Rules, merge_lines
from ocr.text.columns import find_columns
from ocr.text.reading_order import DETECTOR_MARGIN

WORD_JOIN = 0.5  # of the text height: closer words are one piece of a cell
STRIPE = 0.6  # of the text height: the least white between columns
CAPTION_ROWS = 4  # at the top of what looks like a table, one of which may be its caption
_CAPTION = re.compile(r"\s*(table|tab\.|tabelle|tableau|tabla|tabella|表)\s*\.?\s*[\dIVXA-Z]", re.IGNORECASE)
_BULLET = re.compile(r"([•▪◦‣·*–—\-➢✓□]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\[\d+\])$")
_ITEM = re.compile(r"[•▪◦‣·➢✓□]\s+\S")  # of a list
_LEADER = re.compile(r"(\. ?){4,}|…{2,}|·{4,}|_{4,}")
_MONOSPACED = re.compile(r"mono|courier|consol|menlo|code|typewriter|cmtt", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """Words of one row that stand together."""

    line: Line
    box: Box


def find_text_tables(
    lines: Sequence[Line],
    rules: Rules | None = None,
    styles: Sequence[LineStyle] | None = None,
    others: Sequence[Block] = (),
) -> tuple[tuple[Block, ...], tuple[Line, ...]]:
    """Tables that only words and horizontal rules tell, and the lines that stand in none of them.

    Args:
        lines: Upright lines of text that stand in no other table.
        rules: The page's ruling lines; None of a scan without them.
        styles: How each line is set; None where nobody knows (OCR).
        others: Tables, figures and headings that stand on the page, too: they bound its columns.
    """
    upright = [line for line in lines if line.orientation == 0 and not line.vertical and line.text.strip()]
    if len(upright) < 4:
        return (), tuple(lines)
    looks = _Looks(lines, styles)
    blocks: list[Block] = []
    rest = list(lines)
    for box, level in _ruled_regions(rules, upright):
        inside, outside = split_lines(rest, box)
        above, inside, level = _cut_caption(inside, level)
        block = _build(inside, level, looks, hinted=True)
        if block is not None:
            blocks.append(block)
            rest = [*outside, *above]
    level_lines = [line for line in rest if line.orientation == 0 and not line.vertical]
    margin = DETECTOR_MARGIN if styles is None else 0.0
    for region in _aligned_regions(level_lines, [block.bbox for block in (*others, *blocks)], margin):
        caption = _has_caption(rest, region)
        _, region, _ = _cut_caption(region, np.zeros((0, 3)))
        block = _build(region, np.zeros((0, 3)), looks, hinted=caption)
        if block is not None:
            blocks.append(block)
            used = set(map(id, region))
            rest = [line for line in rest if id(line) not in used]
    return tuple(sorted(blocks, key=lambda block: (block.bbox[1], block.bbox[0]))), tuple(rest)


def build_text_table(
    lines: Sequence[Line], rules: Rules | None = None, styles: Sequence[LineStyle] | None = None
) -> Block | None:
    """The table that lines are which are known to be one; None where they stand in a single column or row."""
    upright = [line for line in lines if line.orientation == 0 and not line.vertical]
    level = np.zeros((0, 3)) if rules is None else rules.horizontal
    if rules is not None and len(level) and upright:
        boxes = [line_box(line) for line in upright]
        reach = 3 * _height(upright)
        level = merge_lines(level, 1.5 * rules.unit, 3 * rules.unit)
        inside = (level[:, 0] > min(b[1] for b in boxes) - reach) & (
            level[:, 0] < max(b[3] for b in boxes) + reach
        )
        inside &= (level[:, 2] > min(b[0] for b in boxes)) & (level[:, 1] < max(b[2] for b in boxes))
        level = level[inside]
    return _build(upright, level, _Looks(lines, styles), hinted=True)


class _Looks:
    """What is bold or monospaced, by the places of words: lines get divided, words do not."""

    def __init__(self, lines: Sequence[Line], styles: Sequence[LineStyle] | None) -> None:
        self._styles: dict[tuple[int, int], LineStyle] = {}
        for line, style in zip(lines, styles or (), strict=False):
            for word in line.words or (line,):
                self._styles[self._key(line_box(word))] = style

    @staticmethod
    def _key(box: Box) -> tuple[int, int]:
        return round(box[0]), round(box[1])

    def _of(self, line: Line) -> LineStyle | None:
        return self._styles.get(self._key(line_box(line.words[0] if line.words else line)))

    def bold(self, line: Line) -> bool:
        style = self._of(line)
        return style is not None and style.bold

    def monospaced(self, line: Line) -> bool:
        style = self._of(line)
        return style is not None and bool(_MONOSPACED.search(style.font))


def _height(lines: Sequence[Line]) -> float:
    return float(np.median([line_box(line)[3] - line_box(line)[1] for line in lines]))


def _ruled_regions(rules: Rules | None, lines: list[Line]) -> list[tuple[Box, np.ndarray]]:
    """Boxes between horizontal rules of one length, and all rules in them."""
    if rules is None or len(rules.horizontal) < 2:
        return []
    unit = rules.unit
    level = merge_lines(rules.horizontal, 1.5 * unit, 3 * unit)
    long = level[level[:, 2] - level[:, 1] > 50 * unit]
    text_height = _height(lines)
    left = list(range(len(long)))
    regions = []
    while left:
        first = long[left[0]]
        group = [i for i in left if abs(long[i][1:] - first[1:]).max() < 6 * unit]
        left = [i for i in left if i not in group]
        run: list[int] = []
        for i in [*group, -1]:
            if i >= 0 and (not run or _is_tabular(lines, long[run[-1]], long[i], text_height)):
                run.append(i)
                continue
            if len(run) >= 2:
                top, bottom = long[run[0]][0], long[run[-1]][0]
                if len(run) > 2:  # rules under each row: the first row stands above all of them
                    above = long[run[0]] - [float(np.median(np.diff(long[run][:, 0]))), 0, 0]
                    if _is_tabular(lines, above, long[run[0]], text_height):
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
    ten; cells of several lines have rows of one piece.
    """
    box = (float(above[1]) - 4, float(above[0]), float(above[2]) + 4, float(below[0]))
    inside, _ = split_lines(lines, box)
    rows = [_pieces(row, height) for row in rows_of(inside)]
    if not rows:
        return False
    return len(rows[0]) > 1 or sum(len(row) > 1 for row in rows) >= 0.4 * len(rows)


def _pieces(row: Sequence[Line], height: float) -> list[_Piece]:
    """The words of a row, joined where they stand close together."""
    pieces: list[_Piece] = []
    for line in row:
        groups: list[list] = []
        for word in line.words:
            box = line_box(word)
            if groups and box[0] - line_box(groups[-1][-1])[2] < WORD_JOIN * height:
                groups[-1].append(word)
            else:
                groups.append([word])
        for part in [part_of_line(line, group) for group in groups] or [line]:
            pieces.append(_Piece(part, line_box(part)))
    return sorted(pieces, key=lambda piece: piece.box[0])


def _aligned_regions(lines: list[Line], obstacles: Sequence[Box], margin: float) -> list[list[Line]]:
    """Runs of rows with several pieces each, whose white stripes agree, in the page's columns."""
    if len(lines) < 4:
        return []
    found: list[list[Line]] = []
    texts = [line.text for line in lines]
    columns = find_columns([line_box(line) for line in lines], texts, obstacles, margin=margin)
    for part in ([lines[i] for i in column.lines] for column in columns):
        rows = rows_of(part)
        run: list[list[Line]] = []
        for row in [*rows, []]:
            height = _height(row) if row else 1.0
            several = len(_pieces(row, height)) > 1 if row else False
            near = bool(run) and bool(row) and line_box(row[0])[1] - line_box(run[-1][0])[3] < 1.8 * height
            if row and ((several and (not run or near)) or (near and _is_continuation(row, run[-1]))):
                run.append(row)
                continue
            if len(run) >= 3:
                found.append([line for row_ in run for line in row_])
            run = [row] if several else []
    return found


def _is_continuation(row: Sequence[Line], before: Sequence[Line]) -> bool:
    """One piece, straight below a piece of the row before: at any distance right of the first column, in the first
    column close below and no wider than the column.
    """
    if len(row) != 1 or len(before) < 2:
        return False
    left, top, right, bottom = line_box(row[0])
    height = bottom - top
    if any(abs(left - line_box(line)[0]) < 0.5 * height for line in before[1:]):
        return True
    first = line_box(before[0])
    return (
        abs(left - first[0]) < 0.5 * height
        and top - first[3] < 0.4 * height
        and right < line_box(before[1])[0]
    )


def _cut_caption(lines: Sequence[Line], level: np.ndarray) -> tuple[list[Line], list[Line], np.ndarray]:
    """(lines, lines, rules): up to a caption "Table 3" among the first rows, such as one below a page's header, and the
    table's own lines and rules behind it. Without a caption all are the table's.
    """
    rows = rows_of(list(lines))
    for number, row in reversed(list(enumerate(rows[:CAPTION_ROWS]))):
        if _CAPTION.match(row[0].text) and len(rows) - number > 2:
            end = max(line_box(line)[3] for line in row)
            above = [line for one in rows[: number + 1] for line in one]
            return above, [line for one in rows[number + 1 :] for line in one], level[level[:, 0] > end - 1]
    return [], list(lines), level


def _has_caption(lines: Sequence[Line], region: Sequence[Line]) -> bool:
    boxes = [line_box(line) for line in region]
    top, bottom = min(b[1] for b in boxes), max(b[3] for b in boxes)
    reach = 4 * _height(region)
    return any(
        _CAPTION.match(line.text) and top - reach < line_box(line)[1] < bottom + reach
        for line in lines
        if line_box(line)[0] < max(b[2] for b in boxes) and line_box(line)[2] > min(b[0] for b in boxes)
    )


def _stripes(rows: list[list[_Piece]], height: float) -> list[tuple[float, float]]:
    """White stripes (x0, x1) that the rows leave free, between the first and the last piece of the table."""
    most = max(map(len, rows))
    full = [row for row in rows if len(row) >= max(2, 0.6 * most)]
    if not full:
        return []
    first = min(piece.box[0] for row in full for piece in row)
    last = max(piece.box[2] for row in full for piece in row)
    count = np.zeros(int(last - first) + 2, np.int32)
    for row in full:
        for piece in row:
            count[max(0, int(piece.box[0] - first)) : int(np.ceil(piece.box[2] - first)) + 1] += 1
    free = np.concatenate([[False], count <= int(0.1 * len(full)), [False]])
    edges = np.flatnonzero(np.diff(free.astype(np.int8)))
    stripes = [
        (first + a, first + b)
        for a, b in edges.reshape(-1, 2).tolist()
        if b - a >= STRIPE * height and b < len(count)
    ]
    return [(a, b) for a, b in stripes if a > first]


def _build(lines: Sequence[Line], level: np.ndarray, looks: _Looks, *, hinted: bool) -> Block | None:
    lines = [line for line in lines if line.text.strip()]
    if len(lines) < 3:
        return None
    height = _height(lines)
    rows = [_pieces(row, height) for row in rows_of(lines)]
    stripes = _stripes(rows, height)
    columns = len(stripes) + 1
    if columns < 2 or len(rows) < 2:
        return None
    middles = [(a + b) / 2 for a, b in stripes]
    placed = [_place(row, stripes, middles) for row in rows]
    full = [line_box(line) for line in lines]
    box: Box = (
        min(b[0] for b in full),
        min(b[1] for b in full),
        max(b[2] for b in full),
        max(b[3] for b in full),
    )
    if not hinted and not _looks_like_table(rows, placed, columns, looks):
        return None
    tops = [min(piece.box[1] for piece in row) for row in rows]
    bottoms = [max(piece.box[3] for piece in row) for row in rows]
    wide = level[(level[:, 2] - level[:, 1]) > 0.8 * (box[2] - box[0])] if len(level) else level
    groups = _logical_rows(placed, tops, bottoms, columns, wide)
    edges = [box[0], *middles, box[2]]
    cells: list[Cell] = []
    bold: list[bool] = []
    for number, members in enumerate(groups):
        parts: dict[tuple[int, int], list[Line]] = {}
        for member in members:
            for piece, (first, last) in zip(rows[member], placed[member], strict=True):
                first, last = _widened(piece, first, last, level, edges, height, box)
                parts.setdefault((first, last), []).append(piece.line)
        taken = -1
        for first, last in _apart(parts):
            if first <= taken:
                continue
            taken = last
            text, ordered = cell_text(parts[first, last])
            bounds = [line_box(line) for line in ordered]
            cell_box = (
                min(b[0] for b in bounds),
                min(b[1] for b in bounds),
                max(b[2] for b in bounds),
                max(b[3] for b in bounds),
            )
            cells.append(Cell(number, first, text, 1, last - first + 1, cell_box, 0.9, False, ordered))
            bold.append(all(map(looks.bold, ordered)))
    head = 0
    if len(wide) >= 3:  # top, middle and bottom rule
        inner = wide[np.argsort(wide[:, 0])][1][0]
        head = sum(bottoms[members[-1]] < inner + 0.3 * height for members in groups)
    if not 0 < head < len(groups):
        head = count_header_rows(cells, len(groups), bold, [None] * len(cells))
    cells = [replace(cell, header=cell.row < head) for cell in cells]
    filled = {(cell.row, c) for cell in cells for c in range(cell.column, cell.column + cell.colspan)}
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
    row: list[_Piece], stripes: list[tuple[float, float]], middles: list[float]
) -> list[tuple[int, int]]:
    """(first column, last column) of each piece. A piece over a whole stripe spans its columns."""
    placed = []
    for piece in row:
        centre = (piece.box[0] + piece.box[2]) / 2
        covered = [
            i
            for i, (a, b) in enumerate(stripes)
            if piece.box[0] <= a + 0.2 * (b - a) and piece.box[2] >= b - 0.2 * (b - a)
        ]
        if covered:
            placed.append((covered[0], covered[-1] + 1))
        else:
            column = int(np.searchsorted(middles, centre))
            placed.append((column, column))
    return placed


def _widened(
    piece: _Piece, first: int, last: int, level: np.ndarray, edges: list[float], height: float, box: Box
) -> tuple[int, int]:
    """The columns over which a short rule just below the piece runs: the rule of a group of columns."""
    for y, x0, x1 in level:
        if x1 - x0 > 0.8 * (box[2] - box[0]) or not -0.5 * height < y - piece.box[3] < 0.8 * height:
            continue
        if x0 - height <= piece.box[0] and piece.box[2] <= x1 + height:
            covered = [
                c
                for c in range(len(edges) - 1)
                if min(x1, edges[c + 1]) - max(x0, edges[c]) > 0.4 * (edges[c + 1] - edges[c])
            ]
            if covered:
                return min(first, covered[0]), max(last, covered[-1])
    return first, last


def _logical_rows(
    placed: list[list[tuple[int, int]]],
    tops: list[float],
    bottoms: list[float],
    columns: int,
    wide: np.ndarray,
) -> list[list[int]]:
    """Rows of text that are one row of the table, as lists of their numbers."""
    inner = np.sort(wide[:, 0]) if len(wide) else np.zeros(0)
    band = np.searchsorted(inner, [(t + b) / 2 for t, b in zip(tops, bottoms, strict=True)])
    bands, sizes = np.unique(band, return_counts=True)
    by_rules = len(bands) >= 4 and np.median(sizes) <= 3
    gaps = [tops[i + 1] - bottoms[i] for i in range(len(tops) - 1)]
    usual = float(np.median(gaps)) if gaps else 0.0
    cells = [{c for first, last in row for c in range(first, last + 1)} for row in placed]
    # Above a row that fills all columns stands the gap between rows; less is the gap within a row of several lines.
    before_full = [gaps[i - 1] for i in range(1, len(placed)) if len(cells[i]) == columns]
    apart = float(np.median(before_full)) if len(before_full) > 1 else 0.0
    groups: list[list[int]] = [[0]]
    for i in range(1, len(placed)):
        filled = cells[i]
        same_band = band[i] == band[i - 1]
        spans = any(first != last for first, last in placed[i])
        wrapped = 0 not in filled and len(filled) <= columns / 2 and not spans and gaps[i - 1] <= usual + 1.0
        closer = apart - gaps[i - 1] > 0.2 * (bottoms[i] - tops[i])
        wrapped |= closer and len(filled) < columns and not spans and filled <= cells[groups[-1][0]]
        header_row = groups == [[0]] and len(placed[0]) < columns and len(placed[i]) > len(placed[0])
        if same_band and (by_rules or (wrapped and not header_row)):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _looks_like_table(
    rows: list[list[_Piece]], placed: list[list[tuple[int, int]]], columns: int, looks: _Looks
) -> bool:
    """Without rules or caption: short cells, most of them filled, numbers in a column, no list and no code."""
    pieces = [piece for row in rows for piece in row]
    texts = [piece.line.text for piece in pieces]
    if len(rows) < 3 or any(_LEADER.search(text) for text in texts):
        return False
    if sum(looks.monospaced(piece.line) for piece in pieces) > 0.5 * len(pieces):
        return False
    if len(pieces) < 0.6 * len(rows) * columns:
        return False
    by_column: list[list[str]] = [[] for _ in range(columns)]
    for row, places in zip(rows, placed, strict=True):
        for piece, (first, last) in zip(row, places, strict=True):
            if first == last:
                by_column[first].append(piece.line.text)
    if any(not column for column in by_column):
        return False
    if sum(bool(_BULLET.match(text)) for text in by_column[0]) > 0.5 * len(by_column[0]) and columns < 4:
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
        values = [float(text) for text in by_column[1] if text.isdigit()]
        ascending = len(values) > 2 and values == sorted(values) and len(values) >= 0.8 * len(by_column[1])
        return numeric[1] and not ascending and len(rows) >= 4
    regular = len(rows) >= 4 and len(pieces) >= 0.85 * len(rows) * columns
    return any(numeric[1:]) or (regular and bool(words <= 2.5))


def _is_prose_in_columns(rows: list[list[_Piece]], placed: list[list[tuple[int, int]]], columns: int) -> bool:
    """Whether two columns, or one of long lines, are filled from side to side by most of their lines, as paragraphs
    are; justified ones have gaps between words as wide as those between cells.
    """
    prose = 0
    for column in range(columns):
        lines: list[tuple[float, float, str]] = []
        for row, places in zip(rows, placed, strict=True):
            inside = [
                piece for piece, (first, last) in zip(row, places, strict=True) if first == last == column
            ]
            if inside:
                text = " ".join(piece.line.text for piece in inside)
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
