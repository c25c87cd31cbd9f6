"""Recurrent layers: LSTM, GRU and RNN, with the gates in the order of ONNX."""

from __future__ import annotations

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter, closed
from framework.export.formats.onnx.graph import aval_of
from framework.export.formats.onnx.registry import function
from framework.export.formats.onnx.rules.functionals import described
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.values import Value

# The operator, and for each of its gates the place of ours: LSTM has input, output, forget, cell and we have input,
# forget, cell, output; GRU has update, reset, candidate and we have reset, update, candidate.
_OPERATORS = {
    "LSTM": ("LSTM", (0, 3, 1, 2)),
    "GRU": ("GRU", (1, 0, 2)),
    "RNN_TANH": ("RNN", (0,)),
    "RNN_RELU": ("RNN", (0,)),
}


@function("_rnn_scan")
def _rnn_scan(c: Converter, eqn: JaxprEqn, *args: Value) -> list[Value] | None:
    settings = described(eqn, "rnn")
    names = closed(eqn.params["jaxpr"])[0].debug_info.arg_names or ()
    if settings is None or len(names) != len(args) or args[0].dtype != np.float32:
        return None
    operands = {name: whole(c, eqn, arg, i) for i, (name, arg) in enumerate(zip(names, args))}
    weights = {
        name.rpartition(".")[2]: value for name, value in operands.items() if name.startswith("weights")
    }
    states = [value for name, value in operands.items() if name.startswith("state")]
    lengths, x = operands.get("lengths"), operands["x"]
    gates = [weights[name] for name in ("weight_ih", "weight_hh")]
    biases = [weights.get(name) for name in ("bias_ih", "bias_hh")]
    if any(not w.is_constant for w in (*gates, *(b for b in biases if b is not None))):
        return None
    if lengths is not None and not settings["blank"]:
        return None
    op, order = _OPERATORS[settings["mode"]]
    hidden = gates[1].shape[1]

    def arranged(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array[i * hidden : (i + 1) * hidden] for i in order])

    kernels = [
        c.graph.constant(arranged(w.elements)[None], f"{w.name}_gates" if w.name else None) for w in gates
    ]
    none = np.zeros(len(order) * hidden, np.float32)
    both = np.concatenate([arranged(none if b is None else b.elements) for b in biases])
    steps = (0, 1, 2) if settings["time_major"] else (1, 0, 2)  # to [T, N, in]
    begin = [c.plain(c.reshape_value(state, [1, *state.shape])) for state in states]
    outputs = c.graph.add_many(
        op,
        1 + len(states),
        c.place(x, steps, x.shape),
        *kernels,
        c.graph.constant(both[None]),
        "" if lengths is None else c.plain(lengths),
        *begin,
        hidden_size=hidden,
        direction="reverse" if settings["is_reverse"] else None,
        linear_before_reset=1 if op == "GRU" else None,
        activations=["Relu"] if settings["mode"] == "RNN_RELU" else None,
    )
    every, *final = outputs
    out = aval_of(eqn.outvars[0])
    flat = c.graph.add("Squeeze", every, c.graph.integers(1))
    values = [c.value(flat, out, None if settings["time_major"] else (1, 0, 2))]
    for name, var in zip(final, eqn.outvars[1:]):
        values.append(c.value(c.graph.add("Squeeze", name, c.graph.integers(0)), aval_of(var)))
    return values
