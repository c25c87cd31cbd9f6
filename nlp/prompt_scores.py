"""How probable each token of a prompt is, and which tokens would have been more probable."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from zoo.layers.decoder import Decoder

_SHORTEST = 16  # tokens of the first bucket
_LOGITS = 1 << 24  # values of logits that are there at a time
_TOP = (0, 1, 5, 20)  # numbers of alternatives for which there are programs


class PromptScores(NamedTuple):
    """Of the tokens behind the first one, which has no context."""

    logs: np.ndarray
    """[T - 1] float32: natural logarithms"""
    top: np.ndarray
    """[T - 1, K] int32: the most probable tokens, the best first"""
    top_logs: np.ndarray
    """[T - 1, K] float32"""


class PromptScorer:
    """Scores prompts by a decoder, one at a time; for several threads. There is a program for each power of two of
    tokens."""

    def __init__(self, model: Decoder) -> None:
        self._graphdef, params, buffers = nn.split(model)
        self._state = (params, buffers)
        self._vocab_size, self._longest = model.size.vocab_size, model.size.max_positions
        self._run = jax.jit(self._score, static_argnums=(3, 4))
        self._lock = threading.Lock()

    def _score(
        self, state: tuple, ids: jax.Array, targets: jax.Array, chunks: int, top: int
    ) -> tuple[jax.Array, ...]:
        hidden = nn.apply(self._graphdef, *state, None, ids[None], method="hidden")[0][0]

        def score(states: jax.Array, targets: jax.Array) -> tuple[jax.Array, ...]:
            logits = nn.apply(self._graphdef, *state, None, states[None], method="logits")[0][0]
            logs = jax.nn.log_softmax(logits.astype(jnp.float32))
            best, tokens = (
                jax.lax.top_k(logs, top) if top else (logs[:, :0], jnp.zeros((len(logs), 0), jnp.int32))
            )
            return jnp.take_along_axis(logs, targets[:, None], 1)[:, 0], tokens, best

        chunk_inputs = hidden.reshape(chunks, -1, hidden.shape[-1]), targets.reshape(chunks, -1)
        scores = jax.lax.map(lambda both: score(*both), chunk_inputs)
        return tuple(one.reshape(-1, *one.shape[2:]) for one in scores)

    def score(self, ids: Sequence[int], top: int) -> PromptScores:
        """`ids` [T], at most as many as the model reads; `top` from 0 to 20."""
        count = len(ids) - 1
        length = max(_SHORTEST, 1 << max(0, count - 1).bit_length())
        rows = np.zeros((2, length), np.int32)
        rows[0, :count], rows[1, :count] = ids[:-1], ids[1:]
        size = next(one for one in _TOP if one >= min(top, self._vocab_size))
        size = min(size, self._vocab_size)
        chunks = 1 << max(0, -(-length * self._vocab_size // _LOGITS) - 1).bit_length()
        with self._lock:  # which compiles a program once
            scores = self._run(self._state, rows[0], rows[1], min(chunks, length), size)
        logs, tokens, best = (np.asarray(one)[:count] for one in scores)
        return PromptScores(logs, tokens[:, :top], best[:, :top])
