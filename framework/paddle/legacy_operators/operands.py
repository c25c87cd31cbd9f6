"""What an operator of Paddle's older programs sees while it runs: arrays by slot, the lengths of their sequences, and
settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import OarError, ShapeError

Levels: TypeAlias = Sequence[Sequence[int]]
"""Lengths of sequences, the outermost level first; the last level counts rows."""


class LengthsError(ShapeError):
    """An operator needs the lengths of sequences, and they are not there."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """An output with the lengths of its sequences."""

    array: jax.Array
    levels: Levels


Output: TypeAlias = jax.Array | np.ndarray | Ragged | None
Outputs: TypeAlias = Mapping[str, Output | list[Output]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Operands:
    """The inputs and settings of an operator.

    Attributes:
        slots: The arrays of each slot; those that want a gradient are traced.
        levels: The lengths of the arrays of a slot, in the same order.
    """

    name: str
    slots: Mapping[str, Sequence[jax.Array]]
    levels: Mapping[str, Sequence[Levels | None]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    def get(self, slot: str) -> jax.Array | None:
        """The array of a slot, or None."""
        arrays = self.slots.get(slot)
        return arrays[0] if arrays else None

    def array(self, slot: str) -> jax.Array:
        """The array of a slot. Raises: OarError, where there is none."""
        array = self.get(slot)
        if array is None:
            raise OarError(
                f"the input {slot!r} is missing", where=self.name, received=sorted(self.slots), allowed=slot
            )
        return array

    def all(self, slot: str) -> list[jax.Array]:
        """All arrays of a slot."""
        return list(self.slots.get(slot, ()))

    def host(self, slot: str) -> np.ndarray:
        """The numbers of an input that decides about sizes."""
        return np.asarray(self.array(slot))

    def attr(self, name: str, default: T) -> T:
        """A setting, or the default."""
        value = self.settings.get(name)
        return default if value is None else cast("T", value)

    def lod(self, slot: str, index: int = 0) -> Levels | None:
        """All lengths of an array, or None where it has none."""
        levels = self.levels.get(slot)
        return levels[index] if levels else None

    def lengths(self, slot: str, index: int = 0) -> np.ndarray:
        """How many rows each sequence has. Raises: LengthsError, where lengths are missing or do not add up."""
        levels = self.lod(slot, index)
        rows = self.slots[slot][index].shape[0]
        lengths = np.asarray(levels[-1] if levels else [], np.int64)
        if not levels or lengths.sum() != rows:
            raise LengthsError(
                f"the lengths of the sequences of {slot!r} must add up to its rows",
                where=self.name,
                received=f"{levels} for {rows} rows",
                fix="give the array with its lengths, as a LoDTensor or as (array, [[3, 2]])",
            )
        return lengths


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each sequence begins, with the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def segments_of(lengths: np.ndarray) -> np.ndarray:
    """The sequence of each row."""
    return np.repeat(np.arange(len(lengths)), lengths)


def positions_of(lengths: np.ndarray) -> np.ndarray:
    """The position of each row in its sequence."""
    return np.arange(int(lengths.sum())) - np.repeat(offsets_of(lengths)[:-1], lengths)


def slices_of(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The rows of slices, one after the other."""
    return np.repeat(np.asarray(starts), lengths) + positions_of(np.asarray(lengths))


def pad(array: jax.Array, lengths: np.ndarray, size: int, value: jax.Array | float = 0) -> jax.Array:
    """Sequences of rows as [sequence, size, ...], with `value` behind their ends."""
    index = offsets_of(lengths)[:-1, None] + np.arange(size)
    inside = (np.arange(size) < lengths[:, None]).reshape(len(lengths), size, *[1] * (array.ndim - 1))
    rows = array[np.where(inside.reshape(index.shape), index, 0)] if len(array) else None
    if rows is None:
        rows = jnp.zeros((len(lengths), size, *array.shape[1:]), array.dtype)
    return jnp.where(inside, rows, jnp.asarray(value, array.dtype))


def unpad(array: jax.Array, lengths: np.ndarray) -> jax.Array:
    """The inverse of `pad`."""
    return array[segments_of(lengths), positions_of(lengths)]


Rule: TypeAlias = Callable[[Operands], Outputs]
RuleT = TypeVar("RuleT", bound=Rule)
Table: TypeAlias = dict[str, Rule]


def registrar(table: Table) -> Callable[..., Callable[[RuleT], RuleT]]:
    """A decorator that enters functions into `table` by the names of their operators."""

    def operator(*names: str) -> Callable[[RuleT], RuleT]:
        def enter(rule: RuleT) -> RuleT:
            for name in names:
                if name in table:
                    raise KeyError(f"two functions run the operator {name}")
                table[name] = rule
            return rule

        return enter

    return operator
