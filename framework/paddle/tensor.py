"""paddle.tensor: `paddle.tensor.full`, `paddle.tensor.math.add`: operations by the places where Paddle keeps them."""

from __future__ import annotations

import sys

from framework.paddle import ops
from framework.paddle._kernel.tensor import Tensor as Tensor

_SUBMODULES = (
    "attribute",
    "creation",
    "linalg",
    "logic",
    "manipulation",
    "math",
    "ops",
    "random",
    "search",
    "stat",
)
_operations = ops.discover()


def __getattr__(name: str) -> object:
    """The names of Paddle's submodules all mean this module."""
    if name in _SUBMODULES:
        return sys.modules[__name__]
    if name in _operations:
        return _operations[name]
    raise AttributeError(f"paddle.tensor.{name} is not there")
