"""framework.vision.polygons by hand."""

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision import polygons

SQUARE = np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]])
RNG = np.random.default_rng(0)


def turned(width: float, height: float, degrees: float, centre=(50.0, 50.0)) -> np.ndarray:
    """Top-left, top-right, bottom-right, bottom-left of a rectangle turned clockwise."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    corners = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
    return corners @ turn + centre


def test_fill_counts_pixel_centres():
    assert polygons.fill([SQUARE], (6, 6)).sum() == 16
    assert polygons.fill([SQUARE + 0.4], (6, 6)).tolist() == polygons.fill([SQUARE], (6, 6)).tolist()
    assert polygons.fill([SQUARE + 0.6], (6, 6))[1:5, 1:5].all()
    assert polygons.fill([SQUARE[::-1]], (6, 6)).sum() == 16
    triangle = polygons.fill([np.array([[0, 0], [4, 0], [0, 4]])], (4, 4))
    assert triangle.astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert polygons.fill([np.array([[0, 0], [1, 0], [1, 1], [0, 1]])], (1, 1)).tolist() == [[True]]


def test_fill_of_several_of_none_and_of_what_lies_outside():
    assert polygons.fill([SQUARE, SQUARE + 2], (8, 8)).sum() == 28  # the union
    assert polygons.fill([], (2, 3)).tolist() == [[False] * 3] * 2
    assert polygons.fill([SQUARE - 2], (3, 3)).astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    for outside in (SQUARE + 10, SQUARE - 10, SQUARE[:2], SQUARE[:1]):
        assert not polygons.fill([outside], (6, 6)).any()


def test_fill_is_even_odd():
    crossed = np.array([[0, 0], [6, 0], [6, 6], [0, 6], [0, 0], [2, 2], [4, 2], [4, 4], [2, 4], [2, 2]])
    mask = polygons.fill([crossed], (6, 6))
    assert mask.sum() == 32 and not mask[2:4, 2:4].any()


def test_polygons_that_share_an_edge_share_no_pixel():
    for _ in range(50):
        a, b, c, d = turned(60, 40, RNG.uniform(0, 90)) + RNG.uniform(-1, 1, (4, 2))
        halves = [polygons.fill([np.array(corners)], (100, 100)) for corners in ((a, b, c), (a, c, d))]
        assert not (halves[0] & halves[1]).any()
        np.testing.assert_array_equal(
            halves[0] | halves[1], polygons.fill([np.array([a, b, c, d])], (100, 100))
        )


def test_fill_area_is_close_to_the_true_area():
    for degrees in (0, 13, 45, 80):
        quad = turned(60, 30, degrees)
        assert polygons.fill([quad], (100, 100)).sum() == pytest.approx(1800, rel=0.02)


@pytest.mark.parametrize("wrong", [np.zeros((0, 2)), np.zeros((3, 3)), np.zeros(4), np.array([[0, np.inf]])])
def test_errors(wrong):
    with pytest.raises(ShapeError, match="the points of a polygon must be finite"):
        polygons.fill([wrong], (2, 2))
