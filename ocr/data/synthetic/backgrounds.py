"""What is behind synthetic text, and colours that can be read on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.vision import degrade, image
from framework.vision.dataset_files import read_image
from framework.vision.warp import Size
from ocr.data.synthetic.style import TextStyle

_LUMA = np.array([0.299, 0.587, 0.114])
_PAPER_SIDE = 1024
_LONGEST = 1024  # pixels of a background image that is kept


def list_backgrounds(style: TextStyle) -> tuple[Path, ...]:
    """The images of the style's folder and of those below it.

    Raises:
        InputError: there is no such folder, or no image in it.
    """
    if style.background_images is None:
        return ()
    found = tuple(image.list_images(style.background_images, recursive=True))
    if not found:
        raise InputError(
            "the folder of backgrounds holds no image",
            where=style.background_images,
            allowed=f"files that end in {', '.join(image.SUFFIXES)}",
        )
    return found


def draw_background(
    size_hw: Size,
    style: TextStyle,
    images: Sequence[Path],
    rng: np.random.Generator,
    dark: bool | None = None,
) -> np.ndarray:
    """`[H, W, 3]` uint8 of one of the style's kinds.

    Args:
        dark: Whether it is dark, where its colour is free; None: by the style's share.
    """
    kinds = [*style.backgrounds, *(["images"] if images and "images" not in style.backgrounds else [])]
    kind = kinds[int(rng.integers(len(kinds)))]
    dark = bool(rng.random() >= style.dark_on_light) if dark is None else dark
    if kind == "images":
        return _cut_from_image(images[int(rng.integers(len(images)))], size_hw, rng)
    colour = _draw_colour(rng, dark)
    if kind == "gradient":
        near = np.clip(colour + rng.normal(0, 22, (2, 2, 3)), 0, 255).astype(np.uint8)
        return image.resize(near, size_hw)
    plain = np.empty((*size_hw, 3), np.uint8)
    plain[...] = np.clip(colour, 0, 255)
    if kind == "noise":
        coarse = degrade.noise((max(2, size_hw[0] // 6), max(2, size_hw[1] // 6)), rng)
        spots = image.resize(coarse, size_hw)
        plain = degrade.add_pattern(plain, [spots], rng.uniform(0.05, 0.4))
        return degrade.add_noise(plain, rng.uniform(2, 14), rng)
    if kind == "paper":
        height, width = size_hw
        tile = _paper_tile()
        if height > _PAPER_SIDE or width > _PAPER_SIDE:
            texture = image.resize(tile, size_hw, "cubic")
        else:
            y, x = int(rng.integers(_PAPER_SIDE - height + 1)), int(rng.integers(_PAPER_SIDE - width + 1))
            texture = tile[y : y + height, x : x + width]
        return degrade.add_pattern(plain, [texture], rng.uniform(0.1, 0.45))
    return plain


def draw_text_colour(
    background: np.ndarray, style: TextStyle, rng: np.random.Generator, coverage: np.ndarray | None = None
) -> np.ndarray:
    """A colour [3], 0 to 255, that differs from the mean of `background [H, W, 3]` by the style's contrast.

    Where the background varies much it differs more; where it cannot differ enough it is black or white.

    Args:
        coverage: `[H, W]`, whose pixels > 0 alone count.
    """
    pixels = background[::4, ::4].reshape(-1, 3) if coverage is None else background[coverage > 0]
    if not len(pixels):
        pixels = background.reshape(-1, 3)
    luma = pixels @ _LUMA
    mean, least = float(luma.mean()), style.min_contrast + float(luma.std())
    darker = mean - least > 0 and (mean + least >= 255 or mean > 110)
    limit = mean - least if darker else mean + least
    if not 0 < limit < 255:
        return np.full(3, 0.0 if mean > 127 else 255.0)
    # Most print is near black or white; the rest has any colour that is far enough.
    room = limit if darker else 255 - limit
    depth = room * rng.random() ** (0.5 if rng.random() < 0.3 else 4)
    wanted = depth if darker else 255 - depth
    return _tint(wanted, rng, 60 if rng.random() < 0.35 else 6, (0, limit) if darker else (limit, 255))


def luma_of(colour: np.ndarray) -> float:
    """Brightness of a colour [3], 0 to 255."""
    return float(colour @ _LUMA)


def _draw_colour(rng: np.random.Generator, dark: bool) -> np.ndarray:
    level = rng.uniform(5, 110) if dark else 255 - 140 * rng.random() ** 2.2
    return _tint(level, rng, 45 if rng.random() < 0.4 else 8, (0, 255))


def _tint(level: float, rng: np.random.Generator, spread: float, bounds: tuple[float, float]) -> np.ndarray:
    """A colour around the brightness `level`, itself of a brightness within the bounds."""
    colour = np.clip(level + rng.normal(0, spread, 3), 0, 255)
    low, high = bounds
    luma = luma_of(colour)
    if luma > high:
        return colour * (high / luma)
    if luma < low:
        return 255 - (255 - colour) * ((255 - low) / (255 - luma))
    return colour


@cache
def _paper_tile() -> np.ndarray:
    """`[1024, 1024]` int16 of standard deviation 32: fibres, grain and stains at several scales."""
    rng = np.random.default_rng(19_370_101)
    side = (_PAPER_SIDE, _PAPER_SIDE)
    total = np.zeros(side, np.float32)
    for scale, weight in ((1, 0.5), (3, 0.6), (12, 0.7), (60, 1.0), (240, 1.2)):
        coarse = rng.normal(0, 1, (math.ceil(_PAPER_SIDE / scale) + 1,) * 2).astype(np.float32)
        total += weight * image.resize(coarse, side, "cubic")
    fibres = rng.normal(0, 1, (_PAPER_SIDE, _PAPER_SIDE // 12)).astype(np.float32)
    total += 0.5 * image.resize(fibres, side, "linear")
    tile = np.rint((total - total.mean()) * (32 / total.std())).clip(-128, 127).astype(np.int16)
    tile.flags.writeable = False
    return tile


def _cut_from_image(path: Path, size_hw: Size, rng: np.random.Generator) -> np.ndarray:
    """A random part of the aspect of `size_hw`, scaled to it."""
    source = _read_background(path)
    height, width = source.shape[:2]
    most = min(height / size_hw[0], width / size_hw[1])
    scale = most * rng.uniform(0.3, 1) if most > 1 else most
    h, w = (max(1, min(side, round(wanted * scale))) for side, wanted in zip((height, width), size_hw))
    y, x = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
    return image.resize(source[y : y + h, x : x + w], size_hw, "area" if scale > 1 else "linear")


@lru_cache(maxsize=64)
def _read_background(path: Path) -> np.ndarray:
    pixels = read_image(path, path, otherwise="take it out of the folder of backgrounds")
    shrink = _LONGEST / max(pixels.shape[:2])
    if shrink < 1:
        height, width = (max(1, round(side * shrink)) for side in pixels.shape[:2])
        pixels = image.resize(pixels, (height, width), "area")
    pixels.flags.writeable = False
    return pixels
