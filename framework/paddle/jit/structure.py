"""Nested arguments and results: the Tensors in them, and the rest as a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap


class Identity:
    """Stands in a key for an object that cannot be hashed by value, and keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value


def _static_key(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return (value.__class__, value)


def flatten_arguments(value: Any, tensors: list[Tensor]) -> object:
    """A key of everything in `value` but Tensors and arrays, which are appended to `tensors`."""
    kind = value.__class__
    if isinstance(value, Tensor):
        if isinstance(value, Parameter):
            return ("parameter", Identity(value))
        tensors.append(value)
        return "tensor"
    if isinstance(value, np.ndarray | jax.Array):
        tensors.append(wrap(as_array(value)))
        return "array"
    if kind is list or isinstance(value, tuple):
        return (kind, *[flatten_arguments(part, tensors) for part in value])
    if isinstance(value, dict):
        return (kind, *[(name, flatten_arguments(part, tensors)) for name, part in value.items()])
    return _static_key(value)


def map_tensors(value: object, change: Callable[[Any], object]) -> Any:
    """`value` with what is a Tensor or an array replaced."""
    if isinstance(value, Tensor | np.ndarray | jax.Array):
        return change(value)
    if isinstance(value, tuple) and type(value) is not tuple:
        return type(value)(*[map_tensors(part, change) for part in value])
    if isinstance(value, list | tuple):
        return type(value)([map_tensors(part, change) for part in value])
    if type(value) is dict:
        return {name: map_tensors(part, change) for name, part in value.items()}
    return value


def with_tensors(value: object, tensors: Sequence[Tensor]) -> Any:
    """`value` with its arrays as the Tensors that `flatten_arguments` made of them, in order."""
    remaining = iter(tensors)

    def change(part: object) -> Tensor:
        return part if isinstance(part, Parameter) else next(remaining)

    return map_tensors(value, change)
