"""Processors of scores in the order of transformers, each for a batch whose rows have settings of their own.

All take scores [B, V] float32 of the next tokens, the tokens so far `ids` [B, S] int32, of which `length` [B] count,
and `RowSettings`. What no row of the batch has set is not computed.

Source: transformers 5.23, `generation/logits_process.py`; presence and frequency penalties: OpenAI, vLLM.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from nlp.generation.row_settings import BEGIN_SUPPRESS, END, FORCED_END, SUPPRESS, RowSettings

NEVER = -jnp.inf


def process(
    scores: jax.Array,
    ids: jax.Array,
    length: jax.Array,
    settings: RowSettings,
    allowed: jax.Array | None = None,
) -> jax.Array:
    """The scores after all processors that count for greedy decoding, too.

    Args:
        allowed: [B, ceil(V / 32)] int32: a bit of 1 for each token that a constraint allows.
    """
    scores = _sequence_bias(scores, ids, length, settings)
    scores = _repetition(scores, ids, length, settings)
    scores = _presence_and_frequency(scores, ids, length, settings)
    scores = _no_repeat_ngram(scores, ids, length, settings)
    scores = _ban(scores, _has(settings, END) & (length < settings.min_length)[:, None])
    if allowed is not None:
        scores = _constrain(scores, allowed)
    scores = _forced(scores, length, settings)
    scores = _decay(scores, length, settings)
    scores = _ban(scores, _has(settings, SUPPRESS))
    return _ban(scores, _has(settings, BEGIN_SUPPRESS) & (length == settings.begin_length)[:, None])


def when(needed: jax.Array, function: Callable[[jax.Array], jax.Array], scores: jax.Array) -> jax.Array:
    """`function` of the scores where any row needs it."""
    return lax.cond(jnp.any(needed), function, lambda same: same, scores)


def _has(settings: RowSettings, bit: int) -> jax.Array:
    return (settings.flags & bit) != 0


def _ban(scores: jax.Array, banned: jax.Array) -> jax.Array:
    return jnp.where(banned, NEVER, scores)


def _rows(ids: jax.Array) -> jax.Array:
    return jnp.arange(ids.shape[0])[:, None]


def _sequence_bias(scores: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    def add(scores: jax.Array) -> jax.Array:
        offsets = length[:, None] - 1 - jnp.arange(settings.prefixes.shape[2])  # [B, L], the last token first
        tail = jnp.take_along_axis(ids, jnp.maximum(offsets, 0), axis=1)
        tail = jnp.where(offsets < 0, -2, tail)[:, None]
        matches = ((settings.prefixes == tail) | (settings.prefixes == -1)).all(-1)
        bias = jnp.where(matches, settings.sequence_bias, 0.0)
        return scores.at[_rows(ids), settings.last_tokens].add(bias, mode="drop")

    scores = scores + settings.bias
    return when(settings.sequence_bias != 0, add, scores)


def _repetition(scores: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    def penalize(scores: jax.Array) -> jax.Array:
        counted = jnp.arange(ids.shape[1]) < length[:, None]
        occurs = jnp.zeros(scores.shape, bool).at[_rows(ids), ids].max(counted, mode="drop")
        penalty = settings.repetition_penalty[:, None]
        penalized = jnp.where(scores < 0, scores * penalty, scores / penalty)
        return jnp.where(occurs, penalized, scores)

    return when(settings.repetition_penalty != 1, penalize, scores)


def _presence_and_frequency(
    scores: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings
) -> jax.Array:
    def subtract(scores: jax.Array) -> jax.Array:
        index = jnp.arange(ids.shape[1])
        counted = (index < length[:, None]) & (index >= settings.prompt_length[:, None])
        counts = (
            jnp.zeros(scores.shape, jnp.float32)
            .at[_rows(ids), ids]
            .add(counted.astype(jnp.float32), mode="drop")
        )
        presence, frequency = settings.presence_penalty[:, None], settings.frequency_penalty[:, None]
        return scores - frequency * counts - jnp.where(counts > 0, presence, 0.0)

    return when((settings.presence_penalty != 0) | (settings.frequency_penalty != 0), subtract, scores)


def _no_repeat_ngram(
    scores: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings
) -> jax.Array:
    size = settings.ngram_size[:, None]
    ends = length[:, None]

    def ban(scores: jax.Array) -> jax.Array:
        index = jnp.arange(ids.shape[1])

        def narrow(back: jax.Array, matches: jax.Array) -> jax.Array:
            """Tokens whose `back`-th predecessor is that of the next token."""
            before = jnp.take_along_axis(ids, jnp.maximum(ends - back, 0), axis=1)
            return matches & ((jnp.roll(ids, back, axis=1) == before) | (back >= size))

        first = (index >= size - 1) & (index < ends) & (size > 0) & (ends >= size - 1)
        matches = lax.fori_loop(1, jnp.minimum(size.max(), ids.shape[1]), narrow, first)
        banned = jnp.zeros(scores.shape, bool).at[_rows(ids), ids].max(matches, mode="drop")
        return _ban(scores, banned)

    return when(size > 0, ban, scores)


def _constrain(scores: jax.Array, allowed: jax.Array) -> jax.Array:
    def ban(scores: jax.Array) -> jax.Array:
        bits = (allowed[..., None] >> jnp.arange(32, dtype=jnp.int32)) & 1
        return _ban(scores, bits.reshape(scores.shape[0], -1)[:, : scores.shape[1]] == 0)

    return when(allowed != -1, ban, scores)


def _forced(scores: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    """The token that begins an encoder-decoder's text, and that which ends a text at its limit."""
    bos = settings.forced_bos[:, None]
    begins = (bos >= 0) & (length == 1)[:, None]
    scores = jnp.where(begins, jnp.where(jnp.arange(scores.shape[1]) == bos, 0.0, NEVER), scores)
    forced = _has(settings, FORCED_END)
    ends = forced.any(-1, keepdims=True) & (length == settings.limit - 1)[:, None]
    return jnp.where(ends, jnp.where(forced, 0.0, NEVER), scores)


def _decay(scores: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    over = length - settings.decay_start

    def grow(scores: jax.Array) -> jax.Array:
        factor = settings.decay_factor ** jnp.maximum(over, 0).astype(jnp.float32) - 1
        more = jnp.where(jnp.isfinite(scores), jnp.abs(scores) * factor[:, None], 0.0)
        return jnp.where(_has(settings, END) & (over > 0)[:, None], scores + more, scores)

    return when(over > 0, grow, scores)
