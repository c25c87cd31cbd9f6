"""What the forward run of an operation keeps for its backward run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import jax


@jax.tree_util.register_pytree_node_class
class Residual:
    """Arrays, and how they make the pullback.

    Attributes:
        arrays: The leaves of jax's pullback.
        tree: Its structure, a PyTreeDef; None where the forward program came from disk, which holds no functions.
    """

    __slots__ = ("arrays", "tree")

    def __init__(self, arrays: Sequence[jax.Array], tree: Hashable | None) -> None:
        self.arrays, self.tree = list(arrays), tree

    def tree_flatten(self) -> tuple[list[jax.Array], Hashable | None]:
        """The arrays; the structure belongs to the program."""
        return self.arrays, self.tree

    @classmethod
    def tree_unflatten(cls, tree: Hashable | None, arrays: Sequence[jax.Array]) -> Residual:
        """The residual of a program's results."""
        return cls(arrays, tree)
