"""Axes of arrays as callers count and give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from framework.core.errors import AxisError, ShapeError

N = TypeVar("N")


def normalize_axis(axis: int, ndim: int, where: str | None = None, fix: str | None = None) -> int:
    """An axis of `ndim` counted from the front; a single number takes 0 and -1.

    Raises:
        AxisError: there is no such axis.
    """
    size = max(ndim, 1)
    if not -size <= axis < size:
        raise AxisError(
            "the axis is out of range",
            where=where,
            received=f"axis {axis} of {ndim} dimensions",
            allowed=f"{-size} to {size - 1}",
            fix=fix,
        )
    return axis % size


def per_axis(value: N | Sequence[N], axes: int, name: str, number: Callable[[N], N] = int) -> tuple[N, ...]:
    """One number for each of `axes` axes, from one for all or from as many; `number` makes each a plain one.

    Raises:
        ShapeError: they are more or fewer.
    """
    if isinstance(value, int):
        return (value,) * axes
    values = tuple(value) if hasattr(value, "__len__") else (value,)  # type: ignore[arg-type]
    if len(values) not in (1, axes):
        raise ShapeError(
            f"{name} takes one number, or one for each axis",
            received=value,
            allowed=f"1 or {axes} numbers",
        )
    numbers = tuple(number(n) for n in values)  # type: ignore[arg-type]
    return numbers * axes if len(values) == 1 else numbers


def same_edges(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """The numbers behind SAME, before and behind each axis: ceil(size / stride) windows fit, the odd pixel behind."""
    out: list[int] = []
    for n, k, s in zip(size, kernel, stride, strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        out += [total // 2, total - total // 2]
    return tuple(out)
