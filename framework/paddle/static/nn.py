"""paddle.static.nn: layers as functions that make their parameters, in static mode and outside of it."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from framework import paddle
from framework.core.axes import per_axis
from framework.nn.table_options import Entry
from framework.paddle import nn
from framework.paddle._kernel.arguments import DTypeLike, Integers, Padding
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import OperandError, require
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional
from framework.paddle.nn.functional.layout import edges
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.static.click_layers import continuous_value_model as continuous_value_model
from framework.paddle.static.click_layers import nce as nce
from framework.paddle.static.control import case as case
from framework.paddle.static.control import cond as cond
from framework.paddle.static.control import switch_case as switch_case
from framework.paddle.static.control import while_loop as while_loop
from framework.paddle.static.pylayer import static_pylayer as static_pylayer
from framework.paddle.static.python_function import py_func as py_func
from framework.paddle.static.sequence_lod import sequence_concat as sequence_concat
from framework.paddle.static.sequence_lod import sequence_conv as sequence_conv
from framework.paddle.static.sequence_lod import sequence_enumerate as sequence_enumerate
from framework.paddle.static.sequence_lod import sequence_expand as sequence_expand
from framework.paddle.static.sequence_lod import sequence_expand_as as sequence_expand_as
from framework.paddle.static.sequence_lod import sequence_first_step as sequence_first_step
from framework.paddle.static.sequence_lod import sequence_last_step as sequence_last_step
from framework.paddle.static.sequence_lod import sequence_pad as sequence_pad
from framework.paddle.static.sequence_lod import sequence_pool as sequence_pool
from framework.paddle.static.sequence_lod import sequence_reshape as sequence_reshape
from framework.paddle.static.sequence_lod import sequence_reverse as sequence_reverse
from framework.paddle.static.sequence_lod import sequence_scatter as sequence_scatter
from framework.paddle.static.sequence_lod import sequence_slice as sequence_slice
from framework.paddle.static.sequence_lod import sequence_softmax as sequence_softmax
from framework.paddle.static.sequence_lod import sequence_unpad as sequence_unpad
from framework.paddle.static.state import state
from framework.paddle.static.variable import Variable
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.nn.initializer import Initializer

log = logging.getLogger("oar")
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


def _activated(x: Tensor, act: str | None) -> Tensor:
    return x if act is None else getattr(functional, act)(x)


def _parameter(
    shape: Sequence[int],
    attr: AttrLike,
    dtype: DTypeLike,
    is_bias: bool = False,
    default: Initializer | None = None,
) -> Any:
    from framework.paddle.nn.layer import new_parameter

    return new_parameter(unique_name.generate_layer("parameter"), list(shape), attr, dtype, is_bias, default)


def _named(kind: str) -> Callable[[_FunctionT], _FunctionT]:
    """Let a function call its parameters and results after its `name`, or after `kind` with a number, as in Paddle."""

    def decorate(function: _FunctionT) -> _FunctionT:
        parameters = list(inspect.signature(function).parameters)
        position = parameters.index("name") if "name" in parameters else len(parameters)

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            name = args[position] if position < len(args) else kwargs.get("name")
            with unique_name.layer_scope(kind, cast("str | None", name)):
                return function(*args, **kwargs)

        return cast("_FunctionT", call)

    return decorate


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


@_named("fc")
def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    activation: str | None = None,
    name: str | None = None,
) -> Tensor:
    """x @ weight + bias over the axes from `num_flatten_dims` on, taken together: [..., size]. Several x are added."""
    total: Any = None
    inputs = list(x) if isinstance(x, list | tuple) else [x]
    for part in inputs:
        axes = num_flatten_dims % len(part.shape) if num_flatten_dims < 0 else num_flatten_dims
        axes = axes + 1 if num_flatten_dims < 0 else axes
        width = _product(part.shape[axes:])
        if len(part.shape) != axes + 1:
            part = paddle.flatten(part, axes, -1)
        product = paddle.matmul(part, _parameter([width, size], weight_attr, part.dtype))
        if isinstance(product, Variable):
            state.main.ops[-1].type = "mul"  # Paddle's fully connected layer has its own operator
        total = product if total is None else total + product
    bias = _parameter([size], bias_attr, inputs[0].dtype, True)
    return _activated(total if bias is None else total + bias, activation)


@checked
@_named("embedding")
def embedding(
    input: Tensor,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: AttrLike = None,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Rows of a table [size[0], size[1]]."""
    weight = _parameter(size, param_attr, dtype)
    return functional.embedding(input, weight, padding_idx=padding_idx, sparse=is_sparse)


@checked
@_named("sparse_embedding")
def sparse_embedding(
    input: Tensor,
    size: Sequence[int],
    padding_idx: int | None = None,
    is_test: bool = False,
    entry: Entry | None = None,
    table_class: str = "MemorySparseTable",
    param_attr: AttrLike = None,
    dtype: DTypeLike = "float32",
    slot: object = None,
) -> Tensor:
    """Rows of a table of a parameter server, which here is a parameter [size[0], size[1]]: any id, modulo size[0].

    Ids [..., 1], which are all that Paddle takes here, give [..., size[1]]; others [..., F] give [..., F, size[1]].
    All ids are trained, whatever `entry` says, and by the optimizer of the program; the core's nn.ShardedEmbedding and
    nn.HostEmbedding update by rows and admit by entries.

    Raises:
        ValueError: an unknown table class.
    """
    if table_class not in ("CommonSparseTable", "SSDSparseTable", "MemorySparseTable"):
        raise ValueError(
            f"table_class is CommonSparseTable, SSDSparseTable or MemorySparseTable, received {table_class}"
        )
    if entry is not None:
        log.warning(
            f"sparse_embedding trains all ids, and not by {entry.to_attr()}: use framework.nn.ShardedEmbedding(entry=…)"
        )
    rows = size[0]
    weight = _parameter(size, param_attr, dtype)
    if input.ndim > 1 and input.shape[-1] == 1:
        input = paddle.squeeze(input, -1)
    return functional.embedding(
        paddle.remainder(input, paddle.full([], rows, input.dtype)), weight, padding_idx=padding_idx
    )


def _convolution(name: str, kind: type[Any], default: str) -> Callable[..., Tensor]:
    """The function of a layer; `default` is the format of data."""

    def convolve(
        input: Tensor,
        num_filters: int,
        filter_size: Integers,
        stride: Integers = 1,
        padding: Padding = 0,
        dilation: Integers = 1,
        groups: int | None = None,
        param_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        name: str | None = None,
        data_format: str = default,
    ) -> Tensor:
        """A convolution with its own kernel and bias."""
        channels = input.shape[1 if data_format.startswith("NC") else -1]
        options = {"weight_attr": param_attr, "bias_attr": bias_attr, "data_format": data_format}
        layer = kind(channels, num_filters, filter_size, stride, padding, dilation, groups or 1, **options)
        return _activated(layer(input), act)

    convolve.__name__ = convolve.__qualname__ = name
    return _named(name)(convolve)


def _filter_size(
    input: Tensor,
    output_size: Integers,
    padding: Padding,
    stride: Integers,
    dilation: Integers,
    data_format: str,
) -> list[int]:
    """The kernel with which a transposed convolution gives this output."""
    axes = len(input.shape) - 2
    sizes = input.shape[2:] if data_format.startswith("NC") else input.shape[1:-1]
    pads = edges(padding, axes, data_format)
    totals = [0] * axes if isinstance(pads, str) else [sum(pads[2 * i : 2 * i + 2]) for i in range(axes)]
    arguments = ((output_size, "output_size"), (stride, "stride"), (dilation, "dilation"))
    outs, strides, dilations = ([int(n) for n in per_axis(value, axes, name)] for value, name in arguments)
    return [
        (out - (size - 1) * step + total - 1) // apart + 1
        for out, size, step, total, apart in zip(outs, sizes, strides, totals, dilations, strict=True)
    ]


def _transposed(name: str, kind: type[Any], default: str) -> Callable[..., Tensor]:
    """The function of a layer; `default` is the format of data."""
    name_of = name

    def convolve(
        input: Tensor,
        num_filters: int,
        output_size: Any = None,
        filter_size: Any = None,
        padding: Padding = 0,
        stride: Integers = 1,
        dilation: Integers = 1,
        groups: int | None = None,
        param_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        name: str | None = None,
        data_format: str = default,
    ) -> Tensor:
        """A transposed convolution with its own kernel and bias."""
        if filter_size is None:
            if output_size is None:
                raise OperandError("give filter_size or output_size", where=f"paddle.static.nn.{name_of}")
            filter_size = _filter_size(input, output_size, padding, stride, dilation, data_format)
        channels = input.shape[1 if data_format.startswith("NC") else -1]
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups or 1}
        options |= {"weight_attr": param_attr, "bias_attr": bias_attr, "data_format": data_format}
        layer = kind(channels, num_filters, filter_size, **options)
        return _activated(layer(input, output_size), act)

    convolve.__name__ = convolve.__qualname__ = name
    return _named(name)(convolve)


conv2d = _convolution("conv2d", nn.Conv2D, "NCHW")
conv3d = _convolution("conv3d", nn.Conv3D, "NCDHW")
conv2d_transpose = _transposed("conv2d_transpose", nn.Conv2DTranspose, "NCHW")
conv3d_transpose = _transposed("conv3d_transpose", nn.Conv3DTranspose, "NCDHW")


@checked
@_named("batch_norm")
def batch_norm(
    input: Tensor,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Tensor:
    """Normalise channels over the batch; the moving statistics are parameters that are not trained."""
    count = [input.shape[1 if data_layout == "NCHW" or len(input.shape) == 2 else -1]]
    one, zero = nn.initializer.Constant(1.0), nn.initializer.Constant(0.0)
    scale = _parameter(count, param_attr, "float32", False, one)
    shift = _parameter(count, bias_attr, "float32", True)
    moving = [
        _parameter(count, nn.ParamAttr(name=given, initializer=start, trainable=False), "float32")
        for given, start in ((moving_mean_name, zero), (moving_variance_name, one))
    ]
    out = functional.batch_norm(
        input,
        moving[0],
        moving[1],
        scale,
        shift,
        not is_test,
        momentum,
        epsilon,
        data_layout,
        use_global_stats or None,
    )
    return _activated(out, act)


@checked
@_named("layer_norm")
def layer_norm(
    input: Tensor,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Normalise the axes from `begin_norm_axis` on."""
    shape = input.shape[begin_norm_axis:]
    count = [_product(shape)]
    weight = (
        _parameter(count, param_attr, input.dtype, False, nn.initializer.Constant(1.0)) if scale else None
    )
    bias = _parameter(count, bias_attr, input.dtype, True) if shift else None
    flat = [None if part is None else paddle.reshape(part, shape) for part in (weight, bias)]
    return _activated(functional.layer_norm(input, shape, flat[0], flat[1], epsilon), act)


@checked
@_named("group_norm")
def group_norm(
    input: Tensor,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """Normalise groups of channels. Raises: ShapeError: the input has less than 2 axes."""
    require(len(input.shape) > 1, "the input has 2 axes or more", "paddle.static.nn.group_norm", input.shape)
    channels = input.shape[1 if data_layout.startswith("NC") else -1]
    layer = nn.GroupNorm(groups, channels, epsilon, param_attr, bias_attr, data_layout)
    return _activated(layer(input), act)


@checked
@_named("instance_norm")
def instance_norm(
    input: Tensor,
    epsilon: float = 1e-05,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    name: str | None = None,
) -> Tensor:
    """Normalise each channel of each sample."""
    count = [input.shape[1]]
    weight = _parameter(count, param_attr, input.dtype, False, nn.initializer.Constant(1.0))
    bias = _parameter(count, bias_attr, input.dtype, True)
    return functional.instance_norm(input, weight=weight, bias=bias, eps=epsilon)


@checked
@_named("prelu")
def prelu(
    x: Tensor, mode: str, param_attr: AttrLike = None, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """x where it is positive, else weight * x; one weight for `all`, a `channel` or an `element`."""
    if mode not in ("all", "channel", "element"):
        raise ValueError(f"mode of prelu is all, channel or element, received {mode!r}")
    shapes = {
        "all": [1],
        "channel": [x.shape[1 if data_format.startswith("NC") else -1]],
        "element": x.shape[1:],
    }
    weight = _parameter(shapes[mode], param_attr, x.dtype, False, nn.initializer.Constant(0.25))
    if mode == "element":
        return paddle.maximum(x, x * 0) + paddle.minimum(x, x * 0) * weight
    return functional.prelu(x, weight, data_format)


@_named("bilinear_tensor_product")
def bilinear_tensor_product(
    x: Tensor,
    y: Tensor,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
) -> Tensor:
    """out[:, i] = x weight[i] y + bias[i]."""
    weight = _parameter([size, x.shape[1], y.shape[1]], param_attr, x.dtype)
    bias = _parameter([1, size], bias_attr, x.dtype, True)
    return _activated(functional.bilinear(x, y, weight, bias), act)


@checked
@_named("spectral_norm")
def spectral_norm(
    weight: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Tensor:
    """The weight divided by its greatest singular value."""
    return nn.SpectralNorm(weight.shape, dim, power_iters, eps)(weight)


@_named("deformable_conv")
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    mask: Tensor | None,
    num_filters: int,
    filter_size: Any,
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    im2col_step: int = 1,
    weight_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    name: str | None = None,
) -> Tensor:
    """Deformable convolution with its own kernel and bias."""
    from framework.paddle.vision.ops import DeformConv2D

    layer = DeformConv2D(
        x.shape[1],
        num_filters,
        filter_size,
        stride,
        padding,
        dilation,
        deformable_groups,
        groups,
        weight_attr,
        bias_attr,
    )
    return layer(x, offset, mask)


def deformable_conv(
    input: Tensor,
    offset: Tensor,
    mask: Tensor | None,
    num_filters: int,
    filter_size: object,
    stride: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: object = 1,
    groups: int | None = None,
    deformable_groups: int | None = None,
    im2col_step: int | None = None,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    modulated: bool = True,
    name: str | None = None,
) -> Tensor:
    """`deform_conv2d` under its older name; the mask counts where `modulated`."""
    sizes = (num_filters, filter_size, stride, padding, dilation, groups or 1, deformable_groups or 1)
    return deform_conv2d(input, offset, mask if modulated else None, *sizes, 1, param_attr, bias_attr, name)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
_complete(__name__)
