"""Greedy and beam search: one compiled loop that asks a Step for the scores of the next tokens.

The state of a step, such as the keys and values of the tokens so far, keeps its shape, so the loop is compiled once and
can be exported. It ends as soon as no row can change any more.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ConfigError
from nlp.contracts import State, Step

_NEVER = -1e9  # the log-probability of what cannot be; finite, so that sums of it are no NaN


class DecodedSequences(NamedTuple):
    """The best text that was found for each of N rows."""

    ids: jax.Array
    """[N, max_length] int32: the tokens behind the first one, also the `eos_id` that ends a text, then `pad_id`."""
    scores: jax.Array
    """[N] float32: the logarithm of the text's probability, divided by `penalty` of its number of tokens."""


def penalty(length: jax.Array | int, alpha: float) -> jax.Array:
    """((5 + length) / 6) ** alpha. `length` counts tokens, with the one that ends the text.

    Source: Wu et al. 2016 (arXiv 1609.08144), eq. 14.
    """
    return ((5.0 + jnp.asarray(length, jnp.float32)) / 6.0) ** alpha


def search(
    step: Step[State],
    state: State,
    first: jax.Array,
    *,
    beam_size: int,
    max_length: int,
    eos_id: int,
    pad_id: int,
    alpha: float = 0.0,
) -> DecodedSequences:
    """`greedy_search`, or `beam_search` where `beam_size` is above 1.

    Args:
        state: The step's before the first token, for N * beam_size rows: those of one text stand side by side.
        first: [N] int32: the token that begins each text, at position 0.
        max_length: Tokens behind the first one, at most.
        alpha: Of `penalty`: 0 compares probabilities, and the larger, the longer the texts.

    Raises:
        ConfigError: `beam_size` or `max_length` is below 1, or `alpha` below 0.
    """
    if beam_size < 1 or max_length < 1 or alpha < 0:
        raise ConfigError(
            "a setting of the search is out of range",
            received=f"beam_size {beam_size}, max_length {max_length}, alpha {alpha}",
            allowed="beam_size and max_length from 1, alpha from 0",
        )
    if beam_size == 1:
        return greedy_search(step, state, first, max_length, eos_id, pad_id, alpha)
    return beam_search(step, state, first, beam_size, max_length, eos_id, pad_id, alpha)


_Greedy = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, State]
"""(place [], ids [N, max_length], logs [N], the last token [N], whether the text has ended [N], the step's state)"""


def greedy_search(
    step: Step[State], state: State, first: jax.Array, max_length: int, eos_id: int, pad_id: int, alpha: float
) -> DecodedSequences:
    """The most probable token each time."""

    def more(carry: _Greedy[State]) -> jax.Array:
        position, _, _, _, done, _ = carry
        return (position < max_length) & ~done.all()

    def body(carry: _Greedy[State]) -> _Greedy[State]:
        position, ids, total, last, done, state = carry
        logits, state = step(last, position, state)
        logs = jax.nn.log_softmax(logits.astype(jnp.float32))
        token = jnp.where(done, pad_id, logs.argmax(-1).astype(jnp.int32))
        total = total + jnp.where(done, 0.0, logs.max(-1))
        return position + 1, ids.at[:, position].set(token), total, token, done | (token == eos_id), state

    first = jnp.asarray(first, jnp.int32)
    ids = jnp.broadcast_to(jnp.int32(pad_id), (first.shape[0], max_length))
    nothing = jnp.zeros_like(first, jnp.float32)
    start = (jnp.int32(0), ids, nothing, first, nothing > 0, state)
    _, ids, total, _, done, _ = lax.while_loop(more, body, start)
    lengths = jnp.where(done, (ids == eos_id).argmax(-1).astype(jnp.int32) + 1, max_length)
    return DecodedSequences(ids, total / penalty(lengths, alpha))


class _Beams(NamedTuple, Generic[State]):
    position: jax.Array
    """[] int32: tokens so far"""
    ids: jax.Array
    """[N, K, max_length] int32 of the texts that go on, best first"""
    logs: jax.Array
    """[N, K] float32: the logarithms of their probabilities"""
    best: DecodedSequences
    """The best of the texts that ended; `scores` are _NEVER before there is one"""
    state: State


def beam_search(
    step: Step[State],
    state: State,
    first: jax.Array,
    beam_size: int,
    max_length: int,
    eos_id: int,
    pad_id: int,
    alpha: float,
) -> DecodedSequences:
    """The text of the highest score among those that `beam_size` texts at a time lead to.

    At each place the 2 * beam_size most probable continuations of all texts of a row are looked at: those that end are
    compared by their scores, and of the others the first `beam_size` go on. A row is done when no text that goes on
    could still win. Where none ended within `max_length`, the most probable that goes on is the result.
    """
    first = jnp.asarray(first, jnp.int32)
    count, width = first.shape[0], beam_size
    rows = jnp.arange(count)[:, None]
    longest = penalty(max_length, alpha)

    def can_win(beams: _Beams[State]) -> jax.Array:
        # What follows makes a text less probable, and no text is divided by more than the longest.
        return beams.logs[:, 0] / longest > beams.best.scores

    def more(beams: _Beams[State]) -> jax.Array:
        return (beams.position < max_length) & can_win(beams).any()

    def body(beams: _Beams[State]) -> _Beams[State]:
        position = beams.position
        before = beams.ids[:, :, jnp.maximum(position - 1, 0)]
        last = jnp.where(position == 0, first[:, None], before).reshape(count * width)
        logits, state = step(last, position, beams.state)
        size = logits.shape[-1]
        probabilities = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(count, width, size)
        logs, choice = lax.top_k(
            (probabilities + beams.logs[..., None]).reshape(count, width * size), 2 * width
        )
        parent, token = choice // size, choice % size
        ids = beams.ids[rows, parent].at[:, :, position].set(token.astype(jnp.int32))  # [N, 2K, max_length]
        ends = token == eos_id
        # Continuations of texts that do not count are there where the vocabulary is small.
        real = ends & (logs > _NEVER / 2)
        scores = jnp.where(real, logs / penalty(position + 1, alpha), _NEVER)
        winner = scores.argmax(-1)[:, None]
        score, text = scores[rows, winner][:, 0], ids[rows, winner][:, 0]
        better = score > beams.best.scores
        best = DecodedSequences(
            jnp.where(better[:, None], text, beams.best.ids), jnp.where(better, score, beams.best.scores)
        )
        # A stable sort: those that end go behind the others, which keep their order.
        survivors = jnp.argsort(ends, axis=-1, stable=True)[:, :width]
        logs = jnp.where(ends, _NEVER, logs)[rows, survivors]
        origin = (rows * width + parent[rows, survivors]).reshape(count * width)
        state = jax.tree.map(lambda x: jnp.take(x, origin, axis=0), state)
        return _Beams(position + 1, ids[rows, survivors], logs, best, state)

    blank = jnp.broadcast_to(jnp.int32(pad_id), (count, width, max_length))
    # All texts of a row begin alike, so at first only one of them counts.
    logs = jnp.broadcast_to(jnp.where(jnp.arange(width) == 0, 0.0, _NEVER), (count, width))
    nothing = DecodedSequences(blank[:, 0], jnp.broadcast_to(jnp.float32(_NEVER), (count,)))
    end = lax.while_loop(more, body, _Beams(jnp.int32(0), blank, logs, nothing, state))
    finished = end.best.scores > _NEVER
    open_scores = end.logs[:, 0] / longest
    return DecodedSequences(
        jnp.where(finished[:, None], end.best.ids, end.ids[:, 0]),
        jnp.where(finished, end.best.scores, open_scores),
    )
