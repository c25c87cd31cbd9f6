"""What photometric transforms do to pixels: uint8 `[H, W, 3]` RGB in, a new one out, nothing random.

A `factor` blends between a flat image (0), the image itself (1) and what lies beyond (above 1), as in Pillow's
ImageEnhance and torchvision. Values are rounded to the nearest and cut at 0 and 255.
"""

from __future__ import annotations

import cv2
import numpy as np

from framework.vision.image import to_gray

_VALUES = np.arange(256)


def brightness(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends with black."""
    return _by_table(image, _VALUES * factor)


def contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends with the mean of the grey image."""
    mean = round(cv2.mean(to_gray(image))[0])
    return _by_table(image, mean + factor * (_VALUES - mean))


def saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends with the grey image."""
    return cv2.addWeighted(image, factor, grayscale(image), 1 - factor, 0)


def sharpness(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends with the image smoothed by (1 1 1, 1 5 1, 1 1 1) / 13; the outermost pixels stay as they are."""
    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    out = cv2.addWeighted(image, factor, cv2.filter2D(image, -1, kernel), 1 - factor, 0)
    for edge in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        out[edge] = image[edge]
    return out


def hue(image: np.ndarray, turns: float) -> np.ndarray:
    """Turns the hue by a share of the full circle (0.5: the opposite colour), in 256 steps."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV_FULL)
    hsv[..., 0] += np.uint8(round(turns * 256) % 256)  # wraps round at 256, as hues do
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL)


def grayscale(image: np.ndarray) -> np.ndarray:
    """The grey image (0.299 R + 0.587 G + 0.114 B) in three equal channels."""
    return cv2.cvtColor(to_gray(image), cv2.COLOR_GRAY2RGB)


def invert(image: np.ndarray) -> np.ndarray:
    """255 - value."""
    return cv2.bitwise_not(image)


def solarize(image: np.ndarray, threshold: float) -> np.ndarray:
    """Inverts the values from `threshold` up: 0 inverts all, 256 none."""
    return _by_table(image, np.where(threshold <= _VALUES, 255 - _VALUES, _VALUES))


def posterize(image: np.ndarray, bits: int) -> np.ndarray:
    """Keeps the highest `bits` (0 to 8) of each value."""
    return _by_table(image, _VALUES & (256 - 2 ** (8 - bits)))


def autocontrast(image: np.ndarray) -> np.ndarray:
    """Stretches each channel so that its least value becomes 0 and its greatest 255; flat channels stay."""
    tables = []
    for channel in cv2.split(image):
        low, high, _, _ = cv2.minMaxLoc(channel)
        tables.append(_VALUES if high == low else (_VALUES - low) * (255 / (high - low)))
    return _by_table(image, np.stack(tables, axis=-1))


def equalize(image: np.ndarray) -> np.ndarray:
    """Spreads each channel's values so that all are about equally frequent, by the rule of Pillow's ImageOps."""
    tables = []
    for channel in cv2.split(image):
        counts = np.bincount(channel.ravel(), minlength=256)
        step = (channel.size - counts[counts > 0][-1]) // 255
        below = np.cumsum(counts) - counts
        tables.append(_VALUES if step == 0 else (step // 2 + below) // step)
    return _by_table(image, np.stack(tables, axis=-1))


def _by_table(image: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Each value exchanged for the entry of `table [256]` or, a channel each, `[256, 3]`."""
    rounded = np.rint(np.clip(table, 0, 255)).astype(np.uint8)
    return cv2.LUT(image, rounded.reshape(256, 1, -1) if rounded.ndim == 2 else rounded)
