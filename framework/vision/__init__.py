"""Images, videos and documents as NumPy arrays: reading, geometry, drawing, writing. The only place that imports cv2.

Import the modules by name: `from framework.vision import image, boxes, draw`. Images are `[H, W, 3]` uint8 RGB;
coordinates are continuous xy, pixel i covers [i, i+1) (see `warp`). `models` and `transforms` are there as attributes
too, as in `paddle.vision`.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.vision import models as models
    from framework.vision import transforms as transforms

_PACKAGES = ("models", "transforms")


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return importlib.import_module(f"framework.vision.{name}")
    raise AttributeError(f"module 'framework.vision' has no attribute {name!r}")
