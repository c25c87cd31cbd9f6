"""Observers: the largest magnitudes of what passes, for all of it or for groups of a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer
from framework.paddle.ops.creation import to_tensor, zeros_like
from framework.paddle.quantization.base_quanter import BaseObserver
from framework.paddle.quantization.factory import ObserverFactory

__all__ = ["AbsmaxObserver", "GroupWiseWeightObserver"]


class AbsmaxObserver(ObserverFactory):
    """One scale: the largest magnitude of all that passed. `quant_bits`: of an integer."""

    def __init__(self, quant_bits: int = 8) -> None:
        super().__init__(quant_bits=quant_bits)

    def _get_class(self) -> type[BaseObserver]:
        return AbsmaxObserverLayer


class AbsmaxObserverLayer(BaseObserver):
    """What `AbsmaxObserver` makes."""

    INIT_ABS_MAX = 1e-7

    def __init__(self, layer: Layer, quant_bits: int = 8) -> None:
        super().__init__()
        self._quant_bits = quant_bits
        self.abs_max_val = to_tensor(self.INIT_ABS_MAX)

    def forward(self, input: Tensor) -> Tensor:
        self.abs_max_val = input.detach().abs().max().astype("float32").maximum(self.abs_max_val)
        return input

    def cal_thresholds(self) -> None:
        self.thresholds = self.abs_max_val

    def bit_length(self) -> int:
        return self._quant_bits

    def quant_axis(self) -> int:
        return -1

    def scales(self) -> Tensor:
        return self.abs_max_val

    def zero_points(self) -> None:
        return None


class GroupWiseWeightObserver(ObserverFactory):
    """A scale for each `group_size` rows of each column of a weight [in, out]: 64 or 128."""

    def __init__(self, quant_bits: int = 8, group_size: int = 128) -> None:
        super().__init__(quant_bits=quant_bits, group_size=group_size)

    def _get_class(self) -> type[BaseObserver]:
        return GroupWiseWeightObserverLayer


class GroupWiseWeightObserverLayer(BaseObserver):
    """What `GroupWiseWeightObserver` makes; its scales are [in / group_size, out]."""

    def __init__(self, layer: Layer, quant_bits: int = 8, group_size: int = 128) -> None:
        super().__init__()
        if group_size not in (64, 128):
            raise AssertionError(f"group_size only support 64 or 128, received {group_size}")
        self.quant_bits, self.group_size = quant_bits, group_size
        self._scale: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        """[in, out] -> itself"""
        if input.ndim != 2 or input.shape[0] % self.group_size:
            raise AssertionError(
                f"a weight [in, out] with a multiple of group_size {self.group_size} rows, received {input.shape}"
            )
        groups = input.detach().abs().reshape([-1, self.group_size, input.shape[1]])
        largest = groups.max(axis=1).astype("float32")
        self._scale = largest + (largest == 0).astype("float32") * 1e-8
        return input

    def cal_thresholds(self) -> None:
        """Nothing: each call knows them whole."""

    def bit_length(self) -> int:
        return self.quant_bits

    def quant_axis(self) -> int:
        return -1

    def scales(self) -> Tensor | None:
        return self._scale

    def zero_points(self) -> Tensor | None:
        return None if self._scale is None else zeros_like(self._scale)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
