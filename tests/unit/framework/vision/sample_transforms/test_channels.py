"""Transforms of images that have other channels or types than 8-bit RGB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision import sample_transforms as T
from framework.vision.sample import Sample
from framework.vision.warp import Warp
from tests.pairwise import pairwise

GEOMETRIC = [
    T.Resize((20, 30)),
    T.RandomScale((0.5, 0.7)),
    T.RandomCrop((60, 60), fill=7),
    T.PadToMultiple(32, fill=7),
    T.LetterBox((64, 64), fill=7),
    T.CenterCrop((64, 20), fill=None),
    T.RandomHorizontalFlip(1.0),
    T.RandomVerticalFlip(1.0),
    T.RandomRotation((30.0, 30.0), fill=7),
    T.RandomAffine(10.0, scale=(0.5, 0.6), fill=7),
    T.RandomErasing(1.0, fill=0),
    T.GaussianBlur(3),
]
COLOUR = [
    T.ColorJitter(0.4),
    T.RandomDistort(p=1.0),
    T.RandomGrayscale(1.0),
    T.RandomErasing(1.0),
    T.RandomErasing(1.0, fill="noise"),
    T.RandAugment(num_ops=20),
]
TOLERANCES: dict[type, float] = {
    np.uint8: 0,
    np.uint16: 1,
    np.float32: 1e-3,
}  # OpenCV rounds them differently


def image(channels: int, dtype: type) -> Sample:
    pixels = np.random.default_rng(0).uniform(0, 200, (40, 50, channels)).astype(dtype)
    return Sample(pixels, mask=np.ones((40, 50), np.uint8), id="a.npy")


@pytest.mark.parametrize(
    ("transform", "channels", "dtype"),
    pairwise(GEOMETRIC, [1, 2, 4, 8], [np.uint8, np.uint16, np.float32]),
    ids=lambda one: type(one).__name__ if one in GEOMETRIC else str(one),
)
def test_each_channel_is_treated_as_if_it_were_alone(transform: Any, channels: int, dtype: type) -> None:
    sample = image(channels, dtype)
    out = transform(sample, np.random.default_rng(1))
    assert out.image.dtype == dtype
    for channel in range(channels):
        alone = sample.replace(image=np.repeat(sample.image[..., channel : channel + 1], 3, axis=2))
        want = transform(alone, np.random.default_rng(1)).image[..., 0]
        np.testing.assert_allclose(out.image[..., channel], want, atol=TOLERANCES[dtype])


@pytest.mark.parametrize("transform", COLOUR, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("channels", "dtype"), [(4, np.uint8), (1, np.uint8), (3, np.uint16)])
def test_colours_are_those_of_rgb(transform: Any, channels: int, dtype: type) -> None:
    with pytest.raises(ShapeError, match="colours of 8-bit RGB") as caught:
        transform(image(channels, dtype), np.random.default_rng(1))
    assert "'a.npy'" in str(caught.value) and f"[40, 50, {channels}]" in str(caught.value)


def test_a_fill_of_other_channels() -> None:
    for warp in (Warp.pad((40, 50), 0, 0, 5, 5), Warp.rotate((40, 50), 10)):
        with pytest.raises(ShapeError, match="the border does not fit") as caught:
            warp.image(image(8, np.uint8).image, border=(1, 2, 3))
        assert "3 values for 8 channels" in str(caught.value)
