from __future__ import annotations

import numpy as np
import pytest

from ocr.text.tiles import _merge_tiles, detect_in_tiles, split_long, tile_starts


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, [0]), (100, [0]), (101, [0, 1]), (175, [0, 75]), (250, [0, 75, 150]), (260, [0, 53, 107, 160])],
)
def test_tile_starts(length: int, expected: list[int]):
    assert tile_starts(length, 100) == expected


class Boxes:
    """A detector of upright boxes, each of a grey value of its own; it remembers the sizes that it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.seen.append(image.shape[:2])
        quads, scores = [], []
        for value in np.unique(image[image > 0]):
            y, x = np.nonzero(image[..., 0] == value)
            left, right, top, bottom = x.min(), x.max(), y.min(), y.max()
            quads.append([[left, top], [right, top], [right, bottom], [left, bottom]])
            scores.append(value / 255)
        return np.array(quads, np.float32).reshape(-1, 4, 2), np.array(scores, np.float32)


def page(height: int, width: int, *boxes: tuple[int, int, int, int, int]) -> np.ndarray:
    image = np.zeros((height, width, 3), np.uint8)
    for value, left, top, right, bottom in boxes:
        image[top : bottom + 1, left : right + 1] = value
    return image


def found(quads: np.ndarray, scores: np.ndarray) -> list[tuple[int, ...]]:
    """(value, left, top, right, bottom), by value."""
    assert quads.dtype == np.float32 and quads.shape == (len(scores), 4, 2)
    return sorted(
        (round(float(score) * 255), *map(int, quad[0]), *map(int, quad[2]))
        for quad, score in zip(quads, scores)
    )


def test_no_tiles_at_a_normal_aspect():
    detect, box = Boxes(), (90, 10, 20, 300, 40)
    assert found(*detect_in_tiles(detect, page(100, 400, box), 4.0)) == [box]
    assert detect.seen == [(100, 400)]


# 1000 x 100 at aspect 4: tiles of 200 at 0, 133, 267, 400, 533, 667, 800.
LINES = (
    (10, 5, 10, 120, 25),  # in the first tile alone
    (20, 140, 10, 190, 25),  # in the overlap of two tiles
    (30, 150, 40, 460, 60),  # cut by several tiles
    (40, 300, 10, 420, 25),  # cut by one tile
    (50, 600, 40, 990, 60),  # up to near the end
    (60, 470, 40, 590, 60),  # beside others in their row
)


def test_lines_of_a_panorama_are_found_once_and_whole():
    detect = Boxes()
    assert found(*detect_in_tiles(detect, page(100, 1000, *LINES), 4.0)) == list(LINES)
    assert detect.seen == [(100, 200)] * 7


def test_a_panorama_that_stands():
    standing = [(value, top, left, bottom, right) for value, left, top, right, bottom in LINES]
    detect = Boxes()
    assert found(*detect_in_tiles(detect, page(1000, 100, *standing), 4.0)) == standing
    assert detect.seen == [(200, 100)] * 7


def test_lines_at_a_cut_that_are_not_one_stay_two():
    # Both touch the first cut at 200 or lie next to it, at different heights.
    boxes = ((10, 100, 10, 250, 25), (20, 140, 30, 199, 45))
    assert found(*detect_in_tiles(Boxes(), page(100, 1000, *boxes), 4.0)) == list(boxes)


def test_nothing_in_any_tile():
    quads, scores = detect_in_tiles(Boxes(), page(10, 1000), 4.0)
    assert quads.shape == (0, 4, 2) and scores.shape == (0,)


def test_one_row_of_pixels():
    detect, box = Boxes(), (90, 3, 0, 20, 0)
    assert found(*detect_in_tiles(detect, page(1, 500, box), 4.0)) == [box]
    assert detect.seen == [(1, 160)]  # no tile is shorter, and three of one colour are not looked at


def test_long_lines_are_cut_between_words():
    image = np.full((20, 400, 3), 255, np.uint8)
    for start in range(0, 400, 10):  # strokes, but for a gap at 190 to 209
        if start not in (190, 200):
            image[4:16, start : start + 5] = 0
    line = np.array([[[0, 0], [400, 0], [400, 20], [0, 20]]], np.float32)
    assert split_long(image, line, 20.0) is line
    left, right = split_long(image, line, 10.0)
    assert 190 <= left[1, 0] <= 210 and (left[1] == right[0]).all() and (left[2] == right[3]).all()
    assert (left[0] == (0, 0)).all() and (right[2] == (400, 20)).all()
    empty = np.zeros((0, 4, 2), np.float32)
    assert split_long(image, empty, 10.0) is empty


def test_lines_that_two_tiles_cut_at_other_words_are_one():
    """One tile saw words 1 to 3 as a line, the next 3 to 6: the third would be read twice. Neighbours stay apart."""

    def quad(left: float, right: float, top: float = 0) -> np.ndarray:
        return np.array([[left, top], [right, top], [right, top + 40], [left, top + 40]], np.float32)

    quads, _ = _merge_tiles([quad(0, 600), quad(450, 1300)], [0.9, 0.8], [False, False], 0)
    np.testing.assert_array_equal(quads, [quad(0, 1300)])
    apart = [quad(0, 600), quad(580, 1300), quad(450, 1300, 60)]  # what boxes grow by; the line below
    quads, _ = _merge_tiles(apart, [0.9] * 3, [False] * 3, 0)
    assert len(quads) == 3
