"""Linear maps, embedding, dropout, padding, resizing and similarity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.host_rng import host_rng
from framework.nn import functional as core
from framework.nn.functional.common import check_ids
from framework.paddle._kernel.arguments import DTypeLike, Integers, Padding
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.dtypes import default_numpy, to_numpy
from framework.paddle._kernel.errors import ArgumentTypeError, ShapeError, require
from framework.paddle._kernel.mode import mode as modes
from framework.paddle._kernel.settings import reads_values, takes_variables
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle._kernel.visible import visible_integers
from framework.paddle.nn.functional.face import channels_first, face
from framework.paddle.nn.functional.labels import check_labels
from framework.paddle.nn.functional.layout import from_last, is_last, to_last
from framework.paddle.ops import reduction, unary
from framework.paddle.ops.creation import integers_of
from framework.paddle.ops.shaping import whole_number

if TYPE_CHECKING:
    from framework.paddle.distributed.collective import Group


@operation
def linear(x: Array, weight: Array, bias: Array | None = None, name: str | None = None) -> Array:
    """x [..., in] @ weight [in, out] + bias [out]."""
    if weight.ndim == 1:  # one output, without an axis of its own
        y = x @ weight
        return y if bias is None else y + bias
    return core.linear(x, weight, bias)


_embedding = face(core.embedding)


@checked
def embedding(
    x: Tensor, weight: Tensor, padding_idx: int | None = None, sparse: bool = False, name: str | None = None
) -> Tensor:
    """The rows of weight [V, D] that integer x [...] names, [..., D]; `padding_idx` gives zeros, and no gradient.

    Gradients are dense; `sparse` tells the optimizer that rows without one may stay (Adam's `lazy_mode`).

    Raises:
        InputError: an id outside of [0, V), where looking costs nothing; others read the nearest row.
    """
    if (ids := visible_integers(x)) is not None:
        check_ids(ids, weight.shape[0])
    if sparse and isinstance(weight, Parameter):
        weight.sparse_rows = True
    return _embedding(x, weight, padding_idx, sparse)


bilinear = face(core.bilinear)


@operation(name="one_hot", differentiable=False)
def _one_hot(x: Array, num_classes: int) -> Array:
    return core.one_hot(x, num_classes, default_numpy())


@takes_variables
@checked
def one_hot(x: Tensor, num_classes: int | Tensor, name: str | None = None) -> Tensor:
    """[...] labels -> [..., num_classes] of the default floating type.

    Raises:
        LabelError: a label is no class (up to 8192 labels on a CPU; else its row is zeros).
    """
    count = whole_number(num_classes)
    check_labels("paddle.nn.functional.one_hot", x, count)
    return _one_hot(x, count)


# Dropout


@operation(name="assign")
def _same(x: Array) -> Array:
    return x


def _unchanged(x: Tensor) -> Tensor:
    """Another Tensor of the same value and history; no program runs where none is needed."""
    if modes.routed or (x._node is None and not x.stop_gradient):
        return _same(x)
    other = wrap(x._value)
    other._node, other._index, other.stop_gradient = x._node, x._index, x.stop_gradient
    return other


@operation(name="dropout")
def _dropout(x: Array, key: Key, p: float, axis: Any, mode: str) -> Array:
    return core.dropout(x, p, axis, True, mode, key)


@operation(name="scale")
def _scaled(x: Array, factor: Array) -> Array:
    return (x * factor).astype(x.dtype)


@checked
def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Zero each value with probability p in training; along axes not in `axis` one draw is shared."""
    where = "paddle.nn.functional.dropout"
    if not isinstance(p, int | float | Tensor) or (
        axis is not None and not isinstance(axis, int | list | tuple)
    ):
        raise ArgumentTypeError(
            "p is a number and axis an integer or a list", where=where, received=f"p={p!r}, axis={axis!r}"
        )
    axes = [axis] if isinstance(axis, int) else list(axis or [])
    holds = all(0 <= a < x.ndim for a in axes) and len(axes) <= x.ndim
    require(holds, "axes that the input has, from 0 on", where, f"axis={axis} of {x.ndim} axes")
    p = float(p)
    mode = "downscale_in_infer" if mode == "downgrade_in_infer" else mode
    if mode not in ("upscale_in_train", "downscale_in_infer") or not 0 <= p <= 1:
        raise ShapeError(
            "dropout takes a probability and a mode",
            where="paddle.nn.functional.dropout",
            received=f"p={p}, mode={mode!r}",
            allowed="0 to 1; upscale_in_train or downscale_in_infer",
        )
    if p == 0:
        return x
    if training:
        return _dropout(x, p, axis, mode)
    if axis is not None and mode == "upscale_in_train":
        return x
    return _unchanged(x) if mode == "upscale_in_train" else _scaled(x, 1 - p)


def _channel_dropout(x: Tensor, p: float, training: bool, data_format: str, rank: int, where: str) -> Tensor:
    if len(x.shape) != rank:
        raise ShapeError(f"{where} drops whole channels", received=x.shape, allowed=f"{rank} axes")
    return dropout(x, p, [0, rank - 1] if is_last(data_format) else [0, 1], training)


def dropout2d(
    x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """Zero whole channels of [N, C, H, W]."""
    return _channel_dropout(x, p, training, data_format, 4, "dropout2d")


def dropout3d(
    x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None
) -> Tensor:
    """Zero whole channels of [N, C, D, H, W]."""
    return _channel_dropout(x, p, training, data_format, 5, "dropout3d")


@operation(name="alpha_dropout")
def _alpha_dropout(x: Array, key: Key, p: float) -> Array:
    return core.alpha_dropout(x, p, True, key)


@checked
def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 of what a SELU gives."""
    if not 0 <= p <= 1:
        raise ShapeError("alpha_dropout: p is a probability", received=p, allowed="0 to 1")
    if not training:
        return x
    return _alpha_dropout(x, float(p)) if p else _unchanged(x)


# Padding and windows


def _pad(
    function: Callable[..., jax.Array], x: jax.Array, pad: Any, mode: str, value: float, data_format: str
) -> jax.Array:
    """Two numbers for every axis pad all axes, the first one first."""
    edges = [pad] * (2 * (x.ndim - 2)) if isinstance(pad, int) else [int(p) for p in pad]
    if mode == "constant" and len(edges) == 2 * x.ndim:
        return function(x, edges, mode, value)
    return channels_first(function, x, data_format.upper(), pad=edges, mode=mode, value=value)


pad = face(core.pad, _pad, data_format="NCHW")


def zeropad2d(x: Tensor, padding: Padding, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Zeros around the images: left, right, top, bottom.

    Raises:
        ArgumentTypeError: the padding is one number.
    """
    if isinstance(padding, int):
        raise ArgumentTypeError(
            "padding is a list of four numbers", where="paddle.nn.functional.zeropad2d", received=str(padding)
        )
    return pad(x, padding, "constant", 0.0, data_format)


def _to_columns(function: Callable[..., jax.Array], x: jax.Array, **settings: object) -> jax.Array:
    """The windows of [N, C, H, W] as columns [N, C * kh * kw, windows]."""
    return jnp.swapaxes(function(to_last(x, "NCHW"), **settings), 1, 2)


def _from_columns(function: Callable[..., jax.Array], x: jax.Array, **settings: object) -> jax.Array:
    """Columns [N, C * kh * kw, windows] summed into [N, C, H, W]."""
    return from_last(function(jnp.swapaxes(x, 1, 2), **settings), "NCHW")


fold = face(core.fold, _from_columns)
unfold = face(core.unfold, _to_columns)


# Resizing

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}  # by the number of spatial axes


@operation(name="interpolate")
def _interpolate(
    x: Array,
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool,
    align_mode: int,
    data_format: str,
) -> Array:
    images = to_last(x, data_format)
    last = {3: "NLC", 4: "NHWC", 5: "NDHWC"}.get(x.ndim, "NHWC")
    out = core.interpolate(images, size, scale_factor, mode, align_corners, align_mode, last)
    return from_last(out, data_format)


@takes_variables
def interpolate(
    x: Tensor,
    size: Integers | None = None,
    scale_factor: float | Sequence[float] | Tensor | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """Resize the spatial axes to `size` or by `scale_factor`; no antialiasing."""
    axes = len(x.shape) - 2
    layouts = _LAYOUTS.get(axes, ("NCHW",))
    if data_format == "NCHW":  # the default
        data_format = layouts[0]
    where = "paddle.nn.functional.interpolate"
    holds = isinstance(align_corners, bool) and not isinstance(size, int | str)
    if not holds:
        raise ArgumentTypeError(
            "align_corners is True or False, and size a list",
            where=where,
            received=f"{align_corners=}, {size=}",
        )
    if isinstance(size, list | tuple):
        require(len(size) == axes, f"a size for each of the {axes} axes", where, size)
    if data_format not in layouts or (size is None) == (scale_factor is None):
        raise ShapeError(
            "size or scale_factor is needed, one of them, and the layout of the data",
            where="paddle.nn.functional.interpolate",
            received=f"size={size}, scale_factor={scale_factor}, data_format={data_format} for {x.ndim} axes",
            allowed=", ".join(layouts),
        )
    if size is not None:
        listed = size.tolist() if isinstance(size, np.ndarray) else size
        sizes = listed if isinstance(listed, int) else list(integers_of(listed))
        return _interpolate(x, sizes, None, mode, align_corners, align_mode, data_format)
    if isinstance(scale_factor, Tensor):
        scale_factor = scale_factor.tolist()
    if isinstance(scale_factor, list | tuple):
        scale_factor = [float(s) for s in scale_factor]
        scale_factor = scale_factor * axes if len(scale_factor) == 1 else scale_factor
    return _interpolate(x, None, scale_factor, mode, align_corners, align_mode, data_format)


upsample = interpolate


# Similarity and labels


def _of_label_type(function: Callable[..., jax.Array], label: jax.Array, **arguments: object) -> jax.Array:
    return function(label, **arguments).astype(label.dtype)


def _normalize(function: Callable[..., jax.Array], x: jax.Array, axis: int, **settings: object) -> jax.Array:
    if x.size == 0 or not -x.ndim <= axis < x.ndim:
        raise ShapeError(
            "there is nothing along this axis",
            where="nn.functional.normalize",
            received=f"axis {axis} of {list(x.shape)}",
        )
    return function(x, axis=axis, **settings)


cosine_similarity = face(core.cosine_similarity, name=False)
label_smooth = face(core.label_smooth, _of_label_type)
normalize = face(core.normalize, _normalize)
_pairwise_distance = face(core.pairwise_distance)


@checked
def pairwise_distance(
    x: Tensor,
    y: Tensor,
    p: float = 2.0,
    epsilon: float = 1e-6,
    keepdim: bool = False,
    name: str | None = None,
) -> Tensor:
    """The p-norm of x - y + epsilon over the last axis; p may be 0, which counts, and inf or -inf, whose gradient goes
    undivided to all that equal it."""
    if not math.isinf(p):
        return _pairwise_distance(x, y, p, epsilon, keepdim)
    gap = unary.abs(x - y + float(epsilon))
    return reduction.max(gap, -1, keepdim) if p > 0 else reduction.min(gap, -1, keepdim)


@operation(name="sequence_mask", differentiable=False)
def _sequence_mask(x: Array, maxlen: int, dtype: DTypeLike) -> Array:
    places = lax.iota(x.dtype, maxlen)
    return (places < x[..., None]).astype(to_numpy(dtype))


@reads_values
@checked
def sequence_mask(
    x: Tensor, maxlen: int | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> Tensor:
    """1 where a place is below the length: [...] -> [..., maxlen]; maxlen is by default the largest length."""
    if maxlen is None or (isinstance(maxlen, int) and maxlen < 0):
        lengths = x.numpy()
        maxlen = int(lengths.max()) if lengths.size else 0
    return _sequence_mask(x, int(maxlen), dtype)


@operation(differentiable=False)
def gather_tree(ids: Array, parents: Array) -> Array:
    """The sequences of a beam search, walked from their ends: ids and parents [T, N, beams]."""
    return core.gather_tree(ids, parents)


@reads_values
def class_center_sample(
    label: Tensor, num_classes: int, num_samples: int, group: Group | bool | None = None
) -> tuple[Tensor, Tensor]:
    """(labels renumbered, classes sampled): all classes that occur, filled up with random others to `num_samples`."""
    values = label.numpy()
    positive = np.unique(values)
    if num_samples > num_classes:
        raise ValueError(f"class_center_sample: {num_samples} samples of {num_classes} classes")
    others = np.setdiff1d(np.arange(num_classes), positive)
    extra = max(num_samples - len(positive), 0)
    chosen = np.sort(host_rng().choice(others, extra, replace=False)) if extra else others[:0]
    sampled = np.concatenate([positive, chosen]).astype(values.dtype)
    return Tensor(np.searchsorted(positive, values).astype(values.dtype)), Tensor(sampled)
