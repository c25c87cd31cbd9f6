"""paddle.dataset: readers of the time before paddle.io; paddle.vision.datasets and paddle.text have the data sets."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.dataset import common as common
from framework.paddle.dataset import mnist as mnist

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
