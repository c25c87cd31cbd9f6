"""The rows of a batch on the device: their caches, tokens and settings, which grow where requests need it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.types import PyTree
from nlp.generation.programs import DecodeState, Programs, StepOutput, grow_leaf
from nlp.generation.row_settings import RowSettings, fit_table, neutral_rows

_FIRST_LENGTH = 256  # of the cache
_FIRST_SOURCE = 64  # tokens of an encoder


class BatchState:
    """For one thread.

    Args:
        rows: B.
        max_length: Tokens that a row never exceeds.
    """

    def __init__(self, programs: Programs, rows: int, max_length: int) -> None:
        self._programs, self._rows, self._max = programs, rows, max_length
        self._length = min(_FIRST_LENGTH, max_length)
        self._source = _FIRST_SOURCE if programs.encodes else 0
        self._words = -(-programs.vocab_size // 32)
        self._all = jnp.full((rows, self._words), -1, jnp.int32)
        settings = jax.tree.map(jnp.asarray, neutral_rows(rows, programs.vocab_size, (1, 1)))
        draft = programs.draft
        self.state = DecodeState(
            _copy_leaves(self._new_cache(rows)),
            _copy_leaves(draft.new_cache(rows, self._length)) if draft else (),
            jnp.zeros((rows, self._length), jnp.int32),
            jnp.zeros(rows, jnp.int32),
            jnp.zeros(rows, bool),
            settings,
        )

    def _new_cache(self, rows: int, length: int | None = None) -> PyTree:
        length = self._length if length is None else length
        decoder = self._programs.decoder
        if not self._source:
            return decoder.new_cache(rows, length)
        shapes = self._programs.source_cache_shapes(rows, self._source, length)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    # -- sizes --------------------------------------------------------------------------------------------------------

    def ensure_length(self, length: int) -> None:
        """The cache takes so many tokens; it doubles until it does."""
        size = self._length
        while size < length:
            size = min(2 * size, self._max)
        if size > self._length:
            self._length = size
            self._grow()

    def _grow(self) -> None:
        draft, state = self._programs.draft, self.state
        caches = [jax.eval_shape(lambda: self._new_cache(self._rows)), ()]
        if draft is not None:
            caches[1] = jax.eval_shape(functools.partial(draft.new_cache, self._rows, self._length))
        wider = jax.tree.map(
            lambda old, new: grow_leaf(old, new.shape), (state.cache, state.draft_cache), tuple(caches)
        )
        ids = grow_leaf(state.ids, (self._rows, self._length))
        self.state = state._replace(cache=wider[0], draft_cache=wider[1], ids=ids)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def admit(self, row: int, ids: Sequence[int], settings: RowSettings) -> None:
        """A request in a row, which rests until `set_active`."""
        both, settings = fit_table(self.state.settings, settings)
        if both is not self.state.settings:
            self.state = self.state._replace(settings=jax.tree.map(jnp.asarray, both))
        tokens = np.zeros(self._length, np.int32)
        tokens[: len(ids)] = ids
        length = np.int32(len(ids))
        self.state = self._programs.admit(self.state, np.int32(row), tokens, length, settings)

    def set_active(self, row: int, active: bool) -> None:
        self.state = self._programs.set_active(self.state, np.int32(row), np.bool_(active))

    def prefill(self, row: int, chunk: np.ndarray, start: int, whole: int) -> None:
        """Tokens of a prompt of `whole` tokens, padded by -1, into the cache from position `start` on."""
        programs, at = self._programs, (np.int32(start), np.int32(row))
        self.state = programs.prefill(programs.params, self.state, chunk, *at, np.int32(whole))

    def read_again(self, row: int, length: int, chunk: int) -> None:
        """The `length` tokens of a row, all but the last, into its cache: `chunk` of them at a time."""
        programs = self._programs
        for start in range(0, length - 1, chunk):
            at = np.int32(start), np.int32(row)
            self.state = programs.read_again(programs.params, self.state, *at, chunk)

    def encode(self, row: int, source: Sequence[int]) -> None:
        """What the encoder makes of a text, into the cache of a row."""
        self._ensure_source(len(source))
        alone = self._encoded(source, self._length)
        self.state = self.state._replace(cache=self._programs.put_row(self.state.cache, alone, np.int32(row)))

    def _ensure_source(self, count: int) -> None:
        size = self._source
        while size < count:
            size *= 2
        if size > self._source:
            self._source = size
            self._grow()

    def _encoded(self, source: Sequence[int], length: int) -> PyTree:
        ids, mask = np.zeros((1, self._source), np.int32), np.zeros((1, self._source), bool)
        ids[0, : len(source)], mask[0, : len(source)] = source, True
        return self._programs.encode(self._programs.params, ids, mask, length)

    def single_cache(self, length: int, source: Sequence[int]) -> PyTree:
        """A cache of one row that is none of the batch's."""
        if not source:
            return _copy_leaves(self._programs.decoder.new_cache(1, length))
        self._ensure_source(len(source))
        return self._encoded(source, length)

    def read_block(self, row: int, start: int, size: int) -> PyTree:
        return self._programs.read_block(self.state.cache, np.int32(row), np.int32(start), size)

    def write_block(self, row: int, start: int, block: PyTree) -> None:
        cache = self._programs.write_block(self.state.cache, np.int32(row), np.int32(start), block)
        self.state = self.state._replace(cache=cache)

    def step(self, masks: Mapping[int, np.ndarray]) -> StepOutput:
        """The next tokens of the active rows.

        Args:
            masks: Of rows with a constraint, see `TokenMatcher.allowed`.
        """
        allowed = self._all
        if masks:
            host = np.full((self._rows, self._words), -1, np.int32)
            for row, mask in masks.items():
                host[row] = mask[: self._words]
            allowed = jnp.asarray(host)
        self.state, output = self._programs.step(self._programs.params, self.state, allowed)
        return output


def _copy_leaves(cache: PyTree) -> PyTree:
    """Arrays of which no two are one: each is donated."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), cache)
