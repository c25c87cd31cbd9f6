"""The compiled programs of an engine: step, prefill, and what puts requests into rows. Each is a pure function.

One step program serves rows of any lengths and options; it is compiled once for each number of rows and length of the
cache. The state is donated, so caches stay where they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework import nn
from framework.core.types import PyTree
from nlp.generation.processors import process
from nlp.generation.row_settings import END, RowSettings
from nlp.generation.sampling import TokenLogprobs, choose, token_logprobs, warp
from nlp.generation.speculation import Speculation, ngram_drafts
from zoo.layers.decoder_config import DecoderSize
from zoo.layers.rope import LENGTH_KINDS

Params = PyTree
_Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""(ids [B, S], length [B], whether a row takes the next token [B], whether it goes on [B])"""


class DecoderFunctions(Protocol):
    """A decoder as pure functions of its arrays `params`."""

    params: Params
    encodes: bool
    """Whether it is that of an encoder-decoder, and so `EncoderDecoderFunctions`"""
    regime: Callable[[int], int] | None
    """`RopeOptions.regime` of texts of so many tokens; None: cached keys fit to texts of any length"""

    def decode(
        self,
        params: Params,
        ids: jax.Array,
        positions: jax.Array,
        cache: PyTree,
        lengths: jax.Array | None = None,
    ) -> tuple[jax.Array, PyTree]:
        """See `Decoder.decode`; `lengths` are given where `regime` is not None."""
        ...

    def logits(self, params: Params, hidden: jax.Array) -> jax.Array: ...

    def new_cache(self, batch: int, length: int) -> PyTree: ...


class EncoderDecoderFunctions(DecoderFunctions, Protocol):
    """With what gives a cache that sees the encoder's output, in the place of `new_cache`."""

    def encode(self, params: Params, ids: jax.Array, mask: jax.Array) -> jax.Array: ...

    def start_cache(self, params: Params, memory: jax.Array, mask: jax.Array, length: int) -> PyTree: ...


class LayerFunctions:
    """`DecoderFunctions` of a CausalDecoder, and of an encoder-decoder with `encode` and `start_cache`.

    Args:
        model: In its eval form. cache_dtype: Of the cache; by default that of the embedding.
    """

    def __init__(self, model: nn.Layer, cache_dtype: str | None = None) -> None:
        model.eval()
        self._graphdef, params, buffers = nn.split(model)
        self.params = (params, buffers)
        self.encodes = hasattr(model, "encode")
        self.regime: Callable[[int], int] | None = None
        size = getattr(model, "size", None)
        if isinstance(size, DecoderSize) and size.rope.kind in LENGTH_KINDS:
            self.regime = functools.partial(size.rope.regime, max_positions=size.max_positions)
        self._dtype = cache_dtype

    def call(self, params: Params, method: str, *args: object) -> PyTree:
        """A method of the layer on arrays."""
        return nn.apply(self._graphdef, *params, None, *args, method=method)[0]

    def decode(
        self,
        params: Params,
        ids: jax.Array,
        positions: jax.Array,
        cache: PyTree,
        lengths: jax.Array | None = None,
    ) -> tuple[jax.Array, PyTree]:
        return self.call(params, "decode", ids, positions, cache, *(() if lengths is None else (lengths,)))

    def logits(self, params: Params, hidden: jax.Array) -> jax.Array:
        return self.call(params, "logits", hidden).astype(jnp.float32)

    def new_cache(self, batch: int, length: int) -> PyTree:
        layer = self._graphdef.bind(*self.params)
        return layer.new_cache(batch, length, **({} if self._dtype is None else {"dtype": self._dtype}))

    def encode(self, params: Params, ids: jax.Array, mask: jax.Array) -> jax.Array:
        return self.call(params, "encode", ids, mask)

    def start_cache(self, params: Params, memory: jax.Array, mask: jax.Array, length: int) -> PyTree:
        return self.call(params, "start_cache", memory, mask, length)


class DecodeState(NamedTuple):
    """B rows on the device."""

    cache: PyTree
    draft_cache: PyTree
    """Of the draft model; () without one"""
    ids: jax.Array
    """[B, S] int32: prompt and text"""
    length: jax.Array
    """[B] int32: how many of them there are. All but the last are in the cache."""
    active: jax.Array
    """[B] bool: rows that go on"""
    settings: RowSettings


class StepOutput(NamedTuple):
    """What a step hands to the host."""

    tokens: jax.Array
    """[B, T] int32"""
    counts: jax.Array
    """[B] int32: how many of the T a row got; 0 in rows that rest"""
    active: jax.Array
    """[B] bool: rows that go on"""
    logprobs: TokenLogprobs
    """[B, T, …]"""


class Programs:
    """The compiled programs of a decoder.

    Args:
        speculation: What proposes tokens; None is one token a step.
    """

    def __init__(self, decoder: DecoderFunctions, speculation: Speculation | None = None) -> None:
        self.decoder, self.speculation = decoder, speculation
        self.draft = speculation.draft if speculation else None
        self.tokens_per_step = 1 + (speculation.tokens if speculation else 0)
        self.step = jax.jit(self._step, donate_argnums=1)
        self.prefill = jax.jit(self._prefill, donate_argnums=1)
        self.read_again = jax.jit(self._read_again, static_argnums=4, donate_argnums=1)
        self.admit = jax.jit(_admit, donate_argnums=0)
        self.set_active = jax.jit(_set_active, donate_argnums=0)
        self.put_row = jax.jit(_put_row, donate_argnums=0)
        self.encode = jax.jit(self._encode, static_argnums=3)
        self.read_block = jax.jit(_read_block, static_argnums=3)
        self.write_block = jax.jit(_write_block, donate_argnums=0)
        self.encodes = decoder.encodes
        self.vocab_size = self._vocab_size()

    @property
    def params(self) -> Params:
        return self.decoder.params, self.draft.params if self.draft else None

    def _vocab_size(self) -> int:
        def first(params: Params) -> jax.Array:
            if self.encodes:
                cache = self._encode((params, None), jnp.zeros((1, 8), jnp.int32), jnp.ones((1, 8), bool), 8)
            else:
                cache = self.decoder.new_cache(1, 8)
            token = jnp.zeros((1, 1), jnp.int32)
            return self.decoder.logits(params, self.decoder.decode(params, token, token, cache)[0])

        return jax.eval_shape(first, self.decoder.params).shape[-1]

    def _encode(self, params: Params, ids: jax.Array, mask: jax.Array, length: int) -> PyTree:
        """The cache of rows of an encoder-decoder before the first token; `ids`, `mask` [B, M] of the encoder."""
        decoder = cast("EncoderDecoderFunctions", self.decoder)
        memory = decoder.encode(params[0], ids, mask)
        return decoder.start_cache(params[0], memory, mask, length)

    def source_cache_shapes(self, rows: int, source: int, length: int) -> PyTree:
        """The shapes of what `encode` gives."""
        ids = jax.ShapeDtypeStruct((rows, source), jnp.int32)
        mask = jax.ShapeDtypeStruct((rows, source), bool)
        encode = functools.partial(self._encode, length=length)
        return jax.eval_shape(lambda params, ids, mask: encode(params, ids, mask), self.params, ids, mask)

    def _prefill(
        self,
        params: Params,
        state: DecodeState,
        ids: jax.Array,
        start: jax.Array,
        row: jax.Array,
        whole: jax.Array,
    ) -> DecodeState:
        """Puts tokens `ids` [T] of a prompt of `whole` tokens into the cache of `row`, from position `start` on; -1 is
        padding."""
        length = state.ids.shape[1]
        positions = jnp.where(ids >= 0, start + jnp.arange(ids.shape[0]), length)[None]
        tokens = jnp.maximum(ids, 0)[None]

        def fill(decoder: DecoderFunctions, arrays: Params, cache: PyTree) -> PyTree:
            alone = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, row, 1), cache)
            lengths = () if decoder.regime is None else (whole[None],)
            _, alone = decoder.decode(arrays, tokens, positions, alone, *lengths)
            return _put_row(cache, alone, row)

        state = state._replace(cache=fill(self.decoder, params[0], state.cache))
        if self.draft is not None:
            state = state._replace(draft_cache=fill(self.draft, params[1], state.draft_cache))
        return state

    def _read_again(
        self, params: Params, state: DecodeState, start: jax.Array, row: jax.Array, size: int
    ) -> DecodeState:
        """As `prefill`, of `size` tokens that are in the row; of all but its last one."""
        index, length = start + jnp.arange(size), state.length[row]
        ids = jnp.where(index < length - 1, state.ids[row].at[index].get(mode="clip"), -1)
        return self._prefill(params, state, ids, start, row, length)

    def _step(self, params: Params, state: DecodeState, allowed: jax.Array) -> tuple[DecodeState, StepOutput]:
        """The next tokens of all active rows. `allowed` as in `process`; rows with a constraint take one token."""
        width = self.tokens_per_step
        if self.speculation is None:
            return self._advance(params, state, jnp.zeros((state.ids.shape[0], 0), jnp.int32), None, allowed)
        state, drafts, count = self._drafts(params, state)
        free = (allowed == -1).all(-1) & state.active
        count = jnp.where(free, jnp.clip(count, 0, state.settings.limit - state.length - 1), 0)

        def several(state: DecodeState) -> tuple[DecodeState, StepOutput]:
            return self._advance(params, state, drafts, count, allowed)

        def single(state: DecodeState) -> tuple[DecodeState, StepOutput]:
            state, output = self._advance(params, state, drafts[:, :0], None, allowed)
            widen = lambda x: jnp.pad(x, ((0, 0), (0, width - 1), *((0, 0),) * (x.ndim - 2)))  # noqa: E731
            tokens, logprobs = jax.tree.map(widen, (output.tokens, output.logprobs))
            return state, output._replace(tokens=tokens, logprobs=logprobs)

        return lax.cond((count > 0).any(), several, single, state)

    def _drafts(self, params: Params, state: DecodeState) -> tuple[DecodeState, jax.Array, jax.Array]:
        """Proposed tokens [B, T - 1], and how many of them are meant [B]."""
        width = self.tokens_per_step - 1
        if self.draft is None:
            return state, *ngram_drafts(state.ids, state.length, width)
        draft, settings = self.draft, state.settings
        index = jnp.arange(state.ids.shape[0])
        last = state.ids[index, jnp.maximum(state.length - 1, 0)]

        def propose(
            carry: tuple[jax.Array, jax.Array, PyTree], offset: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array, PyTree], jax.Array]:
            ids, token, cache = carry
            length = state.length + offset
            position = jnp.where(state.active, length - 1, ids.shape[1])
            hidden, cache = draft.decode(params[1], token[:, None], position[:, None], cache)
            logits = draft.logits(params[1], hidden[:, 0])
            size = self.vocab_size
            logits = jnp.pad(logits, ((0, 0), (0, max(size - logits.shape[1], 0))), constant_values=-jnp.inf)
            scores = warp(process(logits[:, :size], ids, length, settings), settings)
            token = jnp.maximum(choose(scores, length, settings), 0)
            return (ids.at[index, length].set(token, mode="drop"), token, cache), token

        # One more than is proposed: the last one's keys are needed where all are accepted.
        (_, _, cache), tokens = lax.scan(propose, (state.ids, last, state.draft_cache), jnp.arange(width + 1))
        count = jnp.full(state.length.shape, width, jnp.int32)
        return state._replace(draft_cache=cache), tokens[:width].T, count

    def _advance(
        self,
        params: Params,
        state: DecodeState,
        drafts: jax.Array,
        count: jax.Array | None,
        allowed: jax.Array,
    ) -> tuple[DecodeState, StepOutput]:
        """One pass over the last token and `drafts` [B, D]: a row goes on while a draft is what it would have chosen.

        The chosen tokens are those of a step without drafts, sampled ones too: the draw at an index is the same.
        """
        settings, rows, size = state.settings, state.ids.shape[0], state.ids.shape[1]
        index, width = jnp.arange(rows), drafts.shape[1] + 1
        last = state.ids[index, jnp.maximum(state.length - 1, 0)]
        offsets = jnp.arange(width)
        counts = state.active[:, None] & (offsets <= (0 if count is None else count[:, None]))
        positions = jnp.where(counts, state.length[:, None] - 1 + offsets, size)
        tokens = jnp.concatenate([last[:, None], drafts], axis=1)
        hidden, cache = self.decoder.decode(params[0], tokens, positions, state.cache)
        several_logits = self.decoder.logits(params[0], hidden)  # [B, T, V]: the head is read once
        follows = jnp.pad(drafts, ((0, 0), (0, 1)), constant_values=-2)

        def choose_next(
            carry: _Carry, at: jax.Array
        ) -> tuple[_Carry, tuple[jax.Array, jax.Array, TokenLogprobs]]:
            ids, length, going, active = carry
            logits = several_logits[:, at]
            scores = process(logits, ids, length, settings, allowed)
            token = choose(warp(scores, settings), length, settings)
            logprobs = token_logprobs(logits, token, settings)
            ids = ids.at[index, jnp.where(going, length, size)].set(jnp.maximum(token, 0), mode="drop")
            ends = (settings.flags[index, jnp.maximum(token, 0)] & END) != 0
            length = length + going.astype(jnp.int32)
            ends = going & (ends | (length >= settings.limit) | (token < 0))
            active = active & ~ends
            more = going & ~ends & (token == follows[:, at])
            if count is not None:
                more = more & (at < count)
            return (ids, length, more, active), (token, going, logprobs)

        carry = (state.ids, state.length, state.active, state.active)
        if width == 1:
            carry, one = choose_next(carry, jnp.int32(0))
            tokens, went, logprobs = jax.tree.map(lambda x: x[:, None], one)
        else:
            carry, several = lax.scan(choose_next, carry, offsets)
            tokens, went, logprobs = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), several)
        ids, length, _, active = carry
        state = state._replace(cache=cache, ids=ids, length=length, active=active)
        return state, StepOutput(tokens, went.sum(-1, dtype=jnp.int32), active, logprobs)


def _admit(
    state: DecodeState, row: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings
) -> DecodeState:
    """A request in `row`, which rests: tokens `ids` [S], of which `length` count, and settings without axis B."""

    def put(whole: jax.Array, one: jax.Array) -> jax.Array:
        return whole.at[row].set(one)

    return state._replace(
        ids=put(state.ids, ids),
        length=put(state.length, length),
        active=state.active.at[row].set(False),
        settings=jax.tree.map(put, state.settings, settings),
    )


def _set_active(state: DecodeState, row: jax.Array, active: jax.Array) -> DecodeState:
    """A row that goes on, or rests."""
    return state._replace(active=state.active.at[row].set(active))


def _put_row(cache: PyTree, alone: PyTree, row: jax.Array) -> PyTree:
    """The cache of one row into that of all."""

    def put(whole: jax.Array, one: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice_in_dim(whole, one.astype(whole.dtype), row, axis=0)

    return jax.tree.map(put, cache, alone)


def _read_block(cache: PyTree, row: jax.Array, start: jax.Array, size: int) -> PyTree:
    """`size` positions of a row: leaves [size, …]."""

    def read(leaf: jax.Array) -> jax.Array:
        zeros = (0,) * (leaf.ndim - 2)
        return lax.dynamic_slice(leaf, (row, start, *zeros), (1, size, *leaf.shape[2:]))[0]

    return jax.tree.map(read, cache)


def _write_block(cache: PyTree, row: jax.Array, start: jax.Array, block: PyTree) -> PyTree:
    def write(leaf: jax.Array, rows: jax.Array) -> jax.Array:
        zeros = (0,) * (leaf.ndim - 2)
        return lax.dynamic_update_slice(leaf, rows[None], (row, start, *zeros))

    return jax.tree.map(write, cache, block)


def grow_leaf(old: jax.Array, shape: Sequence[int]) -> jax.Array:
    """The array at the beginning of a larger one of zeros."""
    return jnp.pad(old, [(0, new - now) for now, new in zip(old.shape, shape, strict=True)])


def leaves_by_position(new_cache: Callable[[int, int], PyTree]) -> bool:
    """Whether axis 1 of every leaf of a cache is the position, so that blocks of it stand for tokens."""
    shapes = [jax.eval_shape(functools.partial(new_cache, 1, size)) for size in (64, 128)]
    pairs = zip(*(jax.tree.leaves(tree) for tree in shapes))
    return all(a.ndim > 1 and (a.shape[1], b.shape[1]) == (64, 128) for a, b in pairs)


def prompt_chunk(ids: Sequence[int], size: int) -> np.ndarray:
    """[size] int32, padded by -1."""
    chunk = np.full(size, -1, np.int32)
    chunk[: len(ids)] = ids
    return chunk
