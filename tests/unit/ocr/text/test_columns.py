"""Columns of lines: short ones, lists, headings over them, what stands in them; and what is no column."""

from __future__ import annotations

import pytest

from ocr.documents.assemble import arrange
from ocr.results.blocks import Block, Figure
from ocr.results.lines import Line, Word
from ocr.tables.text_tables import find_text_tables
from ocr.text.columns import find_columns

HEIGHT = 10.0
LONG = "words of a paragraph on a line"
WIDTH = 100.0


def rows(x, y, count, *, width=WIDTH, step=12.0, text=LONG, last=None):
    """Lines (box, text) below one another; the last one may be shorter."""
    ends = [width] * (count - 1) + [width if last is None else last]
    return [((x, y + i * step, x + end, y + i * step + HEIGHT), text) for i, end in enumerate(ends)]


def columns_of(parts, obstacles=()):
    """Which parts the lines of each column are of, in reading order of the columns."""
    lines = [line for part in parts for line in part]
    of_line = [number for number, part in enumerate(parts) for _ in part]
    found = find_columns([box for box, _ in lines], [text for _, text in lines], obstacles)
    assert sorted(i for column in found for i in column.lines) == list(range(len(lines)))
    return [list(dict.fromkeys(of_line[i] for i in column.lines)) for column in found]


def test_no_lines():
    assert find_columns([], []) == []


def test_level_columns_between_titles_that_are_shorter_than_the_first_of_them():
    parts = [
        rows(0, 0, 1, width=60),
        *(rows(x, 24, 4, last=70) for x in (0, 115, 230)),
        rows(0, 90, 1, width=60),
        *(rows(x, 114, 3, last=50) for x in (0, 115, 230)),
    ]
    assert columns_of(parts) == [[0], [1], [2], [3], [4], [5], [6], [7]]


def test_the_last_line_of_a_column_is_no_title():
    parts = [rows(0, 0, 6, last=60), rows(115, 0, 5), rows(0, 102, 4), rows(115, 102, 4)]
    assert columns_of(parts) == [[0, 2], [1, 3]]


def test_a_heading_stands_out_from_boxes_of_a_detector_too():
    """They are half as high again as the text, so that the white above a heading is less of their height."""
    parts = [rows(x, 0, 4, step=11.5) for x in (0, 130)]
    parts += [rows(0, 53, 1, width=60), *(rows(x, 71, 4, step=11.5) for x in (0, 130))]
    lines = [((x0 - 4, y0 - 2, x1 + 4, y1 + 2), text) for part in parts for (x0, y0, x1, y1), text in part]
    found = find_columns(*zip(*lines, strict=True), margin=4 / 14)
    assert [column.lines for column in found] == [
        tuple(range(first, last)) for first, last in ((0, 4), (4, 8), (8, 9), (9, 13), (13, 17))
    ]


def test_a_title_of_two_lines():
    parts = [rows(0, 0, 2, width=215, last=60), rows(0, 48, 4), rows(115, 48, 4)]
    assert columns_of(parts) == [[0], [1], [2]]


def test_short_columns_stand_where_longer_ones_do():
    """Two lines say nothing on their own."""
    short = [rows(0, 100, 2), rows(115, 100, 1, width=40)]
    assert columns_of(short) == [[0, 1]]
    long = [rows(0, 0, 4), rows(115, 0, 4), rows(0, 70, 1, width=215)]
    assert columns_of([*long, *short]) == [[0], [1], [2], [3], [4]]


def test_lists_beside_each_other():
    items = [rows(x, 0, 4, width=60, text="• a thing") for x in (0, 115)]
    assert columns_of(items) == [[0], [1]]
    assert columns_of([rows(x, 0, 4, width=60, text="a thing") for x in (0, 115)]) == [[0, 1]]


def test_two_lines_beside_a_figure_are_a_column():
    parts = [rows(0, 40, 2), rows(115, 0, 5)]
    assert columns_of(parts, [(0, 0, 100, 36)]) == [[0], [1]]
    alone = [rows(0, 40, 2), rows(115, 0, 2)]
    assert columns_of(alone) == [[1, 0]]


def test_headings_that_are_known_end_columns_as_lines_do():
    parts = [rows(0, 0, 4), rows(115, 0, 4), rows(0, 84, 4), rows(115, 84, 4)]
    lines = [line for part in parts for line in part]
    found = find_columns(*zip(*lines, strict=True), headings=[(0, 60, 60, 70)])
    assert [column.lines for column in found] == [tuple(range(i, i + 4)) for i in (0, 4, 8, 12)]


def test_boxes_of_a_detector_stand_out():
    """The gutter is 0.3 of a line's height between boxes that stand out by a quarter at either side."""
    parts = [rows(0, 0, 5), rows(103, 0, 5)]
    assert columns_of(parts) == [[0, 1]]
    found = find_columns(*zip(*parts[0], *parts[1], strict=True), margin=0.25)
    assert [column.lines for column in found] == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]


def test_a_figure_over_the_columns_ends_them():
    parts = [rows(0, 0, 4), rows(115, 0, 4), rows(0, 100, 4), rows(115, 100, 4)]
    assert columns_of(parts) == [[0, 2], [1, 3]]
    assert columns_of(parts, [(0, 50, 215, 95)]) == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    "right",
    [
        rows(230, 0, 5, width=30, text="12.50"),
        rows(230, 0, 5, width=30, text="a value"),
        rows(230, 0, 5, width=120, text="17 / 2026-04 / 33 - 1"),
    ],
    ids=["prices", "short", "figures"],
)
def test_labels_and_their_values_are_no_columns(right):
    found = find_columns(*zip(*rows(0, 0, 5), *right, strict=True))
    assert len(found) == 1 and not found[0].cut


def test_gaps_between_the_words_of_justified_lines_are_no_columns():
    full = [((0.0, y, 215.0, y + HEIGHT), LONG) for y in (0.0, 12.0, 48.0, 60.0)]
    gaps = [
        ((x, y, end, y + HEIGHT), "words") for y in (24.0, 36.0) for x, end in ((0.0, 80.0), (95.0, 215.0))
    ]
    found = find_columns(*zip(*full, *gaps, strict=True))
    assert len(found) == 1 and not found[0].cut


# Two narrow justified columns: y, then x of the beginning and end of each word, a line of its own after a wide gap.
JUSTIFIED = """
154 225-246 Part 255-301 company 310-371 government
166 225-251 night 257-291 money 296-314 day 320-343 time 348-371 time
177 225-247 man
177 274-304 group
177 332-371 number
189 225-272 question. 283-314 World 325-341 life 353-371 day
200 225-286 government
200 345-371 week
144 387-448 government
144 464-491 week
144 507-533 week
156 387-417 group
156 451-477 week
156 511-533 area
167 387-451 government. 463-485 Man 497-533 mother
179 387-413 room
179 435-473 student
179 494-533 country
190 387-420 group.
"""


def justified():
    lines = []
    for row in JUSTIFIED.split("\n")[1:-1]:
        y, *parts = row.split()
        words = []
        for place, text in zip(parts[::2], parts[1::2], strict=True):
            start, end = map(float, place.split("-"))
            words.append(Word(text, 1.0, quad(start, float(y), end, float(y) + 11)))
        first, last = words[0].polygon[0][0], words[-1].polygon[1][0]
        text = " ".join(word.text for word in words)
        lines.append(Line(text, 1.0, quad(first, float(y), last, float(y) + 11), tuple(words)))
    return lines


def quad(x0, y0, x1, y1):
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def test_prose_in_columns_is_no_table():
    """The gaps between its words are as wide as those between cells, and the columns are not level."""
    lines = justified()
    blocks, rest = find_text_tables(lines, others=[make("image", (63, 144, 212, 204))])
    assert not blocks and len(rest) == len(lines)


def make(label, box):
    return Block(label, box, label, content=Figure(None) if label == "image" else None)


def test_a_heading_over_two_of_three_columns():
    """It is longer than the first column, and the third one ends above it."""
    blocks = [
        make("text", (0, 0, 100, 80)),
        make("text", (115, 0, 215, 80)),
        make("text", (230, 0, 330, 60)),
        make("paragraph_title", (0, 95, 140, 107)),
        make("text", (0, 120, 100, 160)),
        make("text", (115, 118, 215, 150)),
    ]
    assert [block.bbox for block in arrange(blocks, 800)] == [block.bbox for block in blocks]


def test_a_heading_like_the_others_of_its_page():
    blocks = [
        make("paragraph_title", (0, 0, 60, 12)),
        make("text", (0, 20, 100, 80)),
        make("text", (115, 20, 215, 80)),
        make("paragraph_title", (0, 95, 60, 107)),
        make("image", (0, 120, 100, 160)),
    ]
    assert [block.bbox for block in arrange(blocks, 800)] == [block.bbox for block in blocks]
    # where another column goes on beside it, it is of its own column
    blocks[2] = make("text", (115, 20, 215, 100))
    order = [block.bbox for block in arrange(blocks, 800)]
    assert order == [blocks[i].bbox for i in (0, 1, 3, 4, 2)]
