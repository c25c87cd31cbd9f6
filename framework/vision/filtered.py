"""Resizing by Pillow's filters, which widen as an image shrinks, for models that were trained on such images."""

from __future__ import annotations

import numpy as np
from PIL import Image


def resize_filtered(image: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """`image [H, W, 3]` uint8 at `size_hw`, by the triangle filter (Pillow's BILINEAR)."""
    height, width = size_hw
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


def thumbnail(image: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """`image [H, W, 3]` uint8 shrunk, its aspect kept, until it fits into `size_hw`; one that fits stays as it is.

    As Pillow's `Image.thumbnail`: by boxes, then by the cubic filter.
    """
    small = Image.fromarray(image)
    small.thumbnail((size_hw[1], size_hw[0]))
    return np.asarray(small)
