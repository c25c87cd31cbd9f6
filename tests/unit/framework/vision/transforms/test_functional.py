"""framework.vision.transforms.functional: what is given back and which messages; numbers are in tests/golden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from framework.core.errors import ConfigError, InputError, ShapeError
from framework.vision import transforms as T
from framework.vision.sample import Sample
from framework.vision.transforms import functional as F

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 9, 3)).astype(np.uint8)
GRAY = IMAGE[..., :1]


def test_the_package_has_the_38_names() -> None:
    names = """BaseTransform BrightnessTransform CenterCrop ColorJitter Compose ContrastTransform Grayscale HueTransform
    Normalize Pad RandomAffine RandomCrop RandomErasing RandomHorizontalFlip RandomPerspective RandomResizedCrop
    RandomRotation RandomVerticalFlip Resize SaturationTransform ToTensor Transpose adjust_brightness adjust_contrast
    adjust_hue affine center_crop crop erase hflip normalize pad perspective resize rotate to_grayscale to_tensor
    vflip"""
    assert len(names.split()) == 38
    for name in names.split():
        assert callable(getattr(T, name)) and getattr(T, name).__module__.startswith(
            "framework.vision.transforms"
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: T.resize(x, 4),
        lambda x: T.resize(x, (3, 5)),
        lambda x: T.pad(x, 1, padding_mode="reflect"),
        lambda x: T.crop(x, 1, 2, 3, 4),
        lambda x: T.center_crop(x, 3),
        T.hflip,
        T.vflip,
        lambda x: T.adjust_brightness(x, 0.5),
        lambda x: T.adjust_contrast(x, 0.5),
        lambda x: T.rotate(x, 30),
        lambda x: T.affine(x, 3, (1, 1), 1.0, 2.0),
        lambda x: T.erase(x, 1, 1, 2, 2, 7),
    ],
)
def test_each_gives_what_it_was_given(call: Callable[[Any], Any]) -> None:
    before = GRAY.copy()
    out = call(GRAY)
    assert out.dtype == np.uint8 and out.ndim == 3 and out.shape[2] == 1
    assert call(GRAY[..., 0]).shape == out.shape[:2]
    np.testing.assert_array_equal(GRAY, before)
    for mode in ("RGB", "L"):
        found = call(Image.fromarray(IMAGE).convert(mode))
        assert (
            isinstance(found, Image.Image)
            and found.mode == mode
            and (found.height, found.width) == out.shape[:2]
        )


def test_to_tensor_is_channels_last() -> None:
    np.testing.assert_array_equal(T.to_tensor(IMAGE), IMAGE.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(T.to_tensor(IMAGE, "CHW"), T.to_tensor(IMAGE).transpose(2, 0, 1))
    np.testing.assert_array_equal(T.to_tensor(jnp.asarray(IMAGE)), T.to_tensor(IMAGE))
    assert T.to_tensor(GRAY[..., 0]).shape == (6, 9, 1)
    assert T.to_tensor(IMAGE.astype(np.float32) / 7).max() == IMAGE.max() / np.float32(7)
    bits = Image.fromarray(np.array([[0, 255]], np.uint8)).convert("1")
    np.testing.assert_array_equal(T.to_tensor(bits)[..., 0], [[0, 1]])


def test_normalize_takes_one_number_for_all_channels() -> None:
    np.testing.assert_allclose(T.normalize(GRAY, 127.5, 127.5), GRAY / 127.5 - 1, rtol=1e-6, atol=1e-6)
    assert T.normalize(GRAY, 127.5, 127.5).shape == GRAY.shape
    chw = T.normalize(Image.fromarray(IMAGE), [1.0, 2.0, 3.0], 2.0, data_format="CHW")
    np.testing.assert_allclose(chw, ((IMAGE - [1.0, 2.0, 3.0]) / 2).transpose(2, 0, 1), rtol=1e-6)


def test_saturation_is_a_function_of_its_factor() -> None:
    gray = T.to_grayscale(IMAGE, 3)
    assert np.abs(F.adjust_saturation(IMAGE, 0).astype(int) - gray).max() <= 1
    np.testing.assert_array_equal(F.adjust_saturation(IMAGE, 1), IMAGE)


def test_a_fill_colours_pil_images() -> None:
    out = np.asarray(T.affine(Image.fromarray(IMAGE), 0, (4, 0), 1.0, 0, fill=(9, 8, 7)))
    assert (out[:, 0] == (9, 8, 7)).all()
    corners = [[0, 0], [8, 0], [8, 5], [0, 5]]
    moved = [[x / 2, y / 2] for x, y in corners]
    out = np.asarray(T.perspective(Image.fromarray(IMAGE), corners, moved, fill=(9, 8, 7)))
    assert (out[-1, -1] == (9, 8, 7)).all()


def test_erase_in_place() -> None:
    image = IMAGE.copy()
    assert T.erase(image, 0, 0, 2, 2, 5, inplace=True) is image and (image[:2, :2] == 5).all()
    assert T.erase(image, 0, 0, 1, 1, np.array([1, 2, 3]))[0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: T.resize("a.jpg", 3), InputError, "image.read"),
        (lambda: T.hflip(Sample(IMAGE)), InputError, "sample_transforms"),
        (lambda: T.hflip(IMAGE[None]), ShapeError, "one image at a time"),
        (lambda: T.hflip(IMAGE[:0]), ShapeError, "the array must have the shape of an image"),
        (lambda: T.resize(IMAGE, (0, 3)), ConfigError, "resize.size"),
        (lambda: T.resize(IMAGE, 0), ConfigError, "resize.size"),
        (lambda: T.resize(IMAGE, 3, "box"), ConfigError, "'bilinear'"),
        (lambda: T.resize(Image.fromarray(IMAGE), 3, "area"), ConfigError, "'hamming'"),
        (lambda: T.pad(IMAGE, (1, 2, 3)), ConfigError, "padding must be one, two or four numbers"),
        (lambda: T.pad(IMAGE, -1), ConfigError, "padding must be one, two or four numbers"),
        (lambda: T.pad(IMAGE, 1, padding_mode="wrap"), ConfigError, "'symmetric'"),
        (lambda: T.crop(IMAGE, 4, 0, 3, 3), ShapeError, "does not lie in the image"),
        (lambda: T.center_crop(IMAGE, 7), ShapeError, "pad_if_needed"),
        (lambda: T.center_crop(IMAGE, (1, 2, 3)), ConfigError, "the size must be a whole number or two"),
        (lambda: T.adjust_hue(IMAGE, 0.6), ConfigError, "-0.5 to 0.5"),
        (lambda: T.adjust_hue(GRAY, 0.1), ShapeError, "has no colours"),
        (lambda: T.adjust_contrast(IMAGE.astype(np.int32), 0.1), ShapeError, "not bytes"),
        (lambda: T.adjust_brightness(IMAGE.astype(np.float32), 0.1), ShapeError, "before Normalize"),
        (lambda: T.resize(IMAGE.astype(np.int64), 3), ShapeError, r"resize: OpenCV(.|\n)*int64 \[6, 9, 3\]"),
        (lambda: T.rotate(IMAGE, 3, fill=(1, 2, 3, 4, 5)), ShapeError, "or such a fill"),
        (lambda: T.rotate(Image.fromarray(IMAGE), 3, fill=(1, 2)), ConfigError, "one number, or 3"),
        (lambda: T.pad(Image.fromarray(IMAGE), 3, fill=(1, 2)), ConfigError, "of mode RGB"),
        (lambda: T.affine(IMAGE, 0, (1,), 1, 0), ConfigError, "2 numbers"),
        (lambda: T.affine(IMAGE, 0, (1, 1), 0, 0), ConfigError, "affine.scale"),
        (lambda: T.perspective(IMAGE, [[0, 0]], [[1, 1]]), ShapeError, "four points"),
        (lambda: T.to_grayscale(IMAGE, 2), ConfigError, "1, 3"),
        (lambda: T.to_tensor(IMAGE, "NCHW"), ConfigError, "'HWC', 'CHW'"),
        (lambda: T.normalize(IMAGE, [1.0, 2.0, 3.0], 1.0, "CHW"), ShapeError, "channels-last"),
        (lambda: T.normalize(IMAGE, 0.0, 0.0), ShapeError, "std of 0"),
    ],
)
def test_messages(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
