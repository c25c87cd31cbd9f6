"""paddle.vision.transforms' functions, on arrays [H, W] or [H, W, C] and on PIL images; each gives what it was given.

Arrays go through OpenCV and PIL images through Pillow, as in Paddle, with its numbers. Where it contradicts its
documentation we do as that says: on arrays `adjust_saturation` draws a factor and flips drop an axis of one channel, on
PIL images `affine` and `perspective` do not look at `fill`. Colours of arrays of floats, as `to_tensor` gives them,
change as those of Paddle's Tensors do. jax arrays are read as arrays.

Results of `to_tensor` and `normalize` are arrays of numpy, channels-last where `data_format` does not say "CHW": in
Paddle that is the default, here "HWC" is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL import Image

from framework.core.errors import ConfigError, InputError, ShapeError
from framework.vision.sample import Sample
from framework.vision.transforms import array_backend as arrays
from framework.vision.transforms import float_colors as floats
from framework.vision.transforms import pil_backend as pil
from framework.vision.transforms.array_backend import Color

ImageLike = np.ndarray | Image.Image
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


class ImageKindError(InputError, TypeError):
    """What should be an image is none."""


class ArgumentKindError(ConfigError, TypeError):
    """An argument of a transform is of another kind."""


_operations: dict[type, ModuleType] = {}


def register_images(kind: type, operations: ModuleType) -> None:
    """Let images of another kind through all functions and classes: `operations` has the functions of `pil_backend`,
    and `check_image`, `image_size`, `describe_pixels` and `erase` as they are here."""
    _operations[kind] = operations


def _registered(img: object) -> ModuleType | None:
    return next((operations for kind, operations in _operations.items() if isinstance(img, kind)), None)


@runtime_checkable
class _ArrayLike(Protocol):
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...


def check_image(img: object, where: str) -> ImageLike:
    """The array or the PIL image.

    Raises:
        ImageKindError: it is neither. ShapeError: the array has another rank, or no pixels.
    """
    if isinstance(img, Image.Image):
        return img
    if (operations := _registered(img)) is not None:
        return operations.check_image(img, where)
    if isinstance(img, Sample):
        raise InputError(
            "transforms in Paddle's spelling take images",
            where=where,
            received="a Sample",
            allowed="an array [H, W] or [H, W, C], a PIL image",
            fix="the transforms of Samples are in framework.vision.sample_transforms, under the same names",
        )
    if not isinstance(img, _ArrayLike):
        raise ImageKindError(
            "the image must be an array or a PIL image",
            where=where,
            received=type(img).__name__,
            allowed="an array [H, W] or [H, W, C], a PIL image",
            fix="framework.vision.image.read(path) reads a file",
        )
    array = np.asarray(img)
    if array.ndim not in (2, 3) or array.size == 0:
        raise ShapeError(
            "the array must have the shape of an image",
            where=where,
            received=list(array.shape),
            allowed="[H, W] or [H, W, C], none of them 0",
            fix="one image at a time: call it for each of a batch" if array.ndim == 4 else None,
        )
    return array


def is_pil_image(img: object) -> bool:
    """Whether it is an image of PIL."""
    return isinstance(img, Image.Image)


def _library(img: ImageLike) -> ModuleType:
    """The module with the operations on this kind of image."""
    if isinstance(img, Image.Image):
        return pil
    return arrays if isinstance(img, np.ndarray) else _registered(img) or arrays


def image_size(img: ImageLike) -> tuple[int, int]:
    """(height, width)."""
    if isinstance(img, Image.Image):
        return img.height, img.width
    if isinstance(img, np.ndarray):
        return img.shape[0], img.shape[1]
    return _library(img).image_size(img)


def describe_pixels(img: ImageLike) -> tuple[tuple[int, ...], np.dtype]:
    """The shape of one pixel, () or (C,), and its type."""
    if not isinstance(img, Image.Image | np.ndarray):
        return _library(img).describe_pixels(img)
    pixels = np.asarray(img.crop((0, 0, 1, 1)) if isinstance(img, Image.Image) else img[:1, :1])
    return pixels.shape[2:], pixels.dtype


def to_tensor(pic: ImageLike, data_format: str = "HWC") -> np.ndarray:
    """[H, W, C] of float32, bytes divided by 255; other dtypes keep their values. With "CHW" [C, H, W].

    Paddle's default is "CHW". The array is numpy's: the loader moves batches to the device.
    """
    check_choice(data_format, ("HWC", "CHW"), "to_tensor.data_format")
    img = check_image(pic, "to_tensor")
    values = pil.to_array(img) if isinstance(img, Image.Image) else img
    if values.ndim == 2:
        values = values[..., None]
    if values.dtype == np.uint8:
        values = values.astype(np.float32) / np.float32(255)
    return np.ascontiguousarray(values.transpose(2, 0, 1)) if data_format == "CHW" else values


def resize(img: ImageLike, size: int | Sequence[int], interpolation: str = "bilinear") -> ImageLike:
    """Scaled to `size` (height, width); one number is the length of the short side, the long one is rounded down."""
    img = check_image(img, "resize")
    height, width = image_size(img)
    if isinstance(size, int):
        if min(height, width) == size:
            return img
        size_hw = (int(size * height / width), size) if width < height else (size, int(size * width / height))
    else:
        _check_kind(size, (list, tuple, np.ndarray), "resize.size")
        size_hw = check_pair(size, "resize.size")
    if min(size_hw) < 1:
        raise ConfigError(
            "an image has no such size", where="resize.size", received=size, allowed="sides >= 1"
        )
    check_interpolation(img, interpolation, "resize")
    return _library(img).resize(img, size_hw, interpolation)


def pad(
    img: ImageLike, padding: int | Sequence[int], fill: Color = 0, padding_mode: str = "constant"
) -> ImageLike:
    """With a border of `padding` pixels: one number, (left and right, top and bottom), or (left, top, right, bottom).

    `padding_mode`: "constant" is `fill`, a number a channel (one number fills the first channel and leaves 0 in the
    others, as in Paddle); "edge" repeats the last pixels; "reflect" mirrors without, "symmetric" with the edge.
    """
    img = check_image(img, "pad")
    _check_kind(padding_mode, str, "pad.padding_mode")
    _check_kind(fill, (int, float, str, list, tuple, np.ndarray, np.number), "pad.fill")
    check_choice(padding_mode, PADDING_MODES, "pad.padding_mode")
    borders = expand_borders(padding)
    return _library(img).pad(img, borders, fill, padding_mode)


def crop(img: ImageLike, top: int, left: int, height: int, width: int) -> ImageLike:
    """The part of the image; of an array, a view.

    Raises:
        ShapeError: the part of an array reaches beyond it. Of a PIL image, what lies beyond is black.
    """
    img = check_image(img, "crop")
    return _library(img).crop(img, top, left, height, width)


def center_crop(img: ImageLike, output_size: int | Sequence[int]) -> ImageLike:
    """The middle of the image, (height, width), or a square."""
    img = check_image(img, "center_crop")
    wanted_h, wanted_w = check_pair(output_size, "center_crop.output_size")
    height, width = image_size(img)
    top, left = round((height - wanted_h) / 2), round((width - wanted_w) / 2)
    return crop(img, top, left, wanted_h, wanted_w)


def hflip(img: ImageLike) -> ImageLike:
    """Left and right exchanged."""
    img = check_image(img, "hflip")
    return _library(img).hflip(img)


def vflip(img: ImageLike) -> ImageLike:
    """Top and bottom exchanged."""
    img = check_image(img, "vflip")
    return _library(img).vflip(img)


def _colour_library(img: ImageLike) -> ModuleType:
    """Paddle has rules of its own for PIL images, for bytes and for floats."""
    return floats if isinstance(img, np.ndarray) and img.dtype.kind == "f" else _library(img)


def adjust_brightness(img: ImageLike, brightness_factor: float) -> ImageLike:
    """Blended with black: 0 is black, 1 the image."""
    img = check_image(img, "adjust_brightness")
    return _colour_library(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: ImageLike, contrast_factor: float) -> ImageLike:
    """Blended with a grey: 0 is grey, 1 the image. Of bytes it is the grey 74, of PIL images and floats their mean."""
    img = check_image(img, "adjust_contrast")
    return _colour_library(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: ImageLike, saturation_factor: float) -> ImageLike:
    """Blended with the grey image: 0 is without colours, 1 the image."""
    img = check_image(img, "adjust_saturation")
    return _colour_library(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: ImageLike, hue_factor: float) -> ImageLike:
    """The hue turned by a share of the circle, from -0.5 to 0.5.

    Paddle takes the channels of an array of bytes as B, G, R, so that of an RGB array the hue turns the other way.
    """
    img = check_image(img, "adjust_hue")
    if not -0.5 <= hue_factor <= 0.5:
        raise ConfigError(
            "hue_factor is out of range",
            where="adjust_hue.hue_factor",
            received=hue_factor,
            allowed="-0.5 to 0.5",
        )
    return _colour_library(img).adjust_hue(img, hue_factor)


def affine(
    img: ImageLike,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: str = "nearest",
    fill: Color = 0,
    center: Sequence[float] | None = None,
) -> ImageLike:
    """Turned by `angle` degrees, scaled, sheared by degrees (x, y) and shifted by `translate` (x, y) pixels.

    PIL images turn clockwise about `center` (x, y), by default the middle. Arrays turn anticlockwise about the corner
    at the top left, and `center` does not count: so Paddle's cv2 backend does.
    """
    img = check_image(img, "affine")
    translate = check_numbers(translate, 2, "affine.translate")
    if not scale > 0:
        raise ConfigError("a scale is above 0", where="affine.scale", received=scale, allowed="> 0")
    shears = (shear, 0.0) if isinstance(shear, int | float) else tuple(shear)
    shears = shears * 2 if len(shears) == 1 else check_numbers(shears, 2, "affine.shear")
    check_interpolation(img, interpolation, "affine")
    if isinstance(img, np.ndarray):
        return arrays.affine(img, angle, translate, scale, (shears[0], shears[1]), interpolation, fill)
    height, width = image_size(img)
    about = (width * 0.5, height * 0.5) if center is None else check_numbers(center, 2, "affine.center")
    matrix = _invert_affine(about, angle, translate, scale, shears)
    return _library(img).transform(img, matrix, interpolation, fill)


def rotate(
    img: ImageLike,
    angle: float,
    interpolation: str = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Color = 0,
) -> ImageLike:
    """Turned anticlockwise by degrees about `center` (x, y), by default the middle.

    With `expand` the image grows to hold all its corners, which counts on the middle as the centre.
    """
    img = check_image(img, "rotate")
    check_interpolation(img, interpolation, "rotate")
    about = None
    if center is not None:
        x, y = check_numbers(center, 2, "rotate.center")
        about = (x, y)
    return _library(img).rotate(img, angle, interpolation, expand, about, fill)


def perspective(
    img: ImageLike,
    startpoints: Sequence[Sequence[float]],
    endpoints: Sequence[Sequence[float]],
    interpolation: str = "nearest",
    fill: Color = 0,
) -> ImageLike:
    """With four points (x, y), top left, top right, bottom right and bottom left, moved to four others."""
    img = check_image(img, "perspective")
    check_interpolation(img, interpolation, "perspective")
    start, end = np.asarray(startpoints, np.float64), np.asarray(endpoints, np.float64)
    if start.shape != (4, 2) or end.shape != (4, 2):
        raise ShapeError(
            "a perspective moves four points",
            where="perspective",
            received=f"startpoints {list(start.shape)}, endpoints {list(end.shape)}",
            allowed="[4, 2] each",
        )
    if isinstance(img, np.ndarray):
        return arrays.perspective(img, start, end, interpolation, fill)
    return _library(img).transform(img, _solve_perspective(start, end), interpolation, fill)


def to_grayscale(img: ImageLike, num_output_channels: int = 1) -> ImageLike:
    """The grey image in one channel, or three equal ones."""
    img = check_image(img, "to_grayscale")
    check_choice(num_output_channels, (1, 3), "to_grayscale.num_output_channels")
    return _library(img).to_grayscale(img, num_output_channels)


def normalize(
    img: ImageLike,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    data_format: str = "HWC",
    to_rgb: bool = False,
) -> np.ndarray:
    """(img - mean) / std in float32, a number for each channel or one for all. Paddle's default is "CHW".

    `data_format` says where the channels of an array are; a PIL image comes out so.

    `to_rgb` reads the last axis backwards first, which turns B, G, R of a channels-last image into R, G, B.

    Raises:
        ShapeError: there are neither one nor as many numbers as channels, or a `std` is 0.
    """
    check_choice(data_format, ("HWC", "CHW"), "normalize.data_format")
    checked = check_image(img, "normalize")
    if isinstance(checked, Image.Image):
        values = pil.to_array(checked).astype(np.float32)
        values = values if data_format == "HWC" else values.transpose(2, 0, 1)
    else:
        values = checked
    if values.ndim == 2:
        values = values[..., None] if data_format == "HWC" else values[None]
    shape = (1, 1, -1) if data_format == "HWC" else (-1, 1, 1)
    channels = values.shape[2 if data_format == "HWC" else 0]
    means, stds = (np.asarray(value, np.float32).reshape(shape) for value in (mean, std))
    if means.size not in (1, channels) or stds.size not in (1, channels) or not stds.all():
        raise ShapeError(
            "mean and std do not fit the image's channels",
            where="normalize",
            received=f"mean {mean}, std {std}, an image {list(values.shape)} taken as {data_format}",
            allowed=f"1 or {channels} numbers, no std of 0",
            fix='images are channels-last here: leave data_format="CHW" out, or give it to ToTensor too',
        )
    return ((values[..., ::-1] if to_rgb else values) - means) / stds


def erase(
    img: ImageLike, i: int, j: int, h: int, w: int, v: float | np.ndarray, inplace: bool = False
) -> ImageLike:
    """With the rectangle of h x w pixels from row `i` and column `j` on painted over with `v`.

    `v` is what numpy broadcasts to [h, w, C]. `inplace` changes an array itself; PIL images are copied.
    """
    img = check_image(img, "erase")
    if not isinstance(img, Image.Image | np.ndarray):
        return _library(img).erase(img, i, j, h, w, v, inplace)
    pixels = np.array(img) if isinstance(img, Image.Image) or not inplace else img
    pixels[i : i + h, j : j + w, ...] = np.asarray(v).astype(pixels.dtype)
    return Image.fromarray(pixels) if isinstance(img, Image.Image) else pixels


def expand_borders(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of Paddle's forms. Raises: ConfigError."""
    _check_kind(padding, (int, list, tuple, np.ndarray), "pad.padding")
    widths = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(widths) not in (1, 2, 4) or any(width < 0 for width in widths):
        raise ConfigError(
            "padding must be one, two or four numbers",
            where="pad.padding",
            received=padding,
            allowed="p, (left and right, top and bottom) or (left, top, right, bottom), all >= 0",
        )
    left, top, right, bottom = widths * (4 // len(widths))
    return left, top, right, bottom


def _check_kind(value: object, kinds: type | tuple[type, ...], where: str) -> None:
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
        raise ArgumentKindError(
            "an argument of another kind is needed",
            where=where,
            received=repr(value),
            allowed=", ".join(names),
        )


def check_choice(value: object, allowed: Sequence[object], where: str) -> None:
    """Raises: ConfigError, where the value is none of those allowed."""
    if value not in allowed:
        raise ConfigError(
            "unknown value", where=where, received=repr(value), allowed=", ".join(map(repr, allowed))
        )


def check_interpolation(img: ImageLike, interpolation: str, where: str) -> None:
    """Raises: ConfigError, where the image's library has no such interpolation."""
    check_choice(interpolation, tuple(_library(img).INTERPOLATIONS), f"{where}.interpolation")


def check_pair(size: int | Sequence[int], where: str) -> tuple[int, int]:
    """(height, width); one number is a square. Raises: ConfigError."""
    pair = (size, size) if isinstance(size, int | float) else tuple(size)
    if len(pair) != 2 or any(side != int(side) or side < 1 for side in pair):
        raise ConfigError(
            "the size must be a whole number or two",
            where=where,
            received=size,
            allowed="a whole number >= 1, or (height, width) of them",
        )
    return int(pair[0]), int(pair[1])


def check_numbers(values: Sequence[float], count: int, where: str) -> tuple[float, ...]:
    """So many numbers. Raises: ConfigError."""
    if not isinstance(values, Sequence) or len(values) != count:
        raise ConfigError(
            "another number of values is needed", where=where, received=values, allowed=f"{count} numbers"
        )
    return tuple(values)


def _invert_affine(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """The 2x3 map from output to input of: shift the centre to 0, shear, scale, turn, shift back and by `translate`."""
    turn, shear_x, shear_y = (math.radians(degrees) for degrees in (angle, *shear))
    cos, sin, tan = math.cos(turn - shear_y), math.sin(turn - shear_y), math.tan(shear_x)
    rows = (
        (math.cos(turn) - sin * tan / math.cos(shear_y), cos * tan / math.cos(shear_y) + math.sin(turn)),
        (-sin / math.cos(shear_y), cos / math.cos(shear_y)),
    )
    out: list[float] = []
    for (right, down), middle in zip(rows, center, strict=True):
        x, y = right / scale, down / scale
        out += [x, y, x * (-center[0] - translate[0]) + y * (-center[1] - translate[1]) + middle]
    return out


def _solve_perspective(start: np.ndarray, end: np.ndarray) -> list[float]:
    """The 8 numbers of the projective map from `end` to `start` [4, 2]."""
    rows = []
    for (x, y), (u, v) in zip(end, start, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    return np.linalg.lstsq(np.array(rows), start.reshape(8), rcond=None)[0].tolist()
