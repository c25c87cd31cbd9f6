"""Operations of one Tensor that are a function and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import as_float


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Tensor]:
    """The function under this name of `paddle`, where pickles look for it."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "framework.paddle", doc
    return function


def elementwise(
    name: str, function: Callable[[Any], Any], doc: str, *, floats: bool = False, differentiable: bool = True
) -> Callable[..., Tensor]:
    """The operation; with `floats` integers are the default floating type first."""

    def compute(x: Array, name: str | None = None) -> Array:
        return function(as_float(x) if floats else x)

    return operation(differentiable=differentiable)(named(compute, name, doc))
