"""What every assigner gives: which object each cell of the detector learns."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Assignment(NamedTuple):
    """Of one image with M padded objects and L cells; under vmap all have a leading batch axis."""

    positive: jax.Array
    """[L] bool: the cell learns an object; the other fields mean nothing where it does not"""
    index: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]
    """[L] int32 of the object, in 0 to M - 1"""
    quality: jax.Array
    """[L] float32: how well the cell's prediction is to be rated, 0 where not positive"""

    def scores(self, labels: jax.Array, num_classes: int) -> jax.Array:
        """Targets [..., L, num_classes] for the classes: `quality` at the class of the object, 0 elsewhere."""
        of_objects = jnp.take_along_axis(labels, self.index, axis=-1)
        return jax.nn.one_hot(of_objects, num_classes, dtype=jnp.float32) * self.quality[..., None]

    def boxes(self, boxes: jax.Array) -> jax.Array:
        """[..., L, 4]: the box of each cell's object, from [..., M, 4]."""
        return jnp.take_along_axis(boxes, self.index[..., None], axis=-2)


def resolve(matched: jax.Array, preference: jax.Array) -> jax.Array:
    """[M, L] bool with at most one object a cell: a cell that several match takes the one it prefers of all M.

    Args:
        matched: [M, L] bool.
        preference: [M, L]; the greatest wins, the first of equals.
    """
    objects = jnp.arange(matched.shape[0])[:, None]
    favourite = preference.argmax(axis=0)[None, :] == objects
    return jnp.where(matched.sum(axis=0) > 1, favourite, matched)


def top_cells(values: jax.Array, k: int) -> jax.Array:
    """[M, L] bool: the k greatest of each row, the first of equals."""
    k = min(k, values.shape[-1])
    rows = jnp.arange(values.shape[0])[:, None]
    return jnp.zeros(values.shape, bool).at[rows, jax.lax.top_k(values, k)[1]].set(True)
