"""Foregrounds on other backgrounds."""

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.compose import blur, compose


def test_a_flat_image_stays_flat():
    flat = np.full((5, 5, 3), 70, np.uint8)
    np.testing.assert_array_equal(blur(flat, 3), flat)
    assert blur(np.zeros((1, 1, 3), np.uint8), 1).shape == (1, 1, 3)


def test_edges_mix_over_three_pixels():
    front, back = np.full((1, 4, 3), 90, np.uint8), np.zeros((1, 4, 3), np.uint8)
    kept = np.array([[True, True, False, False]])
    np.testing.assert_array_equal(compose(front, back, kept)[0, :, 0], [90, 60, 30, 0])


def test_sizes_must_agree():
    image = np.zeros((2, 2, 3), np.uint8)
    with pytest.raises(ShapeError, match="not of one size"):
        compose(image, image, np.ones((2, 3), bool))
