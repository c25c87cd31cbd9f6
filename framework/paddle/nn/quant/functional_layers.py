"""Operations as layers, so that quanters can be put before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.paddle import ops
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer

_OPERATIONS = ops.discover()


class FloatFunctionalLayer(Layer):
    """Calls the operation of its name."""

    operation: Callable[..., Tensor]

    def forward(self, *args: object, **kwargs: object) -> Tensor:
        return type(self).operation(*args, **kwargs)


def _layer(name: str) -> type[FloatFunctionalLayer]:
    members = {"operation": staticmethod(_OPERATIONS[name]), "__module__": __name__}
    return type(name, (FloatFunctionalLayer,), members)


add = _layer("add")
concat = _layer("concat")
divide = _layer("divide")
flatten = _layer("flatten")
matmul = _layer("matmul")
multiply = _layer("multiply")
reshape = _layer("reshape")
subtract = _layer("subtract")
transpose = _layer("transpose")

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
