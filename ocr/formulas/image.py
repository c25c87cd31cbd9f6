"""How networks see a formula: without its margins, in a square, grey.

Source: UniMERNet, https://arxiv.org/abs/2404.15254; PaddleOCR ppocr/data/imaug/unimernet_aug.py (UniMERNetImgDecode)
"""

from __future__ import annotations

import numpy as np

from framework.core.errors import InputError
from framework.vision.filtered import resize_filtered, thumbnail
from framework.vision.image import to_gray

_INK = 200  # of 255 once the grey values are stretched: darker pixels belong to the formula
_MOST_ASPECT = 40  # of formulas that are enlarged before they are shrunk, as upstream does it


def crop_margins(image: np.ndarray) -> np.ndarray:
    """The part of an image [H, W, 3] uint8 RGB in which there are dark pixels; all of it where all pixels are equal."""
    gray = to_gray(image).astype(np.float64)
    low, high = gray.min(), gray.max()
    if low == high:
        return image
    ink = (gray - low) / (high - low) * 255 < _INK
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def prepare_formula(image: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The formula of an image [H, W, 3] uint8 RGB in the middle of [*size_hw, 3], black around it, in grey.

    Raises:
        InputError: the image has no pixels.
    """
    if not image.shape[0] or not image.shape[1]:
        raise InputError(
            "the image of a formula is empty", received=f"{image.shape[1]} x {image.shape[0]} pixels"
        )
    image = np.ascontiguousarray(crop_margins(image))
    height, width = image.shape[:2]
    short, side = min(height, width), min(size_hw)
    if max(height, width) <= _MOST_ASPECT * short:
        longer = int(side * max(height, width) / short)
        image = resize_filtered(image, (side, longer) if height <= width else (longer, side))
    else:  # enlarging would take too much memory
        scale = min(size_hw[0] / height, size_hw[1] / width)
        image = resize_filtered(image, (max(1, round(height * scale)), max(1, round(width * scale))))
    image = thumbnail(image, size_hw)
    height, width = image.shape[:2]
    top, left = (size_hw[0] - height) // 2, (size_hw[1] - width) // 2
    whole = np.zeros((*size_hw, 3), np.uint8)
    whole[top : top + height, left : left + width] = to_gray(image)[..., None]
    return whole
