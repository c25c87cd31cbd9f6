"""framework.vision.transforms.crop: which pixels are kept, by hand."""

import numpy as np
import pytest

from framework.vision.image import resize
from framework.vision.sample import Sample
from framework.vision.transforms import CenterCrop, RandomCrop, RandomResizedCrop


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def numbered(height: int, width: int) -> Sample:
    values = np.arange(height * width, dtype=np.uint8).reshape(height, width)
    return Sample(np.repeat(values[..., None], 3, axis=2), mask=values)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((2, 2), [[5, 6], [9, 10]]),
        ((1, 3), [[4, 5, 6]]),  # between two pixels: the first
        ((4, 4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
        ((1, 6), [[99, 4, 5, 6, 7, 99]]),
    ],
)
def test_center_crop(wanted, expected):
    out = CenterCrop(wanted, fill=99, ignore_index=77)(numbered(4, 4), rng())
    assert out.image[..., 0].tolist() == expected
    assert out.mask.tolist() == [[77 if value == 99 else value for value in row] for row in expected]


def test_random_crop_reaches_every_place():
    corners = {int(RandomCrop((2, 3))(numbered(4, 4), rng(seed)).image[0, 0, 0]) for seed in range(200)}
    assert corners == {0, 1, 4, 5, 8, 9}
    only = RandomCrop((4, 4))(numbered(4, 4), rng())
    np.testing.assert_array_equal(only.image, numbered(4, 4).image)


def test_random_crop_with_padding():
    rows = set()
    for seed in range(300):
        out = RandomCrop((1, 1), padding=1, fill=99)(numbered(1, 1), rng(seed))
        rows.add((int(out.image[0, 0, 0]), tuple(out.warp.points(np.zeros(2))) if out.warp else (0.0, 0.0)))
    assert rows == {(0 if (x, y) == (0, 0) else 99, (x, y)) for x in (-1, 0, 1) for y in (-1, 0, 1)}


def test_random_crop_of_a_picture_that_is_too_small():
    places = set()
    for seed in range(100):
        out = RandomCrop((2, 3), fill=99)(numbered(1, 2), rng(seed))
        assert out.image.shape == (2, 3, 3) and sorted(set(out.image[..., 0].flat)) == [0, 1, 99]
        places.add(tuple(np.argwhere(out.image[..., 0] == 0)[0]))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_random_crop_drops_what_is_hardly_seen():
    sample = Sample(np.zeros((4, 4, 3), np.uint8), boxes=np.array([[0, 0, 4, 4]], np.float32))
    assert RandomCrop((2, 2))(sample, rng()).boxes.tolist() == [[0, 0, 2, 2]]
    assert len(RandomCrop((2, 2), min_visible=0.5)(sample, rng()).boxes) == 0


def test_random_resized_crop_parts():
    crop = RandomResizedCrop((8, 8), scale=(0.2, 0.6), ratio=(0.5, 2.0))
    shares, ratios = [], []
    for seed in range(500):
        x0, y0, x1, y1 = crop.plan((100, 120), rng(seed)).inverse().boxes(np.array([[0.0, 0, 8, 8]]))[0]
        assert x0 >= -1e-9 and y0 >= -1e-9 and x1 <= 120 + 1e-9 and y1 <= 100 + 1e-9
        shares.append((x1 - x0) * (y1 - y0) / 12000)
        ratios.append((x1 - x0) / (y1 - y0))
    assert 0.19 < min(shares) < 0.25 and 0.5 < max(shares) < 0.61
    assert 0.49 < min(ratios) < 0.6 and 1.7 < max(ratios) < 2.05
    assert 0.4 < np.mean(np.array(ratios) < 1) < 0.6  # tall and wide parts are about equally frequent


def test_random_resized_crop_is_crop_and_resize():
    image = rng(1).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    crop = RandomResizedCrop((16, 16), interpolation="area")
    for seed in range(20):
        warp = crop.plan((37, 53), rng(seed))
        x0, y0, x1, y1 = np.rint(warp.inverse().boxes(np.array([[0.0, 0, 16, 16]]))[0]).astype(int)
        out = crop(Sample(image), rng(seed))
        np.testing.assert_array_equal(out.image, resize(image[y0:y1, x0:x1], (16, 16), "area"))


@pytest.mark.parametrize(
    ("size", "expected"),
    # No part with all of the area and a ratio from 3/4 to 4/3 fits: the middle, as wide or as high as may be.
    [((30, 90), (25, 0, 65, 30)), ((90, 30), (0, 25, 30, 65)), ((1, 1), (0, 0, 1, 1))],
)
def test_random_resized_crop_falls_back_to_the_middle(size, expected):
    crop = RandomResizedCrop((8, 8), scale=(1.0, 1.0))
    box = crop.plan(size, rng()).inverse().boxes(np.array([[0.0, 0, 8, 8]]))[0]
    np.testing.assert_allclose(box, expected, atol=1e-9)
