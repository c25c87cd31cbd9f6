"""paddle.vision: models, transforms, datasets and operations on images, channels first.

What the first three hold can also be taken from here, as programs do: `paddle.vision.DatasetFolder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.vision import datasets as datasets
from framework.paddle.vision import models as models
from framework.paddle.vision import ops as ops
from framework.paddle.vision import transforms as transforms
from framework.paddle.vision.images import get_image_backend as get_image_backend
from framework.paddle.vision.images import image_load as image_load
from framework.paddle.vision.images import set_image_backend as set_image_backend

if not TYPE_CHECKING:
    _resolve = _resolver(__name__)

    def __getattr__(name: str) -> object:
        for module in (datasets, models, transforms):
            if name in vars(module):
                return vars(module)[name]
        return _resolve(name)
