"""Layers whose weights and inputs pass quanters; their own parameters are those of the layers that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.quant.format import ConvertibleQuantedLayer, QuanterConfig


class _QuantedLayer(ConvertibleQuantedLayer):
    """Args: layer: what it stands for; q_config: with the factories `weight` and `activation`, or None."""

    def __init__(self, layer: Layer, q_config: QuanterConfig) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = None if q_config.weight is None else q_config.weight._instance(layer)
        self.activation_quanter = (
            None if q_config.activation is None else q_config.activation._instance(layer)
        )

    def forward(self, input: Tensor) -> Tensor:
        x = input if self.activation_quanter is None else self.activation_quanter(input)
        weight = self.weight if self.weight_quanter is None else self.weight_quanter(self.weight)
        return self._apply(x, weight)

    def _apply(self, x: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        return ["activation_quanter"]


class QuantedLinear(_QuantedLayer):
    """Of `paddle.nn.Linear`."""

    def __init__(self, layer: Layer, q_config: QuanterConfig) -> None:
        super().__init__(layer, q_config)
        self.name = layer.name

    def _apply(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.linear(x, weight, self.bias, self.name)


class QuantedConv2D(_QuantedLayer):
    """Of `paddle.nn.Conv2D`."""

    def __init__(self, layer: Layer, q_config: QuanterConfig) -> None:
        super().__init__(layer, q_config)
        for name in (
            "_stride",
            "_padding",
            "_dilation",
            "_groups",
            "_data_format",
            "_padding_mode",
            "_edges",
        ):
            setattr(self, name, getattr(layer, name))

    def _apply(self, x: Tensor, weight: Tensor) -> Tensor:
        padding = self._padding
        if self._edges:
            x, padding = F.pad(x, self._edges, self._padding_mode, 0.0, self._data_format), 0
        settings = (self._stride, padding, self._dilation, self._groups, self._data_format)
        return F.conv2d(x, weight, self.bias, *settings)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
