"""How probable the words of texts are, without the logits of a whole batch at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework.core.errors import ShapeError


class TokenScores(NamedTuple):
    """Of the tokens of N texts."""

    log_likelihood: jax.Array
    """[N, T] float32: log p(target), 0 where there is none"""
    right: jax.Array
    """[N, T] bool: the target is the most probable token; False where there is none"""
    top: tuple[jax.Array, jax.Array] | None = None
    """[N, T, K] int32 tokens, the most probable first, and their log p [N, T, K] float32; None: not asked for"""


def token_scores(
    hidden: jax.Array,
    targets: jax.Array,
    logits: Callable[[jax.Array], jax.Array],
    chunks: int = 1,
    top: int = 0,
) -> TokenScores:
    """log p(targets) [N, T] int32 by `logits` of hidden states [N, T, C]; below 0 there is no target.

    The tokens are computed in `chunks` that follow one another, and again in the backward pass: of the logits
    [N, T, V] only [N, T / chunks, V] are there at a time. A length that `chunks` does not divide is filled up.
    log p is logsumexp - take: with logits whose last axis is divided among devices, one small sum over them. With
    `top`, so many of the most probable tokens of each place are given, too.

    Raises:
        ShapeError: `targets` do not fit the hidden states, or `chunks` is below 1.
    """
    rows, length = targets.shape
    if hidden.shape[:2] != (rows, length) or chunks < 1:
        raise ShapeError(
            "the targets do not fit the hidden states",
            where="token_scores",
            received=f"hidden {hidden.shape}, targets {targets.shape}, {chunks} chunks",
            allowed=f"targets {hidden.shape[:2]}, 1 chunk or more",
        )
    chunks = min(chunks, length)
    size = -(-length // chunks)
    room = size * chunks - length
    if room:
        hidden = jnp.pad(hidden, ((0, 0), (0, room), (0, 0)))
        targets = jnp.pad(targets, ((0, 0), (0, room)), constant_values=-1)

    def score(hidden: jax.Array, targets: jax.Array) -> TokenScores:
        scores = logits(hidden).astype(jnp.float32)
        has_target = targets >= 0
        target_logit = jnp.take_along_axis(scores, jnp.maximum(targets, 0)[..., None], axis=-1)[..., 0]
        total = jax.nn.logsumexp(scores, axis=-1)
        logs = jnp.where(has_target, target_logit - total, 0.0)
        right = (scores.argmax(-1) == targets) & has_target
        if not top:
            return TokenScores(logs, right)
        best, tokens = jax.lax.top_k(scores, top)
        return TokenScores(logs, right, (tokens, best - total[..., None]))

    if chunks == 1:
        return score(hidden, targets)
    # Along the tokens, not the texts: those are divided among devices.
    states = jnp.moveaxis(hidden.reshape(rows, chunks, size, -1), 1, 0)
    target_chunks = jnp.moveaxis(targets.reshape(rows, chunks, size), 1, 0)
    chunk_scores = jax.lax.map(lambda both: jax.checkpoint(score)(*both), (states, target_chunks))
    return jax.tree.map(
        lambda one: jnp.moveaxis(one, 0, 1).reshape(rows, chunks * size, *one.shape[3:])[:, :length],
        chunk_scores,
    )
