"""Reading order: columns, what spans them, and blocks that no straight cut parts."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.documents.order import order_boxes

# Boxes are named in the order in which they are to be read.
TITLE = (10, 0, 190, 10)
CASES = {
    "one column": [TITLE, (10, 20, 190, 40), (10, 50, 100, 60)],
    "two columns under a title": [
        TITLE,
        (10, 20, 95, 60),
        (10, 65, 95, 90),
        (105, 20, 190, 50),
        (105, 55, 190, 90),
    ],
    "a figure over both columns ends them": [
        (10, 0, 95, 30),
        (105, 0, 190, 30),
        (10, 40, 190, 60),
        (10, 70, 95, 90),
        (105, 70, 190, 90),
    ],
    "rows that are level are columns all the same": [
        (10, 0, 95, 10),
        (10, 12, 95, 22),
        (10, 24, 95, 34),
        (105, 0, 190, 10),
        (105, 12, 190, 22),
        (105, 24, 190, 34),
    ],
    "a figure over two of three columns": [
        (0, 0, 40, 20),
        (50, 0, 90, 20),
        (0, 30, 90, 50),
        (0, 60, 40, 80),
        (50, 60, 90, 80),
        (100, 0, 140, 80),
    ],
    "a column that ends early": [(10, 0, 95, 20), (105, 0, 190, 20), (105, 30, 190, 90)],
}


@pytest.mark.parametrize("name", CASES)
def test_order(name):
    boxes = np.array(CASES[name], float)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(len(boxes))
        order = order_boxes(boxes[shuffled])
        assert shuffled[order].tolist() == list(range(len(boxes)))


def test_boxes_that_overlap_a_little_are_still_columns():
    boxes = [(10, 0, 101, 30), (10, 29, 101, 60), (99, 0, 190, 60)]
    assert order_boxes(boxes).tolist() == [0, 1, 2]


def test_blocks_that_no_cut_parts():
    """Four blocks around a fifth, as a windmill: neither a column nor a band is free."""
    boxes = [(0, 0, 60, 30), (70, 0, 100, 70), (40, 40, 60, 60), (0, 40, 30, 100), (40, 80, 100, 100)]
    order = order_boxes(boxes).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order.index(0) < order.index(1) < order.index(4) and order.index(3) < order.index(2)


def test_from_right_to_left():
    assert order_boxes([(0, 0, 40, 50), (50, 0, 90, 20), (50, 30, 90, 50)], right_to_left=True).tolist() == [
        1,
        2,
        0,
    ]


def test_none_and_one():
    assert order_boxes([]).tolist() == []
    assert order_boxes([(0, 0, 1, 1)]).tolist() == [0]


def test_what_stands_below_two_tables_follows_both():
    left, right, remark = (40, 100, 280, 220), (320, 100, 560, 221), (40, 240, 260, 252)
    assert order_boxes([left, remark, right]).tolist() == [0, 2, 1]
    assert order_boxes([right, remark, left], right_to_left=True).tolist() == [0, 2, 1]
    # The left column goes on: the right one ends at another height, or many rows follow.
    assert order_boxes([left, remark, (320, 100, 560, 190)]).tolist() == [0, 1, 2]
    more = [(40, 260 + 24 * row, 260, 272 + 24 * row) for row in range(4)]
    assert order_boxes([left, *more, right]).tolist() == [0, 1, 2, 3, 4, 5]


def test_what_stands_below_two_lists_follows_both():
    rows = [(x, 100 + 34 * row, x + 120, 114 + 34 * row) for x in (40, 320) for row in range(3)]
    boxes, listed = [*rows, (40, 202, 140, 216)], [True] * 6
    assert order_boxes(boxes, items_of_lists=[*listed, False]).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert order_boxes(boxes, items_of_lists=[*listed, True]).tolist() == [0, 1, 2, 6, 3, 4, 5]
    assert order_boxes(boxes).tolist() == [0, 1, 2, 6, 3, 4, 5]  # paragraphs of two columns


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_a_title_in_the_middle_of_columns_comes_before_them(columns: int) -> None:
    """It may be as narrow as the middle column, and no stripe goes through it."""
    body = [(110 * n, 40 if n % 2 else 60, 110 * n + 100, 300) for n in range(columns)]
    middle = (110 * columns - 10) / 2
    title, below = (middle - 40, 10, middle + 40, 25), (middle - 20, 28, middle + 20, 38)
    assert order_boxes([*body, below, title]).tolist() == [columns + 1, columns, *range(columns)]


def test_what_begins_a_column_beside_its_middle_stays_in_it() -> None:
    body = [(0, 40, 100, 300), (110, 40, 210, 300), (220, 40, 320, 300)]
    assert order_boxes([*body, (110, 10, 170, 25)]).tolist() == [0, 3, 1, 2]
