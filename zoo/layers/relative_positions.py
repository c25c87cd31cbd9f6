"""Buckets of distances between tokens, each of which has a bias of the attention's scores.

Source: Raffel et al. 2020, https://arxiv.org/abs/1910.10683, section 2.1
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp


def relative_bucket(distance: jax.Array, both: bool, buckets: int, max_distance: int) -> jax.Array:
    """The number of the bias for keys at `distance` (place of the key less that of the query), in [0, buckets).

    The half of small distances have one each, larger ones are spaced by their logarithm. With `both` keys behind the
    query have the second half; else they count as distance 0.
    """
    offset = 0
    if both:
        buckets //= 2
        offset, distance = jnp.where(distance > 0, buckets, 0), jnp.abs(distance)
    else:
        distance = jnp.maximum(-distance, 0)
    exact = buckets // 2
    large = jnp.log(jnp.maximum(distance, 1).astype(jnp.float32) / exact) / math.log(max_distance / exact)
    large = exact + (large * (buckets - exact)).astype(jnp.int32)
    return offset + jnp.where(distance < exact, distance, jnp.minimum(large, buckets - 1))
