"""framework.vision.polygons by hand: areas, orders, rectangles, filling, crops."""

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


def test_area_and_perimeter():
    assert polygons.area(SQUARE) == polygons.area(SQUARE[::-1]) == 16
    assert polygons.signed_area(SQUARE) == 16 and polygons.signed_area(SQUARE[::-1]) == -16
    assert polygons.area(np.array([[0, 0], [3, 0], [0, 4]])) == 6
    assert polygons.area(SQUARE[:2]) == polygons.area(SQUARE[:1]) == 0
    assert polygons.area(SQUARE + 1e9) == 16
    assert polygons.perimeter(SQUARE) == 16 and polygons.perimeter(np.array([[0, 0], [3, 4]])) == 10
    assert polygons.perimeter(SQUARE[:1]) == 0


@pytest.mark.parametrize("degrees", [0, 5, 30, 44, 60, 75, -5, -30, -44, -60, -75])
def test_order_quad_keeps_the_upper_edge_of_turned_text(degrees):
    quad = turned(80, 20, degrees)
    for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]):
        np.testing.assert_array_equal(polygons.order_quad(quad[order]), quad)


def test_order_quad_is_always_clockwise():
    for _ in range(200):
        quad = turned(*RNG.uniform(1, 50, 2), RNG.uniform(0, 360)) + RNG.uniform(-0.1, 0.1, (4, 2))
        ordered = polygons.order_quad(RNG.permutation(quad))
        assert polygons.signed_area(ordered) == pytest.approx(polygons.area(quad))
        assert ordered[0, 0] <= np.sort(quad[:, 0])[1]
    # Sorting by x and y alone makes this one cross itself.
    skewed = np.array([[0.0, 0], [1, 1], [3, 99], [2, 100]])
    assert polygons.signed_area(polygons.order_quad(skewed)) > 0
    assert polygons.order_quad(SQUARE.astype(np.float32)).dtype == np.float32
    diamond = np.array([[2.0, 0], [4, 2], [2, 4], [0, 2]])
    assert polygons.signed_area(polygons.order_quad(diamond[::-1])) == 8


def test_min_area_rect():
    np.testing.assert_allclose(
        polygons.min_area_rect(np.array([[0, 0], [4, 0], [4, 2], [0, 2], [2, 1]])),
        [[0, 0], [4, 0], [4, 2], [0, 2]],
        atol=1e-6,
    )
    quad = turned(80, 20, 30) + 30_000
    np.testing.assert_allclose(polygons.min_area_rect(RNG.permutation(quad)), quad, atol=1e-4)
    np.testing.assert_allclose(polygons.min_area_rect(np.array([[3.0, 5]])), [[3, 5]] * 4)
    assert polygons.area(polygons.min_area_rect(np.array([[0.0, 0], [3, 3]]))) == pytest.approx(0)


def test_edge_lengths():
    assert polygons.edge_lengths(np.array([[0, 0], [10, 0], [12, 4], [0, 3]])) == (
        pytest.approx(20**0.5),
        pytest.approx(145**0.5),
    )


def test_simplify_and_hull():
    outline = np.array([[0, 0], [2, 0.1], [4, 0], [4, 4], [0, 4]])
    np.testing.assert_allclose(polygons.simplify(outline, 0.5), SQUARE)
    assert len(polygons.simplify(outline, 0.01)) == 5
    hull = polygons.convex_hull(np.array([[0.0, 0], [4, 4], [2, 1], [4, 0], [0, 4]]))
    assert len(hull) == 4 and polygons.signed_area(hull) == 16
    assert polygons.convex_hull(np.array([[1.0, 2]])).tolist() == [[1, 2]]


def test_contours_run_through_pixel_centres():
    mask = np.zeros((6, 8), bool)
    mask[1:4, 2:6] = True
    (outline,) = polygons.contours(mask)
    assert sorted(map(tuple, outline.tolist())) == [(2.5, 1.5), (2.5, 3.5), (5.5, 1.5), (5.5, 3.5)]
    mask[2, 3] = False
    assert len(polygons.contours(mask)) == 2  # and the hole
    assert polygons.contours(np.ones((1, 1), np.uint8))[0].tolist() == [[0.5, 0.5]]
    assert polygons.contours(np.zeros((3, 3))) == polygons.contours(np.zeros((0, 3))) == []


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


def test_mean_in_polygon():
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    through_centres = np.array([[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [0.5, 1.5]])  # four pixels: 0, 1, 4, 5
    assert polygons.mean_in_polygon(values, through_centres) == 2.5
    assert polygons.mean_in_polygon(values, np.array([[3.5, 2.5]])) == 11
    assert polygons.mean_in_polygon(values, SQUARE * 10 - 5) == 5.5  # all of it
    assert polygons.mean_in_polygon(values, SQUARE + 20) == polygons.mean_in_polygon(values, SQUARE - 20) == 0
    assert polygons.mean_in_polygon(np.zeros((0, 4)), SQUARE) == 0


def test_crop_quad():
    image = RNG.integers(0, 256, (40, 60, 3), np.uint8)
    upright = np.array([[10, 5], [30, 5], [30, 25], [10, 25]], np.float64)
    np.testing.assert_array_equal(polygons.crop_quad(image, upright), image[5:25, 10:30])
    np.testing.assert_array_equal(
        polygons.crop_quad(image, np.roll(upright, 1, axis=0)), np.rot90(image[5:25, 10:30], -1)
    )
    outside = polygons.crop_quad(image[..., 0], upright - 10)
    assert outside.shape == (20, 20) and (outside[:5, :] == outside[4, :]).all()  # the edge row repeated
    assert polygons.crop_quad(image, upright, size_hw=(8, 9)).shape == (8, 9, 3)
    assert polygons.crop_quad(image, np.array([[3, 3], [3.4, 3], [3.4, 3.4], [3, 3.4]])).shape == (1, 1, 3)


def test_crop_quad_straightens_a_turned_image():
    gradient = np.tile(np.arange(100, dtype=np.uint8)[None] * 2, (100, 1))
    quad = turned(40, 20, 30)
    crop = polygons.crop_quad(gradient, quad).astype(float)
    assert crop.shape == (20, 40)
    # Grey is 2 (x - 0.5) at continuous x, and x runs along the rectangle's upper edge by cos 30 a pixel.
    x = quad[0, 0] + 20.5 * np.cos(np.pi / 6) - 10.5 * np.sin(np.pi / 6)
    assert crop[10, 20] == pytest.approx(2 * (x - 0.5), abs=1)
    assert crop[10, 30] - crop[10, 10] == pytest.approx(2 * 20 * np.cos(np.pi / 6), abs=1.5)


def test_quad_iou():
    quads = np.stack([SQUARE, SQUARE + 2, SQUARE + 10, SQUARE[::-1]])
    np.testing.assert_allclose(polygons.quad_iou(quads[:1], quads), [[1, 4 / 28, 0, 1]])
    diamond = np.array([[[2.0, 0], [4, 2], [2, 4], [0, 2]]])
    np.testing.assert_allclose(polygons.quad_iou(diamond, quads[:1]), [[0.5]])
    np.testing.assert_allclose(polygons.quad_iou(diamond + 1e5, quads[:1] + 1e5), [[0.5]])
    assert polygons.quad_iou(np.zeros((0, 4, 2)), quads).shape == (0, 4)
    assert polygons.quad_iou(np.zeros((1, 4, 2)), np.zeros((1, 4, 2))).tolist() == [[0]]


def test_intersection_area_against_shapely():
    shapely = pytest.importorskip("shapely")
    for _ in range(100):
        a, b = (turned(*RNG.uniform(5, 60, 2), RNG.uniform(0, 360), RNG.uniform(30, 70, 2)) for _ in "ab")
        expected = shapely.Polygon(a).intersection(shapely.Polygon(b)).area
        assert polygons.intersection_area(a, b) == pytest.approx(expected, abs=1e-2)


def test_errors():
    for wrong in (np.zeros((0, 2)), np.zeros((3, 3)), np.zeros(4), np.array([[0, np.nan]])):
        with pytest.raises(ShapeError, match="these are no points of a polygon"):
            polygons.area(wrong)
    with pytest.raises(ShapeError, match="not finite"):
        polygons.fill([np.array([[0, np.inf]])], (2, 2))
    with pytest.raises(ShapeError, match="a quadrilateral has four corners"):
        polygons.order_quad(np.zeros((5, 2)))
    for function in (polygons.contours, lambda values: polygons.mean_in_polygon(values, SQUARE)):
        with pytest.raises(ShapeError, match="this is no map"):
            function(np.zeros((2, 2, 2)))
