"""What models of this domain take and give: arrays by name, and the protocols of the tasks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax


class Features(NamedTuple):
    """A batch of rows as ranking models take it.

    Attributes:
        sparse: Rows of the table, int32 [N, F], or [N, F, L] where a field has up to L values; 0 is padding.
        dense: Numbers, float32 [N, D].
        weight: What the vector of each id is multiplied with, float32 [N, F]; None stands for ones.
    """

    sparse: jax.Array
    dense: jax.Array
    weight: jax.Array | None = None


class Ranker(Protocol):
    """A model of one probability a row."""

    def __call__(self, features: Features) -> jax.Array:
        """Logits [N] float32."""
        ...


class MultiTaskRanker(Protocol):
    """A model of several probabilities a row."""

    def __call__(self, features: Features) -> tuple[jax.Array, ...]:
        """The logits [N] float32 of each task; of ESMM those of a click and of a purchase behind a click."""
        ...


class SequenceModel(Protocol):
    """A model of the item that comes next."""

    def __call__(self, items: jax.Array) -> jax.Array:
        """Vectors [N, T, D] of items [N, T] int32, where 0 is padding: each of what came up to there."""
        ...

    def item_vectors(self) -> jax.Array:
        """[V, D]: row i + 1 is item i, row 0 is padding."""
        ...
