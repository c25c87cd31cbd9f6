"""Recurrent steps and scans with Paddle's gate orders. Sequences are [N, T, C] or, time-major, [T, N, C].

Gates: LSTM input, forget, cell, output; GRU reset, update, candidate, with the recurrent bias inside the reset product.
The products with the inputs of all steps are one dot; only the recurrent product stands in the `lax.scan`, which also
exports with symbolic batch and time.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.dtypes import Precision, precision
from framework.core.errors import ShapeError
from framework.nn.functional.lowering import describe
from framework.nn.functional.products import linear

State = tuple[jax.Array, ...]
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class CellWeights(NamedTuple):
    """weight_ih [gates * H, in], weight_hh [gates * H, H], biases [gates * H] or None."""

    weight_ih: jax.Array
    weight_hh: jax.Array
    bias_ih: jax.Array | None
    bias_hh: jax.Array | None


def _advance(mode: str, projected: jax.Array, state: State, weights: CellWeights) -> State:
    """The next state; `projected` is the product with the input, its bias included."""
    hidden = state[0]
    recurrent = linear(hidden, weights.weight_hh.T, weights.bias_hh)
    if mode == "LSTM":
        i, f, g, o = jnp.split(projected + recurrent, 4, -1)
        cell = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(cell), cell
    if mode == "GRU":
        x_r, x_z, x_c = jnp.split(projected, 3, -1)
        h_r, h_z, h_c = jnp.split(recurrent, 3, -1)
        update = jax.nn.sigmoid(x_z + h_z)
        candidate = jnp.tanh(x_c + jax.nn.sigmoid(x_r + h_r) * h_c)
        return ((hidden - candidate) * update + candidate,)
    total = projected + recurrent
    return (jnp.tanh(total) if mode == "RNN_TANH" else jax.nn.relu(total),)


# `dots` only keys the compilation: `linear` reads the precision of dots from its scope while it is traced.
@functools.partial(jax.jit, static_argnames=("mode", "dots"))
def _rnn_cell(x: jax.Array, state: State, weights: CellWeights, mode: str, dots: Precision) -> State:
    return _advance(mode, linear(x, weights.weight_ih.T, weights.bias_ih), state, weights)


def rnn_cell(x: jax.Array, state: State, weights: CellWeights, mode: str) -> State:
    """One step: x [N, in] and a state of [N, H] arrays (LSTM: hidden, cell) -> the next state.

    mode: LSTM, GRU, RNN_TANH or RNN_RELU.
    """
    if mode not in GATES:
        raise ShapeError("unknown recurrent mode", received=repr(mode), allowed=", ".join(GATES))
    hidden = weights.weight_hh.shape[1]
    if x.ndim != 2 or x.shape[1] != weights.weight_ih.shape[1] or any(s.shape[-1] != hidden for s in state):
        raise ShapeError(
            "a recurrent step: input, state and weights do not agree",
            received=f"x {x.shape}, state {[s.shape for s in state]}",
            allowed=f"x [N, {weights.weight_ih.shape[1]}] and states [N, {hidden}]",
        )
    return _rnn_cell(x, state, weights, mode, precision())


@functools.partial(jax.jit, static_argnames=("mode", "is_reverse", "time_major", "blank", "dots"))
def _rnn_scan(
    x: jax.Array,
    state: State,
    weights: CellWeights,
    lengths: jax.Array | None,
    mode: str,
    is_reverse: bool,
    time_major: bool,
    blank: bool,
    dots: Precision,
) -> tuple[jax.Array, State]:
    projected = linear(x, weights.weight_ih.T, weights.bias_ih)
    projected = projected if time_major else jnp.swapaxes(projected, 0, 1)
    steps = projected.shape[0]

    def step(carry: State, inputs: tuple[jax.Array, jax.Array]) -> tuple[State, jax.Array]:
        at, t = inputs
        moved = _advance(mode, at, carry, weights)
        if lengths is None:
            return moved, moved[0]
        valid = (t < lengths)[:, None]
        kept = tuple(jnp.where(valid, new, old) for new, old in zip(moved, carry))
        return kept, jnp.where(valid, moved[0], 0) if blank else moved[0]

    with describe("rnn", mode=mode, is_reverse=is_reverse, time_major=time_major, blank=blank):
        final, out = lax.scan(step, state, (projected, jnp.arange(steps)), reverse=is_reverse)
    return (out if time_major else jnp.swapaxes(out, 0, 1)), final


def rnn_scan(
    x: jax.Array,
    state: State,
    weights: CellWeights,
    mode: str,
    sequence_length: jax.Array | None = None,
    is_reverse: bool = False,
    time_major: bool = False,
    blank: bool = True,
) -> tuple[jax.Array, State]:
    """All steps in one direction: x [N, T, in] -> (hidden states [N, T, H], last state).

    Beyond `sequence_length` [N] outputs are 0 and the state stands still; backwards a sequence starts at its last
    valid step. Without `blank` the outputs there are what a step gives for its input and the standing state.
    """
    if mode not in GATES:
        raise ShapeError("unknown recurrent mode", received=repr(mode), allowed=", ".join(GATES))
    if x.ndim != 3 or x.shape[2] != weights.weight_ih.shape[1]:
        raise ShapeError(
            "a recurrent layer: input and weights do not agree",
            received=f"x {x.shape}",
            allowed=f"three axes, the last of {weights.weight_ih.shape[1]}",
        )
    return _rnn_scan(x, state, weights, sequence_length, mode, is_reverse, time_major, blank, precision())


def stack_states(states: list[State]) -> jax.Array | State:
    """[(h,), ...] -> h [layers, N, H]; [(h, c), ...] -> (h, c)."""
    return unwrap(tuple(jnp.stack(column) for column in zip(*states)))


def unwrap(state: State) -> jax.Array | State:
    """The one array of a state, or the tuple where there are two."""
    first, *others = state
    return state if others else first
