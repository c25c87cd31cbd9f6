"""Pages of blocks from what was found on them: captions join their tables and figures, the rest gets its reading order.

What only a whole document tells of its pages is in `ocr.documents.whole_document`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ocr.documents.order import order_boxes
from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Box
from ocr.results.geometry import bounding_box, line_box, split_at_stripes
from ocr.text.vertical_text import is_vertical_text, level_box

# Of a heading's height: what stands beside it; what begins on one level; the least white above
NEAR, LEVEL, APART = 0.2, 1.2, 0.4
LEVEL_TOPS = 0.5  # of a line's height: how far the tops of texts that stand in a row differ
SHORT_ROWS, SHORT_WORDS = 8, 5.0  # of a text such as an address: rows and words in each, at most
TRIM = 0.05  # of a block's height: neighbours touch
ONE_ROW = 1.5  # of a line's height, at most
CAPTION_GAP = 0.03  # of the page's height, between a caption and what it belongs to
NO_PROSE = ("table", "list_item", "image", "chart")
UNORDERED = ("header", "footer", "number", "aside_text")
_FIGURES = ("image", "chart")
_OWNERS = {"table_title": ("table",), "figure_title": ("image", "chart")}


def arrange(blocks: Sequence[Block], height: float, separators: Sequence[Box] = ()) -> tuple[Block, ...]:
    """The blocks of a page in reading order, with `order` set, captions as children, footnotes at the end and then what
    is not read along.

    Args:
        separators: Rules across the page, which end columns, as boxes without height.
    """
    owned = _attach_captions(blocks, height)
    body = [block for block in owned if block.label not in UNORDERED and block.label != "footnote"]
    notes = sorted((b for b in owned if b.label == "footnote"), key=lambda block: block.bbox[1])
    # A caption takes its place with what it belongs to.
    boxes = [bounding_box([part.bbox for part in block.walk()]) for block in body]
    ordered = [body[i] for i in _order_body(body, boxes, separators)] + notes
    rest = sorted((b for b in owned if b.label in UNORDERED), key=lambda block: block.bbox[1])
    return (
        *(replace(block, order=number) for number, block in enumerate(ordered)),
        *(replace(block, order=None) for block in rest),
    )


def _order_body(blocks: Sequence[Block], boxes: Sequence[Box], separators: Sequence[Box]) -> list[int]:
    """The reading order of blocks and the boxes around them and their captions; vertical text is turned for it."""
    lines = [line for block in blocks for line in block.lines]
    if is_vertical_text(lines):
        edge = max(box[2] for box in boxes)
        boxes = [level_box(box, edge) for box in boxes]
        separators = [level_box(box, edge) for box in separators]
        blocks = [replace(block, bbox=level_box(block.bbox, edge), lines=()) for block in blocks]
    return _order_in_rows(blocks, _widen_headings(blocks, boxes), separators)


def _order_in_rows(blocks: Sequence[Block], boxes: Sequence[Box], separators: Sequence[Box]) -> list[int]:
    """The reading order of the boxes; those of a grid of cards, such as a catalogue's, row by row.

    The rows of cards begin with headings at one height, two at least, with more white above than below, and nothing
    stands across their upper edges. A page of columns has no two such heights, or its headings count downwards.
    """
    titles = [boxes[i] for i, block in enumerate(blocks) if block.label == "paragraph_title"]
    tops: list[float] = []
    for title in sorted(titles, key=lambda box: box[1]):
        rise = title[3] - title[1]
        beside = [box for box in titles if abs(box[1] - title[1]) <= NEAR * rise and box is not title]
        apart = any(box[0] >= title[2] or box[2] <= title[0] for box in beside)
        top = min([title[1], *(box[1] for box in beside)])
        crossed = any(box[1] < top < box[3] for box in boxes)
        above = top - max((box[3] for box in boxes if box[3] <= top), default=-math.inf)
        below = min((box[1] for box in boxes if box[1] >= title[3]), default=math.inf) - title[3]
        if apart and not crossed and above > below and (not tops or top > tops[-1] + rise):
            tops.append(top)
    if _count_downwards([block for block in blocks if block.label == "paragraph_title"]):
        tops = []
    cuts = tops if len(tops) > 1 else _ends_of_short_rows(blocks, boxes)
    rightward = starts_right("".join(block.text for block in blocks))
    everything = [*boxes, *separators]
    kinds = [*(block.label if block.label in NO_PROSE else "" for block in blocks), *("" for _ in separators)]
    rows: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for i, box in enumerate(everything):
        rows[bisect_right(cuts, box[1])].append(i)
    ordered = [
        row[i]
        for row in rows
        if row
        for i in order_boxes(
            [everything[i] for i in row], right_to_left=rightward, kinds=[kinds[i] for i in row]
        )
    ]
    return [i for i in ordered if i < len(boxes)]


def _count_downwards(titles: Sequence[Block]) -> bool:
    """Whether the numbers of headings in columns go on from one to the next down each column."""
    matches = [re.search(r"\d+", title.text) for title in titles]
    numbers = [int(one.group()) for one in matches if one is not None]
    if len(titles) < 4 or len(numbers) < len(titles):
        return False
    boxes = np.array([title.bbox for title in titles], np.float64)
    columns = split_at_stripes(boxes, np.arange(len(titles)), axis=0)
    downwards = [numbers[i] for column in columns for i in column[np.argsort(boxes[column, 1])]]
    return len(columns) > 1 and all(after == before + 1 for before, after in pairwise(downwards))


def _ends_of_short_rows(blocks: Sequence[Block], boxes: Sequence[Box]) -> list[float]:
    """The upper and lower ends of rows of short texts that begin beside one another, such as a buyer's address beside
    where goods go to, with nothing else beside them: what is above and below them is none of their columns.
    """
    if len(boxes) < 3:
        return []
    array = np.array(boxes, np.float64)
    trim = TRIM * (array[:, 3] - array[:, 1])
    array = array + np.stack([trim * 0, trim, trim * 0, -trim], axis=1)
    bands = split_at_stripes(array, np.arange(len(boxes)), axis=1)
    columns = [split_at_stripes(array, band, axis=0) for band in bands]
    ends: list[float] = []
    number = 0
    while number < len(bands):
        last = number
        while last < len(bands) and len(columns[last]) > 1:
            last += 1
        if last > number:
            members = [int(i) for band in bands[number:last] for i in band]
            tops = [min(boxes[i][1] for i in column) for column in columns[number]]
            rise = (
                min(line_box(line)[3] - line_box(line)[1] for i in members for line in blocks[i].lines)
                if all(blocks[i].lines for i in members)
                else 0.0
            )
            level = max(tops) - min(tops) <= LEVEL_TOPS * rise
            if level and all(_is_short(blocks[i]) for i in members):
                ends += [min(tops), max(boxes[i][3] for i in members)]
        number = max(last, number + 1)
    return ends


def _is_short(block: Block) -> bool:
    """Whether a block is text of few short lines whose ends are its author's."""
    rows = block.text.split("\n")
    whole = len(block.lines) == len(rows)
    short = len(rows) <= SHORT_ROWS and len(block.text.split()) <= SHORT_WORDS * len(rows)
    return block.label in ("text", "paragraph_title") and whole and short


def _widen_headings(blocks: Sequence[Block], boxes: Sequence[Box]) -> list[Box]:
    """The boxes, with those of headings over several columns as wide as the page's text.

    Such a heading may be shorter than its first column. What tells it: nothing stands beside it, and below it two
    columns begin at the same height. Where a page has such headings and no others, one above a single column is like
    them if nothing else goes on beside or below it.
    """
    if not boxes:
        return []
    left, _, right, _ = bounding_box(boxes)
    titles = {i for i, block in enumerate(blocks) if block.label in ("doc_title", "paragraph_title")}
    # OCR does not tell how a line is set: one at the left edge with white above it may be a heading, too.
    above = [box for block, box in zip(blocks, boxes, strict=True) if block.label not in _FIGURES]
    like = {
        i
        for i, block in enumerate(blocks)
        if block.label == "text" and block.bbox[0] - left < _rise(block) and _is_apart(block, above)
    }
    alone = [i for i in titles | like if not any(_is_beside(boxes[i], box) for box in boxes)]
    wide = [i for i in alone if _begin_columns(boxes[i], boxes)]
    if titles <= set(alone) and any(blocks[i].label == "paragraph_title" for i in wide):
        wide += [i for i in titles if not any(_goes_on(boxes[i], box) for box in boxes)]
    widened = list(boxes)
    for i in wide:
        widened[i] = (left, boxes[i][1], right, boxes[i][3])
    return widened


def _rise(block: Block) -> float:
    return block.bbox[3] - block.bbox[1]


def _is_apart(block: Block, boxes: Sequence[Box]) -> bool:
    """Whether a block is of one row and has white above it."""
    x0, y0, x1, y1 = block.bbox
    gaps = [y0 - box[3] for box in boxes if box[1] < y0 and box[0] < x1 and box[2] > x0]
    one = y1 - y0 <= ONE_ROW * max((box[3] - box[1] for box in map(line_box, block.lines)), default=0.0)
    return one and min(gaps, default=math.inf) > APART * (y1 - y0)


def _is_beside(heading: Box, box: Box) -> bool:
    near = NEAR * (heading[3] - heading[1])
    apart = box[0] >= heading[2] or box[2] <= heading[0]
    return apart and box[1] < heading[3] + near and box[3] > heading[1] - near


def _begin_columns(heading: Box, boxes: Sequence[Box]) -> bool:
    """Whether two columns, of which the heading is above one at least, begin next below it."""
    below = [box for box in boxes if box[1] >= heading[3]]
    first = min((box[1] for box in below), default=0.0)
    level = [box for box in below if box[1] - first <= LEVEL * (heading[3] - heading[1])]
    own = any(box[0] < heading[2] and box[2] > heading[0] for box in level)
    first_end = min((box[2] for box in level), default=0.0)
    # A heading that begins right of the first column is that of another one.
    return own and heading[0] < first_end <= max(box[0] for box in level)


def _goes_on(heading: Box, box: Box) -> bool:
    """Whether a box of another column reaches down beside the heading or further."""
    return (box[0] >= heading[2] or box[2] <= heading[0]) and box[3] > heading[1]


def _attach_captions(blocks: Sequence[Block], height: float) -> list[Block]:
    """Each caption below the nearest table or figure right above or below it; others stay blocks of their own. Half way
    between two it goes with the one on the side where the page's other captions of its kind have theirs.
    """
    owners = {n: _owners(block, blocks, height) for n, block in enumerate(blocks) if block.label in _OWNERS}
    sides = Counter((blocks[n].label, side) for n, near in owners.items() if len(near) == 1 for side in near)
    children: dict[int, list[Block]] = {}
    attached: set[int] = set()
    for number, near in owners.items():
        if not near:
            continue
        block = blocks[number]
        gaps = [gap for gap, _ in near.values()]
        clear = 2 * min(gaps) < max(gaps)
        rank = {side: (0 if clear else -sides[block.label, side], near[side][0]) for side in near}
        side = min(near, key=rank.__getitem__)
        children.setdefault(near[side][1], []).append(block)
        attached.add(number)
    return [
        replace(block, children=(*block.children, *children.get(number, ())))
        for number, block in enumerate(blocks)
        if number not in attached
    ]


def _owners(caption: Block, blocks: Sequence[Block], height: float) -> dict[bool, tuple[float, int]]:
    """The white to the nearest table or figure below a caption, at True, and above it, and the number of each."""
    near: dict[bool, tuple[float, int]] = {}
    for number, other in enumerate(blocks):
        share = min(caption.bbox[2], other.bbox[2]) - max(caption.bbox[0], other.bbox[0])
        below, above = other.bbox[1] - caption.bbox[3], caption.bbox[1] - other.bbox[3]
        gap = max(below, above)
        if other.label in _OWNERS[caption.label] and share > 0 and gap <= CAPTION_GAP * height:
            side = below >= above
            near[side] = min(near.get(side, (gap, number)), (gap, number))
    return near
