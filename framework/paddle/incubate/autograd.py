"""paddle.incubate.autograd: Jacobian and Hessian of functions, products with vectors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from framework import paddle
from framework.paddle._kernel.arguments import Tensors
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tape import grad as _grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.program import Block, default_main_program

log = logging.getLogger("oar")

__all__ = [
    "Hessian",
    "Jacobian",
    "disable_prim",
    "enable_prim",
    "forward_grad",
    "grad",
    "jvp",
    "prim_enabled",
    "vjp",
]


def _as_tuple(value: Tensors) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def as_tensors(xs: Tensors) -> tuple[Tensor, ...]:
    """One Tensor or several, as a tuple."""
    return _as_tuple(xs)


def _like(reference: Tensors, values: Sequence[Tensor]) -> Tensors:
    return values[0] if isinstance(reference, Tensor) else tuple(values)


def _separate(value: Tensors | None) -> Any:
    """New Tensors of the same values that want a gradient; with a history where they had one."""

    def fresh(x: Tensor) -> Tensor:
        if not x.stop_gradient:
            return paddle.assign(x)
        x = x.detach()
        x.stop_gradient = False
        return x

    return None if value is None else _like(value, [fresh(x) for x in _as_tuple(value)])


def _check(func: Callable[..., Tensors], xs: Tensors, v: Tensors | None) -> None:
    if not callable(func):
        raise TypeError(f"func should be a function, but got {type(func).__name__}")
    for name, value in (("xs", xs), ("v", v)):
        if value is not None and not all(isinstance(x, Tensor) for x in _as_tuple(value)):
            raise TypeError(f"{name} should be a Tensor or a sequence of Tensors")


def _check_shapes(v: Tensors | None, references: Tensors) -> None:
    if v is None:
        return
    got, want = [x.shape for x in _as_tuple(v)], [x.shape for x in _as_tuple(references)]
    if got != want:
        raise RuntimeError(f"v should have the shapes {want}, but got {got}")


def _gradients(ys: Tensors, xs: Tensors, v: Tensors | None) -> Tensors:
    """Gradients of ys by xs with a history; zeros where ys does not depend on an x."""
    starts = None if v is None else list(_as_tuple(v))
    if not paddle.in_dynamic_mode():
        return _like(xs, paddle.static.gradients(list(_as_tuple(ys)), list(_as_tuple(xs)), starts))
    found = _grad(list(_as_tuple(ys)), list(_as_tuple(xs)), starts, create_graph=True, allow_unused=True)
    values = []
    for x, gradient in zip(_as_tuple(xs), found, strict=True):
        if gradient is None:
            gradient = paddle.zeros_like(x)
            gradient.stop_gradient = x.stop_gradient
        values.append(gradient)
    return _like(xs, values)


def vjp(func: Callable[..., Tensors], xs: Tensors, v: Tensors | None = None) -> tuple[Tensors, Tensors]:
    """(func(*xs), v @ Jacobian); without v ones."""
    _check(func, xs, v)
    xs, v = _separate(xs), _separate(v)
    ys = func(*_as_tuple(xs))
    _check_shapes(v, ys)
    return ys, _gradients(ys, xs, v)


def jvp(func: Callable[..., Tensors], xs: Tensors, v: Tensors | None = None) -> tuple[Tensors, Tensors]:
    """(func(*xs), Jacobian @ v); without v ones."""
    _check(func, xs, v)
    _check_shapes(v, xs)
    xs, v = _separate(xs), _separate(v)
    ys = func(*_as_tuple(xs))
    return ys, _forward(ys, xs, v)


def _forward(ys: Tensors, xs: Tensors, v: Tensors | None) -> Tensors:
    """Reverse twice: the gradient by xs is linear in the one of ys, and its own gradient by that is J @ v."""
    seeds = []
    for y in _as_tuple(ys):
        seed = paddle.zeros_like(y)
        seed.stop_gradient = False
        seeds.append(seed)
    seed = _like(ys, seeds)
    return _gradients(_gradients(ys, xs, seed), seed, v)


def forward_grad(outputs: Tensors, inputs: Tensors, grad_inputs: Tensors | None = None) -> Tensors:
    """Jacobian of `outputs` by `inputs` times `grad_inputs` (ones)."""
    return _forward(outputs, inputs, grad_inputs)


def grad(outputs: Tensors, inputs: Tensors, grad_outputs: Tensors | None = None) -> Tensors:
    """The gradients of `outputs` by `inputs`; zeros where there is none."""
    return _gradients(outputs, inputs, grad_outputs)


class Jacobian:
    """The Jacobian of `func` at `xs`, all of xs and of ys put into one row each: [M, N], or [B, M, N] in batches."""

    def __init__(self, func: Callable[..., Tensors], xs: Tensors, is_batched: bool = False) -> None:
        inputs = _as_tuple(_separate(xs))
        self._batched = is_batched
        ys = _as_tuple(func(*inputs))
        flat = [self._flat(y) for y in ys]
        self._rows = paddle.concat(flat, axis=-1) if len(flat) > 1 else flat[0]
        self._inputs = inputs
        self._cache: dict[int, Tensor] = {}

    def _flat(self, x: Tensor) -> Tensor:
        return x.reshape([x.shape[0], -1] if self._batched else [-1])

    @property
    def shape(self) -> tuple[int, ...]:
        low = int(self._batched)
        columns = sum(x.size // (x.shape[0] if self._batched else 1) for x in self._inputs)
        return (*self._rows.shape[: low + 1], columns)

    def _row(self, number: int) -> Tensor:
        found = self._cache.get(number)
        if found is None:
            part = self._rows[:, number] if self._batched else self._rows[number]
            parts = [self._flat(g) for g in _as_tuple(_gradients(part, self._inputs, None))]
            found = self._cache[number] = paddle.concat(parts, axis=-1) if len(parts) > 1 else parts[0]
        return found

    def __getitem__(self, indexes: object) -> Tensor:
        given = tuple(indexes) if isinstance(indexes, list | tuple) else (indexes,)
        if any(index is Ellipsis for index in given):
            raise IndexError("an ellipsis is no index of a Jacobian: name the axes")
        axis = int(self._batched)
        index = [*given, *[slice(None)] * (len(self.shape) - len(given))]
        count, chosen = self.shape[axis], index[axis]
        if isinstance(chosen, int):
            rest = (*index[:axis], *index[axis + 1 :])
            return self._row(chosen + count if chosen < 0 else chosen)[rest]
        rows = [self._row(number) for number in range(count)[chosen]]
        index[axis] = slice(None)
        return paddle.stack(rows, axis=axis)[tuple(index)]


class Hessian:
    """The Hessian of `func`, which returns one number (per sample): [N, N], or [B, N, N] in batches."""

    def __init__(self, func: Callable[..., Tensors], xs: Tensors, is_batched: bool = False) -> None:
        def gradient(*inputs: Tensor) -> Tensor:
            first = Jacobian(func, inputs, is_batched)
            if first.shape[-2] != 1:
                raise RuntimeError("a Hessian is of a function that returns one element (of each sample)")
            return first[:, 0, :] if is_batched else first[0, :]

        self.symbolic = Jacobian(gradient, xs, is_batched)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.symbolic.shape

    def __getitem__(self, indexes: object) -> Tensor:
        return self.symbolic[indexes]


_prim = {"enabled": False}


def enable_prim() -> None:
    """Every operation here is differentiable as often as one likes: nothing to switch but `prim_enabled`."""
    _prim["enabled"] = True
    log.info(
        "paddle.incubate.autograd.enable_prim: nothing to do, operations are compiled from primitives always"
    )


def disable_prim() -> None:
    """See `enable_prim`."""
    _prim["enabled"] = False


def prim_enabled() -> bool:
    """Whether `enable_prim` was called last."""
    return _prim["enabled"]


def prim2orig(block: Block | None = None, blacklist: Sequence[str] | None = None) -> None:
    """Nothing to do: the operations of programs are never taken apart.

    Raises:
        AssertionError: `block` is not that of the program that is recorded into.
    """
    program = default_main_program()
    if block is not None and block.program is not program:
        raise AssertionError("block is neither None nor current block of main program")


_complete(__name__)
