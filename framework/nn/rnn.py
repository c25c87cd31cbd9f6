"""Recurrent cells and layers with Paddle's names: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, ..., `_reverse`.

Paddle's state dict holds every array of a multi-layer network twice, also as `0.cell.weight_ih` or
`0.cell_fw.weight_ih`. Ours holds it once, under the first name, and accepts the second on loading.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.functional.rnn import GATES, CellWeights, State, stack_states, unwrap
from framework.nn.layer import AttrLike, Layer

Attrs = tuple[AttrLike, AttrLike, AttrLike, AttrLike]
States = jax.Array | tuple[jax.Array, ...]  # one array, or the pair of an LSTM

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _add_weights(layer: Layer, sizes: tuple[int, int, int], suffix: str, attrs: Attrs) -> None:
    """Register the four arrays of one cell under their names and `suffix`. sizes: gates, input, hidden."""
    gates, inputs, hidden = sizes
    bound = 1 / math.sqrt(hidden)
    shapes = ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
    for name, shape, attr in zip(NAMES, shapes, attrs):
        parameter = layer.create_parameter(shape, attr, default_initializer=I.Uniform(-bound, bound))
        setattr(layer, name + suffix, parameter)


def _weights(layer: Layer, suffix: str = "") -> CellWeights:
    return CellWeights(*(getattr(layer, name + suffix) for name in NAMES))


class RNNCellBase(Layer):
    """One recurrent step. `forward(inputs [N, in], states)` returns (output [N, H], new states)."""

    _mode: str
    _states: int = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
        mode: str | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.mode = mode or self._mode
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        _add_weights(self, (GATES[self.mode], input_size, hidden_size), "", attrs)

    def get_initial_states(self, batch: int, dtype: DTypeLike = jnp.float32) -> States:
        """Zeros [batch, H]: one array, or (hidden, cell) for an LSTM."""
        zeros = tuple(jnp.zeros((batch, self.hidden_size), dtype) for _ in range(self._states))
        return unwrap(zeros)

    def forward(self, inputs: jax.Array, states: States | None = None) -> tuple[jax.Array, States]:
        state = _as_tuple(
            self.get_initial_states(inputs.shape[0], inputs.dtype) if states is None else states
        )
        new = F.rnn_cell(inputs, state, _weights(self), self.mode)
        return new[0], unwrap(new)

    def scan(
        self, inputs: jax.Array, state: State, lengths: jax.Array | None, is_reverse: bool, time_major: bool
    ) -> tuple[jax.Array, State]:
        return F.rnn_scan(inputs, state, _weights(self), self.mode, lengths, is_reverse, time_major)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(RNNCellBase):
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh). activation: tanh or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        super().__init__(input_size, hidden_size, *attrs, mode=_simple_mode(activation))


class LSTMCell(RNNCellBase):
    """Gates input, forget, cell, output; states (hidden, cell). Source: Hochreiter and Schmidhuber 1997."""

    _mode, _states = "LSTM", 2


class GRUCell(RNNCellBase):
    """Gates reset, update, candidate; the recurrent bias is inside the reset product. Source: Cho et al. 2014."""

    _mode = "GRU"


def _simple_mode(activation: str) -> str:
    if activation not in ("tanh", "relu"):
        raise ShapeError(
            "unknown activation of a SimpleRNN", received=repr(activation), allowed="tanh or relu"
        )
    return f"RNN_{activation.upper()}"


def _as_tuple(states: States) -> State:
    return tuple(states) if isinstance(states, (tuple, list)) else (states,)


class RNN(Layer):
    """Runs a cell over the time axis. `forward(inputs, states, sequence_length)` returns (outputs, last states)."""

    def __init__(self, cell: RNNCellBase, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        if not isinstance(cell, RNNCellBase):
            raise ShapeError(
                "RNN runs a recurrent cell",
                received=type(cell).__name__,
                allowed="SimpleRNNCell, LSTMCell, GRUCell or another RNNCellBase",
            )
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    def forward(
        self,
        inputs: jax.Array,
        initial_states: States | None = None,
        sequence_length: jax.Array | None = None,
    ) -> tuple[jax.Array, States]:
        if initial_states is None:
            initial_states = self.cell.get_initial_states(inputs.shape[int(self.time_major)], inputs.dtype)
        state = _as_tuple(initial_states)
        out, last = self.cell.scan(inputs, state, sequence_length, self.is_reverse, self.time_major)
        return out, unwrap(last)


class BiRNN(Layer):
    """Runs one cell forwards and one backwards; the outputs are joined on the last axis, the states are a pair."""

    def __init__(self, cell_fw: RNNCellBase, cell_bw: RNNCellBase, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self,
        inputs: jax.Array,
        initial_states: Sequence[States] | None = None,
        sequence_length: jax.Array | None = None,
    ) -> tuple[jax.Array, tuple[States, ...]]:
        batch = inputs.shape[int(self.time_major)]
        outs, lasts = [], []
        for i, cell in enumerate((self.cell_fw, self.cell_bw)):
            first = (
                cell.get_initial_states(batch, inputs.dtype) if initial_states is None else initial_states[i]
            )
            out, last = cell.scan(inputs, _as_tuple(first), sequence_length, bool(i), self.time_major)
            outs.append(out)
            lasts.append(unwrap(last))
        return jnp.concatenate(outs, -1), tuple(lasts)


class _Stacked(Layer):
    """What SimpleRNN, LSTM and GRU share: layers of one or two directions with dropout between them."""

    _mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
        mode: str | None = None,
    ) -> None:
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ShapeError(
                "unknown direction",
                where=type(self).__name__,
                received=repr(direction),
                allowed="forward, bidirect or bidirectional",
            )
        self.mode = mode or self._mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.num_directions = 1 if direction == "forward" else 2
        self.time_major, self.dropout = time_major, dropout
        self.state_components = 2 if self.mode == "LSTM" else 1
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size * self.num_directions
            for suffix in self._directions():
                _add_weights(self, (GATES[self.mode], inputs, hidden_size), f"_l{layer}{suffix}", attrs)

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse")[: self.num_directions]

    def state_aliases(self) -> dict[str, str]:
        aliases = {}
        for layer in range(self.num_layers):
            cells = ("cell",) if self.num_directions == 1 else ("cell_fw", "cell_bw")
            for cell, suffix in zip(cells, self._directions()):
                aliases |= {f"{layer}.{cell}.{name}": f"{name}_l{layer}{suffix}" for name in NAMES}
        return aliases

    def forward(
        self,
        inputs: jax.Array,
        initial_states: States | None = None,
        sequence_length: jax.Array | None = None,
    ) -> tuple[jax.Array, States]:
        """inputs [N, T, in] -> (outputs [N, T, directions * H], states).

        States are [layers * directions, N, H], for an LSTM a pair of them: hidden and cell.
        """
        rows = self.num_layers * self.num_directions
        batch = inputs.shape[int(self.time_major)]
        if initial_states is None:
            zeros = jnp.zeros((rows, batch, self.hidden_size), inputs.dtype)
            initial_states = (zeros,) * self.state_components
        states = _as_tuple(initial_states)
        if len(states) != self.state_components or any(s.shape[0] != rows for s in states):
            raise ShapeError(
                "the initial states do not fit",
                where=type(self).__name__,
                received=[s.shape for s in states],
                allowed=f"{self.state_components} of [{rows}, N, {self.hidden_size}]",
            )
        x, last = inputs, []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, training=self.training)
            outs = []
            for d, suffix in enumerate(self._directions()):
                first = tuple(s[layer * self.num_directions + d] for s in states)
                weights = _weights(self, f"_l{layer}{suffix}")
                out, state = F.rnn_scan(
                    x, first, weights, self.mode, sequence_length, d == 1, self.time_major
                )
                outs.append(out)
                last.append(state)
            x = outs[0] if len(outs) == 1 else jnp.concatenate(outs, -1)
        return x, stack_states(last)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


class SimpleRNN(_Stacked):
    """Layers of SimpleRNNCell. direction: forward, or bidirect (= bidirectional)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        sizes = (input_size, hidden_size, num_layers)
        super().__init__(*sizes, direction, time_major, dropout, *attrs, mode=_simple_mode(activation))


class LSTM(_Stacked):
    """Layers of LSTMCell. direction: forward, or bidirect (= bidirectional)."""

    _mode = "LSTM"


class GRU(_Stacked):
    """Layers of GRUCell. direction: forward, or bidirect (= bidirectional)."""

    _mode = "GRU"
