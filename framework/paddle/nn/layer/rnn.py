"""Recurrent cells and layers. SimpleRNN, LSTM and GRU run all layers and both directions as one operation; RNN and
BiRNN run a cell over time: a cell of ours as one operation, a user's cell step by step."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from framework import paddle
from framework.nn import functional as F
from framework.nn.functional.rnn import GATES, CellWeights
from framework.nn.rnn import NAMES
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import DTypeLike, Integers, TensorLike
from framework.paddle._kernel.dispatch import Array, Arrays, Key, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn import initializer as I
from framework.paddle.nn.containers import LayerList
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.utils.structure import flatten, map_structure

State = Any  # a Tensor, or a tuple of them


@operation(name="full", differentiable=False)
def filled(
    reference: Array, value: Array, axis: int, before: tuple[int, ...], after: tuple[int, ...], dtype: str
) -> Array:
    """[*before, size of the reference's axis, *after] of one value. In a static program the size may be unknown."""
    return jnp.full((*before, reference.shape[axis], *after), value, types.to_numpy(dtype))


def _is_shape(shape: Integers) -> bool:
    return isinstance(shape, list | tuple) and all(isinstance(size, int) for size in shape)


class RNNCellBase(Layer):
    """Base of cells. `forward(inputs [N, C], states)` returns (outputs, new states); `state_shape` says what the
    states are, without the batch: (H,), or a tuple of such."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter
    bias_hh: Parameter

    @property
    def state_shape(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} needs a property state_shape to make initial states"
        )

    @property
    def state_dtype(self) -> DTypeLike:
        """The types of the states, by default that of new Tensors."""
        return types.get_default_dtype()

    def get_initial_states(
        self,
        batch_ref: object,
        shape: Integers | None = None,
        dtype: DTypeLike | None = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States full of `init_value`, for the batch of `batch_ref` (a Tensor or a nest of them)."""
        reference = flatten(batch_ref)[0]
        dtype = self.state_dtype if dtype is None else dtype

        def fill(shape: Any, dtype: Any) -> Any:
            if not _is_shape(shape):
                kinds = dtype if isinstance(dtype, list | tuple) else [dtype] * len(shape)
                return type(shape)(fill(part, kind) for part, kind in zip(shape, kinds, strict=True))
            sizes = list(shape)[1:] if shape[0] == -1 else list(shape)
            kind = types.of_numpy(types.to_numpy(dtype)).name
            return filled(reference, float(init_value), batch_dim_idx, (), tuple(sizes), kind)

        return fill(self.state_shape if shape is None else shape, dtype)


@operation(name="rnn_cell")
def _advance(x: Array, states: Arrays, weights: Arrays, mode: str) -> tuple[Array, ...]:
    return F.rnn_cell(x, tuple(states), CellWeights(*weights), mode)


class _Cell(RNNCellBase):
    """A cell of the core: weights [gates * H, C] and [gates * H, H], biases [gates * H]."""

    mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ShapeError(
                "the hidden size is a positive number", where=type(self).__name__, received=hidden_size
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        rows, bound = GATES[self.mode] * hidden_size, 1.0 / math.sqrt(hidden_size)
        shapes = ((rows, input_size), (rows, hidden_size), (rows,), (rows,))
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        for weight, shape, attr in zip(NAMES, shapes, attrs, strict=True):
            is_bias = weight.startswith("bias")
            if attr is False:  # Paddle keeps a constant in its place: the state has it too
                start = I.Constant(0.0 if is_bias else 1.0)
                parameter = self.create_parameter(shape, None, is_bias=is_bias, default_initializer=start)
                assert parameter is not None
                parameter.stop_gradient = True
            else:
                parameter = self.create_parameter(
                    shape, attr, is_bias=is_bias, default_initializer=I.Uniform(-bound, bound)
                )
            setattr(self, weight, parameter)

    @property
    def watched(self) -> bool:
        """Whether hooks are to see each step."""
        return bool(self._forward_pre_hooks or self._forward_post_hooks)

    @property
    def weights(self) -> list[Parameter]:
        return [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)

    def forward(self, inputs: Tensor, states: object = None) -> tuple[Tensor, Any]:
        if states is None:
            states = self.get_initial_states(inputs, self.state_shape)
        given = list(states) if isinstance(states, list | tuple) else [states]
        new = _advance(inputs, given, self.weights, self.mode)
        return new[0], (new if len(new) > 1 else new[0])

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh); activation "tanh" or "relu"."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: AttrLike = None,
        weight_hh_attr: AttrLike = None,
        bias_ih_attr: AttrLike = None,
        bias_hh_attr: AttrLike = None,
        name: str | None = None,
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise ShapeError(
                "unknown activation",
                where="nn.SimpleRNNCell",
                received=repr(activation),
                allowed="tanh, relu",
            )
        object.__setattr__(self, "mode", f"RNN_{activation.upper()}")
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self.activation = activation

    def extra_repr(self) -> str:
        extra = super().extra_repr()
        return extra if self.activation == "tanh" else f"{extra}, activation={self.activation}"


class LSTMCell(_Cell):
    """A step of an LSTM; the states are (hidden, cell). Gates: input, forget, cell, output."""

    mode = "LSTM"

    @property
    def state_shape(self) -> Any:
        return ((self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell):
    """A step of a GRU. Gates: reset, update, candidate."""

    mode = "GRU"


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
    cell: Layer,
    inputs: object,
    states: State,
    lengths: TensorLike | None,
    reverse: bool,
    time_major: bool,
    kwargs: Any,
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

    def __init__(self, cell: Layer, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    def forward(
        self,
        inputs: object,
        initial_states: State = None,
        sequence_length: TensorLike | None = None,
        **kwargs: object,
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


def rnn(
    cell: Layer,
    inputs: object,
    initial_states: State = None,
    sequence_length: TensorLike | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: object,
) -> tuple[Any, State]:
    """A cell over time, as the layer RNN: (outputs [N, T, H], last states)."""
    return RNN(cell, is_reverse, time_major)(inputs, initial_states, sequence_length, **kwargs)


class BiRNN(Layer):
    """Two cells over time, one in each direction; the outputs stand side by side, [N, T, 2 H]."""

    def __init__(self, cell_fw: Layer, cell_bw: Layer, time_major: bool = False) -> None:
        super().__init__()
        if cell_fw.input_size != cell_bw.input_size:
            raise ShapeError(
                "the two cells take inputs of different sizes",
                where="nn.BiRNN",
                received=f"{cell_fw.input_size} and {cell_bw.input_size}",
            )
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self,
        inputs: Any,
        initial_states: object = None,
        sequence_length: TensorLike | None = None,
        **kwargs: Any,
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
    cell: Layer,
    reverse: bool,
    time_major: bool,
    inputs: Any,
    start: State,
    lengths: TensorLike | None,
    kwargs: Any,
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


def _cell_of(mode: str) -> Callable[..., _Cell]:
    """What makes the cells of "LSTM", "GRU", "RNN_TANH" or "RNN_RELU"."""
    cells: dict[str, Callable[..., _Cell]] = {"LSTM": LSTMCell, "GRU": GRUCell}
    if mode in cells:
        return cells[mode]
    if not mode.startswith("RNN_"):
        raise ShapeError("unknown mode", where="nn.RNNBase", received=repr(mode), allowed=", ".join(GATES))
    return functools.partial(SimpleRNNCell, activation=mode[4:].lower())


class RNNBase(LayerList):
    """Layers of one kind of cell, in one or both directions. mode "LSTM", "GRU", "RNN_TANH" or "RNN_RELU"."""

    def __init__(
        self,
        mode: str,
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
        attrs = {
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
        }
        cell_of, cells = _cell_of(mode), list[_Cell]()
        for layer in range(num_layers):
            size = hidden_size * self.num_directions if layer else input_size
            made = [cell_of(size, hidden_size, **attrs) for _ in range(self.num_directions)]
            self.append(
                RNN(made[0], time_major=time_major) if len(made) == 1 else BiRNN(*made, time_major=time_major)
            )
            cells.extend(made)
        self.mode, self.state_components = mode, 2 if mode == "LSTM" else 1
        self._names: list[str] = []
        for index, cell in enumerate(cells):
            layer, backwards = divmod(index, self.num_directions)
            for weight in NAMES:
                alias = f"{weight}_l{layer}{'_reverse' if backwards else ''}"
                setattr(self, alias, getattr(cell, weight))
                self._names.append(alias)

    def forward(
        self, inputs: Tensor, initial_states: State = None, sequence_length: TensorLike | None = None
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
            axis, layers = 1 if self.time_major else 0, self.num_layers * self.num_directions
            start = filled(inputs, 0.0, axis, (layers,), (self.hidden_size,), inputs.dtype.name)
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


class SimpleRNN(RNNBase):
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
        sizes = (input_size, hidden_size, num_layers)
        super().__init__(f"RNN_{activation.upper()}", *sizes, direction, time_major, dropout, *attrs)


class _Gated(RNNBase):
    _mode: ClassVar[str]

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
        sizes = (input_size, hidden_size, num_layers)
        super().__init__(self._mode, *sizes, direction, time_major, dropout, *attrs)


class LSTM(_Gated):
    """Layers of `LSTMCell`; the states are (hidden, cell)."""

    _mode = "LSTM"


class GRU(_Gated):
    """Layers of `GRUCell`."""

    _mode = "GRU"
