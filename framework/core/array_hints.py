"""Hints on arrays: `loss.backward()` and the like say what to write instead of naming a class inside jaxlib."""

from __future__ import annotations

import jax

from framework.core.errors import ForeignNameError
from framework.core.foreign_names import ARRAY


class _ArrayHint:
    """An attribute that is not there; reading and setting it say what to write."""

    def __init__(self, name: str) -> None:
        self.name = name

    def error(self) -> ForeignNameError:
        return ForeignNameError(f"an array has no {self.name!r}", fix=ARRAY[self.name])

    def __get__(self, array: object, owner: object = None) -> object:
        raise self.error()

    def __set__(self, array: object, value: object) -> None:
        raise self.error()


def install_array_hints() -> None:
    """Give `jax.Array` the hints for names that it has not. They are attributes that raise AttributeError, so code that
    asks for such a name gets the answer that it got before."""
    for name in set(ARRAY) - set(dir(jax.Array)):
        setattr(jax.Array, name, _ArrayHint(name))
