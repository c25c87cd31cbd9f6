"""The spline of the rectification by hand: it takes the points where they should be, and lines to lines."""

import numpy as np
import pytest

from ocr.layers.stn import MARGIN, POINTS, STN, edge_points, spline_weights


def test_points_stand_on_both_edges() -> None:
    points = edge_points(0.1, 4)
    np.testing.assert_allclose(points, [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])


def test_an_affine_move_of_the_points_is_that_of_all_pixels() -> None:
    height, width = 5, 9
    weights = spline_weights((height, width)).astype(np.float64)
    assert weights.shape == (45, POINTS)
    matrix, shift = np.array([[0.7, 0.2], [-0.1, 0.9]]), np.array([0.05, 0.1])
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2)
    moved = weights @ (edge_points(MARGIN) @ matrix + shift)
    np.testing.assert_allclose(moved, pixels @ matrix + shift, atol=1e-5)


def test_the_spline_goes_through_its_points() -> None:
    """At 21 by 21 pixels those of (0.05, 0.05) and (0.95, 0.95) lie in the margin's corners."""
    weights = spline_weights((21, 21)).astype(np.float64).reshape(21, 21, POINTS)
    places = np.random.RandomState(0).uniform(0, 1, (POINTS, 2))
    np.testing.assert_allclose(weights[1, 1] @ places, places[0], atol=1e-5)
    np.testing.assert_allclose(weights[19, 19] @ places, places[-1], atol=1e-5)


@pytest.mark.parametrize("size_hw", [(24, 80), (64, 256)])
def test_a_new_network_takes_the_image_as_it_is_but_for_the_margins(size_hw: tuple[int, int]) -> None:
    """It gives points 0.01 from the edges, which come to lie 0.05 from them: what is outside repeats the edge."""
    height, width = size_hw
    ramp = np.broadcast_to(np.linspace(0, 1, width, dtype=np.float32)[:, None], (height, width, 3))
    out = np.asarray(STN((10, 31)).eval()(ramp[None]))[0]
    assert out.shape == (10, 31, 3)
    x = np.linspace(0, 1, 31)
    want = np.clip(0.01 + (x - 0.05) * 0.98 / 0.9, 0, 1)
    np.testing.assert_allclose(out, np.broadcast_to(want[:, None], out.shape), atol=1e-4)


def test_points_beyond_the_image_read_its_edge() -> None:
    model = STN((6, 8)).eval()
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    name = "stn_head.stn_fc2.bias"
    state[name] = state[name] + np.tile(np.array([2, 0], np.float32), POINTS)  # all to the right of the image
    model.set_state_dict(state)
    image = np.random.RandomState(0).standard_normal((1, 32, 64, 3)).astype(np.float32)
    out = np.asarray(model(image))
    last = image[0, :, -1]
    # A point's height is the same over a row but for its rounding, which the edge's steepest slope multiplies.
    slope, rows = np.abs(np.diff(last, axis=0)).max(), len(last) / 2
    tolerance = 2 * np.finfo(np.float32).eps * rows * slope
    assert tolerance < 3e-5
    np.testing.assert_allclose(out, np.broadcast_to(out[:, :, :1], out.shape), atol=tolerance)
    assert (out[0, :, 0] <= last.max(0)).all() and (out[0, :, 0] >= last.min(0)).all()
    assert np.ptp(out[0, :, 0], 0).min() > 0.1
