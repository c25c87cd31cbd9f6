"""The part of a page's image that a block covers."""

from __future__ import annotations

import numpy as np

from ocr.results.blocks import Box

PixelBox = tuple[int, int, int, int]


def cut_box(image: np.ndarray, box: Box, *, least: int = 1) -> tuple[np.ndarray, PixelBox]:
    """The pixels of `image [H, W, 3]` that a box covers, and their place (left, top, right, bottom).

    Args:
        least: Pixels of a smaller box, as far as the image goes. A crop beside the image, and with 0 that of a box
            without a whole pixel, is empty.
    """
    height, width = image.shape[:2]
    left, top = max(0, int(box[0])), max(0, int(box[1]))
    right = min(width, max(left + least, round(box[2])))
    bottom = min(height, max(top + least, round(box[3])))
    return np.ascontiguousarray(image[top:bottom, left:right]), (left, top, right, bottom)
