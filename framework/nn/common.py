"""Layers that are more than a function with fixed settings: Linear, Embedding, PReLU and what only reshapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.functional.common import check_data_format as check_data_format
from framework.nn.layer import AttrLike, Layer

Size = int | Sequence[int]  # of all axes, or of each


class Identity(Layer):
    """Returns its input; takes and ignores any constructor arguments, so it can stand for another layer."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, x: jax.Array) -> jax.Array:
        return x


class Linear(Layer):
    """x [..., in_features] @ weight [in_features, out_features] + bias."""

    transposed_in_torch = ("weight",)

    def __init__(
        self, in_features: int, out_features: int, weight_attr: AttrLike = None, bias_attr: AttrLike = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = self.create_parameter((in_features, out_features), weight_attr)
        self.bias = self.create_parameter((out_features,), bias_attr, is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class _ZeroRow(I.Initializer):
    """`inner` with one row of zeros."""

    inner: I.Initializer
    row: int

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = self.inner(rng, shape)
        values[self.row] = 0.0
        return values

    def blocks(self, rng: np.random.Generator, shape: tuple[int, ...], numbers: int) -> Iterator[np.ndarray]:
        row = self.row % shape[0]
        for values in self.inner.blocks(rng, shape, numbers):
            if 0 <= row < len(values):
                values[row] = 0.0
            row -= len(values)
            yield values


class Embedding(Layer):
    """Rows of weight [num_embeddings, embedding_dim]; `padding_idx` yields zeros and is not trained.

    `sparse` is accepted for Paddle's sake and changes nothing: gradients are dense.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ShapeError(
                "padding_idx lies outside the table",
                where="Embedding",
                received=padding_idx,
                allowed=f"{-num_embeddings} to {num_embeddings - 1}",
            )
        self.weight = self.create_parameter((num_embeddings, embedding_dim), weight_attr)
        if padding_idx is not None:
            parameter = self._parameters["weight"]
            parameter.initializer = _ZeroRow(parameter.initializer, padding_idx)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.embedding(x, self.weight, self.padding_idx)

    def table(self) -> jax.Array:
        """[num_embeddings, embedding_dim]"""
        return self.weight

    def attend(self, x: jax.Array) -> jax.Array:
        """x [..., embedding_dim] times the rows: [..., num_embeddings]. For embeddings that score the next token."""
        return F.matmul(x, self.weight, transpose_y=True)


class Bilinear(Layer):
    """x1' W[o] x2 + bias; weight [out_features, in1_features, in2_features], bias [1, out_features]."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter((out_features, in1_features, in2_features), weight_attr)
        self.bias = self.create_parameter((1, out_features), bias_attr, is_bias=True)

    def forward(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return F.bilinear(x1, x2, self.weight, self.bias)


class Unflatten(Layer):
    """Splits `axis` into the axes `shape`, of which one may be -1."""

    def __init__(self, axis: int, shape: Sequence[int]) -> None:
        super().__init__()
        self.axis, self.shape = axis, tuple(int(n) for n in shape)

    def forward(self, x: jax.Array) -> jax.Array:
        axis = self.axis % x.ndim
        return x.reshape(*x.shape[:axis], *self.shape, *x.shape[axis + 1 :])

    def extra_repr(self) -> str:
        return f"axis={self.axis}, shape={self.shape}"


class Flatten(Layer):
    """Joins the axes `start_axis` to `stop_axis`. The order of values is that of channels-last arrays."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, x: jax.Array) -> jax.Array:
        start, stop = self.start_axis % x.ndim, self.stop_axis % x.ndim
        return x.reshape(*x.shape[:start], math.prod(x.shape[start : stop + 1]), *x.shape[stop + 1 :])


class PReLU(Layer):
    """x where positive, a learned slope times x elsewhere. The parameter is called `_weight`, as in Paddle."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, "PReLU")
        self._weight = self.create_parameter(
            (num_parameters,), weight_attr, default_initializer=I.Constant(init)
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return F.prelu(x, self._weight)


class Softmax2D(Layer):
    """softmax over the channels of an image [N, H, W, C] or [H, W, C]."""

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim not in (3, 4):
            raise ShapeError(
                "Softmax2D takes images", received=x.shape, allowed="[N, H, W, C] or [H, W, C], channels last"
            )
        return F.softmax(x, -1)
