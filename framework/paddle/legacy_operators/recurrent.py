"""Recurrent operators over sequences of different lengths, as Paddle's older programs have them.

Source: paddle/fluid/operators/{gru_op,lstm_op,gru_unit_op,attention_lstm_op}.cc, fused/fusion_{gru,lstm}_op.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import (
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    pad,
    positions_of,
    registrar,
    segments_of,
    unpad,
)

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Activation = Callable[[jax.Array], jax.Array]
_ACTIVATIONS: dict[str, Activation] = {
    "identity": lambda x: x,
    "sigmoid": lambda x: jax.nn.sigmoid(jnp.clip(x, -40, 13)),  # Paddle's kernels clip, to 2e-6 of 1
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}
_NUMBERS = ("identity", "sigmoid", "tanh", "relu")  # of gru_unit's enumeration


def _activation(a: Operands, name: str, default: str) -> Activation:
    value = a.attr(name, default)
    return _ACTIVATIONS[_NUMBERS[value] if isinstance(value, int) else value]


def _reversed_rows(lengths: np.ndarray) -> np.ndarray:
    return np.repeat(offsets_of(lengths)[1:] - 1, lengths) - positions_of(lengths)


def _batch_order(lengths: np.ndarray) -> np.ndarray:
    """Rows by their position, in each position the longest sequences first: how Paddle runs a step of all at once."""
    rank = np.argsort(np.argsort(-lengths, kind="stable"))
    return np.lexsort((rank[segments_of(lengths)], positions_of(lengths)))


def _gru_step(
    x: jax.Array, hidden: jax.Array, weight: jax.Array, gate: Activation, state: Activation, origin: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(gates, reset hidden state, hidden state); the weights of both gates lie before those of the candidate."""
    size = hidden.shape[-1]
    flat = weight.reshape(-1)
    both = gate(hidden @ flat[: 2 * size * size].reshape(size, 2 * size) + x[..., : 2 * size])
    update, reset = both[..., :size], both[..., size:] * hidden
    candidate = state(reset @ flat[2 * size * size :].reshape(size, size) + x[..., 2 * size :])
    share = 1 - update if origin else update
    gates = jnp.concatenate([both, candidate], -1)
    return gates, reset, share * candidate + (1 - share) * hidden


def _gru(
    a: Operands, x: jax.Array, lengths: np.ndarray, weight: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`_gru_step` over the rows of all sequences; each result has a row for each of `x`."""
    size = weight.shape[0]
    gate, state = _activation(a, "gate_activation", "sigmoid"), _activation(a, "activation", "tanh")
    origin, longest = a.attr("origin_mode", False), int(lengths.max(initial=0))
    order = _reversed_rows(lengths) if a.attr("is_reverse", False) else np.arange(len(x))
    steps = pad(x[order], lengths, longest).swapaxes(0, 1)
    first = a.get("H0")
    first = jnp.zeros((len(lengths), size), x.dtype) if first is None else first

    def step(
        hidden: jax.Array, inputs: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
        results = _gru_step(inputs, hidden, weight, gate, state, origin)
        return results[2], results

    outputs = jax.lax.scan(step, first, steps)[1]
    gates, reset, hidden = (unpad(one.swapaxes(0, 1), lengths) for one in outputs)
    return gates, reset, hidden


@operator("gru")
def _gru_operator(a: Operands) -> Outputs:
    x, lengths, bias = a.array("Input"), a.lengths("Input"), a.get("Bias")
    gates, reset, hidden = _gru(a, x if bias is None else x + bias, lengths, a.array("Weight"))
    batches = _batch_order(lengths)
    order = _reversed_rows(lengths) if a.attr("is_reverse", False) else slice(None)
    return {
        "BatchGate": gates[batches],
        "BatchResetHiddenPrev": reset[batches],
        "BatchHidden": hidden[batches],
        "Hidden": Ragged(hidden[order], a.lod("Input") or []),
    }


@operator("fusion_gru")
def _fusion_gru(a: Operands) -> Outputs:
    lengths, bias = a.lengths("X"), a.get("Bias")
    x = a.array("X") @ a.array("WeightX")
    hidden = _gru(a, x if bias is None else x + bias, lengths, a.array("WeightH"))[2]
    order = _reversed_rows(lengths) if a.attr("is_reverse", False) else slice(None)
    return {"Hidden": Ragged(hidden[order], a.lod("X") or []), "XX": x}


@operator("gru_unit")
def _gru_unit(a: Operands) -> Outputs:
    bias = a.get("Bias")
    x = a.array("Input") if bias is None else a.array("Input") + bias
    gate, state = _activation(a, "gate_activation", "sigmoid"), _activation(a, "activation", "tanh")
    gates, reset, hidden = _gru_step(
        x, a.array("HiddenPrev"), a.array("Weight"), gate, state, a.attr("origin_mode", False)
    )
    return {"Gate": gates, "ResetHiddenPrev": reset, "Hidden": hidden}


def _lstm(
    a: Operands, x: jax.Array, lengths: np.ndarray, weight: jax.Array, peepholes: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """(hidden states, cells) of all rows; a row of `x` holds the candidate, then the gates of input, forgetting and
    output. `peepholes` [3 size] joins the cell to the gates."""
    size, longest = weight.shape[0], int(lengths.max(initial=0))
    gate, act_cell = _activation(a, "gate_activation", "sigmoid"), _activation(a, "cell_activation", "tanh")
    act_candidate = _activation(a, "candidate_activation", "tanh")
    order = _reversed_rows(lengths) if a.attr("is_reverse", False) else np.arange(len(x))
    steps = pad(x[order], lengths, longest).swapaxes(0, 1)
    zeros = jnp.zeros((len(lengths), size), x.dtype)
    first = tuple(zeros if (state := a.get(slot)) is None else state for slot in ("H0", "C0"))
    of_input, of_forget, of_output = (
        (0.0, 0.0, 0.0) if peepholes is None else jnp.split(peepholes.reshape(-1), 3)
    )

    def step(
        states: tuple[jax.Array, ...], inputs: jax.Array
    ) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        hidden, cell = states
        candidate, enter, forget, leave = jnp.split(inputs + hidden @ weight, 4, -1)
        new = gate(forget + of_forget * cell) * cell + gate(enter + of_input * cell) * act_candidate(
            candidate
        )
        out = gate(leave + of_output * new) * act_cell(new)
        return (out, new), (out, new)

    hidden, cell = (unpad(one.swapaxes(0, 1), lengths)[order] for one in jax.lax.scan(step, first, steps)[1])
    return hidden, cell


def _lstm_outputs(a: Operands, slot: str, x: jax.Array, weight: jax.Array) -> Outputs:
    """The bias holds that of the gates, and behind it the peepholes."""
    bias, size = a.get("Bias"), weight.shape[0]
    flat = jnp.zeros(4 * size, x.dtype) if bias is None else bias.reshape(-1)
    gates = x if slot == "Ids" else x + flat[: 4 * size]
    peepholes = flat[4 * size :] if a.attr("use_peepholes", True) and flat.size > 4 * size else None
    hidden, cell = _lstm(a, gates, a.lengths(slot), weight, peepholes)
    levels = a.lod(slot) or []
    return {"Hidden": Ragged(hidden, levels), "Cell": Ragged(cell, levels)}


@operator("lstm")
def _lstm_operator(a: Operands) -> Outputs:
    return _lstm_outputs(a, "Input", a.array("Input"), a.array("Weight"))


@operator("fusion_lstm")
def _fusion_lstm(a: Operands) -> Outputs:
    return _lstm_outputs(a, "X", a.array("X") @ a.array("WeightX"), a.array("WeightH"))


@operator("fused_embedding_fc_lstm")
def _fused_embedding_fc_lstm(a: Operands) -> Outputs:
    """The rows of the embeddings are multiplied by the weights already, and hold the bias of the gates."""
    return _lstm_outputs(a, "Ids", a.array("Embeddings")[a.array("Ids").ravel()], a.array("WeightH"))


def _attention(a: Operands, x: jax.Array, cell: jax.Array) -> jax.Array:
    """The mean of the rows of a sequence, weighted by their scores beside the cell."""
    cells = jnp.broadcast_to(cell, (len(x), cell.shape[-1]))
    score = jnp.concatenate([x, cells], 1) @ a.array("AttentionWeight")
    for factor, addend in (("", "AttentionBias"), ("AttentionScalar", "AttentionScalarBias")):
        score = score * a.array(factor) if factor and a.get(factor) is not None else score
        shift = a.get(addend)
        score = score if shift is None else score + shift
        score = jax.nn.relu(score) if not factor or a.get(factor) is not None else score
    return (x * jax.nn.softmax(score, 0)).sum(0)


@operator("attention_lstm")
def _attention_lstm(a: Operands) -> Outputs:
    """A step reads the whole sequence through an attention; gates in the order forget, input, output, candidate."""
    x, lengths, weight = a.array("X"), a.lengths("X"), a.array("LSTMWeight")
    gate, act_cell = _activation(a, "gate_activation", "sigmoid"), _activation(a, "cell_activation", "tanh")
    act_candidate = _activation(a, "candidate_activation", "tanh")
    hiddens, cells, offsets = [], [], offsets_of(lengths)
    for index, (start, end) in enumerate(itertools.pairwise(offsets)):
        rows, cell = x[start:end], a.array("C0")[index]
        first = a.get("H0")
        hidden = jnp.zeros_like(cell) if first is None else first[index]
        for _ in range(end - start):
            joined = jnp.concatenate([hidden, _attention(a, rows, cell)])
            forget, enter, leave, candidate = jnp.split(joined @ weight + a.array("LSTMBias").reshape(-1), 4)
            cell = gate(forget) * cell + gate(enter) * act_candidate(candidate)
            hidden = gate(leave) * act_cell(cell)
            hiddens.append(hidden)
            cells.append(cell)
    levels = a.lod("X") or []
    return {"Hidden": Ragged(jnp.stack(hiddens), levels), "Cell": Ragged(jnp.stack(cells), levels)}


@operator("row_conv")
def _row_conv(a: Operands) -> Outputs:
    """Each row with those that follow it, weighted by a filter [context, width]."""
    x, weight = a.array("X"), a.array("Filter")
    levels = a.lod("X")
    if levels:
        lengths = a.lengths("X")
        rows = pad(x, lengths, int(lengths.max(initial=0)))
        return {"Out": Ragged(unpad(_look_ahead(rows, weight), lengths), levels)}
    return {"Out": _look_ahead(x, weight)}


def _look_ahead(x: jax.Array, weight: jax.Array) -> jax.Array:
    extended = jnp.pad(x, ((0, 0), (0, len(weight) - 1), (0, 0)))
    shifted = (extended[:, shift : shift + x.shape[1]] * weight[shift] for shift in range(len(weight)))
    return sum(shifted, jnp.zeros_like(x))
