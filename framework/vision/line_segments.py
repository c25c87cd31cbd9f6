"""Straight level and upright lines in a page's image: morphological openings by long thin elements."""

from __future__ import annotations

import cv2
import numpy as np

from framework.core.errors import ShapeError


def find_ruling_lines(
    image: np.ndarray, *, min_length: int, max_thickness: int
) -> tuple[np.ndarray, np.ndarray]:
    """Dark lines of an image [H, W, 3] or [H, W], uint8.

    Returns: level lines [L, 3] as (y, x0, x1) and upright ones [U, 3] as (x, y0, y1), centre lines in pixels, at least
    `min_length` long and at most `max_thickness` thick.
    Raises: ShapeError when the array is no image.
    """
    if image.ndim not in (2, 3) or image.dtype != np.uint8 or not image.size:
        raise ShapeError(
            "not an image",
            where="find_ruling_lines",
            received=f"{image.dtype} {list(image.shape)}",
            allowed="uint8 [H, W, 3] or [H, W]",
        )
    grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    block = max(3, min_length | 1)
    dark = cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, block, 12)
    return (
        _lines(dark, min_length, max_thickness),
        _lines(np.ascontiguousarray(dark.T), min_length, max_thickness),
    )


def _lines(dark: np.ndarray, min_length: int, max_thickness: int) -> np.ndarray:
    # Runs first, then gaps between them: closing the gaps of the image itself makes lines of rows of letters.
    run = max(min_length // 3, 2)
    runs = cv2.morphologyEx(dark, cv2.MORPH_OPEN, np.ones((1, run), np.uint8))
    bridged = cv2.morphologyEx(runs, cv2.MORPH_CLOSE, np.ones((1, 5), np.uint8))
    opened = cv2.morphologyEx(bridged, cv2.MORPH_OPEN, np.ones((1, max(min_length, 2)), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(opened, connectivity=8)
    lines = []
    for left, top, width, height, area in stats[1:count].tolist():
        # A line that is not quite level is taller than it is thick.
        if area <= 1.5 * max_thickness * width and height <= 3 * max_thickness and width >= min_length:
            lines.append((top + height / 2, left, left + width))
    return np.array(lines, np.float64).reshape(-1, 3)
