"""Arithmetic of two Tensors where the axes of the smaller one begin at an axis of the other: Paddle's older rule."""

from __future__ import annotations

from collections.abc import Callable

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.arithmetic import add, divide, multiply, subtract
from framework.paddle.ops.shaping import reshape


def _aligned(operation: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def call(x: Tensor, y: Tensor, axis: int = -1, name: str | None = None) -> Tensor:
        """The operation. `axis`: where the axes of the smaller Tensor begin; -1: at the end, as numpy has it."""
        if axis != -1 and x.ndim != y.ndim:
            smaller, larger = sorted((x, y), key=lambda tensor: tensor.ndim)
            after = larger.ndim - smaller.ndim - axis
            spread = reshape(smaller, [1] * axis + list(smaller.shape) + [1] * after)
            x, y = (spread if tensor is smaller else tensor for tensor in (x, y))
        return operation(x, y)

    return call


_add_with_axis = _aligned(add)
_subtract_with_axis = _aligned(subtract)
_multiply_with_axis = _aligned(multiply)
_divide_with_axis = _aligned(divide)
