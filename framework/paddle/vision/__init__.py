"""paddle.vision: models, transforms, datasets and operations on images, channels first."""

from __future__ import annotations

from framework.paddle.vision import datasets as datasets
from framework.paddle.vision import models as models
from framework.paddle.vision import ops as ops
from framework.paddle.vision import transforms as transforms
from framework.paddle.vision.images import get_image_backend as get_image_backend
from framework.paddle.vision.images import image_load as image_load
from framework.paddle.vision.images import set_image_backend as set_image_backend
from framework.paddle.vision.models.lenet import LeNet as LeNet
