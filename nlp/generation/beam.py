"""Beam search over a decoder with a cache, for one prompt: the most probable texts to which `num_beams` texts at a time
lead.

penalty "hf": as transformers 5.23 `_beam_search`, with its three kinds of `early_stopping`. penalty "gnmt": scores are
divided by ((5 + tokens) / 6)^length_penalty, all candidates that end count, and the search ends when no open text could
still win, as in `nlp.decoding`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.types import PyTree
from nlp.decoding import penalty
from nlp.generation.options import GenerationOptions
from nlp.generation.processors import process
from nlp.generation.programs import DecoderFunctions, Params
from nlp.generation.row_settings import END, RowSettings
from nlp.generation.sampling import warp

_NEVER = -1.0e9  # transformers' log-probability of what does not count


class FinishedTexts(NamedTuple):
    """The K best texts that ended."""

    ids: jax.Array
    """[K, S] int32: prompt and text"""
    scores: jax.Array
    """[K] float32, falling; about -1e9 where there is none yet"""
    lengths: jax.Array
    """[K] int32: tokens of prompt and text"""
    exists: jax.Array
    """[K] bool"""


class BeamState(NamedTuple):
    """K open texts of one prompt, best first, and those that ended."""

    cache: PyTree
    """Of K rows"""
    ids: jax.Array
    """[K, S] int32"""
    logs: jax.Array
    """[K] float32: the sums of logarithms"""
    length: jax.Array
    """[] int32: tokens of each open text"""
    finished: FinishedTexts
    improvable: jax.Array
    """[] bool: whether an open text may still be among the best"""
    going: jax.Array
    """[] bool"""


class BeamOptions(NamedTuple):
    """What the program is compiled for."""

    beams: int
    candidates: int
    length_penalty: float
    early_stopping: bool | str
    gnmt: bool
    sample: bool
    texts: int

    @classmethod
    def of(cls, options: GenerationOptions) -> BeamOptions:
        candidates = max(2, 1 + len(options.end_tokens)) * options.num_beams
        return cls(
            options.num_beams,
            candidates,
            options.length_penalty,
            options.early_stopping,
            options.beam_penalty == "gnmt",
            options.do_sample,
            options.num_return_sequences,
        )


class BeamText(NamedTuple):
    """A text of the search."""

    ids: tuple[int, ...]
    """Behind the prompt"""
    score: float
    complete: bool
    """By a token that ends texts, and not at the limit"""


class BeamSearch:
    """The search for one prompt, a step at a time.

    Args:
        cache: Of one row, which has all tokens of the prompt but the last, and room for `limit` tokens.
        prompt: Its tokens.
        row: Settings without axis B.
    """

    def __init__(
        self,
        programs: BeamPrograms,
        cache: PyTree,
        length: int,
        prompt: np.ndarray,
        options: GenerationOptions,
        row: RowSettings,
    ) -> None:
        self._programs, self._options = programs, BeamOptions.of(options)
        self._ends = set(options.end_tokens)
        self._prompt = len(prompt)
        beams = self._options.beams
        ids = np.zeros((beams, length), np.int32)
        ids[:, : len(prompt)] = prompt
        self._settings = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], beams, axis=0), row)
        none = FinishedTexts(
            jnp.asarray(ids),
            jnp.full(beams, _NEVER, jnp.float32),
            jnp.full(beams, len(prompt), jnp.int32),
            jnp.zeros(beams, bool),
        )
        # All texts begin alike, so at first only one of them counts.
        logs = jnp.where(jnp.arange(beams) == 0, 0.0, _NEVER).astype(jnp.float32)
        true = jnp.bool_(True)
        rows = jax.tree.map(lambda x: jnp.repeat(x, beams, axis=0), cache)
        self._state = BeamState(
            rows, jnp.array(ids), logs, jnp.int32(len(prompt)), none, true, jnp.array(True)
        )

    def step(self) -> bool:
        """One token more of all open texts; whether the search goes on."""
        self._state = self._programs.step(self._options, self._programs.params, self._state, self._settings)
        return bool(self._state.going)

    def texts(self) -> list[BeamText]:
        """The `num_return_sequences` best, best first."""
        options, finished = self._options, jax.device_get(self._state.finished)
        rows = [
            (finished.ids[n, self._prompt : finished.lengths[n]], float(finished.scores[n]))
            for n in range(options.beams)
            if finished.exists[n] or not options.gnmt
        ]
        if options.gnmt and len(rows) < options.texts:
            ids, logs, length = jax.device_get((self._state.ids, self._state.logs, self._state.length))
            divisor = float(penalty(int(length) - self._prompt, options.length_penalty))
            rows += [(ids[n, self._prompt : length], float(logs[n]) / divisor) for n in range(options.beams)]
        return [
            BeamText(tuple(map(int, ids)), score, bool(len(ids)) and int(ids[-1]) in self._ends)
            for ids, score in rows[: options.texts]
        ]


class BeamPrograms:
    """The compiled step; one for all searches of a model."""

    def __init__(self, decoder: DecoderFunctions) -> None:
        self._decoder = decoder
        self.step = jax.jit(self._step, static_argnums=0, donate_argnums=2)
        self.read = jax.jit(self._read, donate_argnums=1)

    @property
    def params(self) -> Params:
        return self._decoder.params

    def _read(
        self, params: Params, cache: PyTree, ids: jax.Array, positions: jax.Array, whole: jax.Array
    ) -> PyTree:
        """Puts tokens [1, T] of a prompt of `whole` [1] tokens into a cache of one row."""
        lengths = () if self._decoder.regime is None else (whole,)
        return self._decoder.decode(params, ids, positions, cache, *lengths)[1]

    def _step(
        self, options: BeamOptions, params: Params, state: BeamState, settings: RowSettings
    ) -> BeamState:
        beams = state.ids.shape[0]
        length = jnp.broadcast_to(state.length, (beams,))
        last = jnp.take_along_axis(state.ids, length[:, None] - 1, axis=1)
        hidden, cache = self._decoder.decode(params, last, length[:, None] - 1, state.cache)
        logs = jax.nn.log_softmax(self._decoder.logits(params, hidden[:, 0]))
        logs = warp(process(logs, state.ids, length, settings), settings)
        vocab_size = logs.shape[1]
        total = (logs + state.logs[:, None]).reshape(-1)
        candidates = min(options.candidates, total.shape[0])
        if options.sample:
            key = jax.random.wrap_key_data(settings.key[0], impl="threefry2x32")
            noise = jax.random.gumbel(jax.random.fold_in(key, state.length), total.shape)
            _, choice = lax.top_k(total + noise, candidates)
            best = total[choice]
        else:
            best, choice = lax.top_k(total, candidates)
        parent, token = choice // vocab_size, (choice % vocab_size).astype(jnp.int32)
        ids = state.ids[parent].at[:, state.length].set(token)  # [candidates, S]
        ends = (settings.flags[0, token] & END) != 0
        full = state.length + 1 >= settings.limit[0]
        stops = ends if options.gnmt else ends | full

        # What ended counts no more among the open ones; the best of the others go on.
        open_logs = best + _where_never(stops)
        _, order = lax.top_k(open_logs, beams)
        finished = self._finish(options, state, settings, ids, best, stops)
        new = state.length + 1 - settings.prompt_length[0]
        improvable = state.improvable & self._can_improve(options, finished, open_logs[order], new, settings)
        going = improvable & ~(full if options.gnmt else stops.all())
        if options.early_stopping is True and not options.gnmt:
            going = going & ~finished.exists.all()
        cache = jax.tree.map(lambda x: jnp.take(x, parent[order], axis=0), cache)
        return BeamState(cache, ids[order], open_logs[order], state.length + 1, finished, improvable, going)

    @staticmethod
    def _finish(
        options: BeamOptions,
        state: BeamState,
        settings: RowSettings,
        ids: jax.Array,
        logs: jax.Array,
        stops: jax.Array,
    ) -> FinishedTexts:
        """The best of those that ended before and now."""
        beams = options.beams
        tokens = state.length + 1 - settings.prompt_length[0]
        if options.gnmt:
            scores = logs / penalty(tokens, options.length_penalty)
            counts = stops & (logs > _NEVER / 2)
        else:
            scores = logs / tokens.astype(jnp.float32) ** options.length_penalty
            counts = stops & (jnp.arange(len(logs)) < beams)  # the others are there to go on
            if options.early_stopping is True:
                scores = scores + _where_never(state.finished.exists.all())
            scores = scores + _where_never(~state.improvable)
        scores = scores + _where_never(~counts)
        before = state.finished
        lengths = jnp.broadcast_to(state.length + 1, scores.shape)
        now = FinishedTexts(ids, scores, lengths, counts)
        merged = FinishedTexts(*(jnp.concatenate(pair) for pair in zip(before, now, strict=True)))
        _, order = lax.top_k(merged.scores, beams)
        return FinishedTexts(*(array[order] for array in merged))

    @staticmethod
    def _can_improve(
        options: BeamOptions,
        finished: FinishedTexts,
        open_logs: jax.Array,
        tokens: jax.Array,
        settings: RowSettings,
    ) -> jax.Array:
        most = settings.limit[0] - settings.prompt_length[0]
        if options.gnmt:
            # What follows makes a text less probable, and no text is divided by more than the longest.
            return open_logs[0] / penalty(most, options.length_penalty) > finished.scores[options.texts - 1]
        if options.early_stopping == "never" and options.length_penalty > 0:
            tokens = most
        possible = open_logs[0] / tokens.astype(jnp.float32) ** options.length_penalty
        worst = jnp.where(finished.exists, finished.scores.min(), _NEVER)
        return (possible > worst).any()


def _where_never(condition: jax.Array) -> jax.Array:
    return jnp.where(condition, jnp.float32(_NEVER), jnp.float32(0.0))


def read_prompt(programs: BeamPrograms, cache: PyTree, prompt: np.ndarray, length: int, chunk: int) -> PyTree:
    """The cache [1, length] with all tokens of the prompt but the last."""
    read = functools.partial(programs.read, programs.params)
    for start in range(0, len(prompt) - 1, chunk):
        tokens = prompt[start : min(start + chunk, len(prompt) - 1)]
        size = min(chunk, 1 << max(len(tokens) - 1, 15).bit_length())
        ids = np.zeros((1, size), np.int32)
        positions = np.full((1, size), length, np.int32)
        ids[0, : len(tokens)] = tokens
        positions[0, : len(tokens)] = np.arange(start, start + len(tokens))
        cache = read(cache, ids, positions, np.asarray([len(prompt)], np.int32))
    return cache
