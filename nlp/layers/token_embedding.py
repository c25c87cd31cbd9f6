"""Embeddings of tokens, which may be sums over features."""

from __future__ import annotations

import jax

from framework import nn
from framework.core.errors import ConfigError
from framework.nn import functional as F


def check_network(where: str, sizes: tuple[int, ...], dropout: float) -> None:
    """Raises: ConfigError, where a size is below 1 or `dropout` is no probability."""
    if min(sizes) < 1 or not 0 <= dropout < 1:
        raise ConfigError(
            "a setting of the network is out of range",
            where=where,
            received=f"sizes {sizes}, dropout {dropout}",
            allowed="sizes from 1, 0 <= dropout < 1",
        )


def embed(table: nn.Embedding, ids: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """[N, T, D] of ids [N, T], or of the features [N, T, K] of each token, whose vectors are added.

    `weights`, of the shape of `ids`, are factors of the vectors.
    """
    vectors = F.embedding(ids, table.weight, padding_idx=0)
    if weights is not None:
        vectors = vectors * weights[..., None]
    return vectors.sum(axis=2) if ids.ndim == 3 else vectors
