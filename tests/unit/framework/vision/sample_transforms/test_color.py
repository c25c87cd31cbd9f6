"""framework.vision.sample_transforms.color and erase: what is drawn, and that only the image changes."""

import cv2
import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import (
    ColorJitter,
    GaussianBlur,
    RandomDistort,
    RandomErasing,
    RandomGrayscale,
)

NOISE = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
GRAY = Sample(np.full((2, 2, 3), 100, np.uint8))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_jitter_of_nothing():
    sample = Sample(NOISE)
    assert ColorJitter()(sample, rng()).image is NOISE


def test_jitter_ranges():
    number = [int(ColorJitter(brightness=0.5)(GRAY, rng(seed)).image[0, 0, 0]) for seed in range(300)]
    assert 50 <= min(number) < 55 and 145 < max(number) <= 150
    pair = [int(ColorJitter(brightness=(0, 0.2))(GRAY, rng(seed)).image[0, 0, 0]) for seed in range(100)]
    assert 0 <= min(pair) < 2 and 18 < max(pair) <= 20
    never_negative = [int(ColorJitter(brightness=3)(GRAY, rng(s)).image[0, 0, 0]) for s in range(100)]
    assert max(never_negative) == 255


def test_jitter_fixed_values_by_hand():
    image = np.array([[[100, 200, 50]]], np.uint8)
    assert ColorJitter(saturation=(0, 0))(Sample(image), rng()).image.tolist() == [[[153, 153, 153]]]
    assert ColorJitter(contrast=(0, 0))(Sample(image), rng()).image.tolist() == [[[153, 153, 153]]]
    red = np.array([[[255, 0, 0]]], np.uint8)
    cyan = ColorJitter(hue=(0.5, 0.5))(Sample(red), rng()).image[0, 0].astype(int)
    np.testing.assert_allclose(cyan, [0, 255, 255], atol=6)  # the circle has 256 steps, a side of it 42.7


def test_jitter_order_is_random():
    # Brighter first: (200, 255), their mean 228, half of the contrast. Contrast first: (138, 212), doubled.
    image = np.array([[[100] * 3, [250] * 3]], np.uint8)
    jitter = ColorJitter(brightness=(2, 2), contrast=(0.5, 0.5))
    results = {tuple(jitter(Sample(image), rng(seed)).image[0, :, 0].tolist()) for seed in range(30)}
    assert results == {(214, 242), (255, 255)}


def test_grayscale():
    assert RandomGrayscale(p=1)(Sample(np.array([[[100, 200, 50]]], np.uint8)), rng()).image.tolist() == [
        [[153] * 3]
    ]
    assert RandomGrayscale(p=0)(GRAY, rng()) is GRAY


def test_blur():
    dot = np.zeros((7, 7, 3), np.uint8)
    dot[3, 3] = 255
    out = GaussianBlur(3, sigma=(1, 1))(Sample(dot), rng()).image[..., 0].astype(int)
    # exp(-1/2) = 0.6065; weights 0.2741, 0.4519, 0.2741: 255 times their products.
    np.testing.assert_allclose(out[2:5, 2:5], [[19, 32, 19], [32, 52, 32], [19, 32, 19]], atol=1)
    assert out[:2].sum() == 0
    assert (GaussianBlur(5)(GRAY, rng()).image == 100).all()
    assert GaussianBlur(9)(Sample(np.full((1, 1, 3), 9, np.uint8)), rng()).image.tolist() == [[[9, 9, 9]]]
    wide = [GaussianBlur(9, sigma=(0.1, 3))(Sample(dot), rng(seed)).image.max() for seed in range(50)]
    assert max(wide) > 200 and min(wide) < 30


def test_erasing():
    sample = Sample(np.full((20, 30, 3), 1, np.uint8), boxes=np.array([[0, 0, 20, 30]], np.float32))
    shares = []
    for seed in range(200):
        out = RandomErasing(p=1, scale=(0.1, 0.3), ratio=(0.5, 2.0), fill=(7, 8, 9))(sample, rng(seed))
        rows, columns = np.nonzero(out.image[..., 0] == 7)
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert len(rows) == height * width and (out.image[rows, columns] == (7, 8, 9)).all()
        assert 0.4 < height / width < 2.5 and out.boxes is sample.boxes
        shares.append(len(rows) / 600)
    assert 0.08 < min(shares) < 0.13 and 0.27 < max(shares) < 0.33
    assert (sample.image == 1).all()


def test_erasing_with_noise_and_without_room():
    noise = RandomErasing(p=1, scale=(1, 1), ratio=(1, 1), fill="noise")
    out = noise(Sample(np.zeros((16, 16, 3), np.uint8)), rng()).image
    assert out.dtype == np.uint8 and len(np.unique(out)) > 150
    flat = Sample(np.zeros((1, 16, 3), np.uint8))
    assert noise(flat, rng()) is flat  # no square with all of the area fits
    assert RandomErasing(p=0)(flat, rng()) is flat
    pixel = RandomErasing(p=1, scale=(1, 1), ratio=(1, 1), fill=5)(
        Sample(np.zeros((1, 1, 3), np.uint8)), rng()
    )
    assert pixel.image.tolist() == [[[5, 5, 5]]]


def distorted(color, **ranges):
    nothing = {"brightness": (0, 0), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)}
    transform = RandomDistort(**{**nothing, **ranges}, p=1)
    return transform(Sample(np.full((1, 1, 3), color, np.uint8)), rng()).image[0, 0].tolist()


def test_distort_by_hand():
    assert distorted((10, 100, 250), brightness=(20, 20)) == [30, 120, 255]
    assert distorted((10, 100, 250), contrast=(0.5, 0.5)) == [5, 50, 125]
    # grey of (100, 0, 0) is 29.9: half way is 64.95, 14.95, 14.95
    assert distorted((100, 0, 0), saturation=(0.5, 0.5)) == [65, 15, 15]
    assert distorted((100, 0, 0), saturation=(0, 0)) == [30, 30, 30]
    # half a turn about the grey axis mirrors the colour at its grey: 2 * 29.9 - 100 < 0, 2 * 29.9 - 0 = 59.8
    np.testing.assert_allclose(distorted((100, 0, 0), hue=(180, 180)), [0, 60, 60], atol=1)
    np.testing.assert_allclose(distorted((90, 90, 90), hue=(77, 77)), [90, 90, 90], atol=1)


def test_distort_draws_each_change_with_p_and_in_any_order():
    assert RandomDistort(p=0)(GRAY, rng()) is GRAY
    # 100 * 2 + 30 or (100 + 30) * 2; both, one or none of them
    transform = RandomDistort(brightness=(30, 30), contrast=(2, 2), saturation=(1, 1), hue=(0, 0))
    found = [int(transform(GRAY, rng(seed)).image[0, 0, 0]) for seed in range(400)]
    share = {value: found.count(value) / 400 for value in set(found)}
    assert set(share) == {100, 130, 200, 230, 255}
    assert all(0.19 < share[value] < 0.31 for value in (100, 130, 200)) and 0.07 < share[230] < 0.18


def test_distort_is_paddledetections_arithmetic():
    """Its float operations one after another on one order of changes, against one matrix."""
    value = {"brightness": -9.0, "contrast": 0.8, "saturation": 0.6, "hue": 25.0}
    transform = RandomDistort(**{name: (one, one) for name, one in value.items()}, p=1)
    seed = 3
    order = rng(seed).permutation(["brightness", "contrast", "saturation", "hue"])
    pixels = NOISE.astype(np.float64)
    for name in order:
        if name == "brightness":
            pixels = pixels + value[name]
        elif name == "contrast":
            pixels = pixels * value[name]
        elif name == "saturation":
            grey = (pixels * [0.299, 0.587, 0.114]).sum(axis=2, keepdims=True)
            pixels = pixels * value[name] + grey * (1 - value[name])
        else:
            u, w = np.cos(np.deg2rad(value[name])), np.sin(np.deg2rad(value[name]))
            turn = np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]])
            to = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
            back = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
            pixels = pixels @ (back @ turn @ to).T
    found = transform(Sample(NOISE), rng(seed)).image
    assert cv2.absdiff(found, np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)).max() <= 1


@pytest.mark.parametrize("wrong", [{"contrast": (-1, 1)}, {"hue": (3, 1)}, {"saturation": (-1, 1)}, {"p": 2}])
def test_distort_out_of_range(wrong):
    with pytest.raises(ConfigError, match=f"RandomDistort.{next(iter(wrong))}"):
        RandomDistort(**wrong)
