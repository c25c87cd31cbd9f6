from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.contours import (
    cut_quads,
    find_contours,
    means_inside,
    min_area_rects,
    order_corners,
    quad_sizes,
    simplify,
    trace_pixel_edges,
)
from framework.vision.polygons import fill


def test_outlines_are_pixel_indices_lowest_region_first():
    mask = np.zeros((10, 12), bool)
    mask[1:3, 2:6] = True
    mask[5:9, 7:8] = True
    low, high = find_contours(mask)
    assert low.dtype == np.int32
    assert sorted(map(tuple, low.tolist())) == [(7, 5), (7, 8)]
    assert sorted(map(tuple, high.tolist())) == [(2, 1), (2, 2), (5, 1), (5, 2)]


def test_holes_have_outlines_too():
    mask = np.ones((7, 7), bool)
    mask[3, 3] = False
    assert len(find_contours(mask)) == 2


def test_dilation_spreads_right_and_down():
    mask = np.zeros((5, 5), bool)
    mask[1, 1] = True
    (points,) = find_contours(mask, dilate=True)
    assert sorted(map(tuple, points.tolist())) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_outlines_along_pixel_edges_are_exactly_the_mask():
    """JSON2YOLO#38: parts that touch at a corner, holes, parts in holes, lines of one pixel, the edges of the image."""
    rng = np.random.default_rng(0)
    for share in (0.3, 0.5, 0.8, 0.95):
        for _ in range(20):
            mask = rng.random(rng.integers(1, 9, 2)) < share
            covered = np.zeros_like(mask)
            outlines = trace_pixel_edges(mask)
            for points in outlines:
                covered ^= fill([points], mask.shape)
            assert np.array_equal(covered, mask)
    (points,) = trace_pixel_edges(np.ones((2, 3), bool))
    assert sorted(map(tuple, points.tolist())) == [(0, 0), (0, 2), (3, 0), (3, 2)]


def test_outlines_of_nothing_of_one_pixel_and_of_a_view():
    assert find_contours(np.zeros((4, 4), bool)) == []
    assert find_contours(np.zeros((0, 4), bool)) == []
    (points,) = find_contours(np.ones((1, 1), bool))
    assert points.tolist() == [[0, 0]]
    (points,) = find_contours(np.ones((8, 8), bool)[::2, :3])
    assert points.max(axis=0).tolist() == [2, 3]


@pytest.mark.parametrize("mask", [np.zeros((2, 2), np.uint8), np.zeros((2, 2, 1), bool)])
def test_outlines_take_bool_masks_alone(mask):
    with pytest.raises(ShapeError, match=r"a mask must be an array[\s\S]*bool \[H, W\]"):
        find_contours(mask)


def test_min_area_rects_are_ordered():
    quads, sides = min_area_rects(
        [
            np.array([[0, 0], [4, 0], [4, 2], [0, 2]], np.int32),
            np.array([[5, 0], [10, 5], [5, 10], [0, 5]], np.int32),
        ]
    )
    assert quads.dtype == sides.dtype == np.float32
    np.testing.assert_allclose(quads[0], [[0, 0], [4, 0], [4, 2], [0, 2]], atol=1e-5)
    assert sorted(sides[0].tolist()) == [2, 4]
    np.testing.assert_allclose(np.sort(sides[1]), np.sqrt([50, 50]), rtol=1e-6)
    quads, sides = min_area_rects([])
    assert quads.shape == (0, 4, 2) and sides.shape == (0, 2)


def test_min_area_rects_of_a_point_and_of_a_line():
    quads, sides = min_area_rects([np.array([[3, 4]], np.int32), np.array([[0, 0], [6, 8]], np.int32)])
    assert sides[0].tolist() == [0, 0]
    np.testing.assert_allclose(quads[0], np.broadcast_to([3, 4], (4, 2)), atol=1e-6)
    assert sides[1].min() == 0


def test_corners_are_ordered_from_any_start_and_direction():
    quad = np.array([[1, 2], [9, 1], [10, 5], [2, 6]])
    for shift in range(4):
        turned = np.roll(quad, shift, axis=0)
        np.testing.assert_array_equal(order_corners(np.stack([turned, turned[::-1]])), np.stack([quad, quad]))
    assert order_corners(np.zeros((0, 4, 2))).shape == (0, 4, 2)


def test_narrow_quads_that_lean_do_not_cross():
    """PaddleOCR#5752; and columns of text whose corners were rounded, of which one in 160 crossed."""
    quads = np.array(
        [
            [[205, 164], [230, 166], [203, 361], [178, 362]],
            [[474, 228], [484, 227], [508, 546], [497, 546]],
            [[341, 366], [348, 365], [365, 572], [358, 572]],
        ],
        np.float32,
    )

    def areas(corners: np.ndarray) -> list[float]:
        one, other = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
        return (one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]).tolist()

    assert areas(order_corners(quads)) == areas(quads)  # clockwise, as they are
    assert areas(order_corners(quads[:, ::-1])) == areas(quads)


def test_simplified_drops_points_within_the_tolerance():
    side = np.arange(0, 100)
    square = np.concatenate(
        [
            np.stack([side, 0 * side], 1),
            np.stack([0 * side + 100, side], 1),
            np.stack([100 - side, 0 * side + 100], 1),
            np.stack([0 * side, 100 - side], 1),
        ]
    ).astype(np.int32)
    square[50, 1] = 1  # a dent of one pixel; the tolerance is 0.01 * 400
    assert len(simplify(square, 0.01)) == 4


def test_means_include_the_pixels_under_the_outline():
    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    box = np.array([[1, 1], [3, 1], [3, 2], [1, 2]], np.float32)
    expected = values[1:3, 1:4].mean()
    assert means_inside(values, box[None]).tolist() == [expected]
    assert means_inside(values, [box, box.astype(np.int32)]).tolist() == [expected, expected]
    assert means_inside(values, np.array([[[1.9, 1.9]] * 4], np.float32)).tolist() == [values[1, 1]]


def test_means_of_polygons_over_the_edge_and_of_none():
    values = np.full((3, 3), 0.5, np.float32)
    assert means_inside(values, np.array([[[-5, -5], [9, -5], [9, 9], [-5, 9]]], np.float32)).tolist() == [
        0.5
    ]
    assert means_inside(values, []).shape == (0,)
    with pytest.raises(ShapeError, match="a map must be an array"):
        means_inside(np.zeros((0, 3), np.float32), [])


def test_quad_sizes_take_the_longer_edges_cut_off():
    quads = np.array(
        [[[0, 0], [10, 0], [10, 5], [0, 5]], [[0, 0], [3, 4], [3, 14], [0, 10]], [[1, 1]] * 4], np.float32
    )
    assert quad_sizes(quads).tolist() == [[5, 10], [10, 5], [1, 1]]
    assert quad_sizes(quads[:0]).shape == (0, 2)


def test_upright_quads_are_copied():
    image = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
    (crop,) = cut_quads(image, np.array([[[2, 1], [6, 1], [6, 4], [2, 4]]]))
    np.testing.assert_array_equal(crop, image[1:4, 2:6])
    crop[:] = 0
    assert image[1, 2].any()
    assert cut_quads(image, np.zeros((0, 4, 2), np.float32)) == []


def test_turned_quads_are_straightened():
    image = np.zeros((60, 60, 3), np.uint8)
    rows, columns = np.mgrid[:60, :60]
    image[..., 0], image[..., 1] = columns * 4, rows * 4
    # From (10, 20), 30 to the right and down at the slope 3/4, 10 across.
    quad = np.array([[10, 20], [34, 38], [28, 46], [4, 28]], np.float32)
    (crop,) = cut_quads(image, quad[None])
    assert crop.shape == (10, 30, 3)
    for row, column in ((0, 0), (5, 20), (9, 29)):
        point = quad[0] + column / 30 * (quad[1] - quad[0]) + row / 10 * (quad[3] - quad[0])
        np.testing.assert_allclose(crop[row, column, :2], point * 4, atol=1.5)


def test_outside_the_image_the_edge_is_repeated():
    image = np.full((10, 10, 3), 7, np.uint8)
    (crop,) = cut_quads(image, np.array([[[-4, -4], [6, -4], [6, 3], [-4, 3]]], np.float32))
    assert crop.shape == (7, 10, 3)
    assert (crop == 7).all()


def test_images_longer_than_opencv_takes():
    image = np.random.default_rng(0).integers(0, 256, (33_000, 40, 3), np.uint8)
    quad = np.array([[[3, 32_900], [33, 32_902], [32, 32_920], [2, 32_918]]], np.float32)
    (crop,) = cut_quads(image, quad)
    (expected,) = cut_quads(image[32_000:], quad - np.array([0, 32_000], np.float32))
    assert np.abs(crop.astype(int) - expected).max() <= 1
