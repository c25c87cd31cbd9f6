"""paddle.distribution.variable: what kind of random variable a distribution or a transform has."""

from __future__ import annotations

from collections.abc import Sequence

from framework import paddle
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution import constraint as constraints


class Variable:
    """A random variable.

    Args:
        is_discrete: It takes separate values.
        event_rank: The number of axes of one event.
        constraint: Which values it takes.
    """

    def __init__(
        self,
        is_discrete: bool = False,
        event_rank: int = 0,
        constraint: constraints.Constraint | None = None,
    ) -> None:
        self._is_discrete, self._event_rank, self._constraint = is_discrete, event_rank, constraint

    @property
    def is_discrete(self) -> bool:
        """Whether it takes separate values."""
        return self._is_discrete

    @property
    def event_rank(self) -> int:
        """The number of axes of one event."""
        return self._event_rank

    def constraint(self, value: Tensor) -> Tensor | bool:
        """Whether it takes these values."""
        assert self._constraint is not None
        return self._constraint(value)


class Real(Variable):
    """Of numbers."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.real)


class Positive(Variable):
    """Of numbers that are not negative."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.positive)


class Independent(Variable):
    """One whose last batch axes count as axes of an event."""

    def __init__(self, base: Variable, reinterpreted_batch_rank: int) -> None:
        self._base, self._reinterpreted_batch_rank = base, reinterpreted_batch_rank
        super().__init__(base.is_discrete, base.event_rank + reinterpreted_batch_rank)

    def constraint(self, value: Tensor) -> Tensor | bool:
        """Whether all values of an event are allowed. Raises ValueError: there are too few axes."""
        allowed = paddle.to_tensor(self._base.constraint(value))
        rank = self._reinterpreted_batch_rank
        if allowed.ndim < rank:
            raise ValueError(f"Input dimensions must be equal or grater than  {rank}")
        return allowed.reshape([*allowed.shape[: allowed.ndim - rank], -1]).all(-1)


class Stack(Variable):
    """Several variables along one axis."""

    def __init__(self, vars: Sequence[Variable], axis: int = 0) -> None:
        self._vars, self._axis = vars, axis

    @property
    def is_discrete(self) -> bool:
        """Whether one of them takes separate values."""
        return any(variable.is_discrete for variable in self._vars)

    @property
    def event_rank(self) -> int:
        """The largest of theirs, and one more where the axis is an axis of events."""
        rank = max(variable.event_rank for variable in self._vars)
        return rank + 1 if self._axis + rank < 0 else rank

    def constraint(self, value: Tensor) -> Tensor | bool:
        """Whether each takes its values. Raises ValueError: the axis is not there."""
        if not -value.ndim <= self._axis < value.ndim:
            raise ValueError(
                f"Input dimensions {value.ndim} should be grater than stack constraint axis {self._axis}."
            )
        values = paddle.unstack(value, self._axis)
        checks = [variable.constraint(one) for variable, one in zip(self._vars, values, strict=True)]
        return paddle.stack([paddle.to_tensor(check) for check in checks], self._axis)


real, positive = Real(), Positive()
