"""The lines of a page in columns, told by the white between them, before paragraphs are made.

The page is cut at white stripes from left to right into bands. Bands that follow one another and share a stripe from
top to bottom are a group, and the group's stripes part its columns where the text on both sides is prose or a list:
three lines or more, two beside a table or figure, long, and many of them filling their column or beginning with a mark.
What was told so once holds for the other stripes at its place on the page, however few lines stand beside them there.
A line alone with white above it, below which several columns begin, is a heading over them, though it may be shorter
than the first of them.

`ocr.text.reading_order.reading_regions` finds columns in what is left whole here, so labels stay with their values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results.geometry import Box, mirrored, split_at_stripes

_Items = NDArray[np.intp]

# Multiples of the median height of lines.
GUTTER = 0.6  # the least white between columns
ABOVE = 0.5  # of the margin at either end of a line: how far boxes stand out above and below
TRIM = 0.2  # of a line's height at either side: boxes of neighbours touch
HEADING_GAP = 1.0  # above a heading over columns, between trimmed boxes
HEADING_SIZE = 0.9  # its height, at least, to that of what begins below it
CENTRED = 0.02  # how far its middle is off that of the columns, at most, as a part of their width
BEGIN = 3.0  # below it, until columns begin
LEVEL = 0.25  # rows of both sides that are so near are level, as cells of a table are: more is asked of them
EXACT = 0.15  # the same of a text layer, where rows are told not to be level
LENGTHS = {False: 6.0, True: 7.0}  # of the middle line of prose, at least; of level rows
ITEM_LENGTH = 4.0  # of a list's

# Shares.
FILLED = 0.8  # of its column's width that a line of prose takes
FULL_LINES = {False: 0.4, True: 0.5}  # of the lines that are filled so, at least
ITEMS = 0.3  # of the lines of a list begin with a mark, at least
LETTERS, WORDS = 0.6, 0.5  # of the characters: of prose, of anything that is read
GOING_ON = 0.6  # of the rows of a narrow column go on in a sentence, at least
SAME_STRIPE = 0.5  # of a known stripe's width

# Of the rows of the shorter side are level at most, where nothing else tells columns: of one size of type, of two.
UNLEVEL = {True: 0.5, False: 0.75}
LONG_ROW = 15.0  # multiples of the height
OTHER_SIZE = 1.15  # of the other side's height of rows
UNLEVEL_GUTTER = 1.0  # multiples of the height: the white between them

MIN_ROWS = {False: 3, True: 2}  # of a column; beside a table or figure
DEEPEST = 6
BULLETS = "•▪◦‣⁃∙●■▸►·➢✓□❖☐☑☒"  # which begin an item of a list and nothing else
LIST_MARK = rf"([{BULLETS}–—*∗-]|\(?\d{{1,3}}[.)]|\(?[a-zA-Z][.)]|\(?[ivx]{{2,5}}[.)]|\[\d+\])"
_MARK = re.compile(rf"{LIST_MARK}\s")
_END = re.compile(r"[.!?:;…][\"'”’)\]]*$")


class Column(NamedTuple):
    """Lines of one column or of what spans columns, by their numbers; `cut` says that others stand beside them."""

    lines: tuple[int, ...]
    cut: bool


def find_columns(
    boxes: ArrayLike | Sequence[Sequence[float]],
    texts: Sequence[str],
    obstacles: ArrayLike | Sequence[Sequence[float]] = (),
    *,
    headings: ArrayLike | Sequence[Sequence[float]] = (),
    margin: float = 0.0,
    slope: float = 0.0,
    rightward: bool = False,
) -> list[Column]:
    """The lines of a page in reading order of their columns; each stands in exactly one.

    Args:
        boxes: Of upright lines, [N, 4] (left, top, right, bottom).
        texts: Of the lines.
        obstacles: Boxes [M, 4] of tables and figures, whose text is not among the lines.
        headings: Boxes [H, 4] of headings that are known, whose text is not among the lines either.
        margin: How far the boxes of lines stand out at either end of the text, as a part of their height.
        slope: By how much rows go down a pixel to the right, on a page that is askew.
        rightward: Whether the page is read from right to left.
    """
    lines = np.array(boxes, np.float64).reshape(-1, 4)
    if not len(lines):
        return []
    if rightward:
        lines, obstacles, headings = map(mirrored, (lines, obstacles, headings))
        slope = -slope
    sides = np.minimum(margin * (lines[:, 3] - lines[:, 1]), (lines[:, 2] - lines[:, 0]) / 4)
    ends = margin * ABOVE * (lines[:, 3] - lines[:, 1])
    lines = lines + np.stack([sides, ends, -sides, -ends], axis=1)
    known_headings = np.array(headings, np.float64).reshape(-1, 4)
    cutter = _Cutter.of(
        lines,
        texts,
        np.array(obstacles, np.float64).reshape(-1, 4),
        known_headings,
        slope,
        LEVEL if margin else EXACT,
    )
    everything = np.arange(len(cutter.boxes))
    known: list[tuple[float, float]] = []
    found = cutter.cut(everything, known, learn=True)  # the stripes that are sure
    if known:  # else it stays what it is
        found = cutter.cut(everything, known, learn=False)
    columns = [Column(tuple(i for i in part.lines if i < len(lines)), part.cut) for part in found]
    return [column for column in columns if column.lines]


@dataclass(frozen=True)
class _Cutter:
    """Boxes of lines, obstacles and headings, trimmed, [N + M + H, 4], and which of them are obstacles; of the lines
    also how many letters and characters they have and whether they begin with a list's mark, [N, 3], and whether they
    begin with a small letter and whether they end a sentence, [N, 2]. Rows go down by `slope` a pixel to the right;
    those of two sides within `near` of the height are level.
    """

    boxes: NDArray[np.float64]
    obstacle: NDArray[np.bool_]
    signs: NDArray[np.float64]
    flow: NDArray[np.bool_]
    height: float
    slope: float
    near: float
    # By the bytes of the items: the page is cut twice, and mostly into the same.
    known_groups: dict[bytes, list[tuple[_Items, bool]]] = field(default_factory=dict)
    known_rows: dict[bytes, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        lines: NDArray[np.float64],
        texts: Sequence[str],
        obstacles: NDArray[np.float64],
        headings: NDArray[np.float64],
        slope: float,
        near: float,
    ) -> _Cutter:
        height = float(np.median(lines[:, 3] - lines[:, 1]))
        boxes = np.concatenate([lines, obstacles, headings])
        tall = boxes[:, 3] - boxes[:, 1]
        trim = TRIM * np.where(np.arange(len(boxes)) < len(lines), tall, np.minimum(tall, height))
        boxes[:, 1] += trim
        boxes[:, 3] -= trim
        signs = [
            (sum(map(str.isalpha, text)), len("".join(text.split())), _MARK.match(text) is not None)
            for text in texts
        ]
        flow = [(text.lstrip()[:1].islower(), _END.search(text.rstrip()) is not None) for text in texts]
        places = np.arange(len(boxes))
        obstacle = (places >= len(lines)) & (places < len(lines) + len(obstacles))
        return cls(
            boxes,
            obstacle,
            np.array(signs, np.float64).reshape(-1, 3),
            np.array(flow, bool).reshape(-1, 2),
            max(height, 1e-6),
            slope,
            near,
        )

    def cut(
        self, items: _Items, known: list[tuple[float, float]], *, learn: bool, depth: int = 0
    ) -> list[Column]:
        """The items in reading order. `known` are stripes that part columns; `learn` adds to them."""
        found: list[Column] = []
        whole: list[int] = []  # of groups without columns, which stay together

        def flush() -> None:
            if whole:
                found.append(Column(tuple(whole), depth > 0))
                whole.clear()

        key = items.tobytes()
        if key not in self.known_groups:
            self.known_groups[key] = self._groups(items)
        for group, heading in self.known_groups[key]:
            if heading:
                flush()
                found.append(Column(tuple(group.tolist()), depth > 0))
                continue
            columns = self._columns(group, known, learn) if depth < DEEPEST else [group]
            if len(columns) < 2:
                whole.extend(group.tolist())
                continue
            flush()
            for column in columns:
                found += self.cut(column, known, learn=learn, depth=depth + 1)
        flush()
        return found

    # ---- groups of bands

    def _groups(self, items: _Items) -> list[tuple[_Items, bool]]:
        """Bands that belong together, downwards, each with whether they are a heading over columns."""
        bands = split_at_stripes(self.boxes, items, axis=1)
        sides: list[Box] = list(map(tuple, self._bounds(bands).tolist()))
        inks = [
            self._ink(band) if len(band) > 1 else [(left, right)]
            for band, (left, _, right, _) in zip(bands, sides, strict=True)
        ]
        stripes = list(map(_gaps, inks))
        groups: list[tuple[list[_Items], bool]] = []
        own: list[tuple[float, float]] = []  # the stripes of the last group
        shared: list[tuple[float, float]] = []  # those that it has with the band
        ink: list[tuple[float, float]] = []  # where the last group has some
        both: list[tuple[float, float]] = []  # where it or the band has
        heading = False
        for number, band in enumerate(bands):
            second = heading and _is_nearer_above(sides, number)
            heading = not stripes[number] and self._is_heading(bands, sides, number, second)
            joins = bool(groups) and groups[-1][1] == heading
            if joins and heading:
                joins = second
                both = self._close([*ink, *inks[number]])
            elif joins:
                both = self._close([*ink, *inks[number]])
                shared = _gaps(both)
                joins = bool(shared) or not (own or stripes[number])
                if shared and stripes[number] and not own:
                    above = np.concatenate(groups[-1][0])
                    joins = not all(self._begins_within(above, stripe) for stripe in stripes[number])
            if joins:
                groups[-1][0].append(band)
                own, ink = own if heading else shared, both
            else:
                groups.append(([band], heading))
                own, ink = stripes[number], inks[number]
        return [(np.concatenate(parts), heading) for parts, heading in groups]

    def _bounds(self, bands: Sequence[_Items]) -> NDArray[np.float64]:
        """The boxes [B, 4] around the items of each band."""
        boxes = self.boxes[np.concatenate(bands)]
        if len(boxes) == len(bands):
            return boxes
        starts = np.cumsum([0, *map(len, bands[:-1])])
        return np.hstack(
            [np.minimum.reduceat(boxes[:, :2], starts), np.maximum.reduceat(boxes[:, 2:], starts)]
        )

    def _begins_within(self, items: _Items, stripe: tuple[float, float]) -> bool:
        """Whether one of the items begins inside a stripe, as a title in the middle does: it stands in no column."""
        starts = self.boxes[items, 0]
        return bool(((starts > stripe[0] + self.height) & (starts < stripe[1] - self.height)).any())

    def _is_heading(self, bands: Sequence[_Items], sides: Sequence[Box], number: int, second: bool) -> bool:
        """Whether a band without a stripe is a line over columns that begin below it, one of them to its right.

        `sides` are the bands' boxes; `second` says that it is a later line of the heading above it.
        """
        band = bands[number]
        left, top, right, bottom = sides[number]
        if number + 1 == len(bands):
            return False
        if number and not second and top - sides[number - 1][3] < HEADING_GAP * self.height:
            before = bands[number - 1]
            lowest = before[0] if len(before) == 1 else before[np.argmax(self.boxes[before, 3])]
            if not self.obstacle[lowest]:  # how far a figure reaches is not known so well
                return False
        if self.obstacle[band].any():
            return False
        beginning = np.concatenate(bands[number + 1 : number + 4])
        beginning = beginning[self.boxes[beginning, 1] < bottom + BEGIN * self.height]
        if not (self.boxes[beginning, 2] > right + self.height).any():
            return False
        heights = [self.boxes[items, 3] - self.boxes[items, 1] for items in (band, beginning)]
        if heights[0].max() < HEADING_SIZE * _median(heights[1]):
            return False  # it is a line of the first column
        starts = [start for start, _ in self._stripes(beginning)]
        # What begins right of the first column is no heading over it, unless it stands in the middle of them all.
        first, last = self.boxes[beginning, 0].min(), self.boxes[beginning, 2].max()
        centred = abs(left + right - first - last) < 2 * CENTRED * (last - first)
        over = bool(starts) and (left < starts[0] or centred)
        return over and any(start < self.boxes[beginning, 0].max() for start in starts)

    # ---- stripes between columns

    def _stripes(self, items: _Items) -> list[tuple[float, float]]:
        """The white from top to bottom between the items, (left, right), where it is wide enough."""
        return _gaps(self._ink(items))

    def _ink(self, items: _Items) -> list[tuple[float, float]]:
        """Where from left to right the items stand, (left, right), with white that is too narrow closed."""
        return self._close(list(map(tuple, self.boxes[items, ::2].tolist())))

    def _close(self, spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Spans from left to right, those between which the white is narrower than a gutter joined."""
        if len(spans) < 2:
            return spans
        spans.sort()
        closed = [spans[0]]
        for left, right in spans[1:]:
            first, end = closed[-1]
            if left - end >= GUTTER * self.height:
                closed.append((left, right))
            elif right > end:
                closed[-1] = (first, right)
        return closed

    def _columns(self, group: _Items, known: list[tuple[float, float]], learn: bool) -> list[_Items]:
        """The group's columns from left to right, or the group."""
        stripes = self._stripes(group)
        if not stripes:
            return [group]
        edges = [(a + b) / 2 for a, b in stripes]
        places = np.searchsorted(edges, (self.boxes[group, 0] + self.boxes[group, 2]) / 2)
        parts = [group[places == place] for place in range(len(stripes) + 1)]
        rows = [self._rows(part) for part in parts]
        columns = [parts[0]]
        for number, (stripe, (left, right)) in enumerate(zip(stripes, pairwise(rows), strict=True)):
            if not len(left) or not len(right):
                parted = True  # a figure or a table beside something
            elif self._are_prose(parts[number], parts[number + 1], left, right) or (
                self._are_words(parts[number], parts[number + 1])
                and (
                    self._are_long(stripe, left, right)
                    or self._read_on(stripe, parts[number], parts[number + 1])
                )
            ):
                parted = True
                if learn and stripe not in known:
                    known.append(stripe)
            elif self._are_words(parts[number], parts[number + 1]) and (
                self._are_unlevel(stripe, left, right)
                or (
                    min(len(left), len(right)) >= MIN_ROWS[True]
                    and max(len(left), len(right)) >= MIN_ROWS[False]
                    and all(map(self._are_sentences, parts[number : number + 2]))
                )
            ):
                parted = True  # here alone: elsewhere labels may stand beside their values
            else:
                parted = any(_share(stripe, other) >= SAME_STRIPE for other in known)
            if parted:
                columns.append(parts[number + 1])
            else:
                columns[-1] = np.concatenate([columns[-1], parts[number + 1]])
        return columns

    def _rows(self, items: _Items) -> NDArray[np.float64]:
        """Boxes [R, 4] of the rows of text among the items, downwards."""
        key = items.tobytes()
        if key not in self.known_rows:
            lines = items[items < len(self.signs)]
            bands = split_at_stripes(self.boxes, lines, axis=1) if len(lines) else []
            self.known_rows[key] = self._bounds(bands) if bands else np.zeros((0, 4))
        return self.known_rows[key]

    def _middles(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far down rows [R, 4] stand, [R], whatever the page's slope."""
        return rows[:, 1::2].mean(axis=1) - self.slope * rows[:, ::2].mean(axis=1)

    def _are_words(self, *sides: _Items) -> bool:
        """Whether each side is words and neither amounts nor formulas, whose rows are not level either."""
        shares = [self.signs[items[items < len(self.signs)]].sum(axis=0) for items in sides]
        return all(letters >= WORDS * chars for letters, chars, _ in shares)

    def _are_unlevel(
        self, stripe: tuple[float, float], left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> bool:
        """Whether the rows [R, 4] of both sides do not stand at the same heights, as those of a sidebar or of a sender
        beside the number of his letter; rows of a table and labels with their values do.
        """
        if stripe[1] - stripe[0] < UNLEVEL_GUTTER * self.height:
            return False
        sides = [self._middles(left), self._middles(right)]
        top, bottom = max(side.min() for side in sides), min(side.max() for side in sides)
        reach = 0.5 * self.height
        few, many = sorted((s[(s >= top - reach) & (s <= bottom + reach)] for s in sides), key=len)
        if len(few) < MIN_ROWS[True] or len(many) < MIN_ROWS[False]:
            return False
        apart = abs(few[:, None] - many[None]).min(axis=1)
        heights = sorted(_median(rows[:, 3] - rows[:, 1]) for rows in (left, right))
        same_size = heights[1] < OTHER_SIZE * heights[0]
        return bool(np.mean(apart <= self.near * self.height) <= UNLEVEL[same_size])

    def _are_long(
        self, stripe: tuple[float, float], left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> bool:
        """Whether two rows [R, 4] or more are long on both sides, as short paragraphs below their headings are."""
        if stripe[1] - stripe[0] < UNLEVEL_GUTTER * self.height:
            return False
        long = [rows[rows[:, 2] - rows[:, 0] >= LONG_ROW * self.height] for rows in (left, right)]
        if not all(map(len, long)):
            return False
        first, second = map(self._middles, long)
        apart = abs(first[:, None] - second[None]).min(axis=1)
        return bool((apart <= LEVEL * self.height).sum() >= 2)

    def _read_on(self, stripe: tuple[float, float], *sides: _Items) -> bool:
        """Whether each side has a sentence that goes on from a long row, which fills its column, to the one below."""
        if stripe[1] - stripe[0] < UNLEVEL_GUTTER * self.height:
            return False
        return all(map(self._has_sentence_over_rows, sides))

    def _are_sentences(self, items: _Items) -> bool:
        """Whether nearly all rows, however short, go on from the one above with a small letter, and the last one ends a
        sentence: so do narrow columns of a program's or a brochure's, and no cells or labels.
        """
        lines = items[items < len(self.signs)]
        if not len(lines):
            return False
        rows = split_at_stripes(self.boxes, lines, axis=1)
        starts = [row[np.argmin(self.boxes[row, 0])] for row in rows]
        ends = [row[np.argmax(self.boxes[row, 2])] for row in rows]
        going_on = [
            self.flow[start, 0] and not self.flow[end, 1]
            for end, start in zip(ends[:-1], starts[1:], strict=True)
        ]
        whole = not self.flow[starts[0], 0] and bool(self.flow[ends[-1], 1])
        return whole and bool(going_on) and sum(going_on) >= GOING_ON * len(going_on)

    def _has_sentence_over_rows(self, items: _Items) -> bool:
        lines = items[items < len(self.signs)]
        if not len(lines):
            return False
        width = max(LONG_ROW * self.height, FILLED * float(np.ptp(self.boxes[lines, ::2])))
        for upper, lower in pairwise(split_at_stripes(self.boxes, lines, axis=1)):
            last = upper[np.argmax(self.boxes[upper, 2])]
            first = lower[np.argmin(self.boxes[lower, 0])]
            filled = self.boxes[last, 2] - self.boxes[upper, 0].min() >= width
            if filled and self.flow[first, 0] and not self.flow[last, 1]:
                return True
        return False

    def _are_prose(
        self, first: _Items, second: _Items, left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> bool:
        """Whether the rows [R, 4] of both sides are lines of paragraphs or lists."""
        obstacles = any(self.obstacle[items].any() for items in (first, second))
        if min(len(left), len(right)) < MIN_ROWS[obstacles]:
            return False
        few, many = sorted((self._middles(left), self._middles(right)), key=len)
        apart = _median(abs(few[:, None] - many[None]).min(axis=1))
        level = bool(apart <= LEVEL * self.height)
        for items, rows in ((first, left), (second, right)):
            letters, chars, marks = self.signs[items[items < len(self.signs)]].sum(axis=0)
            length = _median(rows[:, 2] - rows[:, 0]) / self.height
            start, end = rows[:, 0].min(), rows[:, 2].max()
            full = np.mean(rows[:, 2] - start >= FILLED * (end - start))
            prose = full >= FULL_LINES[level] and length >= LENGTHS[level]
            items_of_list = marks >= ITEMS * len(rows) and length >= ITEM_LENGTH
            if letters < LETTERS * chars or not (prose or items_of_list):
                return False
        return True


def _gaps(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The white between spans from left to right."""
    return [(before[1], after[0]) for before, after in pairwise(spans)]


def _is_nearer_above(sides: Sequence[Box], number: int) -> bool:
    """Whether a band stands closer to the one above than to what is below."""
    if not 0 < number < len(sides) - 1:
        return False
    above = sides[number][1] - sides[number - 1][3]
    return above < sides[number + 1][1] - sides[number][3]


def _median(values: NDArray[np.float64]) -> float:
    """numpy's, which takes ten times as long for the few values that are asked for here."""
    ordered = sorted(values.tolist())
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2


def _share(stripe: tuple[float, float], known: tuple[float, float]) -> float:
    """How much of a known stripe another one covers."""
    shared = min(stripe[1], known[1]) - max(stripe[0], known[0])
    return shared / max(known[1] - known[0], 1e-9)
