"""Arrays by name that are made when they are read: a quantised file becomes floats one matrix after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LazyArray:
    """An array that is not made yet.

    Attributes:
        shape: Of what `make` gives.
        make: Computes the array.
    """

    shape: tuple[int, ...]
    make: Callable[[], np.ndarray]


class LazyState(Mapping[str, np.ndarray]):
    """A state dict whose arrays are made anew each time that one is read; `shape` says its shape before."""

    def __init__(self, arrays: Mapping[str, LazyArray]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name].make()

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays  # the base class would make the array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not made for it."""
        return self._arrays[name].shape
