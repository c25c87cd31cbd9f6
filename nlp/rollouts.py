"""Answers that a decoder draws while it is trained: one compiled program for a batch of prompts of any lengths."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework.core.types import PyTree
from zoo.layers.decoder import Decoder


class Answers(NamedTuple):
    """N answers of up to S tokens."""

    ids: jax.Array
    """[N, S] int32; behind the end token, which belongs to the answer, 0"""
    log_likelihood: jax.Array
    """[N, S] float32: log p of each token as it was drawn, at the temperature; 0 behind the end"""
    lengths: jax.Array
    """[N] int32: tokens of each, the end token included"""


class _Drawing(NamedTuple):
    step: jax.Array
    token: jax.Array
    cache: PyTree
    done: jax.Array
    answers: Answers
    key: jax.Array


def draw_answers(
    model: Decoder,
    ids: jax.Array,
    lengths: jax.Array,
    key: jax.Array,
    *,
    group: int = 1,
    max_new_tokens: int,
    end_ids: tuple[int, ...],
    temperature: float = 1.0,
) -> Answers:
    """`group` answers to each of the prompts ids [B, P] int32, of which the first `lengths` [B] tokens count; the
    answers to a prompt are neighbours: [B * group, max_new_tokens]. With temperature 0 the most probable tokens.
    """
    rows, width = ids.shape
    room = width + max_new_tokens
    order = jnp.arange(width)
    places = jnp.where(order < lengths[:, None], order, room)  # padding is written nowhere
    hidden, cache = model.decode(ids, places, model.new_cache(rows, room))
    last = jnp.take_along_axis(hidden, (lengths - 1)[:, None, None], axis=1)[:, 0]
    cache, last, starts = jax.tree.map(lambda one: jnp.repeat(one, group, axis=0), (cache, last, lengths))
    count = rows * group

    def draw(last: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits = model.logits(last)
        if temperature == 0:
            token = logits.argmax(-1).astype(jnp.int32)
        else:
            logits = logits / temperature
            token = jax.random.categorical(key, logits).astype(jnp.int32)
        chosen = jnp.take_along_axis(logits, token[:, None], axis=-1)[:, 0]
        return token, chosen - jax.nn.logsumexp(logits, axis=-1)

    def put(state: _Drawing, token: jax.Array, log: jax.Array) -> _Drawing:
        ids, logs, sizes = state.answers
        kept = ~state.done
        answers = Answers(
            ids.at[:, state.step].set(jnp.where(kept, token, 0)),
            logs.at[:, state.step].set(jnp.where(kept, log, 0.0)),
            sizes + kept.astype(jnp.int32),
        )
        ended = jnp.isin(token, jnp.asarray(end_ids, jnp.int32)) if end_ids else jnp.zeros_like(kept)
        return state._replace(step=state.step + 1, token=token, done=state.done | ended, answers=answers)

    def go_on(state: _Drawing) -> jax.Array:
        return (state.step < max_new_tokens) & ~state.done.all()

    def advance(state: _Drawing) -> _Drawing:
        at = jnp.where(state.done, room, starts + state.step - 1)
        hidden, cache = model.decode(state.token[:, None], at[:, None], state.cache)
        key, own = jax.random.split(state.key)
        return put(state._replace(cache=cache, key=key), *draw(hidden[:, 0], own))

    empty = Answers(
        jnp.zeros((count, max_new_tokens), jnp.int32),
        jnp.zeros((count, max_new_tokens), jnp.float32),
        jnp.zeros(count, jnp.int32),
    )
    key, own = jax.random.split(key)
    first = _Drawing(jnp.int32(0), jnp.zeros(count, jnp.int32), cache, jnp.zeros(count, bool), empty, key)
    return jax.lax.while_loop(go_on, advance, put(first, *draw(last, own))).answers
