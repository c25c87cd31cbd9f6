"""Named arrays that are known to come from torch."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


class TorchState(dict[str, np.ndarray]):
    """What a file of torch holds, in torch's names and layouts: a linear layer's weight is [out, in] there.

    The shape of a square one does not say so, which is why the reader does.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> TorchState:
        _register()
        return super().__new__(cls)

    def tree_flatten(self) -> tuple[tuple[np.ndarray, ...], tuple[str, ...]]:
        """The arrays, and their names."""
        return tuple(self.values()), tuple(self)

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], arrays: tuple[np.ndarray, ...]) -> TorchState:
        """The reverse of `tree_flatten`."""
        return cls(zip(names, arrays))


@functools.cache
def _register() -> None:
    """Make it a pytree as other dicts are, at the first one: reading files of other kinds needs no jax."""
    import jax

    jax.tree_util.register_pytree_node_class(TorchState)
