"""Named arrays that are known to come from torch."""

from __future__ import annotations

import jax
import numpy as np


@jax.tree_util.register_pytree_node_class
class TorchState(dict[str, np.ndarray]):
    """What a file of torch holds, in torch's names and layouts: a linear layer's weight is [out, in] there.

    The shape of a square one does not say so, which is why the reader does.
    """

    def tree_flatten(self) -> tuple[tuple[np.ndarray, ...], tuple[str, ...]]:
        """The arrays, and their names."""
        return tuple(self.values()), tuple(self)

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], arrays: tuple[np.ndarray, ...]) -> TorchState:
        """The reverse of `tree_flatten`."""
        return cls(zip(names, arrays))
