"""paddle.vision's functional transforms on PIL images: what its PIL backend computes. Arguments are checked before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from framework.core.errors import ConfigError
from framework.vision.transforms.array_backend import Color

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "lanczos": Image.Resampling.LANCZOS,
    "hamming": Image.Resampling.HAMMING,
}


def resize(img: Image.Image, size_hw: tuple[int, int], interpolation: str) -> Image.Image:
    """Scaled to (height, width)."""
    return img.resize((size_hw[1], size_hw[0]), INTERPOLATIONS[interpolation])


def pad(img: Image.Image, borders: tuple[int, int, int, int], fill: Color, mode: str) -> Image.Image:
    """With a border (left, top, right, bottom). Palettes stay. One number is the first band's and 0 the others'."""
    if mode == "constant":
        out = ImageOps.expand(
            img, borders, _check_bands(img, fill) if isinstance(fill, Sequence) else int(fill)
        )
    else:
        left, top, right, bottom = borders
        pixels = np.asarray(img)
        widths = ((top, bottom), (left, right), (0, 0))[: pixels.ndim]
        out = Image.fromarray(np.pad(pixels, widths, "edge" if mode == "edge" else mode))  # pyright: ignore[reportCallIssue, reportArgumentType]
    palette = img.getpalette() if img.mode == "P" else None
    if palette is not None:
        out.putpalette(palette)
    return out


def crop(img: Image.Image, top: int, left: int, height: int, width: int) -> Image.Image:
    """The part of the image; what lies beyond it is black."""
    return img.crop((left, top, left + width, top + height))


def hflip(img: Image.Image) -> Image.Image:
    """Left and right exchanged."""
    return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Image.Image) -> Image.Image:
    """Top and bottom exchanged."""
    return img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def adjust_brightness(img: Image.Image, factor: float) -> Image.Image:
    """Blended with black."""
    return ImageEnhance.Brightness(img).enhance(factor)


def adjust_contrast(img: Image.Image, factor: float) -> Image.Image:
    """Blended with the mean of the grey image."""
    return ImageEnhance.Contrast(img).enhance(factor)


def adjust_saturation(img: Image.Image, factor: float) -> Image.Image:
    """Blended with the grey image."""
    return ImageEnhance.Color(img).enhance(factor)


def adjust_hue(img: Image.Image, factor: float) -> Image.Image:
    """The hue turned by `factor` of the circle, in 256 steps; grey images stay."""
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = (np.asarray(hue).astype(np.int16) + int(factor * 255)) % 256
    hue = Image.fromarray(turned.astype(np.uint8))
    return Image.merge("HSV", (hue, saturation, value)).convert(img.mode)


def transform(
    img: Image.Image, coefficients: Sequence[float], interpolation: str, fill: Color
) -> Image.Image:
    """By the 6 numbers of an affine map or the 8 of a projective one, from output to input."""
    kind = Image.Transform.AFFINE if len(coefficients) == 6 else Image.Transform.PERSPECTIVE
    return img.transform(
        img.size, kind, list(coefficients), INTERPOLATIONS[interpolation], fillcolor=_fill(img, fill)
    )


def rotate(
    img: Image.Image,
    angle: float,
    interpolation: str,
    expand: bool,
    center: tuple[float, float] | None,
    fill: Color,
) -> Image.Image:
    """Turned anticlockwise by degrees about `center` (x, y)."""
    return img.rotate(
        angle, INTERPOLATIONS[interpolation], expand=expand, center=center, fillcolor=_fill(img, fill)
    )


def to_grayscale(img: Image.Image, channels: int) -> Image.Image:
    """Mode L, or RGB of three equal channels."""
    gray = img.convert("L")
    return gray if channels == 1 else Image.merge("RGB", (gray, gray, gray))


def to_array(img: Image.Image) -> np.ndarray:
    """[H, W, C]: 16-bit and 32-bit greys as int32, mode 1 as 0 and 255, all others as they are stored."""
    if img.mode == "1":
        pixels = np.asarray(img).astype(np.uint8) * np.uint8(255)
    else:
        pixels = np.asarray(img)
        if img.mode.startswith("I"):
            pixels = pixels.astype(np.int32)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _fill(img: Image.Image, fill: Color) -> float | tuple[int, ...]:
    """One number stands for all bands."""
    bands = len(img.getbands())
    if isinstance(fill, Sequence):
        return _check_bands(img, fill)
    return fill if bands == 1 else (int(fill),) * bands


def _check_bands(img: Image.Image, fill: Sequence[float]) -> tuple[int, ...]:
    if len(fill) != len(img.getbands()):
        raise ConfigError(
            "the colour has another number of bands than the image",
            where="fill",
            received=f"{fill} for an image of mode {img.mode}",
            allowed=f"one number, or {len(img.getbands())}",
        )
    return tuple(int(value) for value in fill)
