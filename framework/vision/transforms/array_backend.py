"""paddle.vision's functional transforms on arrays [H, W] or [H, W, C]: what its cv2 backend computes, bit for bit.

A trailing axis of one channel, which OpenCV drops, is kept. Checks of arguments are in `functional`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec

import cv2
import numpy as np

from framework.core.errors import ShapeError

P = ParamSpec("P")
Color = float | Sequence[float]
INTERPOLATIONS = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "area": cv2.INTER_AREA,
    "bicubic": cv2.INTER_CUBIC,
    "lanczos": cv2.INTER_LANCZOS4,
}
_BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
}
_CONTRAST_CENTRE = 74  # Paddle's constant, whatever the image's mean is
_LEVELS = np.arange(256)


def _explain(
    function: Callable[Concatenate[np.ndarray, P], np.ndarray],
) -> Callable[Concatenate[np.ndarray, P], np.ndarray]:
    """What OpenCV refuses is a ShapeError."""

    @functools.wraps(function)
    def run(img: np.ndarray, *args: P.args, **kwargs: P.kwargs) -> np.ndarray:
        try:
            return function(img, *args, **kwargs)
        except cv2.error as error:
            raise ShapeError(
                "OpenCV does not do this with such an image, or such a fill",
                where=function.__name__,
                received=f"{img.dtype} {list(img.shape)}",
                allowed="uint8, uint16, int16, float32 or float64; up to 4 channels to turn or pad",
            ) from error

    return run


@_explain
def resize(img: np.ndarray, size_hw: tuple[int, int], interpolation: str) -> np.ndarray:
    """Scaled to (height, width)."""
    return _like(img, cv2.resize(img, size_hw[::-1], interpolation=INTERPOLATIONS[interpolation]))


@_explain
def pad(img: np.ndarray, borders: tuple[int, int, int, int], fill: Color, mode: str) -> np.ndarray:
    """With a border (left, top, right, bottom)."""
    left, top, right, bottom = borders
    return _like(img, cv2.copyMakeBorder(img, top, bottom, left, right, _BORDERS[mode], value=_color(fill)))


def crop(img: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """The part of the image, a view of it.

    Raises:
        ShapeError: it is empty, or reaches beyond the image.
    """
    whole_h, whole_w = img.shape[:2]
    if not (0 <= top < top + height <= whole_h and 0 <= left < left + width <= whole_w):
        raise ShapeError(
            "the part does not lie in the image",
            where="crop",
            received=f"top {top}, left {left}, height {height}, width {width} of {whole_h} x {whole_w} pixels",
            allowed="a part of at least one pixel inside of the image",
            fix="pad the image first, or give RandomCrop pad_if_needed=True",
        )
    return img[top : top + height, left : left + width]


@_explain
def hflip(img: np.ndarray) -> np.ndarray:
    """Left and right exchanged."""
    return _like(img, cv2.flip(img, 1))


@_explain
def vflip(img: np.ndarray) -> np.ndarray:
    """Top and bottom exchanged."""
    return _like(img, cv2.flip(img, 0))


@_explain
def adjust_brightness(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with black; values are cut off to whole numbers."""
    return _by_table(_bytes(img, "adjust_brightness"), _LEVELS * factor)


@_explain
def adjust_contrast(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with one grey, 74."""
    return _by_table(_bytes(img, "adjust_contrast"), (_LEVELS - _CONTRAST_CENTRE) * factor + _CONTRAST_CENTRE)


@_explain
def adjust_saturation(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with the grey image."""
    values = _rgb(img, "adjust_saturation").astype(np.float32)
    gray = cv2.cvtColor(values, cv2.COLOR_RGB2GRAY)[..., None]
    blend = values * np.float32(factor) + gray * np.float32(1 - factor)
    return blend.clip(0, 255).astype(img.dtype)


@_explain
def adjust_hue(img: np.ndarray, factor: float) -> np.ndarray:
    """The hue turned by `factor` of the circle, in 256 steps; the channels count as B, G, R, as in Paddle."""
    hsv = cv2.cvtColor(_rgb(img, "adjust_hue").astype(np.uint8), cv2.COLOR_BGR2HSV_FULL)
    hsv[..., 0] = (hsv[..., 0].astype(np.int32) + int(factor * 255)) % 256
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR_FULL).astype(img.dtype)


@_explain
def affine(
    img: np.ndarray,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: tuple[float, float],
    interpolation: str,
    fill: Color,
) -> np.ndarray:
    """Turned, scaled and sheared about the corner at the top left, then shifted."""
    turn = cv2.getRotationMatrix2D((0.0, 0.0), angle, scale)
    shear_x, shear_y = (math.tan(degrees * math.pi / 180) for degrees in shear)
    matrix = np.stack([turn[0] + shear_y * turn[1], turn[1] + shear_x * turn[0]])
    matrix[:, 2] = translate
    border = (fill,) * 3 if isinstance(fill, int) else fill
    return _warp_affine(img, matrix, (img.shape[1], img.shape[0]), interpolation, border)


@_explain
def rotate(
    img: np.ndarray,
    angle: float,
    interpolation: str,
    expand: bool,
    center: tuple[float, float] | None,
    fill: Color,
) -> np.ndarray:
    """Turned anticlockwise by degrees about `center` (x, y)."""
    height, width = img.shape[:2]
    center = center or (width / 2.0, height / 2.0)
    matrix = cv2.getRotationMatrix2D(center, angle, 1)
    size_wh = (width, height)
    if expand:
        turn = math.radians(angle)
        cos, sin = round(math.cos(turn), 15), round(-math.sin(turn), 15)
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]]) - center
        x = cos * corners[:, 0] + sin * corners[:, 1] + center[0]
        y = -sin * corners[:, 0] + cos * corners[:, 1] + center[1]
        size_wh = (
            math.ceil(x.max()) - math.floor(x.min()),
            math.ceil(y.max()) - math.floor(y.min()),
        )
        matrix[:, 2] += [(size_wh[0] - width) * 0.5, (size_wh[1] - height) * 0.5]
    return _warp_affine(img, matrix, size_wh, interpolation, fill)


@_explain
def perspective(
    img: np.ndarray, start: np.ndarray, end: np.ndarray, interpolation: str, fill: Color
) -> np.ndarray:
    """With the four points `start` [4, 2] xy moved to `end`."""
    matrix = cv2.getPerspectiveTransform(start.astype(np.float32), end.astype(np.float32))
    flags = INTERPOLATIONS[interpolation]
    size_wh = (img.shape[1], img.shape[0])
    return _like(img, cv2.warpPerspective(img, matrix, size_wh, flags=flags, borderValue=_color(fill)))


@_explain
def to_grayscale(img: np.ndarray, channels: int) -> np.ndarray:
    """0.299 R + 0.587 G + 0.114 B in 1 or 3 channels."""
    gray = cv2.cvtColor(_rgb(img, "to_grayscale"), cv2.COLOR_RGB2GRAY)[..., None]
    return gray if channels == 1 else np.repeat(gray, 3, axis=2)


def _warp_affine(
    img: np.ndarray, matrix: np.ndarray, size_wh: tuple[int, int], interpolation: str, fill: Color
) -> np.ndarray:
    flags = INTERPOLATIONS[interpolation]
    return _like(img, cv2.warpAffine(img, matrix, size_wh, flags=flags, borderValue=_color(fill)))


def _by_table(img: np.ndarray, table: np.ndarray) -> np.ndarray:
    return _like(img, cv2.LUT(img, table.clip(0, 255).astype(np.uint8)))


def _like(img: np.ndarray, out: np.ndarray) -> np.ndarray:
    return out[..., None] if out.ndim < img.ndim else out


def _color(fill: Color) -> float | tuple[float, ...]:
    """OpenCV's border value; it takes one number as the colour's first channel and 0 for the others, as Paddle does."""
    return tuple(map(float, fill)) if isinstance(fill, Sequence) else float(fill)


def _bytes(img: np.ndarray, where: str) -> np.ndarray:
    if img.dtype != np.uint8:
        raise ShapeError(
            "the levels of the image are not bytes", where=where, received=img.dtype, allowed="uint8"
        )
    return img


def _rgb(img: np.ndarray, where: str) -> np.ndarray:
    if img.ndim != 3 or img.shape[2] != 3:
        raise ShapeError(
            "the image has no colours", where=where, received=list(img.shape), allowed="[H, W, 3]"
        )
    return img
