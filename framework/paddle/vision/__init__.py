"""paddle.vision: models, transforms, datasets and operations on images, channels first."""

from __future__ import annotations

from framework.paddle.vision import models as models
from framework.paddle.vision import ops as ops
