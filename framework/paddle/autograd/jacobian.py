"""Jacobians and Hessians, computed row by row as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from framework import paddle
from framework.paddle._kernel.arguments import Tensors
from framework.paddle._kernel.tape import grad
from framework.paddle._kernel.tensor import Tensor

Jacobians: TypeAlias = "Jacobian | tuple[Jacobians, ...]"


class Jacobian:
    """The derivatives of `ys` by `xs`: shape [M, N] for ys [M] and xs [N], [B, M, N] for batches [B, M] and [B, N]; a
    0-D side has no axis. Indexing computes the rows that it needs, and keeps them."""

    def __init__(self, ys: Tensor, xs: Tensor, is_batched: bool = False) -> None:
        low = int(is_batched)
        for name, tensor in (("ys", ys), ("xs", xs)):
            if not low <= len(tensor.shape) <= low + 1:
                raise ValueError(
                    f"{name}.ndim should be {low} or {low + 1} when is_batched={is_batched} but got {len(tensor.shape)}"
                )
        self._ys, self._xs, self._batched = ys, xs, is_batched
        self._axis = low if len(ys.shape) > low else None  # of the rows, in the result
        self._count = ys.shape[low] if self._axis is not None else 1
        self._rows: dict[int, Tensor] = {}
        self.shape: list[int] = [*ys.shape, *xs.shape[low:]]

    def _row(self, number: int) -> Tensor:
        """The gradient of ys[number], or of ys[:, number]; it has the shape of xs."""
        found = self._rows.get(number)
        if found is None:
            start = np.ones(self._ys.shape, self._ys.dtype.numpy)
            if self._axis is not None:
                start[...] = 0
                start[..., number] = 1
            (found,) = grad(self._ys, self._xs, paddle.to_tensor(start), create_graph=True, allow_unused=True)
            if found is None:
                found = paddle.zeros_like(self._xs)
                found.stop_gradient = self._xs.stop_gradient
            self._rows[number] = found
        return found

    def _evaluate_all(self) -> Tensor:
        return self._row(0) if self._axis is None else self._stacked(range(self._count))

    def _stacked(self, rows: Sequence[int]) -> Tensor:
        return paddle.stack([self._row(number) for number in rows], axis=self._axis)

    def __getitem__(self, indexes: object) -> Tensor:
        given = tuple(indexes) if isinstance(indexes, list | tuple) else (indexes,)
        if any(index is Ellipsis for index in given):
            raise IndexError("an ellipsis is no index of a Jacobian: name the axes")
        if not self.shape:
            raise IndexError("a 0-D Jacobian has no axis to index")
        index = [*given, *[slice(None)] * (len(self.shape) - len(given))]
        if self._axis is None:
            return self._row(0)[tuple(index)]
        chosen = index[self._axis]
        if isinstance(chosen, int):
            rest = (*index[: self._axis], *index[self._axis + 1 :])
            row = self._row(chosen + self._count if chosen < 0 else chosen)
            return row[rest] if rest else row
        rows = range(self._count)[chosen]
        index[self._axis] = slice(None)
        return self._stacked(rows)[tuple(index)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._evaluate_all(), name)


def _binary(name: str) -> Any:
    def call(self: Jacobian, other: object) -> Any:
        right = other._evaluate_all() if isinstance(other, Jacobian) else other
        return getattr(self._evaluate_all(), name)(right)

    return call


for _name in ("add", "sub", "mul", "truediv", "div", "pow", "mod", "floordiv", "matmul"):
    setattr(Jacobian, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Jacobian, f"__{_name}__", _binary(f"__{_name}__"))


class Hessian(Jacobian):
    """The second derivatives of one number (per sample, in a batch)."""


def jacobian(ys: Tensors, xs: Tensors, batch_axis: int | None = None) -> Jacobians:
    """The Jacobian of `ys` by `xs`; for tuples a tuple of them, ys outside.

    Raises:
        ValueError: more than one axis besides that of the batch, or another batch axis than 0.
    """
    return _jacobians(Jacobian, ys, xs, _batched(batch_axis))


def _batched(batch_axis: int | None) -> bool:
    if batch_axis not in (None, 0):
        raise ValueError(f"batch_axis should be None or 0, but got {batch_axis}")
    return batch_axis is not None


def _jacobians(kind: type[Jacobian], ys: Tensors, xs: Tensors, batched: bool) -> Any:
    if isinstance(ys, Sequence) and not isinstance(ys, Tensor):
        return tuple(_jacobians(kind, y, xs, batched) for y in ys)
    if isinstance(xs, Sequence) and not isinstance(xs, Tensor):
        return tuple(kind(ys, x, batched) for x in xs)
    return kind(ys, xs, batched)


def hessian(ys: Tensor, xs: Tensors, batch_axis: int | None = None) -> Jacobians:
    """The Hessian of `ys` (one element, or one a sample) by `xs`; for a tuple of xs a tuple of tuples."""
    batched = _batched(batch_axis)
    if (ys.size // max(ys.shape[0], 1) if batched else ys.size) > 1:
        raise ValueError(f"a Hessian is of one number (of each sample), received ys {ys.shape}")
    flat = ys.reshape([-1] if batched else [])
    first = _jacobians(Jacobian, flat, xs, batched)
    if isinstance(first, tuple):
        return tuple(_jacobians(Hessian, gradient._evaluate_all(), xs, batched) for gradient in first)
    return _jacobians(Hessian, first._evaluate_all(), xs, batched)
