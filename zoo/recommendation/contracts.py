"""What models of this domain take and give: arrays by name, and the protocols of the tasks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import numpy as np


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


class GraphRecommender(Protocol):
    """A model of what users take, who are rows of a table, by the graph of the pairs in the training data."""

    def __call__(self) -> tuple[jax.Array, jax.Array]:
        """Vectors of all users [U, D] and items [V + 1, D]: row i + 1 is item i, row 0 is padding."""
        ...

    def initial_vectors(self, users: jax.Array, items: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Those of the tables, before the graph: [*users, D] and [*items, D]. A loss decays them."""
        ...

    def set_edges(self, edges: np.ndarray) -> None:
        """Take the graph: pairs [E, 2] of a user's row and an item's, each once."""
        ...

    def is_edge(self, users: jax.Array, items: jax.Array) -> jax.Array:
        """Whether a pair of rows, of one shape, is in the graph: bool."""
        ...

    def has_items(self) -> jax.Array:
        """bool [U]: which users are in the graph."""
        ...

    def seen_items(self, users: jax.Array) -> jax.Array:
        """bool [N, V + 1] of users [N]: what each has in the graph."""
        ...
