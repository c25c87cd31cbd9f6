"""Layers that are more than a row: embedding, shapes, padding and resizing, products, and losses with inputs behind
their weights."""

from __future__ import annotations

import functools
from typing import Any

from framework import nn as core
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.errors import AssertedError, ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle._kernel.x64 import x64
from framework.paddle.nn import functional as F
from framework.paddle.nn.faces import Face, face, parametric_face
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.ops.shaping import flatten, unflatten


class Embedding(Layer):
    """A table [num_embeddings, embedding_dim] that integers choose rows of; the row `padding_idx` is zero and stays."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: AttrLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=get_default_dtype())
        if num_embeddings <= 0 or embedding_dim <= 0:
            raise ValueError(f"Embedding takes positive sizes, received {num_embeddings} and {embedding_dim}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx {padding_idx} lies outside of {num_embeddings} rows")
        self._num_embeddings, self._embedding_dim, self._sparse = num_embeddings, embedding_dim, sparse
        self._padding_idx, self._size = padding_idx, [num_embeddings, embedding_dim]
        self._weight_attr, self._name = weight_attr, name
        weight = self.create_parameter(self._size, weight_attr)
        if weight is None:
            raise ValueError(
                "Embedding takes no weight_attr=False, without its weight it has nothing to look up"
            )
        if padding_idx is not None:
            with x64():
                weight._value = weight._value.at[padding_idx].set(0)
        self.weight: Parameter = weight

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)

    def extra_repr(self) -> str:
        text = f"{self._num_embeddings}, {self._embedding_dim}"
        if self._padding_idx is not None:
            text += f", padding_idx={self._padding_idx}"
        return f"{text}, sparse={self._sparse}" + (f", name={self._name}" if self._name is not None else "")


class Identity(Layer):
    """Gives back its input; takes any arguments."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Softmax2D(Layer):
    """softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in (3, 4):
            raise AssertedError(
                "Softmax2D takes images", received=x.shape, allowed="[N, C, H, W] or [C, H, W]"
            )
        return F.softmax(x, -3)

    def extra_repr(self) -> str:
        return f"name={self._name}" if self._name else ""


# Shape


class Flatten(Layer):
    """The axes from `start_axis` to `stop_axis` as one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_axis, self.stop_axis)


class Unflatten(Layer):
    """One axis as several of this shape; one of its sizes may be -1."""

    def __init__(self, axis: int, shape: Integers, name: str | None = None) -> None:
        super().__init__()
        self.axis, self.shape, self.name = axis, shape, name

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.axis, self.shape)

    def extra_repr(self) -> str:
        return f"axis={self.axis}, shape={self.shape}" + (f", name={self.name}" if self.name else "")


# Padding and resizing


class _Pad(Face):
    """Two numbers for each axis, the last axis first, from one for all edges or a Tensor."""

    def _settled(self, settings: dict[str, Any]) -> dict[str, object]:
        padding, axes = settings["padding"], len(settings["data_format"]) - 2
        given = padding.tolist() if isinstance(padding, Tensor) else padding
        edges = [given] * (2 * axes) if isinstance(given, int) else list(given)
        if len(edges) != 2 * axes:
            raise ShapeError(
                f"{type(self).__name__}: two numbers for each axis",
                received=padding,
                allowed=f"1 or {2 * axes} numbers",
            )
        return {**settings, "padding": edges}


class _Upsample(Face):
    """Prints the size, or the factor where it has one."""

    def _settled(self, settings: dict[str, Any]) -> dict[str, object]:
        return settings | {"mode": settings["mode"].lower()}

    def extra_repr(self) -> str:
        unused = "size=None, " if self.size is None else ", scale_factor=None"
        return super().extra_repr().replace(unused, "", 1)


class _Upsampling(_Upsample):
    """A number is a square."""

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        size = settings["size"]
        return settings | {"size": [size, size] if isinstance(size, int) else size}


_pad = functools.partial(face, module=__name__, base=_Pad, attributes={"padding": "_pad"})
Pad1D = _pad(core.Pad1D, data_format="NCL")
Pad2D = _pad(core.Pad2D)
Pad3D = _pad(core.Pad3D, data_format="NCDHW")
ZeroPad2D = _pad(core.ZeroPad2D)
_resize = functools.partial(face, module=__name__, base=_Upsampling, prefix="")
Upsample = _resize(core.Upsample, base=_Upsample)
UpsamplingBilinear2D = _resize(core.UpsamplingBilinear2D)
UpsamplingNearest2D = _resize(core.UpsamplingNearest2D)


# Products and slopes

_face = functools.partial(parametric_face, module=__name__)
Bilinear = _face(
    core.Bilinear,
    F.bilinear,
    inputs="x1 x2",
    shown="in1_features={in1_features}, in2_features={in2_features}, out_features={out_features}, dtype={dtype}{named}",
)
Linear = _face(
    core.Linear,
    F.linear,
    inputs="input",
    attributes={"name": "name"},
    shown="in_features={in_features}, out_features={out_features}, dtype={dtype}{named}",
)
PReLU = _face(
    core.PReLU,
    F.prelu,
    sources={"weight": "_weight"},
    shown="num_parameters={num_parameters}, data_format={data_format}, init={init}, dtype={dtype}{named}",
)


# Losses


class CTCLoss(Layer):
    """-log p(labels) of logits [T, N, C]."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(
        self,
        log_probs: Tensor,
        labels: Tensor,
        input_lengths: Tensor,
        label_lengths: Tensor,
        norm_by_times: bool = False,
    ) -> Tensor:
        lengths = (input_lengths, label_lengths)
        return F.ctc_loss(log_probs, labels, *lengths, self.blank, self.reduction, norm_by_times)


class HSigmoidLoss(Layer):
    """-log p(label) by the sigmoids along a path through a tree of classes, whose nodes have the weights."""

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss takes 2 or more classes, received {num_classes}")
        self._feature_size, self._num_classes = feature_size, num_classes
        self._is_custom, self._is_sparse = is_custom, is_sparse and is_custom
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        nodes, kind = num_classes if is_custom else num_classes - 1, get_default_dtype()
        self.weight = self.create_parameter([nodes, feature_size], weight_attr, kind)
        self.bias = self.create_parameter([nodes, 1], bias_attr, kind, is_bias=True)

    def forward(
        self, input: Tensor, label: Tensor, path_table: Tensor | None = None, path_code: Tensor | None = None
    ) -> Tensor:
        tree = (self.weight, self.bias, path_table, path_code)
        return F.hsigmoid_loss(input, label, self._num_classes, *tree)
