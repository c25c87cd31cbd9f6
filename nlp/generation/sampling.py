"""From processed scores to a token: temperature, filters of what is drawn, the draw, and logarithms of probabilities.

A draw is the largest of score + Gumbel noise, whose key is `fold_in(request's key, position)`: a text does not depend
on what is generated beside it. Rows that are not sampled have neutral settings, and their largest score stays the
largest.

Source: transformers 5.23, `generation/logits_process.py`. Filters retain ties where transformers retains any of them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nlp.generation.options import MAX_LOGPROBS
from nlp.generation.processors import NEVER, when
from nlp.generation.row_settings import RowSettings

_HEAD = 256  # tokens that are sorted first: with top_k or a peaked distribution the others need no sort


class TokenLogprobs(NamedTuple):
    """Natural logarithms of the model's own probabilities, before any option changes them."""

    token: jax.Array
    """[B] float32"""
    top_ids: jax.Array
    """[B, MAX_LOGPROBS] int32, the most probable first"""
    top: jax.Array
    """[B, MAX_LOGPROBS] float32"""


def warp(scores: jax.Array, settings: RowSettings) -> jax.Array:
    """The scores [B, V] that a draw is made of, in transformers' order."""
    return lax.cond(settings.do_sample.any(), lambda s: _warp(s, settings), lambda s: s, scores)


def _warp(scores: jax.Array, settings: RowSettings) -> jax.Array:
    scores = scores / settings.temperature[:, None]
    scores = _top_k_and_top_p(scores, settings)
    scores = when(settings.min_p > 0, lambda s: _min_p(s, settings), scores)
    scores = when(settings.typical_p < 1, lambda s: _typical(s, settings), scores)
    scores = when(settings.epsilon_cutoff > 0, lambda s: _epsilon(s, settings), scores)
    return when(settings.eta_cutoff > 0, lambda s: _eta(s, settings), scores)


def choose(scores: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    """The tokens [B] int32 of warped scores [B, V], which stand at index `length` [B] of their texts; -1 where every
    token is banned."""
    noisy = when(settings.do_sample, lambda s: s + gumbel(settings, length, s.shape[1]), scores)
    token = noisy.argmax(-1).astype(jnp.int32)
    return jnp.where(scores.max(-1) == NEVER, -1, token)


def gumbel(settings: RowSettings, length: jax.Array, size: int) -> jax.Array:
    """Noise [B, size] of the draw at index `length` [B]; 0 in rows that are not sampled."""

    def draw(words: jax.Array, at: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.wrap_key_data(words, impl="threefry2x32"), at)
        return jax.random.gumbel(key, (size,), jnp.float32)

    return jnp.where(settings.do_sample[:, None], jax.vmap(draw)(settings.key, length), 0.0)


def token_logprobs(logits: jax.Array, token: jax.Array, settings: RowSettings) -> TokenLogprobs:
    """Of logits [B, V] as the model gives them; zeros where no row reports them."""
    rows, size = logits.shape
    most = min(MAX_LOGPROBS, size)

    def compute() -> TokenLogprobs:
        total = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
        top, top_ids = lax.top_k(logits, most)
        chosen = jnp.take_along_axis(logits, jnp.maximum(token, 0)[:, None], axis=1)
        return TokenLogprobs((chosen - total)[:, 0], top_ids.astype(jnp.int32), top - total)

    def nothing() -> TokenLogprobs:
        return TokenLogprobs(
            jnp.zeros(rows, jnp.float32),
            jnp.zeros((rows, most), jnp.int32),
            jnp.zeros((rows, most), jnp.float32),
        )

    return lax.cond((settings.logprobs >= 0).any(), compute, nothing)


def _retain(scores: jax.Array, least: jax.Array) -> jax.Array:
    """The scores from `least` [B] on."""
    return jnp.where(scores < least[:, None], NEVER, scores)


def _top_k_and_top_p(scores: jax.Array, settings: RowSettings) -> jax.Array:
    """Both need the largest scores in order: the largest few are enough unless a row filters among more."""
    limits = jnp.where(
        settings.top_k > 0, jnp.maximum(settings.top_k, settings.min_retained), scores.shape[1]
    )
    needs_order = (settings.top_k > 0) | (settings.top_p < 1)

    def by_order(ordered: jax.Array) -> jax.Array:
        at = jnp.clip(limits, 1, ordered.shape[1]) - 1
        kth = jnp.take_along_axis(ordered, at[:, None], axis=1)
        cut = jnp.where(limits[:, None] <= ordered.shape[1], kth, NEVER)
        retained = jnp.where(scores < cut, NEVER, scores)
        # The probability of what is more probable than each: a token counts while that has not reached top_p.
        total = jax.nn.logsumexp(retained, axis=-1, keepdims=True)
        probabilities = jnp.where(ordered < cut, 0.0, jnp.exp(ordered - total))
        before = jnp.cumsum(probabilities, axis=-1) - probabilities
        counts = (before < settings.top_p[:, None]) & (probabilities > 0)
        counts = counts | (jnp.arange(ordered.shape[1]) < settings.min_retained[:, None])
        least = jnp.where(counts, ordered, jnp.inf).min(-1)
        return jnp.where((settings.top_p < 1)[:, None], _retain(retained, least), retained)

    def whole() -> jax.Array:
        return by_order(-jnp.sort(-scores, axis=-1))

    if scores.shape[1] <= _HEAD:
        return lax.cond(needs_order.any(), whole, lambda: scores)

    def head() -> jax.Array:
        ordered = lax.top_k(scores, _HEAD)[0]
        total = jax.nn.logsumexp(scores, axis=-1, keepdims=True)
        reached = jnp.exp(ordered - total).sum(-1) > settings.top_p
        cut_by_k = limits <= _HEAD
        enough = cut_by_k | ((settings.top_k == 0) & ((settings.top_p == 1) | reached))
        return lax.cond(enough.all(), lambda: by_order(ordered), whole)

    return lax.cond(needs_order.any(), head, lambda: scores)


def _protected(scores: jax.Array, settings: RowSettings) -> jax.Array:
    """[B, V]: the scores that no filter removes. With beams these are more than one."""

    def several() -> jax.Array:
        most = min(8, scores.shape[1])
        ordered = lax.top_k(scores, most)[0]
        at = jnp.clip(settings.min_retained, 1, most) - 1
        return scores >= jnp.take_along_axis(ordered, at[:, None], axis=1)

    single = scores >= scores.max(-1, keepdims=True)
    return lax.cond((settings.min_retained > 1).any(), several, lambda: single)


def _remove(scores: jax.Array, removed: jax.Array, settings: RowSettings, counts: jax.Array) -> jax.Array:
    removed = removed & counts[:, None] & ~_protected(scores, settings)
    return jnp.where(removed, NEVER, scores)


def _min_p(scores: jax.Array, settings: RowSettings) -> jax.Array:
    probabilities = jax.nn.softmax(scores, axis=-1)
    least = settings.min_p[:, None] * probabilities.max(-1, keepdims=True)
    return _remove(scores, probabilities < least, settings, settings.min_p > 0)


def _entropy(logs: jax.Array) -> jax.Array:
    """[B, 1] in nats."""
    return -jnp.where(jnp.isfinite(logs), logs * jnp.exp(logs), 0.0).sum(-1, keepdims=True)


def _typical(scores: jax.Array, settings: RowSettings) -> jax.Array:
    logs = jax.nn.log_softmax(scores, axis=-1)
    distance = jnp.abs(-logs - _entropy(logs))
    ordered, sorted_logs = lax.sort((distance, logs), num_keys=1)
    reached = jnp.cumsum(jnp.exp(sorted_logs), axis=-1)
    last = (reached < settings.typical_p[:, None]).sum(-1, keepdims=True)
    last = jnp.minimum(last, scores.shape[1] - 1)
    bound = jnp.take_along_axis(ordered, last, axis=1)
    # Here the nearest ones are protected, not the most probable ones.
    least = jnp.take_along_axis(ordered, jnp.maximum(settings.min_retained, 1)[:, None] - 1, axis=1)
    removed = (distance > bound) & (distance > least) & (settings.typical_p < 1)[:, None]
    return jnp.where(removed, NEVER, scores)


def _epsilon(scores: jax.Array, settings: RowSettings) -> jax.Array:
    removed = jax.nn.softmax(scores, axis=-1) < settings.epsilon_cutoff[:, None]
    return _remove(scores, removed, settings, settings.epsilon_cutoff > 0)


def _eta(scores: jax.Array, settings: RowSettings) -> jax.Array:
    logs = jax.nn.log_softmax(scores, axis=-1)
    epsilon = settings.eta_cutoff[:, None]
    least = jnp.minimum(epsilon, jnp.sqrt(epsilon) * jnp.exp(-_entropy(logs)))
    return _remove(scores, jnp.exp(logs) < least, settings, settings.eta_cutoff > 0)
