"""paddle.distribution.constraint: which values a random variable takes."""

from __future__ import annotations

from framework import paddle
from framework.paddle._kernel.tensor import Tensor


class Constraint:
    """A condition on values."""

    def __call__(self, value: Tensor) -> Tensor | bool:
        """Whether it holds."""
        raise NotImplementedError


class Real(Constraint):
    """All numbers but NaN."""

    def __call__(self, value: Tensor) -> Tensor | bool:
        """Element by element."""
        return value == value


class Range(Constraint):
    """Numbers from `lower` to `upper`."""

    def __init__(self, lower: Tensor | float, upper: Tensor | float) -> None:
        self._lower, self._upper = lower, upper

    def __call__(self, value: Tensor) -> Tensor | bool:
        """Of one number."""
        return self._lower <= value <= self._upper


class Positive(Constraint):
    """Zero and above."""

    def __call__(self, value: Tensor) -> Tensor | bool:
        """Element by element."""
        return value >= 0.0


class Simplex(Constraint):
    """Shares along the last axis that sum to 1."""

    def __call__(self, value: Tensor) -> Tensor | bool:
        """Of one vector."""
        return paddle.all(value >= 0, axis=-1) and (value.sum(-1) - 1).abs() < 1e-6


real, positive, simplex = Real(), Positive(), Simplex()
