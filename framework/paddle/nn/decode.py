"""Decoding step by step: Decoder, BeamSearchDecoder and dynamic_decode."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from framework import paddle
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.utils.structure import flatten, map_structure

if TYPE_CHECKING:
    from framework.paddle.nn.layer import Layer

_NEVER = -1e9  # the score of what cannot follow


class Decoder:
    """What dynamic_decode runs: `initialize(inits)` gives (inputs, states, finished), `step(time, inputs, states)`
    gives (outputs, states, next inputs, finished)."""

    def initialize(self, inits: object) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no initialize method")

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: object) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no step method")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> Any:
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` keeps finished sequences finished."""
        return False


class _Output(NamedTuple):
    scores: Tensor
    predicted_ids: Tensor
    parent_ids: Tensor


class _State(NamedTuple):
    cell_states: Any
    log_probs: Tensor
    finished: Tensor
    lengths: Tensor


@operation(name="expand_beams")
def _expand(x: Array, beam_size: int) -> Array:
    """[N, …] -> [N, beams, …], the same for each beam."""
    return jnp.repeat(x[:, None], beam_size, 1)


@operation(name="merge_beams")
def _merge(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])


@operation(name="split_beams")
def _split(x: Array, beam_size: int) -> Array:
    return x.reshape(-1, beam_size, *x.shape[1:])


@operation(name="gather_beams")
def _of_beams(x: Array, beams: Array) -> Array:
    """Row `beams[n, b]` of x[n] for each n and b."""
    return jax.vmap(lambda rows, chosen: rows[chosen])(x, beams)


@operation(name="beam_search_step")
def _search(
    logits: Array, log_probs: Array, finished: Array, lengths: Array, end_token: int
) -> tuple[Array, ...]:
    """The best continuations of all beams: (scores, tokens, beams that they continue, finished, lengths), [N, B]."""
    count, vocabulary = logits.shape[1:]
    step = jax.nn.log_softmax(logits, -1)
    # A finished beam goes on with the end token only, at no cost.
    ending = jnp.full(vocabulary, _NEVER, step.dtype).at[end_token].set(0)
    step = jnp.where(finished[..., None], ending, step)
    total = (step + log_probs[..., None]).reshape(-1, count * vocabulary)
    scores, places = jax.lax.top_k(total, count)
    beams, tokens = places // vocabulary, places % vocabulary
    before = jnp.take_along_axis(finished, beams, 1)
    lengths = jnp.take_along_axis(lengths, beams, 1) + (~before).astype(lengths.dtype)
    kind = lengths.dtype
    return scores, tokens.astype(kind), beams.astype(kind), before | (tokens == end_token), lengths


@operation(name="beam_search_start", differentiable=False)
def _begin(like: Array, beam_size: int, token: int) -> tuple[Array, Array, Array, Array]:
    """(tokens, log probabilities, finished, lengths) [N, beams]: only the first beam counts at first."""
    shape = (like.shape[0], beam_size)
    first = jnp.broadcast_to(jnp.where(jnp.arange(beam_size) == 0, 0.0, _NEVER), shape)
    kind = jnp.promote_types(like.dtype, jnp.float32)
    zeros = jnp.zeros(shape, jnp.int64)
    return zeros + token, first.astype(kind), jnp.zeros(shape, bool), zeros


class BeamSearchDecoder(Decoder):
    """Beam search over a cell.

    Args:
        cell: called with inputs and states of [N * beams, …].
        embedding_fn: tokens -> inputs of the cell.
        output_fn: outputs of the cell -> scores of the vocabulary.
    """

    OutputWrapper = _Output
    StateWrapper = _State

    def __init__(
        self,
        cell: Layer,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[..., object] | None = None,
        output_fn: Callable[..., object] | None = None,
    ) -> None:
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = int(start_token), int(end_token), beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Tensor, beam_size: int) -> Tensor:
        """[N, …] -> [N * beams, …], for what a cell reads besides its states, such as an encoder's output."""
        return _merge(_expand(x, beam_size))

    def initialize(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, initial_cell_states: object
    ) -> tuple[Any, _State, Tensor]:
        like = flatten(initial_cell_states)[0]
        tokens, log_probs, finished, lengths = _begin(like, self.beam_size, self.start_token)
        states = map_structure(lambda x: _expand(x, self.beam_size), initial_cell_states)
        inputs = self.embedding_fn(tokens) if self.embedding_fn else tokens
        return inputs, _State(states, log_probs, finished, lengths), finished

    def step(
        self, time: Tensor, inputs: Any, states: _State, **kwargs: object
    ) -> tuple[_Output, _State, Any, Tensor]:
        outputs, cell_states = self.cell(
            map_structure(_merge, inputs), map_structure(_merge, states.cell_states), **kwargs
        )
        outputs = map_structure(lambda x: _split(x, self.beam_size), outputs)
        cell_states = map_structure(lambda x: _split(x, self.beam_size), cell_states)
        logits = self.output_fn(outputs) if self.output_fn is not None else outputs
        scores, tokens, beams, finished, lengths = _search(
            logits, states.log_probs, states.finished, states.lengths, self.end_token
        )
        cell_states = map_structure(lambda x: _of_beams(x, beams), cell_states)
        following = self.embedding_fn(tokens) if self.embedding_fn else tokens
        state = _State(cell_states, scores, finished, lengths)
        return _Output(scores, tokens, beams), state, following, finished

    def finalize(
        self, outputs: _Output, final_states: _State, sequence_lengths: Tensor
    ) -> tuple[Tensor, _State]:
        """(tokens [T, N, beams] along the beams' paths, states)."""
        return paddle.nn.functional.gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        return True


@operation(name="keep_finished")
def _kept(new: Array, old: Array, finished: Array) -> Array:
    return jnp.where(finished.reshape(finished.shape + (1,) * (new.ndim - finished.ndim)), old, new)


@operation(name="count_unfinished", differentiable=False)
def _counted(lengths: Array, finished: Array) -> Array:
    return lengths + (~finished).astype(lengths.dtype)


def dynamic_decode(
    decoder: Decoder,
    inits: object = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: object,
) -> tuple[Any, ...]:
    """Call `decoder.step` until all sequences are finished or `max_step_num` steps follow the first.

    Args:
        output_time_major: outputs are [T, N, …] instead of [N, T, …].
        impute_finished: states of finished sequences stand still (where the decoder does not do so itself).
        return_length: also return the lengths.

    Returns:
        outputs, states, and lengths if asked for.
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = paddle.zeros(finished.shape, "int64")
    collected: list[Any] = []
    while not bool(finished.numpy().all()):
        time = paddle.to_tensor([len(collected)], "int64")
        outputs, following, inputs, ended = decoder.step(time, inputs, states, **kwargs)
        if decoder.tracks_own_finished:
            lengths = getattr(following, "lengths", lengths)
        else:
            lengths = _counted(lengths, finished)
            if impute_finished:
                following = map_structure(lambda n, o, f=finished: _kept(n, o, f), following, states)
            ended = paddle.logical_or(ended, finished)
        collected.append(outputs)
        states, finished = following, ended
        if max_step_num is not None and len(collected) > max_step_num:
            break
    if not collected:
        return (None, states, lengths) if return_length else (None, states)
    results = map_structure(lambda *parts: paddle.stack(list(parts), 0), *collected)
    with contextlib.suppress(NotImplementedError):  # a decoder without an end of its own
        results, states = decoder.finalize(results, states, lengths)
    if not output_time_major:
        results = map_structure(_swapped, results)
    return (results, states, lengths) if return_length else (results, states)


@operation(name="swap_time")
def _swapped(x: Array) -> Array:
    return jnp.swapaxes(x, 0, 1)
