"""ONNX recurrent layers: LSTM, GRU and RNN in all directions, with lengths, initial states and own activations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.interop.graph.operator import Call, Table, registrar
from framework.nn import functional as F
from framework.nn.functional.rnn import CellWeights

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
Activation = Callable[[Array], Array]
State = tuple[Array, ...]

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
# Rows of the gates: ONNX has input, output, forget, cell and update, reset, candidate; the core has
# input, forget, cell, output and reset, update, candidate.
_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}


def _activation(call: Call, name: str, alpha: float | None, beta: float | None) -> Activation:
    a = (
        alpha
        if alpha is not None
        else {"leakyrelu": 0.01, "thresholdedrelu": 1.0, "hardsigmoid": 0.2}.get(name, 1.0)
    )
    b = beta if beta is not None else 0.5
    table: dict[str, Activation] = {
        "sigmoid": F.sigmoid,
        "tanh": jnp.tanh,
        "relu": F.relu,
        "softsign": F.softsign,
        "softplus": lambda x: F.softplus(x, threshold=float("inf")),
        "affine": lambda x: a * x + (0.0 if beta is None else b),
        "leakyrelu": lambda x: F.leaky_relu(x, a),
        "thresholdedrelu": lambda x: jnp.where(x > a, x, 0),
        "scaledtanh": lambda x: a * jnp.tanh((1.0 if beta is None else b) * x),
        "hardsigmoid": lambda x: jnp.clip(a * x + b, 0, 1),
        "elu": lambda x: F.elu(x, a),
    }
    if name not in table:
        raise call.error("an activation that is not known", received=name, allowed=", ".join(table))
    return table[name]


@dataclass(frozen=True)
class _Cell:
    """What one direction of a node computes in a step, in ONNX's order of gates."""

    kind: str
    w: Array  # [gates * H, in]
    r: Array  # [gates * H, H]
    b: Array  # [2 * gates * H]: of the input, of the state
    peepholes: Array | None  # [3 * H]: input, output, forget
    functions: tuple[Activation, ...]
    clip: float | None
    reset_after: bool
    coupled: bool
    rounding: Activation | None = None  # of states in front of their product

    def bounded(self, x: Array) -> Array:
        return x if self.clip is None else jnp.clip(x, -self.clip, self.clip)

    def advance(self, x: Array, state: State) -> State:
        """One step from the product with the input, its bias included."""
        gates = _GATES[self.kind]
        hidden = state[0]
        bias = jnp.split(self.b, 2)[1]
        if self.kind == "GRU":
            f, g = self.functions
            x_z, x_r, x_h = jnp.split(x, gates, -1)
            r_z, r_r, r_h = jnp.split(self.r.T, gates, -1)
            b_z, b_r, b_h = jnp.split(bias, gates)
            update = f(self.bounded(x_z + hidden @ r_z + b_z))
            reset = f(self.bounded(x_r + hidden @ r_r + b_r))
            inner = reset * (hidden @ r_h + b_h) if self.reset_after else (reset * hidden) @ r_h + b_h
            candidate = g(self.bounded(x_h + inner))
            return ((1 - update) * candidate + update * hidden,)
        read = hidden if self.rounding is None else self.rounding(hidden)
        total = x + read @ self.r.T + bias
        if self.kind == "RNN":
            return (self.functions[0](self.bounded(total)),)
        f, g, h = self.functions
        cell = state[1]
        i, o, forget, c = jnp.split(total, gates, -1)
        p_i, p_o, p_f = (0, 0, 0) if self.peepholes is None else jnp.split(self.peepholes, 3)
        i = f(self.bounded(i + p_i * cell))
        forget = 1 - i if self.coupled else f(self.bounded(forget + p_f * cell))
        cell = forget * cell + i * g(self.bounded(c))
        return h(cell) * f(self.bounded(o + p_o * cell)), cell

    def scan(self, x: Array, state: State, lengths: Array | None, backwards: bool) -> tuple[Array, State]:
        projected = x @ self.w.T + jnp.split(self.b, 2)[0]

        def step(carry: State, at: tuple[Array, Array]) -> tuple[State, Array]:
            row, t = at
            moved = self.advance(row, carry)
            if lengths is None:
                return moved, moved[0]
            valid = (t < lengths)[:, None]
            next_state = tuple(jnp.where(valid, new, old) for new, old in zip(moved, carry))
            return next_state, jnp.where(valid, moved[0], 0)

        final, out = lax.scan(step, state, (projected, jnp.arange(x.shape[0])), reverse=backwards)
        return out, final


def _by_core(
    cell: _Cell, x: Array, state: State, lengths: Array | None, backwards: bool
) -> tuple[Array, State]:
    """By `functional.rnn_scan`, for cells with the usual activations and nothing special."""

    def reorder(array: Array) -> Array:
        gates = jnp.split(array, _GATES[cell.kind])
        return jnp.concatenate([gates[i] for i in _ORDER[cell.kind]])

    bias_x, bias_h = (reorder(part) for part in jnp.split(cell.b, 2))
    weights = CellWeights(reorder(cell.w), reorder(cell.r), bias_x, bias_h)
    mode = "RNN_TANH" if cell.kind == "RNN" else cell.kind
    return F.rnn_scan(x, state, weights, mode, lengths, backwards, time_major=True)


def run(
    call: Call,
    kind: str,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    hidden: Array | None = None,
    cell: Array | None = None,
    peepholes: Array | None = None,
    rounding: Activation | None = None,
) -> tuple[Array, ...]:
    """x [T, N, in] (or [N, T, in] with layout 1), w [D, gates * H, in], r [D, gates * H, H] -> all hidden states
    [T, D, N, H] and the last state."""
    batch_first = bool(call.attr("layout"))
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    directions, size = w.shape[0], r.shape[-1]
    way = call.attr("direction", "forward")
    if directions != (2 if way == "bidirectional" else 1) or w.shape[-1] != x.shape[-1]:
        raise call.error(
            "the weights do not fit the direction or the input",
            ShapeError,
            received=f"x {x.shape}, w {w.shape}, direction {way}",
        )
    states = (hidden, cell) if kind == "LSTM" else (hidden,)
    outs, finals = [], []
    for d in range(directions):
        our_cell = _cell_of(
            call,
            kind,
            w[d],
            r[d],
            None if b is None else b[d],
            None if peepholes is None else peepholes[d],
            d,
            rounding,
        )
        start = tuple(_initial(s, d, batch_first, x, size) for s in states)
        scan = functools.partial(_by_core, our_cell) if _is_usual(call, our_cell) else our_cell.scan
        out, final = scan(x, start, lengths, way == "reverse" or d == 1)
        outs.append(out)
        finals.append(final)
    axis = 1
    y = jnp.stack(outs, axis)  # [T, D, N, H]
    last: Sequence[Array] = [jnp.stack(column) for column in zip(*finals)]
    if batch_first:
        y = y.transpose(2, 0, 1, 3)
        last = [jnp.swapaxes(array, 0, 1) for array in last]
    return (y, *last)


def _initial(state: Array | None, direction: int, batch_first: bool, x: Array, size: int) -> Array:
    if state is None:
        return jnp.zeros((x.shape[1], size), x.dtype)
    return state[:, direction] if batch_first else state[direction]


def _cell_of(
    call: Call, kind: str, w: Array, r: Array, b: Array | None, peepholes: Array | None, direction: int,
    rounding: Activation | None,
) -> _Cell:  # fmt: skip
    names = [str(name).lower() for name in call.attr("activations") or _DEFAULTS[kind] * 2]
    each = len(_DEFAULTS[kind])
    activations = names[direction * each : (direction + 1) * each]
    alphas, betas = list(call.attr("activation_alpha") or ()), list(call.attr("activation_beta") or ())
    functions = []
    for i, name in enumerate(activations):
        at = direction * each + i
        alpha = alphas[at] if at < len(alphas) else None
        functions.append(_activation(call, name, alpha, betas[at] if at < len(betas) else None))
    return _Cell(
        kind,
        w,
        r,
        jnp.zeros(2 * w.shape[0], w.dtype) if b is None else b,
        peepholes,
        tuple(functions),
        call.attr("clip"),
        bool(call.attr("linear_before_reset")),
        bool(call.attr("input_forget")),
        rounding,
    )


def _is_usual(call: Call, cell: _Cell) -> bool:
    names = tuple(str(name).lower() for name in call.attr("activations") or _DEFAULTS[cell.kind])
    usual = names in (_DEFAULTS[cell.kind], _DEFAULTS[cell.kind] * 2)
    plain = cell.peepholes is None and cell.clip is None and not cell.coupled and cell.rounding is None
    return usual and plain and (cell.kind != "GRU" or cell.reset_after)


def _recurrent(call: Call, x: Array, *rest: Array | None) -> tuple[Array, ...]:
    return run(call, call.node.op, x, *rest)  # type: ignore[arg-type]


for _kind in _GATES:
    operator(_kind, weights=(1, 2, 3))(_recurrent)
