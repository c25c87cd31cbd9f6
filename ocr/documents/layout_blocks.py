"""Blocks from the regions of a layout detector and the lines of a page.

Each line goes to the region that most of it lies in; lines in no region stay for the rules of
`ocr.text.paragraphs`, so no text is lost. Figures keep the lines that stand in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from framework.vision import boxes as vision_boxes
from ocr.documents.layout_regions import Region
from ocr.documents.page_content import PageContent
from ocr.results.blocks import Block, Box, Cell, Figure, Formula, Table
from ocr.results.geometry import bounding_box, line_box, rows_of
from ocr.results.lines import Line
from ocr.tables.cell_text import split_lines
from ocr.tables.text_tables import build_text_table
from ocr.text.paragraphs import HEADING_ROWS, HEADINGS, Paragraph, make_text_blocks, may_be_heading
from ocr.text.rows import Row

FIGURES = ("image", "chart", "seal", "header_image", "footer_image")
_INSIDE = 0.5  # of a line's area
_EDGE_LINE = 0.5  # of a figure's width: a line so long on its edge is none of its labels
_EDGE_OUT = 0.1  # of a line's height that is outside of the figure
_FIGURE_TEXT = 0.3  # of a figure's area: where lines cover more it is no figure
_FIGURE_EDGE = 0.3  # of its height: so much of a detector's box may be its neighbours'
_SURE_HEADING = 0.5  # its score at least
_CERTAIN_HEADING = 0.75  # from here on it may look like the lines below it
_FAR, _VALUE_WORDS = 2.0, 3  # of a label's height, to its value; that one's words, at most
_EVEN = 0.15  # of the distance of lines, and of their height: by so much those of a list differ at most


def add_regions(
    page: PageContent, regions: Sequence[Region], *, tables: bool = True, figures: bool = True
) -> PageContent:
    """The page with the blocks of regions, of `clean_regions`; lines that stand in none are left.

    Regions of the kind and position of a table or figure that stands there are left to it. Without `tables` or
    `figures` there are no such blocks, and their text is that of paragraphs.
    """
    blocks: list[Block] = []
    rest = list(page.lines)
    regions = [one for one in regions if not _is_known(one, (*page.tables, *page.figures))]
    for region in (one for one in regions if tables and one.label == "table"):
        inside, rest = split_lines(rest, region.box)  # of lines that go on beyond the table words tell
        block = build_text_table(inside, page.ruling) or _one_column(inside, region.box)
        blocks.append(replace(block, bbox=region.box, score=region.score))
    others = [one for one in regions if one.label != "table" and (figures or one.label not in FIGURES)]
    members, rest = assign_lines(rest, [one.box for one in others])
    for region, inside in zip(others, members, strict=True):
        blocks += _make(region, inside, page.image, page.height)
    uncovered = tuple(without_covered(page.figures, blocks))
    return replace(page, regions=tuple(blocks), figures=uncovered, lines=tuple(rest))


def _is_known(region: Region, known: Sequence[Block]) -> bool:
    """Whether a table stands already where the region is one, or a figure that is no part of the region's alone."""
    if region.label == "table":
        return any(block.label == "table" and _share(block.bbox, region.box) > 0.5 for block in known)
    if region.label in FIGURES:
        return any(
            block.label in FIGURES and _share(region.box, block.bbox, of_first=True) > 0.5 for block in known
        )
    return False


def _share(a: Box, b: Box, *, of_first: bool = False) -> float:
    """The shared area as a part of that of the smaller box, or of the first one."""
    both = np.array([a, b], np.float64)
    areas = vision_boxes.area(both)
    whole = areas[0] if of_first else areas.min()
    return float(vision_boxes.intersection(both[:1], both[1:])[0, 0] / max(whole, 1e-9))


def regions_of_scan(
    regions: Sequence[Region], lines: Sequence[Line], tables: Sequence[Block]
) -> list[Region]:
    """The regions that are figures with little text in them, and headings of a few lines: what rules find badly or not
    at all on a page's image. They lie in none of `tables`.

    The text of charts and photographs leaves most of them free; a receipt or a table that was taken for one is read.
    """
    chosen = [one for one in regions if one.label in FIGURES or one.label == "paragraph_title"]
    chosen = [one for one in chosen if not any(_share(one.box, table.bbox) > 0.5 for table in tables)]
    parts, _ = assign_lines(lines, [one.box for one in chosen])
    boxes = np.array([line_box(line) for line in lines], np.float64).reshape(-1, 4)
    rows = rows_of(lines)
    kept = []
    for one, inside in zip(chosen, parts, strict=True):
        if one.label in FIGURES:
            own = {id(line) for line in inside if not _crosses(line_box(line), one.box)}
            one = one._replace(box=_off_lines(one.box, [line for line in lines if id(line) not in own]))
            # Lines count by what lies in it: a few words of a long line may be all that it holds.
            box = np.array([one.box], np.float64)
            text = vision_boxes.intersection(boxes, box).sum()
            good = bool(text <= _FIGURE_TEXT * vision_boxes.area(box)[0])
        else:
            said = " ".join(line.text for line in inside)
            good = one.score >= _SURE_HEADING and 0 < len(rows_of(inside)) <= HEADING_ROWS
            good = good and may_be_heading(said)
            good = good and (one.score >= _CERTAIN_HEADING or not _is_one_of_a_list(inside, lines))
            good = good and not _has_value(inside, rows) and not _runs_on(inside, rows)
            one = one._replace(box=bounding_box(map(line_box, inside))) if inside else one
        if good:
            kept.append(one)
    return kept


def _is_one_of_a_list(inside: Sequence[Line], lines: Sequence[Line]) -> bool:
    """Whether a line is as high as the two below it, no narrower, and as far from what is above and below it: labels
    of rows stand so, and a network may take the first of them for a heading.
    """
    heading = bounding_box(map(line_box, inside))
    ids = {id(line) for line in inside}
    around = [line_box(line) for line in lines if id(line) not in ids]
    around = [box for box in around if box[0] < heading[2] and box[2] > heading[0]]
    below = sorted(
        (box for box in around if box[1] + box[3] > heading[1] + heading[3]), key=lambda box: box[1] + box[3]
    )
    if len(below) < 2 or len(rows_of(inside)) > 1:
        return False
    middles = [(box[1] + box[3]) / 2 for box in (heading, *below[:2])]
    heights = [box[3] - box[1] for box in (heading, *below[:2])]
    step = middles[2] - middles[1]
    steps = [middles[1] - middles[0]]
    if above := [(box[1] + box[3]) / 2 for box in around if box[1] + box[3] <= heading[1] + heading[3]]:
        steps.append(middles[0] - max(above))
    level = all(abs(one - step) <= _EVEN * step for one in steps)
    wide = max(box[2] - box[0] for box in below[:2]) > heading[2] - heading[0]
    return level and not wide and heights[0] <= (1 + _EVEN) * max(heights[1:])


def _has_value(inside: Sequence[Line], rows: Sequence[Sequence[Line]]) -> bool:
    """Whether a short text stands far right of a line alone, and so in the row above or below: questions have their
    answers there, and labels their values.
    """
    if len(inside) != 1:
        return False
    number = next(n for n, row in enumerate(rows) if inside[0] in row)
    around = rows[max(number - 1, 0) : number + 2]
    lefts = [line_box(row[0])[0] for row in around if _is_label_row(row)]
    left, top, _, bottom = line_box(inside[0])
    aligned = sum(abs(other - left) < bottom - top for other in lefts)
    return rows[number][0] is inside[0] and _is_label_row(rows[number]) and aligned > 1


def _runs_on(inside: Sequence[Line], rows: Sequence[Sequence[Line]]) -> bool:
    """Whether the row below goes on with a small letter, as high and close: the first line of a paragraph is no
    heading.
    """
    last = rows_of(inside)[-1]
    number = next(n for n, row in enumerate(rows) if any(line is last[0] for line in row))
    if number + 1 == len(rows) or last[-1].text.rstrip()[-1:] in tuple(".:!?"):
        return False
    left, top, _, bottom = bounding_box(map(line_box, last))
    below = rows[number + 1][0]
    start, upper, _, lower = line_box(below)
    height = bottom - top
    near = abs(start - left) < height and upper - bottom < height
    return below.text[:1].islower() and near and abs((lower - upper) - height) <= 2 * _EVEN * height


def _is_label_row(row: Sequence[Line]) -> bool:
    if len(row) != 2:
        return False
    label, value = map(line_box, row)
    return value[0] - label[2] >= _FAR * (label[3] - label[1]) and len(row[1].text.split()) <= _VALUE_WORDS


def _crosses(line: Box, figure: Box) -> bool:
    """Whether a line stands on the upper or lower edge of a figure along much of it, as text above or below does."""
    wide = line[2] - line[0] >= _EDGE_LINE * (figure[2] - figure[0])
    out = max(figure[1] - line[1], line[3] - figure[3])
    return wide and out > _EDGE_OUT * (line[3] - line[1])


def _off_lines(box: Box, others: Sequence[Line]) -> Box:
    """A figure's box without the lines of other blocks that it touches at its upper or lower edge."""
    left, top, right, bottom = box
    reach = _FIGURE_EDGE * (bottom - top)
    for x0, y0, x1, y1 in map(line_box, others):
        if x0 >= right or x1 <= left:
            continue
        if y0 < top < y1 <= box[1] + reach:
            top = y1
        elif y1 > bottom > y0 >= box[3] - reach:
            bottom = y0
    return left, top, right, bottom


def without_covered(figures: Sequence[Block], regions: Sequence[Block]) -> list[Block]:
    """The figures that lie in none of the regions' figures: parts of one figure are not figures of their own."""
    whole = [block for block in regions if block.label in FIGURES]
    return [
        one
        for one in figures
        if not any(_share(one.bbox, other.bbox, of_first=True) > 0.9 for other in whole)
    ]


def assign_lines(lines: Sequence[Line], boxes: Sequence[Box]) -> tuple[list[list[Line]], list[Line]]:
    """(the lines of each box, the others): a line is in the box that holds most of it, if that is half of it. Of boxes
    that hold equally much the smallest takes it.
    """
    parts: list[list[Line]] = [[] for _ in boxes]
    if not boxes or not lines:
        return parts, list(lines)
    bounds = np.array([line_box(line) for line in lines], np.float64)
    areas = vision_boxes.area(np.array(boxes, np.float64))
    shares = vision_boxes.intersection(bounds, np.array(boxes, np.float64))
    shares = np.round(shares / np.maximum(vision_boxes.area(bounds), 1e-9)[:, None], 2)
    rest = []
    for line, share in zip(lines, shares):
        best = int(np.lexsort((areas, -share))[0])
        (parts[best] if share[best] >= _INSIDE else rest).append(line)
    return parts, rest


def _make(region: Region, lines: Sequence[Line], image: np.ndarray | None, height: float) -> list[Block]:
    label = region.label
    if label in FIGURES:
        rows = [line for row in rows_of(lines) for line in row]
        text = "\n".join(line.text for line in rows)
        return [
            Block(label, region.box, text, tuple(rows), region.score, content=Figure(_cut(image, region.box)))
        ]
    if not lines:
        # A formula that nobody read is still a block that an export can cut out; a text without lines is none.
        return [Block(label, region.box, score=region.score)] if label == "formula" else []
    if label in ("list_item", "table"):
        return [replace(block, score=region.score) for block in make_text_blocks(lines, height=height)]
    rows = tuple(Row.of(row) for row in rows_of(lines))
    left, _, right, _ = bounding_box(row.box for row in rows)
    text = Paragraph(rows, left, right, label).text
    heading = int(label in HEADINGS)  # `finish_document` sets the levels for a whole document
    ordered = tuple(line for row in rows for line in row.lines)
    content = Formula(text) if label == "formula" else None
    return [
        Block(
            label,
            bounding_box([region.box, *(row.box for row in rows)]),
            text,
            ordered,
            region.score,
            level=heading,
            content=content,
        )
    ]


def _one_column(lines: Sequence[Line], box: Box) -> Block:
    """A table of one column, or of one row: what stands in it, a row a cell."""
    rows = rows_of(lines)
    cells = tuple(
        Cell(
            number,
            0,
            " ".join(line.text for line in row),
            bbox=bounding_box(map(line_box, row)),
            lines=tuple(row),
        )
        for number, row in enumerate(rows)
    )
    table = Table(cells)
    return Block("table", box, table.text, tuple(line for row in rows for line in row), content=table)


def _cut(image: np.ndarray | None, box: Box) -> np.ndarray | None:
    if image is None:
        return None
    left, top, right, bottom = (max(0, round(value)) for value in box)
    return np.ascontiguousarray(image[top:bottom, left:right])
