import json
import os
from pathlib import Path

import numpy as np
import pytest

from ocr.results.geometry import bounds_of
from ocr.results.pages import Char, Line, Word
from ocr.text.reading_order import (
    merge_quads,
    quad_of,
    reading_order,
    reading_regions,
    spaced_words,
    upright_boxes,
    words_from_chars,
)


def quad(left, top, right, bottom):
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def turned(polygons, degrees, centre=(500.0, 500.0)):
    """The polygons on a page that is turned clockwise, as one sees it."""
    angle = np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (np.array(polygons, float) - centre) @ matrix.T + centre


def shuffled_order(polygons, seed=0):
    """reading_order of the polygons in a random order, as indices of the order in which they are listed."""
    shuffle = np.random.default_rng(seed).permutation(len(polygons))
    mixed = [polygons[index] for index in shuffle]
    return [int(shuffle[index]) for index in reading_order(mixed)]


def two_columns(rows=8, gutter=30, offset=0):
    """A title, two columns of prose with lines of 300x20 every 24, and a line below them; listed in reading order."""
    left = [quad(100, 100 + 24 * row, 400 - 7 * (row % 3), 120 + 24 * row) for row in range(rows)]
    start = 400 + gutter
    right = [
        quad(start, 100 + offset + 24 * row, start + 300 - 9 * (row % 2), 120 + offset + 24 * row)
        for row in range(rows)
    ]
    below = 100 + 24 * rows + 30
    return [quad(150, 40, 700, 70), *left, *right, quad(100, below, 720, below + 20)]


def receipt():
    """A name, four rows of label, quantity and price of different lengths and heights, a total; in reading order."""
    rows = [quad(150, 20, 350, 45)]
    for row, (label, wobble) in enumerate(((180, 3), (90, -2), (240, 2), (130, -1))):
        top = 80 + 30 * row
        rows += [
            quad(50, top, 50 + label, top + 20),
            quad(320, top + wobble, 335, top + wobble + 16),
            quad(400, top - wobble, 450, top - wobble + 20),
        ]
    return [*rows, quad(50, 230, 120, 250), quad(390, 228, 450, 252)]


def test_no_text_and_one_line():
    assert reading_order(np.zeros((0, 4, 2))).tolist() == []
    assert reading_order([]).dtype == np.intp
    assert reading_regions([]) == []
    assert upright_boxes([]).shape == (0, 4)
    assert reading_order([quad(0, 0, 1, 1)]).tolist() == [0]
    assert reading_regions([[(3, 3)] * 4]) == [[[0]]]


def test_label_comes_before_price_although_the_price_is_higher():
    # The tops differ by 12 pixels: more than the 10 that a fixed tolerance would allow.
    assert reading_order([quad(400, 90, 460, 130), quad(50, 102, 300, 142)]).tolist() == [1, 0]


def test_tolerance_is_relative_to_the_line_height():
    # 6 pixels apart: one row of large text, two rows of small text.
    assert reading_regions([quad(200, 0, 300, 40), quad(0, 6, 100, 46)]) == [[[1, 0]]]
    assert reading_regions([quad(200, 0, 300, 8), quad(0, 6, 100, 14)]) == [[[0], [1]]]


@pytest.mark.parametrize("seed", range(5))
def test_receipt_is_read_row_by_row(seed):
    lines = receipt()
    assert shuffled_order(lines, seed) == list(range(len(lines)))
    assert [len(row) for row in reading_regions(lines)[0]] == [1, 3, 3, 3, 3, 2]


@pytest.mark.parametrize("degrees", [-7, 3, 90, 180, 270, 188])
def test_turned_pages_are_read_like_upright_ones(degrees):
    for lines in (receipt(), two_columns()):
        assert shuffled_order(turned(lines, degrees)) == list(range(len(lines)))


@pytest.mark.parametrize("offset", [0, 12])
def test_two_columns_are_read_one_after_the_other(offset):
    lines = two_columns(offset=offset)
    assert shuffled_order(lines) == list(range(len(lines)))
    assert [len(region) for region in reading_regions(lines)] == [1, 8, 8, 1]


def test_columns_with_widened_boxes_leave_a_narrow_gutter():
    # Detectors widen boxes: 30 pixels of gutter become 6, 0.3 line heights.
    lines = [
        quad(left - 12, top, right + 12, bottom)
        for (left, top), _, (right, bottom), _ in two_columns(gutter=30)
    ]
    assert shuffled_order(lines) == list(range(len(lines)))


def test_three_columns_and_a_line_across_two_of_them():
    def column(left, tops):
        return [quad(left, top, left + 250, top + 20) for top in tops]

    upper, lower = range(0, 120, 24), range(200, 320, 24)
    lines = [
        *column(0, [*upper, *lower]),
        *column(280, upper),
        *column(560, upper),
        quad(280, 150, 810, 175),
        *column(280, lower),
        *column(560, lower),
    ]
    assert shuffled_order(lines) == list(range(len(lines)))


def test_table_of_short_cells_is_read_row_by_row():
    lines = [quad(x, y, x + 80, y + 20) for y in range(0, 300, 30) for x in (0, 200, 400)]
    assert shuffled_order(lines) == list(range(30))


def test_two_rows_beside_one_another_are_no_columns():
    lines = [quad(x, y, x + 300, y + 20) for y in (0, 24) for x in (0, 330)]
    assert shuffled_order(lines) == [0, 1, 2, 3]


def test_columns_one_below_the_other_are_read_from_top_to_bottom():
    upper_right = [quad(500, 24 * row, 800, 24 * row + 20) for row in range(4)]
    lower_left = [quad(0, 200 + 24 * row, 300, 220 + 24 * row) for row in range(4)]
    lines = [*upper_right, *lower_left]
    assert shuffled_order(lines) == list(range(8))


def test_vertical_columns_are_read_from_right_to_left():
    columns = [
        quad(right - 30, 50, right, 50 + length) for right, length in ((300, 400), (250, 380), (200, 200))
    ]
    below = quad(170, 280, 200, 450)  # the last column goes on after a gap
    lines = [*columns, below]
    assert shuffled_order(lines) == [0, 1, 2, 3]
    assert reading_regions(lines) == [[[0], [1], [2, 3]]]


def test_row_that_bends_over_the_page():
    # Each piece stands 8 lower than the one before, half a line height over the whole row is exceeded.
    row = [quad(100 * index, 8 * index, 100 * index + 90, 8 * index + 20) for index in range(4)]
    below = [quad(100 * index, 8 * index + 26, 100 * index + 90, 8 * index + 46) for index in range(4)]
    assert shuffled_order([*row, *below]) == list(range(8))


def test_wide_page_whose_lines_tell_its_tilt_to_a_pixel_only():
    dice = np.random.default_rng(0)
    rows = [
        [quad(40 + 420 * column, 60 + 80 * row, 240 + 420 * column, 90 + 80 * row) for column in range(38)]
        for row in range(2)
    ]
    polygons = np.array(rows, float).reshape(-1, 4, 2)
    polygons[:, 1:3, 1] += np.round(dice.normal(1.8, 0.7, len(polygons)))[:, None]
    assert shuffled_order(polygons) == list(range(len(polygons)))
    assert shuffled_order(turned(polygons, 3)) == list(range(len(polygons)))


def test_margin_text_turned_a_quarter_does_not_turn_the_page():
    lines = [quad(0, 0, 400, 20), quad(0, 30, 400, 50), quad(0, 60, 400, 80)]
    margin = [(470, 0), (470, 90), (450, 90), (450, 0)]
    assert reading_order([*lines, margin]).tolist()[:1] == [0]
    np.testing.assert_allclose(upright_boxes([*lines, margin])[0], (0, 0, 400, 20), atol=1e-9)


def test_upright_boxes_of_a_skewed_line_are_as_high_as_the_line():
    lines = turned([quad(0, 0, 1000, 20), quad(0, 30, 1000, 50)], 10)
    boxes = upright_boxes(lines)
    np.testing.assert_allclose(boxes[:, 2:] - boxes[:, :2], [[1000, 20]] * 2, atol=1e-9)
    np.testing.assert_allclose(boxes[1] - boxes[0], (0, 30, 0, 30), atol=1e-9)


def test_polygons_of_many_points():
    arc = [(0, 10), (50, 0), (100, 10), (100, 30), (50, 20), (0, 30)]
    np.testing.assert_allclose(quad_of(arc), quad(0, 0, 100, 30))
    assert bounds_of(arc) == (0, 0, 100, 30)
    assert reading_order([quad(0, 40, 100, 60), np.array(arc)]).tolist() == [1, 0]


def test_merge_quads():
    np.testing.assert_allclose(merge_quads([quad(0, 0, 10, 20), quad(12, 2, 22, 18)]), quad(0, 0, 22, 20))
    single = [(1, 2), (9, 3), (8, 12), (0, 11)]
    np.testing.assert_array_equal(merge_quads([single]), single)
    # Upside down: the text's own top-left is the image's lower right.
    flipped = turned([quad(0, 0, 10, 20), quad(12, 0, 22, 20)], 180)
    np.testing.assert_allclose(merge_quads(flipped), turned([quad(0, 0, 22, 20)], 180)[0], atol=1e-9)
    skewed = turned([quad(0, 0, 10, 20), quad(12, 0, 22, 20)], 30)
    np.testing.assert_allclose(merge_quads(skewed), turned([quad(0, 0, 22, 20)], 30)[0], atol=1e-9)


def chars_of(text, width=10):
    return [
        Char(char, 0.1 * index, quad(width * index, 0, width * index + width, 20))
        for index, char in enumerate(text)
    ]


def test_words_from_chars():
    words = words_from_chars(chars_of("ab  c"))
    assert [word.text for word in words] == ["ab", "c"]
    assert words[0].polygon == ((0, 0), (20, 0), (20, 20), (0, 20))
    assert words[0].score == pytest.approx(0.05) and words[1].score == pytest.approx(0.4)
    assert "".join(char.text for char in words[0].chars) == "ab"
    assert words_from_chars([]) == () and words_from_chars(chars_of(" \u3000")) == ()


def test_chinese_runs_are_one_word():
    assert [word.text for word in words_from_chars(chars_of("第3章 开始ok"))] == ["第3章", "开始ok"]


def test_spaced_words():
    box = quad(0, 0, 10, 10)
    words = tuple(Word(text, 1.0, box) for text in ("a", "b", "a"))
    line = Line("ab a ", 1.0, box, words)
    assert [(word.text, spaced) for word, spaced in spaced_words(line)] == [
        ("a", False),
        ("b", True),
        ("a", True),
    ]
    assert [(word.text, spaced) for word, spaced in spaced_words(Line("a b", 0.5, box))] == [("a b", False)]
    assert list(spaced_words(Line("", 0.0, box))) == []
    # A word that is not in the text is kept, and taken to stand by itself.
    assert list(spaced_words(Line("x", 1.0, box, words[:1]))) == [(words[0], True)]


def test_every_line_of_real_receipts_stands_in_one_row_and_rows_go_down():
    folder = (
        Path(os.environ.get("OAR_SHARED", Path(__file__).parents[5] / "shared"))
        / "data"
        / "sroie"
        / "test"
        / "box"
    )
    if not folder.is_dir():
        pytest.skip(f"no SROIE receipts at {folder}")
    for path in sorted(folder.glob("*.csv")):
        fields = [line.split(",", 8) for line in path.read_text(encoding="utf-8").splitlines()]
        quads = np.array([row[:8] for row in fields if len(row) == 9], float).reshape(-1, 4, 2)
        regions = reading_regions(quads)
        assert len(regions) == 1, f"{path.name}: columns were seen in a receipt"
        assert sorted(index for row in regions[0] for index in row) == list(range(len(quads)))
        for row in regions[0]:
            assert (np.diff(quads[row, 0, 0]) > 0).all(), (
                f"{path.name}: {json.dumps([fields[i][8] for i in row])}"
            )
