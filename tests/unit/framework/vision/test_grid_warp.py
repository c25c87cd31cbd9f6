from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.grid_warp import GridWarp

CORNERS = np.array([[[-1, -1], [1, -1]], [[-1, 1], [1, 1]]], np.float32)


def draw_image(height: int = 5, width: int = 7) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3)).astype(np.uint8)


def test_corners_alone_are_the_image_itself() -> None:
    image = draw_image()
    same = GridWarp.from_unit_grid(CORNERS, (5, 7))
    np.testing.assert_array_equal(same.image(image), image)
    points = np.array([[0.0, 0.0], [7.0, 5.0], [3.25, 1.5]])
    np.testing.assert_allclose(same.source_points(points), points, atol=1e-6)


def test_a_finer_grid_of_even_points_changes_nothing() -> None:
    y, x = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 6), indexing="ij")
    image = draw_image()
    finer = GridWarp.from_unit_grid(np.stack([x, y], axis=-1), (5, 7))
    assert np.abs(finer.image(image).astype(int) - image).max() <= 1


def test_a_mirrored_grid_mirrors_and_leads_points_back() -> None:
    image = draw_image()
    mirror = GridWarp.from_unit_grid(CORNERS[:, ::-1], (5, 7))
    np.testing.assert_array_equal(mirror.image(image), image[:, ::-1])
    np.testing.assert_allclose(mirror.source_points(np.array([[1.0, 2.0]])), [[6.0, 2.0]], atol=1e-6)


def test_corner_pixels_of_another_size_are_the_corners() -> None:
    image = np.arange(9, dtype=np.uint8).reshape(3, 3)
    grown = GridWarp.from_unit_grid(CORNERS, (3, 3), (5, 5)).image(image)
    # Aligned corners: every second pixel is one of the source's, between them are means.
    np.testing.assert_array_equal(grown[::2, ::2], image)
    # The centre of the second pixel, 1.5, lies halfway between the centres 0.5 and 1.5 of the source.
    (point,) = GridWarp.from_unit_grid(CORNERS, (3, 3), (5, 5)).source_points(np.array([[1.5, 0.5]]))
    np.testing.assert_allclose(point, [1.0, 0.5], atol=1e-6)


def test_points_and_pixels_of_a_bent_grid_agree() -> None:
    height, width = 60, 80
    y, x = np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 11), indexing="ij")
    warp = GridWarp.from_unit_grid(
        np.stack([0.8 * x, 0.7 * y + 0.1 * np.sin(3 * x)], axis=-1), (height, width)
    )
    # An image whose values are its own coordinates: what a pixel shows is where it comes from.
    yy, xx = np.mgrid[:height, :width]
    shown = warp.image(np.stack([xx, yy, xx], axis=-1).astype(np.float32) + 0.5)
    for column, row in ((0, 0), (13, 40), (79, 59), (50, 7)):
        (point,) = warp.source_points(np.array([[column + 0.5, row + 0.5]]))
        np.testing.assert_allclose(shown[row, column, :2], point, atol=0.05)


def test_outside_of_the_source_is_black_and_points_go_on() -> None:
    half = GridWarp.from_unit_grid(CORNERS * 2, (4, 4))
    shown = half.image(np.full((4, 4, 3), 200, np.uint8))
    assert shown[0, 0].max() == 0 and shown[2, 2].min() == 200
    corner, outside = half.source_points(np.array([[0.5, 0.5], [-0.5, 0.5]]))
    np.testing.assert_allclose(corner, [-1.0, -1.0], atol=1e-6)
    assert outside[0] < corner[0] and outside[1] == corner[1]


def test_any_shape_of_points() -> None:
    same = GridWarp.from_unit_grid(CORNERS, (5, 7))
    assert same.source_points(np.zeros((3, 4, 2))).shape == (3, 4, 2)
    assert same.source_points(np.zeros((0, 2))).shape == (0, 2)
    assert GridWarp.from_unit_grid(CORNERS, (1, 1)).image(draw_image(1, 1)).shape == (1, 1, 3)


@pytest.mark.parametrize("grid", [np.zeros((1, 5, 2)), np.zeros((5, 5)), np.full((2, 2, 2), np.nan)])
def test_what_is_no_grid(grid: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="the grid must be an array of points"):
        GridWarp(grid, (4, 4), (4, 4))


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="no such size here"):
        GridWarp.from_unit_grid(CORNERS, (40_000, 4))
    with pytest.raises(ShapeError, match="for images of another size"):
        GridWarp.from_unit_grid(CORNERS, (5, 7)).image(draw_image(7, 5))
