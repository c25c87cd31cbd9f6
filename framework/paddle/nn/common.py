"""Linear, embedding, dropout, padding, resizing, windows and similarity as layers."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.x64 import x64
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional_layer import functional_layer
from framework.paddle.nn.layer import Layer

_layer = functools.partial(functional_layer, module=__name__, prefix="")


class Linear(Layer):
    """x @ weight + bias; weight [in, out]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=get_default_dtype())
        self._weight_attr, self._bias_attr, self.name = weight_attr, bias_attr, name
        self._sizes = (in_features, out_features)
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        rows, columns = self._sizes
        text = f"in_features={rows}, out_features={columns}, dtype={self._dtype}"
        return text + (f", name={self.name}" if self.name else "")


class Embedding(Layer):
    """A table [num_embeddings, embedding_dim] that integers choose rows of; the row `padding_idx` is zero and stays."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: Any = None,
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
        self.weight = self.create_parameter(self._size, weight_attr)
        if padding_idx is not None and self.weight is not None:
            with x64():
                self.weight._value = self.weight._value.at[padding_idx].set(0)

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)

    def extra_repr(self) -> str:
        text = f"{self._num_embeddings}, {self._embedding_dim}"
        if self._padding_idx is not None:
            text += f", padding_idx={self._padding_idx}"
        return f"{text}, sparse={self._sparse}" + (f", name={self._name}" if self._name is not None else "")


class Bilinear(Layer):
    """x1' W[o] x2 + bias for each output o."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=get_default_dtype())
        self._in1_features, self._in2_features, self._out_features = in1_features, in2_features, out_features
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self._in1_features}, in2_features={self._in2_features}"
        text = f"{sizes}, out_features={self._out_features}, dtype={self._dtype}"
        return text + (f", name={self._name}" if self._name else "")


class Identity(Layer):
    """Gives back its input; takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


AlphaDropout = _layer("AlphaDropout", F.alpha_dropout, inputs="input")
Dropout = _layer("Dropout", F.dropout, inputs="input")
Dropout2D = _layer("Dropout2D", F.dropout2d, inputs="input")
Dropout3D = _layer("Dropout3D", F.dropout3d, inputs="input")


# Shape


@operation(name="flatten")
def _flatten(x: Array, start_axis: int, stop_axis: int) -> Array:
    start, stop = start_axis % x.ndim, stop_axis % x.ndim
    return x.reshape(*x.shape[:start], -1, *x.shape[stop + 1 :])


class Flatten(Layer):
    """The axes from `start_axis` to `stop_axis` as one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return _flatten(input, self.start_axis, self.stop_axis)


@operation(name="unflatten")
def _unflatten(x: Array, axis: int, shape: Any) -> Array:
    axis %= x.ndim
    return jnp.reshape(x, (*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


class Unflatten(Layer):
    """One axis as several of this shape; one of its sizes may be -1."""

    def __init__(self, axis: int, shape: Any, name: str | None = None) -> None:
        super().__init__()
        self.axis, self.shape, self.name = axis, shape, name

    def forward(self, input: Tensor) -> Tensor:
        return _unflatten(input, self.axis, self.shape)

    def extra_repr(self) -> str:
        return f"axis={self.axis}, shape={self.shape}" + (f", name={self.name}" if self.name else "")


# Padding, resizing, windows


class _PadNd(Layer):
    """Padding of spatial axes: one number for all edges, or two for each axis, the last axis first."""

    def _build(
        self, padding: Any, axes: int, mode: str, value: float, data_format: str, name: str | None
    ) -> None:
        if isinstance(padding, Tensor):
            padding = padding.tolist()
        self._pad = [padding] * (2 * axes) if isinstance(padding, int) else list(padding)
        if len(self._pad) != 2 * axes:
            raise ShapeError(
                f"{type(self).__name__}: two numbers for each axis",
                received=padding,
                allowed=f"1 or {2 * axes} numbers",
            )
        self._mode, self._value, self._data_format, self._name = mode, value, data_format, name

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)

    def extra_repr(self) -> str:
        text = f"padding={self._pad}, mode={self._mode}, value={self._value}, data_format={self._data_format}"
        return text + (f", name={self._name}" if self._name else "")


class Pad1D(_PadNd):
    """Padding of [N, C, L]: left, right."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(padding, 1, mode, value, data_format, name)


class Pad2D(_PadNd):
    """Padding of [N, C, H, W]: left, right, top, bottom."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(padding, 2, mode, value, data_format, name)


class Pad3D(_PadNd):
    """Padding of [N, C, D, H, W]: left, right, top, bottom, front, back."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(padding, 3, mode, value, data_format, name)


class ZeroPad2D(_PadNd):
    """Zeros around [N, C, H, W]: left, right, top, bottom."""

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        self._build(padding, 2, "constant", 0.0, data_format, name)

    def extra_repr(self) -> str:
        text = f"padding={self._pad}, data_format={self._data_format}"
        return text + (f", name={self._name}" if self._name else "")


class _Upsample(Layer):
    size: Any
    scale_factor: Any
    data_format: str
    name: str | None

    def _asked(self) -> str:
        return f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"

    def extra_repr(self) -> str:
        text = f"{self._asked()}, data_format={self.data_format}"
        return text + (f", name={self.name}" if self.name else "")


class Upsample(_Upsample):
    """`functional.interpolate` as a layer."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: int = 0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode.lower()
        self.align_corners, self.align_mode = align_corners, align_mode
        self.data_format, self.name = data_format, name

    def forward(self, x: Tensor) -> Tensor:
        settings = (self.mode, self.align_corners, self.align_mode, self.data_format)
        return F.interpolate(x, self.size, self.scale_factor, *settings)

    def extra_repr(self) -> str:
        text = f"{self._asked()}, mode={self.mode}, align_corners={self.align_corners}"
        text += f", align_mode={self.align_mode}, data_format={self.data_format}"
        return text + (f", name={self.name}" if self.name else "")


class UpsamplingNearest2D(_Upsample):
    """Images resized to the nearest pixel."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__()
        self.size = [size, size] if isinstance(size, int) else size
        self.scale_factor, self.data_format, self.name = scale_factor, data_format, name

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, "nearest", False, 0, self.data_format)


class UpsamplingBilinear2D(_Upsample):
    """Images resized bilinearly, corners onto corners."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__()
        self.size = [size, size] if isinstance(size, int) else size
        self.scale_factor, self.data_format, self.name = scale_factor, data_format, name

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, "bilinear", True, 0, self.data_format)


_WINDOWS = "kernel_size={kernel_sizes}, dilation={dilations}, padding={paddings}, stride={strides}"
_ORDER = ("kernel_sizes", "dilations", "paddings", "strides")
Unfold = _layer("Unfold", F.unfold, inputs="input", settings=_ORDER, shown=_WINDOWS)
Fold = _layer("Fold", F.fold, inputs="input", settings=("output_sizes", *_ORDER), shown=_WINDOWS)


# Similarity and rearranging

CosineSimilarity = _layer("CosineSimilarity", F.cosine_similarity, inputs="x1 x2", prefix="_")
PairwiseDistance = _layer("PairwiseDistance", F.pairwise_distance, inputs="x y", quiet=("epsilon", "keepdim"))
_QUIET = ("data_format",)
PixelShuffle = _layer("PixelShuffle", F.pixel_shuffle, prefix="_", quiet=_QUIET)
PixelUnshuffle = _layer("PixelUnshuffle", F.pixel_unshuffle, prefix="_", quiet=_QUIET)
ChannelShuffle = _layer("ChannelShuffle", F.channel_shuffle, prefix="_", quiet=_QUIET)
