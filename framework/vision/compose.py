"""Composing images: a foreground on another background."""

from __future__ import annotations

import cv2
import numpy as np

from framework.core.errors import ShapeError


def blur(image: np.ndarray, radius: int) -> np.ndarray:
    """`image` [H, W, 3] uint8, each pixel a mean of those up to `radius` away, the near ones counting most."""
    return cv2.stackBlur(image, (2 * radius + 1, 2 * radius + 1))


def compose(front: np.ndarray, back: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """`front` where `kept` [H, W] bool, `back` elsewhere; both [H, W, 3] uint8. Along the edge they mix, over 3 pixels.

    Raises:
        ShapeError: the three are not of one size.
    """
    if not front.shape == back.shape == (*kept.shape, 3):
        raise ShapeError(
            "images and mask are not of one size",
            where="compose",
            received=f"{list(front.shape)}, {list(back.shape)}, mask {list(kept.shape)}",
            allowed="[H, W, 3] twice, [H, W]",
        )
    share = cv2.blur(kept.astype(np.float32), (3, 3), borderType=cv2.BORDER_REPLICATE)
    return cv2.blendLinear(np.ascontiguousarray(front), np.ascontiguousarray(back), share, 1 - share)
