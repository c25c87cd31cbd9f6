"""`paddle.base.core.Scalar`: one number with its type, as an attribute of an operator, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

Number: TypeAlias = bool | int | float | complex
_NAMES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class Scalar:
    """A bool, an integer of 64 bits, a number of 64 bits or a complex one of 128. Two are equal where their types are,
    too."""

    __hash__ = None  # type: ignore[assignment]  # as in Paddle

    def __init__(self, value: Number | np.number) -> None:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
            raise TypeError(f"a Scalar of an integer has 64 bits, received {value}")
        self._value = value

    def value(self) -> Number:
        """The number."""
        return self._value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Scalar):
            return type(self._value) is type(other._value) and self._value == other._value
        if isinstance(other, bool | int | float | complex):
            return self == Scalar(other)
        return NotImplemented

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, complex):
            words = f"real:{value.real:g} imag:{value.imag:g}"
        else:
            words = f"{value:g}" if isinstance(value, float) else str(int(value))
        return f"Scalar({_NAMES[type(value)]}({words}))"


def wrap_as_scalar(number: Scalar | Number | np.number) -> Scalar:
    """A number as a Scalar. Raises: TypeError: it is none."""
    if isinstance(number, Scalar):
        return number
    if isinstance(number, bool | int | float | complex | np.number):
        return Scalar(number)
    raise TypeError(f"Cannot wrap {number} as core.Scalar")


def wrap_as_scalars(array: np.ndarray | Iterable[Scalar | Number | np.number]) -> list[Scalar]:
    """The numbers of a list, or of an array in its order, as Scalars. Raises: TypeError: one is no number."""
    return [
        wrap_as_scalar(item) for item in (array.ravel().tolist() if isinstance(array, np.ndarray) else array)
    ]


def extract_plain_list(array: Iterable[Scalar]) -> list[Number]:
    """The numbers of Scalars."""
    return [item.value() for item in array]
