"""Keys and values that attention keeps: of earlier tokens, in an array of fixed length, or of an image."""

from __future__ import annotations

import jax
from jax import lax

Pair = tuple[jax.Array, jax.Array]  # keys and values [N, T, heads, D]


def write_pair(cache: Pair, new: Pair, place: jax.Array | int) -> Pair:
    """The cache with the keys and values of new tokens [N, S, heads, D] written from token `place` on."""
    keys, values = (
        lax.dynamic_update_slice_in_dim(kept, one.astype(kept.dtype), place, axis=1)
        for kept, one in zip(cache, new)
    )
    return keys, values
