"""Recurrent layers. SimpleRNN, LSTM and GRU run all layers and both directions as one operation; RNN and BiRNN run a
cell over time: a cell of ours as one operation, a user's cell step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from framework import paddle
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional.rnn import CellWeights
from framework.paddle._kernel.dispatch import Array, Arrays, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.containers import LayerList
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.layer.rnn_cells import GRUCell, LSTMCell, SimpleRNNCell, _Cell, filled
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.utils.structure import map_structure

State = Any  # a Tensor, or a tuple of them


@operation(name="rnn", residual=True)
def _scan(
    x: Array,
    states: Arrays,
    weights: Arrays,
    sequence_length: Array | None,
    mode: str,
    is_reverse: bool,
    time_major: bool,
) -> tuple[Array, ...]:
    """One cell over time: (outputs, last states …)."""
    out, last = F.rnn_scan(
        x, tuple(states), CellWeights(*weights), mode, sequence_length, is_reverse, time_major, blank=False
    )
    return (out, *last)


@operation(name="keep_finished")
def _kept(new: Array, old: Array, step: Array, sequence_length: Array) -> Array:
    """`new` of the sequences that are longer than `step`, `old` of the others."""
    going = (step < sequence_length).reshape((-1,) + (1,) * (new.ndim - 1))
    return jnp.where(going, new, old)


def _steps(
    cell: Layer, inputs: Any, states: State, lengths: Any, reverse: bool, time_major: bool, kwargs: Any
) -> Any:
    """A user's cell over time, one step after the other."""
    axis = 0 if time_major else 1
    columns = [paddle.unbind(part, axis) for part in paddle.utils.flatten(inputs)]
    outputs = []
    count = len(columns[0])
    for t in range(count - 1, -1, -1) if reverse else range(count):
        at = paddle.utils.pack_sequence_as(inputs, [column[t] for column in columns])
        out, new = cell(at, states, **kwargs)
        if lengths is not None:
            new = map_structure(lambda n, o, t=t: _kept(n, o, t, lengths), new, states)
        outputs.append(out)
        states = new
    if reverse:
        outputs.reverse()
    return map_structure(lambda *parts: paddle.stack(list(parts), axis), *outputs), states


class RNN(Layer):
    """A cell over time.

    Args:
        is_reverse: from the last step to the first.
        time_major: inputs and outputs are [T, N, C] instead of [N, T, C].
    """

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: State = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, State]:
        """(outputs [N, T, H], last states). Beyond `sequence_length` [N] the states stand still."""
        cell = self.cell
        if initial_states is None:
            initial_states = cell.get_initial_states(inputs, batch_dim_idx=1 if self.time_major else 0)
        # Hooks and subclasses must see each step.
        if type(cell) not in (SimpleRNNCell, LSTMCell, GRUCell) or kwargs or cell.watched:
            return _steps(
                cell, inputs, initial_states, sequence_length, self.is_reverse, self.time_major, kwargs
            )
        given = list(initial_states) if isinstance(initial_states, list | tuple) else [initial_states]
        out, *last = _scan(
            inputs, given, cell.weights, sequence_length, cell.mode, self.is_reverse, self.time_major
        )
        return out, (tuple(last) if len(last) > 1 else last[0])


class BiRNN(Layer):
    """Two cells over time, one in each direction; the outputs stand side by side, [N, T, 2 H]."""

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        if cell_fw.input_size != cell_bw.input_size:
            raise ShapeError(
                "the two cells take inputs of different sizes",
                where="nn.BiRNN",
                received=f"{cell_fw.input_size} and {cell_bw.input_size}",
            )
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, tuple[State, State]]:
        """(outputs, (last states forward, last states backward))."""
        starts = initial_states if isinstance(initial_states, list | tuple) else (None, None)
        outputs, states = [], []
        for cell, start, reverse in ((self.cell_fw, starts[0], False), (self.cell_bw, starts[1], True)):
            out, last = _run_once(cell, reverse, self.time_major, inputs, start, sequence_length, kwargs)
            outputs.append(out)
            states.append(last)
        joined = map_structure(lambda a, b: paddle.concat([a, b], -1), *outputs)
        return joined, (states[0], states[1])


def _run_once(
    cell: Any, reverse: bool, time_major: bool, inputs: Any, start: State, lengths: Any, kwargs: Any
) -> Any:
    """What RNN does, without a layer that would hold the cell a second time."""
    runner = object.__new__(RNN)
    for name, value in (("cell", cell), ("is_reverse", reverse), ("time_major", time_major)):
        object.__setattr__(runner, name, value)
    return RNN.forward(runner, inputs, start, lengths, **kwargs)


def _stacked(
    x: jax.Array,
    states: Sequence[jax.Array],
    weights: Sequence[jax.Array],
    lengths: jax.Array | None,
    mode: str,
    directions: int,
    time_major: bool,
    key: jax.Array | None,
    rate: jax.Array | float,
) -> tuple[jax.Array, ...]:
    """Layers upon layers: (outputs, last states [layers * directions, N, H] …); dropout between the layers."""
    lasts: list[tuple[jax.Array, ...]] = []
    for layer in range(states[0].shape[0] // directions):
        if layer and key is not None:
            key, own = jax.random.split(key)
            keep = jax.random.bernoulli(own, 1 - rate, x.shape)
            x = jnp.where(keep, x / (1 - rate), 0).astype(x.dtype)
        outs = []
        for direction in range(directions):
            index = layer * directions + direction
            cell = CellWeights(*weights[4 * index : 4 * index + 4])
            start = tuple(state[index] for state in states)
            out, last = F.rnn_scan(x, start, cell, mode, lengths, direction == 1, time_major)
            outs.append(out)
            lasts.append(last)
        x = jnp.concatenate(outs, -1) if directions > 1 else outs[0]
    return (x, *(jnp.stack(column) for column in zip(*lasts, strict=True)))


@operation(name="rnn", residual=True)
def _recurrent(
    x: Array,
    states: Arrays,
    weights: Arrays,
    sequence_length: Array | None,
    mode: str,
    directions: int,
    time_major: bool,
) -> tuple[Array, ...]:
    return _stacked(x, states, weights, sequence_length, mode, directions, time_major, None, 0.0)


@operation(name="rnn", residual=True)
def _recurrent_dropout(
    x: Array,
    states: Arrays,
    weights: Arrays,
    sequence_length: Array | None,
    rate: Array,
    key: Key,
    mode: str,
    directions: int,
    time_major: bool,
) -> tuple[Array, ...]:
    return _stacked(x, states, weights, sequence_length, mode, directions, time_major, key, rate)


class _Recurrent(LayerList):
    """Layers of one kind of cell, in one or both directions. `_make` makes a cell of an input size."""

    def __init__(
        self,
        make: Any,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        direction: str,
        time_major: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ShapeError(
                "unknown direction",
                where=f"nn.{type(self).__name__}",
                received=repr(direction),
                allowed="forward, bidirect, bidirectional",
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.dropout, self.time_major = num_layers, dropout, time_major
        self.num_directions = 1 if direction == "forward" else 2
        cells: list[_Cell] = []
        for layer in range(num_layers):
            size = hidden_size * self.num_directions if layer else input_size
            made = [make(size) for _ in range(self.num_directions)]
            self.append(
                RNN(made[0], time_major=time_major) if len(made) == 1 else BiRNN(*made, time_major=time_major)
            )
            cells.extend(made)
        self.mode, self.state_components = cells[0].mode, 2 if isinstance(cells[0], LSTMCell) else 1
        self._names: list[str] = []
        for index, cell in enumerate(cells):
            layer, backwards = divmod(index, self.num_directions)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                alias = f"{name}_l{layer}{'_reverse' if backwards else ''}"
                setattr(self, alias, getattr(cell, name))
                self._names.append(alias)

    def forward(
        self, inputs: Tensor, initial_states: State = None, sequence_length: Any = None
    ) -> tuple[Tensor, State]:
        """(outputs [N, T, directions * H], last states).

        Args:
            initial_states: [layers * directions, N, H], of an LSTM a pair of such (hidden, cell); by default zeros.
            sequence_length: [N]; beyond it outputs are 0 and the state stands still.
        """
        if inputs.ndim != 3:
            raise ShapeError(
                "a recurrent layer takes sequences",
                where=f"nn.{type(self).__name__}",
                received=inputs.shape,
                allowed="[T, N, C]" if self.time_major else "[N, T, C]",
            )
        if initial_states is None:
            batch = inputs.shape[1 if self.time_major else 0]
            shape = [self.num_layers * self.num_directions, batch, self.hidden_size]
            start = filled(shape, inputs.dtype.name, 0.0)
            states = [start] * self.state_components
        else:
            states = list(initial_states) if isinstance(initial_states, list | tuple) else [initial_states]
        weights = [self._parameters[name] for name in self._names]
        settings = (self.mode, self.num_directions, self.time_major)
        if self.training and self.dropout and self.num_layers > 1:
            results = _recurrent_dropout(
                inputs, states, weights, sequence_length, float(self.dropout), *settings
            )
        else:
            results = _recurrent(inputs, states, weights, sequence_length, *settings)
        return results[0], (results[1:] if len(results) > 2 else results[1])

    def flatten_parameters(self) -> None:
        """Nothing to do: XLA lays the weights out."""

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.time_major:
            parts.append(f"time_major={self.time_major}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        return ", ".join(parts)


class SimpleRNN(_Recurrent):
    """Layers of `SimpleRNNCell`. direction "forward" or "bidirect"."""

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
        name: str | None = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

        def make(size: int) -> SimpleRNNCell:
            return SimpleRNNCell(size, hidden_size, activation, *attrs)

        super().__init__(make, input_size, hidden_size, num_layers, direction, time_major, dropout)


class LSTM(_Recurrent):
    """Layers of `LSTMCell`; the states are (hidden, cell)."""

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
        name: str | None = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

        def make(size: int) -> LSTMCell:
            return LSTMCell(size, hidden_size, *attrs)

        super().__init__(make, input_size, hidden_size, num_layers, direction, time_major, dropout)


class GRU(_Recurrent):
    """Layers of `GRUCell`."""

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
        name: str | None = None,
    ) -> None:
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

        def make(size: int) -> GRUCell:
            return GRUCell(size, hidden_size, *attrs)

        super().__init__(make, input_size, hidden_size, num_layers, direction, time_major, dropout)
