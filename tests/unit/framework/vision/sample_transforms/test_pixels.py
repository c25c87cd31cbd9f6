"""framework.vision.sample_transforms.pixels: values by hand, and against Pillow, whose definitions these are."""

import colorsys

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from framework.vision.sample_transforms import pixels

NOISE = np.random.default_rng(0).integers(20, 220, (23, 31, 3), dtype=np.uint8)


def pixel(red: int, green: int, blue: int) -> np.ndarray:
    return np.array([[[red, green, blue]]], np.uint8)


def test_by_hand():
    image = np.concatenate([pixel(100, 0, 255), pixel(10, 20, 30)], axis=1)
    assert pixels.brightness(image, 0.5).tolist() == [[[50, 0, 128], [5, 10, 15]]]
    assert pixels.brightness(image, 2).tolist() == [[[200, 0, 255], [20, 40, 60]]]
    assert pixels.grayscale(pixel(100, 200, 50)).tolist() == [[[153, 153, 153]]]  # 29.9 + 117.4 + 5.7
    assert pixels.saturation(pixel(100, 200, 50), 0).tolist() == [[[153, 153, 153]]]
    assert pixels.saturation(pixel(100, 200, 50), 2).tolist() == [[[47, 247, 0]]]
    # Two grey pixels, 40 and 80: their mean is 60.
    two = np.concatenate([pixel(40, 40, 40), pixel(80, 80, 80)], axis=1)
    assert pixels.contrast(two, 2)[0, :, 0].tolist() == [20, 100]
    assert pixels.contrast(two, 0)[0, :, 0].tolist() == [60, 60]
    assert pixels.invert(pixel(0, 100, 255)).tolist() == [[[255, 155, 0]]]
    assert pixels.solarize(pixel(0, 128, 127), 128).tolist() == [[[0, 127, 127]]]
    assert pixels.solarize(pixel(0, 128, 255), 256).tolist() == [[[0, 128, 255]]]
    assert pixels.posterize(pixel(255, 130, 15), 4).tolist() == [[[240, 128, 0]]]
    assert pixels.posterize(pixel(255, 130, 15), 0).tolist() == [[[0, 0, 0]]]
    assert pixels.autocontrast(two)[0, :, 0].tolist() == [0, 255]
    assert (
        pixels.autocontrast(pixel(7, 8, 9)).tolist()
        == [[[7, 8, 9]]]
        == pixels.equalize(pixel(7, 8, 9)).tolist()
    )


def test_sharpness_by_hand():
    image = np.zeros((3, 3, 3), np.uint8)
    image[1, 1] = 130
    out = pixels.sharpness(image, 0)
    assert out[1, 1].tolist() == [50, 50, 50] and out.sum() == 150  # 130 * 5 / 13, the edge stays
    assert pixels.sharpness(image, 2)[1, 1].tolist() == [210, 210, 210]


@pytest.mark.parametrize("turns", [1 / 3, -1 / 3, 0.5, -0.5])
def test_hue_of_pure_colours(turns):
    for red, green, blue in ((255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 200, 200)):
        hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
        expected = np.array(colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value)) * 255
        out = pixels.hue(pixel(red, green, blue), turns)[0, 0]
        np.testing.assert_allclose(out, expected, atol=6)  # a step of the hue is 6 values
    assert pixels.hue(pixel(50, 50, 50), turns).tolist() == [[[50, 50, 50]]]


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pixels.brightness, ImageEnhance.Brightness),
        (pixels.contrast, ImageEnhance.Contrast),
        (pixels.saturation, ImageEnhance.Color),
        (pixels.sharpness, ImageEnhance.Sharpness),
    ],
)
def test_factors_are_those_of_pillow(ours, theirs, factor):
    want = np.asarray(theirs(Image.fromarray(NOISE)).enhance(factor)).astype(int)
    # Pillow cuts the fraction off, and rounds its blurred and grey images once before.
    np.testing.assert_allclose(ours(NOISE, factor).astype(int), want, atol=2)


def test_the_smoothing_of_sharpness_is_that_of_pillow():
    want = np.asarray(Image.fromarray(NOISE).filter(ImageFilter.SMOOTH)).astype(int)
    np.testing.assert_allclose(pixels.sharpness(NOISE, 0).astype(int), want, atol=1)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pixels.equalize, ImageOps.equalize),
        (pixels.autocontrast, ImageOps.autocontrast),
        (pixels.invert, ImageOps.invert),
        (lambda image: pixels.solarize(image, 100), lambda image: ImageOps.solarize(image, 100)),
        (lambda image: pixels.posterize(image, 3), lambda image: ImageOps.posterize(image, 3)),
    ],
)
def test_tables_are_those_of_pillow(ours, theirs):
    for image in (NOISE, np.minimum(NOISE, 60), np.zeros((2, 2, 3), np.uint8)):
        want = np.asarray(theirs(Image.fromarray(image))).astype(int)
        np.testing.assert_allclose(ours(image).astype(int), want, atol=1)
