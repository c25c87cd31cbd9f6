"""What cameras, printers and files do to an image, in place of what `sample_transforms.pixels` does to its colours.

uint8 `[H, W]` or `[H, W, 3]` in, a new one out. What is random is drawn from `rng` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.image import check_pixels

_TILE = (1024, 2048)  # rows and columns of the noise that all images share


def displace(image: np.ndarray, offsets_xy: np.ndarray, border: int | None = None) -> np.ndarray:
    """The image whose pixel (x, y) is that of `image` at (x, y) + `offsets_xy [H, W, 2]`, by linear interpolation.

    Args:
        border: The value outside of the image; None: its nearest edge pixel.

    Raises:
        ShapeError: `offsets_xy` is of another size.
    """
    check_pixels(image, "displace")
    height, width = image.shape[:2]
    if offsets_xy.shape != (height, width, 2):
        raise ShapeError(
            "the offsets do not fit the image",
            where="displace",
            received=list(offsets_xy.shape),
            allowed=[height, width, 2],
        )
    x = offsets_xy[..., 0].astype(np.float32) + np.arange(width, dtype=np.float32)
    y = offsets_xy[..., 1].astype(np.float32) + np.arange(height, dtype=np.float32)[:, None]
    mode = cv2.BORDER_REPLICATE if border is None else cv2.BORDER_CONSTANT
    fill = (border or 0,) * 4
    source = np.ascontiguousarray(image)
    out = cv2.remap(source, x, y, cv2.INTER_LINEAR, borderMode=mode, borderValue=fill)
    return out.reshape(image.shape)


def blur(image: np.ndarray, sigma: float) -> np.ndarray:
    """Smoothed by a Gaussian of standard deviation `sigma` > 0, in pixels; mirrored at the edges."""
    return cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101).reshape(image.shape)


def motion_blur(image: np.ndarray, length: int, degrees: float) -> np.ndarray:
    """Smeared along a line of `length` >= 1 pixels, `degrees` clockwise from the x axis."""
    side = length | 1
    kernel = np.zeros((side, side), np.float32)
    reach = (length - 1) / 2
    step = reach * np.cos(np.deg2rad(degrees)), reach * np.sin(np.deg2rad(degrees))
    middle = side // 2
    ends = [(round(middle + sign * step[0]), round(middle + sign * step[1])) for sign in (-1, 1)]
    cv2.line(kernel, ends[0], ends[1], (1.0,))
    return cv2.filter2D(image, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT_101).reshape(
        image.shape
    )


def shrink_and_grow(image: np.ndarray, factor: float) -> np.ndarray:
    """Scaled to `factor` (0 to 1) of its size and back, as a photo from too far away is."""
    height, width = image.shape[:2]
    small = (max(1, round(width * factor)), max(1, round(height * factor)))
    coarse = cv2.resize(image, small, interpolation=cv2.INTER_AREA)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR).reshape(image.shape)


def jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """What is left of `image [H, W, 3]` RGB after it was stored as a JPEG of `quality` (1 to 100).

    Raises:
        ShapeError: the image has a side longer than JPEG's limit.
    """
    if max(image.shape[:2]) > 65_500:
        raise ShapeError(
            "JPEG holds no such image", where="jpeg", received=list(image.shape), allowed="sides <= 65,500"
        )
    # The channels' order decides how much each loses: JPEG's luminance takes them as BGR.
    _, data = cv2.imencode(
        ".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    out = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
    assert out is not None, "it was encoded here"
    return out


def add_noise(image: np.ndarray, sigma: float, rng: np.random.Generator, *, grey: bool = False) -> np.ndarray:
    """Gaussian noise of standard deviation `sigma`, in values 0 to 255: a random part of one tile, mirrored at random.

    Args:
        grey: All channels of a pixel get the same.
    """
    parts = [noise(image.shape[:2], rng) for _ in range(1 if grey or image.ndim == 2 else 3)]
    return add_pattern(image, parts, sigma / 32)


def add_pattern(image: np.ndarray, parts: Sequence[np.ndarray], gain: float) -> np.ndarray:
    """`image` plus `gain` times int16 patterns `[H, W]`: one for all channels, or one each; cut at 0 and 255."""
    pattern = parts[0]
    if image.ndim == 3:
        pattern = cv2.merge(list(parts) if len(parts) == 3 else [parts[0]] * 3)
    return cv2.addWeighted(image, 1.0, pattern, gain, 0, dtype=cv2.CV_8U).reshape(image.shape)


def noise(size_hw: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Normally distributed int16 `size_hw` of standard deviation 32: a random part of a tile, repeated if too small."""
    tile = _noise_tile()
    y, x, flips = int(rng.integers(_TILE[0])), int(rng.integers(_TILE[1])), int(rng.integers(4))
    (height, width), (rows, columns) = size_hw, _TILE
    if height > rows or width > columns:
        part = np.tile(tile, (-(-height // rows) + 1, -(-width // columns) + 1))[
            y : y + height, x : x + width
        ]
    else:
        y, x = y % (rows - height + 1), x % (columns - width + 1)
        part = tile[y : y + height, x : x + width]
    return np.ascontiguousarray(part[:: 1 - 2 * (flips & 1), :: 1 - (flips & 2)])


def blend(background: np.ndarray, coverage: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """`background [H, W, 3]` with `colour [3]` (0 to 255) laid on it where `coverage [H, W]` uint8 says how much."""
    alpha = coverage.astype(np.uint16)[..., None]
    mixed = background * (255 - alpha) + np.asarray(colour).astype(np.uint16) * alpha + 127
    return (mixed // 255).astype(np.uint8)


@cache
def _noise_tile() -> np.ndarray:
    values = np.random.default_rng(20_160_413).normal(0, 32, _TILE)
    tile = np.rint(values).clip(-128, 127).astype(np.int16)
    tile.flags.writeable = False
    return tile
