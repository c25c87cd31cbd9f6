"""Changes of colour of arrays of floats from 0 to 1, which ToTensor gives: what Paddle computes for its Tensors."""

from __future__ import annotations

import cv2
import numpy as np

from framework.core.errors import ShapeError

_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)


def adjust_brightness(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with black."""
    return _blend(_check(img, "adjust_brightness"), 0.0, factor)


def adjust_contrast(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with the mean of the grey image."""
    return _blend(_check(img, "adjust_contrast"), _to_gray(img).mean(), factor)


def adjust_saturation(img: np.ndarray, factor: float) -> np.ndarray:
    """Blended with the grey image; grey images stay."""
    return _blend(_check(img, "adjust_saturation"), _to_gray(img), factor)


def adjust_hue(img: np.ndarray, factor: float) -> np.ndarray:
    """The hue of R, G, B turned by `factor` of the circle; grey images stay."""
    _check(img, "adjust_hue")
    if img.ndim != 3 or img.shape[2] != 3:
        return img
    hsv = cv2.cvtColor(img.astype(np.float32), cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0] + np.float32(360 * factor)) % 360
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB).astype(img.dtype)


def _to_gray(img: np.ndarray) -> np.ndarray:
    return (img * _GRAY).sum(axis=-1, keepdims=True) if img.ndim == 3 and img.shape[2] == 3 else img


def _blend(img: np.ndarray, other: np.ndarray | float, factor: float) -> np.ndarray:
    return (img * factor + other * (1 - factor)).clip(0, 1).astype(img.dtype)


def _check(img: np.ndarray, where: str) -> np.ndarray:
    if img.min() < 0 or img.max() > 1:
        raise ShapeError(
            "colours of floats go from 0 to 1",
            where=where,
            received=f"{img.dtype} from {img.min()} to {img.max()}",
            allowed="floats from 0 to 1, as ToTensor gives them, or bytes",
            fix="put it before Normalize; of floats from 0 to 255 make bytes: .astype(np.uint8)",
        )
    return img
