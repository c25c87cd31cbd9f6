"""Caches of keys and values: what attention of earlier tokens needs, in floats or in 8 bits."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from framework.nn.functional.quantized import quantize_rows


class LayerCache(NamedTuple):
    """Keys, after their rotation, and values of the tokens so far: [N, S, KV, D] each."""

    k: jax.Array
    v: jax.Array


class Int8LayerCache(NamedTuple):
    """As LayerCache in 8 bits, a quarter of float32: int8 [N, S, KV, D], and a scale for each token and head."""

    k: jax.Array
    v: jax.Array
    k_scale: jax.Array
    """[N, S, KV] float32"""
    v_scale: jax.Array


def new_layer_cache(shape: tuple[int, int, int, int], dtype: DTypeLike) -> LayerCache | Int8LayerCache:
    """An empty cache of `shape` (N, S, KV, D); of 8 bits for the dtype int8."""
    if jnp.dtype(dtype) != jnp.int8:
        return LayerCache(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))
    numbers, scales = (jnp.zeros(shape, jnp.int8) for _ in range(2)), (jnp.zeros(shape[:3]) for _ in range(2))
    return Int8LayerCache(*numbers, *scales)


def write_cache(cache: jax.Array, new: jax.Array, positions: jax.Array) -> jax.Array:
    """The cache [N, S, ...] with tokens `new` [N, T, ...] at `positions` [N, T]; one from S on writes nothing."""
    rows = jnp.arange(cache.shape[0])[:, None]
    return cache.at[rows, positions].set(new.astype(cache.dtype), mode="drop")


def extend_cache(
    cache: LayerCache | Int8LayerCache, k: jax.Array, v: jax.Array, positions: jax.Array
) -> tuple[LayerCache | Int8LayerCache, jax.Array, jax.Array]:
    """The cache with keys and values [N, T, KV, D] of tokens at `positions` [N, T], and all keys and values in it,
    [N, S, KV, D] in the type of k."""
    if isinstance(cache, LayerCache):
        cache = LayerCache(write_cache(cache.k, k, positions), write_cache(cache.v, v, positions))
        return cache, cache.k.astype(k.dtype), cache.v.astype(v.dtype)
    new = (*quantize_rows(k), *quantize_rows(v))
    arrays = (cache.k, cache.k_scale, cache.v, cache.v_scale)
    keys, k_scale, values, v_scale = (
        write_cache(old, one, positions) for old, one in zip(arrays, new, strict=True)
    )
    wide = (a.astype(jnp.float32) * s[..., None] for a, s in ((keys, k_scale), (values, v_scale)))
    return Int8LayerCache(keys, values, k_scale, v_scale), *(array.astype(k.dtype) for array in wide)  # type: ignore[return-value]
