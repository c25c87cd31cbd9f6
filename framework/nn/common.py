"""Linear, Embedding, dropout and the layers that only reshape."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

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


class FunctionLayer(Layer):
    """A layer around a function of `inputs` arrays: it takes the function's other arguments, with their defaults.

    Weights of classes among them are buffers that are not saved.
    """

    _function: Callable[..., jax.Array]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, function: Callable[..., jax.Array] | None = None, inputs: int = 1) -> None:
        if function is not None:
            parameters = list(inspect.signature(function).parameters.values())[inputs:]
            cls._function, cls.__signature__ = staticmethod(function), inspect.Signature(parameters)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        self._weights = tuple(n for n in ("weight", "pos_weight") if given.arguments.get(n) is not None)
        for name in self._weights:
            self.register_buffer(name, given.arguments[name], persistable=False)
        self._numbers = {n: value for n, value in given.arguments.items() if n not in self._weights}

    def forward(self, *inputs: jax.Array) -> jax.Array:
        return self._function(
            *inputs, **self._numbers, **{name: getattr(self, name) for name in self._weights}
        )

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._numbers.items() if value is not None)


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


class Dropout(Layer):
    """Zeroes each value with probability `p` in training. See `functional.dropout` for `axis` and `mode`."""

    def __init__(
        self, p: float = 0.5, axis: int | Sequence[int] | None = None, mode: str = "upscale_in_train"
    ) -> None:
        super().__init__()
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, x: jax.Array) -> jax.Array:
        return F.dropout(x, self.p, self.axis, self.training, self.mode)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2D(Layer):
    """Zeroes whole channels of [N, H, W, C] with probability `p` in training."""

    def __init__(self, p: float = 0.5, data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.p = p

    def forward(self, x: jax.Array) -> jax.Array:
        return F.dropout2d(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout3D(Dropout2D):
    """Zeroes whole channels of [N, D, H, W, C] with probability `p` in training."""


class AlphaDropout(Layer):
    """Replaces values with probability `p` in training; what a SELU gives keeps its mean and variance."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: jax.Array) -> jax.Array:
        return F.alpha_dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class FeatureAlphaDropout(AlphaDropout):
    """Replaces whole channels of [N, ..., C] with probability `p` in training, as AlphaDropout does values."""

    def forward(self, x: jax.Array) -> jax.Array:
        return F.feature_alpha_dropout(x, self.p, self.training)


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


class PairwiseDistance(FunctionLayer, function=F.pairwise_distance, inputs=2):
    """The p-norm of x - y + epsilon over the last axis."""


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
