"""Places in a model where a quanter may stand before an operation that is no layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.quant.format import QuanterConfig, QuanterFactory


class Stub(Layer):
    """Gives its input back; quantisation puts a `QuanterStub` in its place.

    Args:
        observer: The factory of the quanter; None: that of the model's config for activations.
    """

    def __init__(self, observer: QuanterFactory | None = None) -> None:
        super().__init__()
        self._observer = observer

    def forward(self, input: Tensor) -> Tensor:
        return input


class QuanterStub(Layer):
    """A stub with its quanter, if it has one."""

    def __init__(self, layer: Stub, q_config: QuanterConfig) -> None:
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input: Tensor) -> Tensor:
        return input if self._observer is None else self._observer(input)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
