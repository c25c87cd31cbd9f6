"""What the transforms compute for Tensors [C, H, W] and batches of them [N, C, H, W]: Paddle's operations, so that
gradients flow, static programs record them, and numbers are Paddle's for Tensors, which differ from OpenCV's.

Integers, most of which Paddle refuses here, are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.core import Tracer

from framework.core.errors import ConfigError, ShapeError
from framework.paddle import nn
from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.ops import arithmetic, creation, indexing, joining, search, shaping
from framework.vision.transforms.array_backend import Color

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "area", "linear", "trilinear")
_GRAY = np.array([0.2989, 0.587, 0.114], np.float32).reshape(3, 1, 1)
_MODES = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


class UnknownSizeError(ShapeError, NotImplementedError):
    """A variable of a static program has no size yet that decides what a transform computes."""


def check_image(img: Tensor, where: str) -> Tensor:
    """The Tensor. Raises: ShapeError, where it has another rank than an image or a batch."""
    if img.ndim not in (3, 4):
        raise ShapeError(
            "the Tensor must have the shape of an image",
            where=where,
            received=img.shape,
            allowed="[C, H, W], or a batch [N, C, H, W]",
        )
    return img


def image_size(img: Tensor) -> tuple[int, int]:
    """(height, width).

    Raises:
        UnknownSizeError: a variable of a static program does not know them.
    """
    height, width = img.shape[-2:]
    if min(height, width) <= 0:
        raise UnknownSizeError(
            "the height and the width of a variable must be known and above 0",
            where="paddle.vision.transforms",
            received=img.shape,
            fix="give paddle.static.data its sizes",
        )
    return height, width


def describe_pixels(img: Tensor) -> tuple[tuple[int, ...], np.dtype]:
    """The shape of one pixel, and its type."""
    return (img.shape[-3],), np.dtype(img._value.dtype)


def _is_integer(img: Tensor) -> bool:
    return np.dtype(img._value.dtype).kind in "iub"


def _in_floats(img: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    if not _is_integer(img):
        return change(img)
    return change(img.astype("float32")).astype(img.dtype)


def _as_batch(img: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    if img.ndim == 4:
        return _in_floats(img, change)
    return _in_floats(img.unsqueeze(0), change).squeeze(0)


def _constant(values: np.ndarray | Sequence[float], like: Tensor) -> Tensor:
    return wrap(as_array(np.asarray(values), like.dtype))


def has_pixels(img: Tensor) -> bool:
    """Whether the values can be read, and no gradient is asked for: the host then does at once what would be compiled
    again for each place and size that a random transform draws."""
    return img.stop_gradient and isinstance(img._value, jax.Array) and not isinstance(img._value, Tracer)


def resize(img: Tensor, size_hw: tuple[int, int], interpolation: str) -> Tensor:
    """Scaled to (height, width) by `paddle.nn.functional.interpolate`."""
    return _as_batch(img, lambda x: nn.functional.interpolate(x, list(size_hw), mode=interpolation))


def pad(img: Tensor, borders: tuple[int, int, int, int], fill: Color, mode: str) -> Tensor:
    """With a border (left, top, right, bottom).

    Raises:
        ConfigError: the mode is "symmetric". ArgumentTypeError: the fill is not one number.
    """
    if mode not in _MODES:
        raise ConfigError(
            "Tensors have no such border", where="pad.padding_mode", received=mode, allowed=", ".join(_MODES)
        )
    if not isinstance(fill, int | float):
        raise ArgumentTypeError(
            "a Tensor's border has one value", where="pad.fill", received=fill, allowed="a number"
        )
    left, top, right, bottom = borders
    edges = [left, right, top, bottom]
    return _as_batch(img, lambda x: nn.functional.pad(x, edges, mode=_MODES[mode], value=float(fill)))


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The part of the image; what lies beyond the image is left out, as in Paddle."""
    rectangle = (..., slice(top, top + height), slice(left, left + width))
    return wrap(as_array(img.numpy()[rectangle], img.dtype)) if has_pixels(img) else img[rectangle]


def hflip(img: Tensor) -> Tensor:
    """Left and right exchanged."""
    return shaping.flip(img, [-1])


def vflip(img: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    return shaping.flip(img, [-2])


def _channels(img: Tensor, where: str) -> int:
    channels = img.shape[-3]
    if channels not in (1, 3):
        raise ShapeError(
            "colours have one channel or three",
            where=where,
            received=img.shape,
            allowed="[1, H, W] or [3, H, W]",
        )
    return channels


def _blend(img: Tensor, other: Callable[[Tensor], Tensor], factor: float) -> Tensor:
    """`other` with `factor` of the image, between 0 and white."""
    white = 255.0 if _is_integer(img) else 1.0

    def change(x: Tensor) -> Tensor:
        extreme = other(x)
        return (extreme + (x - extreme) * float(factor)).clip(0.0, white)

    return _in_floats(img, change)


def _gray(img: Tensor) -> Tensor:
    return (img * _constant(_GRAY, img)).sum(-3, keepdim=True)


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    """Blended with black."""
    _channels(img, "adjust_brightness")
    return _blend(img, lambda x: x * 0.0, factor)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    """Blended with the mean of the grey image."""
    gray = _gray if _channels(img, "adjust_contrast") == 3 else lambda x: x
    return _blend(img, lambda x: gray(x).mean([-3, -2, -1], keepdim=True), factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    """Blended with the grey image; grey images stay."""
    return img if _channels(img, "adjust_saturation") == 1 else _blend(img, _gray, factor)


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    """The hue of R, G, B turned by `factor` of the circle; grey images stay."""
    if _channels(img, "adjust_hue") == 1:
        return img
    if _is_integer(img):
        return (_turn_hue(img.astype("float32") / 255.0, factor) * 255.0).astype(img.dtype)
    return _turn_hue(img, factor)


def _turn_hue(img: Tensor, factor: float) -> Tensor:
    red, green, blue = joining.unbind(img, -3)
    value, least = img.max(-3), img.min(-3)
    chroma = value - least
    divisor = search.where(chroma == 0, creation.ones_like(value), chroma)
    saturation = chroma / search.where(chroma == 0, creation.ones_like(value), value)
    to_green = search.where(value == green, 2.0 + (blue - red) / divisor, 4.0 + (red - green) / divisor)
    hue = search.where(value == red, (green - blue) / divisor, to_green) / 6.0 + float(factor)
    hue = (hue - hue.floor()) * 6.0
    # A channel falls from `value` by saturation over a third of the circle that is its own.
    channels = []
    for start in (5.0, 3.0, 1.0):
        angle = hue + start
        angle = angle - (angle / 6.0).floor() * 6.0
        share = arithmetic.minimum(angle, 4.0 - angle).clip(0.0, 1.0)
        channels.append(value * (1.0 - saturation * share))
    return joining.stack(channels, -3)


def rotate(
    img: Tensor,
    angle: float,
    interpolation: str,
    expand: bool,
    center: tuple[float, float] | None,
    fill: Color,
) -> Tensor:
    """Turned anticlockwise by degrees about `center` (x, y), by default the middle."""
    height, width = image_size(img)
    turn = math.radians(-angle % 360)
    rows = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    size_hw = (height, width)
    if expand:
        corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) * (width / 2, height / 2)
        # In float32, as Paddle: what is a hair above a whole number is that number.
        moved = (corners.astype(np.float32) @ rows.T.astype(np.float32)).astype(np.float32)
        wide, high = np.ceil(moved.max(0)) - np.floor(moved.min(0))
        size_hw = (int(high), int(wide))
    middle = np.array((width / 2, height / 2))
    about = np.zeros(2) if center is None else np.asarray(center) - middle
    shift = about - rows @ about + middle - rows @ (size_hw[1] / 2, size_hw[0] / 2)
    return _sample(img, [*rows[0], shift[0], *rows[1], shift[1]], size_hw, interpolation, fill)


def transform(img: Tensor, matrix: Sequence[float], interpolation: str, fill: Color) -> Tensor:
    """Each output pixel from where the 6 numbers of an affine or the 8 of a projective map take it."""
    return _sample(img, matrix, image_size(img), interpolation, fill)


def _sample(
    img: Tensor, matrix: Sequence[float], size_hw: tuple[int, int], interpolation: str, fill: Color
) -> Tensor:
    (height, width), (high, wide) = image_size(img), size_hw
    y, x = np.mgrid[0:high, 0:wide] + 0.5
    a, b, c, d, e, f, g, h = (*matrix, 0.0, 0.0)[:8]
    depth = g * x + h * y + 1.0
    grid = np.stack(
        [(a * x + b * y + c) / depth / (0.5 * width), (d * x + e * y + f) / depth / (0.5 * height)], -1
    )

    def change(pixels: Tensor) -> Tensor:
        count = pixels.shape[0]
        points = shaping.expand(_constant((grid - 1.0)[None], pixels), [count, high, wide, 2])
        mask = creation.ones_like(pixels[:, :1])
        sampled = nn.functional.grid_sample(
            joining.concat([pixels, mask], 1), points, mode=interpolation, align_corners=False
        )
        mask, sampled = sampled[:, -1:], sampled[:, :-1]
        if interpolation == "nearest":
            mask = (mask >= 0.5).astype(pixels.dtype)
        colors = _constant(np.asarray(fill, np.float32).reshape(1, -1, 1, 1), pixels)
        return sampled * mask + (1.0 - mask) * colors

    return _as_batch(img, change)


def to_grayscale(img: Tensor, channels: int) -> Tensor:
    """The grey image in one channel, or three equal ones."""
    gray = _in_floats(img, _gray)
    return gray if channels == 1 else joining.concat([gray] * 3, -3)


def normalize(img: Tensor, mean: float | Sequence[float], std: float | Sequence[float], last: bool) -> Tensor:
    """(img - mean) / std; `last`: the channels are the last axis."""
    shape = [-1] if last else [-1, 1, 1]
    x = img if not _is_integer(img) else img.astype("float32")
    means, stds = (_constant(np.asarray(value, np.float32).reshape(shape), x) for value in (mean, std))
    return (x - means) / stds


def paint(
    img: Tensor, i: int, j: int, h: int, w: int, v: Tensor | np.ndarray | float, inplace: bool
) -> Tensor:
    """With `v`, which broadcasts to [C, h, w], in the rectangle of h x w pixels from row `i` and column `j` on."""
    value = v if isinstance(v, Tensor) else _constant(np.asarray(v), img)
    rectangle = (..., slice(i, i + h), slice(j, j + w))
    if not inplace and has_pixels(img) and has_pixels(value):
        pixels = np.array(img.numpy())
        pixels[rectangle] = value.numpy()
        return wrap(as_array(pixels, img.dtype))
    if not inplace or isinstance(img._value, Symbol):
        return indexing.setitem(img, rectangle, value)
    img[rectangle] = value
    return img


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: np.ndarray, inplace: bool) -> Tensor:
    """`paint` with what broadcasts to [h, w, C], as images of other kinds have it."""
    value = np.asarray(v)
    if value.ndim == 3:
        value = np.moveaxis(value, -1, 0)
    return paint(img, i, j, h, w, value.reshape(-1, 1, 1) if value.ndim == 1 else value, inplace)
