"""Resizing by filters that widen as an image shrinks."""

import numpy as np

from framework.vision.filtered import resize_filtered, thumbnail


def test_shrinking_looks_at_all_pixels() -> None:
    stripes = np.zeros((8, 64, 3), np.uint8)
    stripes[:, ::2] = 200
    small = resize_filtered(stripes, (2, 8))
    assert small.shape == (2, 8, 3) and (np.abs(small[:, 1:-1].astype(int) - 100) <= 12).all()
    assert resize_filtered(stripes, (1, 1)).shape == (1, 1, 3)
    flat = np.full((5, 7, 3), 9, np.uint8)
    assert (resize_filtered(flat, (11, 3)) == 9).all()


def test_thumbnails_keep_their_aspect_and_are_never_enlarged() -> None:
    image = np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8)
    assert thumbnail(image, (40, 40)).shape == (20, 40, 3)
    assert thumbnail(image, (10, 200)).shape == (10, 20, 3)
    assert np.array_equal(thumbnail(image, (60, 120)), image)
    assert thumbnail(image[:1], (40, 40)).shape == (1, 40, 3)
