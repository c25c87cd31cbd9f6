"""Which kind of image Paddle's data sets give: set_image_backend, get_image_backend, image_load."""

from __future__ import annotations

import os

import numpy as np
from PIL import Image

from framework.core.errors import ConfigError
from framework.core.process_state import state
from framework.vision import image

BACKENDS = ("pil", "cv2")


def check_backend(backend: str | None, where: str) -> str:
    """The backend, or the one that is set. Raises: ConfigError."""
    if backend is None:
        return state.image_backend
    if backend not in BACKENDS:
        raise ConfigError(
            "unknown image backend",
            where=where,
            received=repr(backend),
            allowed="pil: PIL images; cv2: arrays",
        )
    return backend


def set_image_backend(backend: str) -> None:
    """What data sets give from now on that are not told: "pil" PIL images, "cv2" arrays [H, W, 3] RGB."""
    state.image_backend = check_backend(backend, "set_image_backend")


def get_image_backend() -> str:
    """What data sets give that are not told; "pil" at first."""
    return state.image_backend


def image_load(path: str | os.PathLike[str], backend: str | None = None) -> Image.Image | np.ndarray:
    """The image as RGB, a PIL image or an array. Formats and errors are those of `framework.vision.image.read`."""
    pixels = image.read(path)
    return Image.fromarray(pixels) if check_backend(backend, "image_load") == "pil" else pixels
