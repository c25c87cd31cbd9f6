"""Recurrent cells: one step of an RNN, an LSTM or a GRU."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional.rnn import GATES, CellWeights
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dispatch import Array, Arrays, operation
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn import initializer as I
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.utils.structure import flatten


@operation(name="full")
def filled(shape: tuple[int, ...], dtype: str, value: Array) -> Array:
    """A Tensor of one value."""
    return jnp.full(shape, value, types.to_numpy(dtype))


def _is_shape(shape: Any) -> bool:
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
    def state_dtype(self) -> Any:
        """The types of the states, by default that of new Tensors."""
        return types.get_default_dtype()

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States full of `init_value`, for the batch of `batch_ref` (a Tensor or a nest of them)."""
        batch = flatten(batch_ref)[0].shape[batch_dim_idx]
        dtype = self.state_dtype if dtype is None else dtype

        def fill(shape: Any, dtype: Any) -> Any:
            if not _is_shape(shape):
                kinds = dtype if isinstance(dtype, list | tuple) else [dtype] * len(shape)
                return type(shape)(fill(part, kind) for part, kind in zip(shape, kinds, strict=True))
            sizes = list(shape)[1:] if shape[0] == -1 else list(shape)
            kind = types.of_numpy(types.to_numpy(dtype)).name
            return filled([batch, *sizes], kind, float(init_value))

        return fill(self.state_shape if shape is None else shape, dtype)


@operation(name="rnn_cell")
def _advance(x: Array, states: Arrays, weights: Arrays, mode: str) -> tuple[Array, ...]:
    return F.rnn_cell(x, tuple(states), CellWeights(*weights), mode)


class _Cell(RNNCellBase):
    """A cell of the core: weights [gates * H, C] and [gates * H, H], biases [gates * H]."""

    mode: str

    def __init__(self, input_size: int, hidden_size: int, *attrs: Any) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ShapeError(
                "the hidden size is a positive number", where=type(self).__name__, received=hidden_size
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        rows, bound = GATES[self.mode] * hidden_size, 1.0 / math.sqrt(hidden_size)
        shapes = ((rows, input_size), (rows, hidden_size), (rows,), (rows,))
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for name, shape, attr in zip(names, shapes, attrs, strict=True):
            is_bias = name.startswith("bias")
            if attr is False:  # Paddle keeps a constant in its place: the state has it too
                start = I.Constant(0.0 if is_bias else 1.0)
                parameter = self.create_parameter(shape, None, is_bias=is_bias, default_initializer=start)
                assert parameter is not None
                parameter.stop_gradient = True
            else:
                parameter = self.create_parameter(
                    shape, attr, is_bias=is_bias, default_initializer=I.Uniform(-bound, bound)
                )
            setattr(self, name, parameter)

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

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Any]:
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
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

    @property
    def state_shape(self) -> Any:
        return ((self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell):
    """A step of a GRU. Gates: reset, update, candidate."""

    mode = "GRU"

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
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
