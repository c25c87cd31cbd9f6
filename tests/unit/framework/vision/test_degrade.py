"""What cameras and files do to an image."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision import degrade


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def photo() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8)


def test_displacing_takes_pixels_from_where_the_offsets_point() -> None:
    image, offsets = photo(), np.zeros((24, 40, 2))
    assert np.array_equal(degrade.displace(image, offsets), image)
    offsets[..., 0] = 3
    offsets[..., 1] = -2
    moved = degrade.displace(image, offsets, border=0)
    assert np.array_equal(moved[2:, :-3], image[:-2, 3:])
    assert not moved[:2].any() and not moved[:, -3:].any()
    assert np.array_equal(degrade.displace(image, offsets)[0, :-3], image[0, 3:])  # edge pixels are repeated
    with pytest.raises(ShapeError):
        degrade.displace(image, offsets[:-1])


def test_smoothing_keeps_the_mean_and_takes_detail_away() -> None:
    image = photo()
    for smooth in (
        degrade.blur(image, 1.5),
        degrade.motion_blur(image, 5, 0),
        degrade.shrink_and_grow(image, 0.4),
    ):
        assert smooth.shape == image.shape and smooth.std() < 0.7 * image.std()
        assert abs(smooth.mean() - image.mean()) < 3


def test_motion_smears_along_its_direction_alone() -> None:
    dot = np.zeros((15, 15), np.uint8)
    dot[7, 7] = 255
    assert np.array_equal(np.argwhere(degrade.motion_blur(dot, 5, 0))[:, 0], [7] * 5)
    assert np.array_equal(np.argwhere(degrade.motion_blur(dot, 5, 90))[:, 1], [7] * 5)
    assert np.array_equal(degrade.motion_blur(dot, 1, 30), dot)


def test_a_low_quality_loses_more() -> None:
    image = degrade.blur(photo(), 2)
    losses = [np.abs(degrade.jpeg(image, quality).astype(int) - image).mean() for quality in (10, 95)]
    assert losses[0] > 3 * losses[1] > 0 and losses[1] < 6
    red = np.zeros((16, 16, 3), np.uint8)
    red[..., 0] = 250
    assert np.abs(degrade.jpeg(red, 90).astype(int) - red).max() < 12  # the channels keep their order


def test_noise_has_the_deviation_that_is_asked_for_and_depends_on_the_generator() -> None:
    flat = np.full((100, 300, 3), 128, np.uint8)
    out = degrade.add_noise(flat, 10, rng())
    assert out.std() == pytest.approx(10, rel=0.05) and out.mean() == pytest.approx(128, abs=0.5)
    assert np.array_equal(out, degrade.add_noise(flat, 10, rng()))
    assert not np.array_equal(out, degrade.add_noise(flat, 10, rng(1)))
    grey = degrade.add_noise(flat, 10, rng(), grey=True)
    assert (grey == grey[..., :1]).all() and not (out == out[..., :1]).all()


@pytest.mark.parametrize("size", [(1, 1), (1024, 2048), (1030, 30), (20, 3000), (1100, 4200)])
def test_noise_is_there_for_images_of_any_size(size: tuple[int, int]) -> None:
    values = degrade.noise(size, rng())
    assert values.shape == size and values.dtype == np.int16
    if values.size > 1000:
        assert values.std() == pytest.approx(32, rel=0.1)


def test_blending_lays_the_colour_on_as_the_coverage_says() -> None:
    behind = np.full((1, 3, 3), (10, 100, 200), np.uint8)
    out = degrade.blend(behind, np.array([[0, 128, 255]], np.uint8), np.array([250, 0, 200]))
    assert out[0, 0].tolist() == [10, 100, 200] and out[0, 2].tolist() == [250, 0, 200]
    assert out[0, 1].tolist() == [130, 50, 200]
