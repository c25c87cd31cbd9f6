"""Settings of operations: arguments that are no data, one compiled program for each value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from jax.core import Tracer

from framework.paddle._kernel.dtypes import dtype as Dtype
from framework.paddle._kernel.errors import UnknownSetting, ValueNeeded
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


class _Slice(tuple):
    """A slice as a setting: Python 3.11 cannot hash slices."""

    __slots__ = ()


def freeze(value: object) -> Any:
    """A setting as a value that can be hashed: lists as tuples, Tensors as the numbers they hold."""
    if isinstance(value, list | tuple):
        return tuple([freeze(part) for part in value])
    if isinstance(value, Tensor):
        if value._sizes is not None:
            return freeze(value._sizes.tolist())
        if isinstance(value._value, Tracer):
            raise UnknownSetting(value)
        return freeze(value.tolist())
    if isinstance(value, np.ndarray):
        return freeze(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Dtype):
        return value.numpy
    if isinstance(value, slice):
        return _Slice((freeze(value.start), freeze(value.stop), freeze(value.step)))
    if isinstance(value, dict):
        return tuple((name, freeze(part)) for name, part in value.items())
    return value


def thaw(value: object) -> object:
    """A frozen setting as operations read it."""
    if isinstance(value, _Slice):
        return slice(*value)
    if isinstance(value, tuple):
        return tuple(thaw(part) for part in value)
    return value


def name_results(result: object, name: str) -> None:
    """Name the results of a recorded operation as its caller asks, with Paddle's end."""
    for index, tensor in enumerate(result if isinstance(result, tuple | list) else [result]):
        if isinstance(tensor, Tensor):
            tensor.name = f"{name}.tmp_{index}"


def takes_variables(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose sizes, axes and counts may be variables of a static program."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = function(*args, **kwargs)
        except ValueNeeded as error:
            return error.record(call, args, kwargs)
        name = kwargs.get("name")
        if name and mode.recorder is not None and not any(result is arg for arg in args):
            name_results(result, str(name))
        return result

    return call


def reads_values(function: Callable[P, R]) -> Callable[P, R]:
    """A function that looks at the values of its Tensors; with variables of a static program it is called when the
    program runs, which then runs operation by operation."""
    call = takes_variables(function)
    call.reads_values = True  # type: ignore[attr-defined]
    return call
