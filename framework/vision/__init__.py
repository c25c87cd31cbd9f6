"""Images, videos and documents as NumPy arrays: reading, geometry, drawing, writing. The only place that imports cv2.

Import the modules by name: `from framework.vision import image, boxes, draw`. Images are `[H, W, 3]` uint8 RGB;
coordinates are continuous xy, pixel i covers [i, i+1) (see `warp`). `transforms`, `ops` and `datasets` are
paddle.vision's, loaded when they are first used, as the three functions below.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.vision import datasets as datasets
    from framework.vision import ops as ops
    from framework.vision import transforms as transforms
    from framework.vision.backend import get_image_backend as get_image_backend
    from framework.vision.backend import image_load as image_load
    from framework.vision.backend import set_image_backend as set_image_backend

_PACKAGES = ("datasets", "ops", "transforms")
_FUNCTIONS = ("get_image_backend", "image_load", "set_image_backend")


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return importlib.import_module(f"framework.vision.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module("framework.vision.backend"), name)
    raise AttributeError(f"module 'framework.vision' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_FUNCTIONS})
