"""Bases of layers that simulate or observe quantisation."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer


class BaseQuanter(Layer, metaclass=abc.ABCMeta):
    """A layer that takes a Tensor and gives it back as its integers would have it, or as it was.

    The class that `paddle.quantization.quanter` or a factory makes is called with the layer that it serves first.
    """

    @abc.abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """The Tensor, of the same shape."""

    @abc.abstractmethod
    def scales(self) -> Tensor | np.ndarray | None:
        """The largest magnitude that integers stand for, of all or of each channel; None: there is none yet."""

    @abc.abstractmethod
    def zero_points(self) -> Tensor | np.ndarray | None:
        """The integers that stand for 0; None: 0."""

    @abc.abstractmethod
    def quant_axis(self) -> int | None:
        """The axis of the channels; -1 or None: one scale for all."""

    @abc.abstractmethod
    def bit_length(self) -> int:
        """Bits of an integer."""


class BaseObserver(BaseQuanter):
    """A layer that gives its input back and looks at its values."""

    @abc.abstractmethod
    def cal_thresholds(self) -> None:
        """Compute the scales from what was seen."""


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
