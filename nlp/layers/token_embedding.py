"""Embeddings of tokens, which may be sums over features."""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import functional as F


def embed(table: nn.Embedding, ids: jax.Array) -> jax.Array:
    """[N, T, D] of ids [N, T], or of the features [N, T, K] of each token, whose vectors are added."""
    vectors = F.embedding(ids, table.weight, padding_idx=0)
    return vectors.sum(axis=2) if ids.ndim == 3 else vectors
