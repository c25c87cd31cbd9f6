"""`op.make_scalar_proto`: a number as the message of an operator's attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from framework.paddle._kernel.scalar import Number


class ScalarType(IntEnum):
    """Which number a message has; the numbers of Paddle's files."""

    BOOLEAN = 1
    LONG = 2
    FLOAT64 = 3
    COMPLEX128 = 4


@dataclass
class ComplexMessage:
    """A complex number: `r` its real, `i` its imaginary half."""

    r: float = 0.0
    i: float = 0.0


@dataclass
class ScalarMessage:
    """A number in the field of its type: `b`, `i`, `r` or `c`."""

    type: ScalarType
    b: bool = False
    i: int = 0
    r: float = 0.0
    c: ComplexMessage = field(default_factory=ComplexMessage)


def make_scalar_proto(value: Number) -> ScalarMessage:
    """The message of a number."""
    if isinstance(value, bool):
        return ScalarMessage(ScalarType.BOOLEAN, b=value)
    if isinstance(value, int):
        return ScalarMessage(ScalarType.LONG, i=value)
    if isinstance(value, float):
        return ScalarMessage(ScalarType.FLOAT64, r=value)
    return ScalarMessage(ScalarType.COMPLEX128, c=ComplexMessage(value.real, value.imag))
