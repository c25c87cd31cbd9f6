"""Convolutions as layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional.layout import is_last, numbers
from framework.paddle.nn.initializer import Normal
from framework.paddle.nn.layer import Layer

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Layer):
    """What all convolutions share: `weight` and `bias`, and their settings as attributes."""

    _axes: ClassVar[int]
    _transposed: ClassVar[bool] = False

    def _build(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
        padding_mode: str = "zeros",
        output_padding: Any = 0,
    ) -> None:
        axes = self._axes
        if in_channels % groups or weight_attr is False or padding_mode not in _PADDING_MODES:
            raise ShapeError(
                f"{type(self).__name__}: channels divide into groups, and there is a weight",
                received=f"{in_channels} channels, {groups} groups, weight_attr={weight_attr}, {padding_mode!r}",
                allowed="padding modes " + ", ".join(_PADDING_MODES),
            )
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise TypeError(f"{type(self).__name__}: padding_mode {padding_mode} takes one number as padding")
        self._param_attr, self._bias_attr = weight_attr, bias_attr
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._data_format = data_format
        self._channel_dim = axes + 1 if is_last(data_format, type(self).__name__) else 1
        self._stride = list(numbers(stride, axes, "stride"))
        self._dilation = list(numbers(dilation, axes, "dilation"))
        self._kernel_size = list(numbers(kernel_size, axes, "kernel_size"))
        self._padding, self._padding_mode, self.output_padding = padding, padding_mode, output_padding
        self._edges = [padding] * (2 * axes) if padding_mode != "zeros" else []
        if self._transposed:
            shape, start = [in_channels, out_channels // groups, *self._kernel_size], None
        else:
            shape = [out_channels, in_channels // groups, *self._kernel_size]
            start = Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=start)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def _padded(self, x: Tensor) -> tuple[Tensor, Any]:
        if self._padding_mode == "zeros":
            return x, self._padding
        return F.pad(x, self._edges, self._padding_mode, 0.0, self._data_format), 0

    def extra_repr(self) -> str:
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        usual = [1] * self._axes
        for name, value, default in (
            ("stride", self._stride, usual),
            ("padding", self._padding, 0),
            ("padding_mode", self._padding_mode, "zeros"),
            ("output_padding", self.output_padding, 0),
            ("dilation", self._dilation, usual),
            ("groups", self._groups, 1),
        ):
            if value != default:
                text += f", {name}={value}"
        return f"{text}, data_format={self._data_format}"


class _Conv(_ConvNd):
    """The call of a convolution: `_function` is the operation."""

    _function: ClassVar[Callable[..., Tensor]]

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        settings = (self._stride, padding, self._dilation, self._groups, self._data_format)
        return self._function(x, self.weight, self.bias, *settings)


class _ConvTranspose(_ConvNd):
    """The call of a transposed convolution: `_function` is the operation."""

    _transposed = True
    _function: ClassVar[Callable[..., Tensor]]

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return self._function(
            x,
            self.weight,
            self.bias,
            stride=self._stride,
            padding=self._padding,
            output_padding=0 if output_size is not None else self.output_padding,
            dilation=self._dilation,
            groups=self._groups,
            output_size=output_size,
            data_format=self._data_format,
        )


class Conv1D(_Conv):
    """Convolution of [N, C, L]; weight [out, C / groups, k]."""

    _axes, _function = 1, staticmethod(F.conv1d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        self._build(in_channels, out_channels, *geometry, weight_attr, bias_attr, data_format, padding_mode)


class Conv2D(_Conv):
    """Convolution of [N, C, H, W]; weight [out, C / groups, kh, kw]."""

    _axes, _function = 2, staticmethod(F.conv2d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        self._build(in_channels, out_channels, *geometry, weight_attr, bias_attr, data_format, padding_mode)


class Conv3D(_Conv):
    """Convolution of [N, C, D, H, W]; weight [out, C / groups, kd, kh, kw]."""

    _axes, _function = 3, staticmethod(F.conv3d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        self._build(in_channels, out_channels, *geometry, weight_attr, bias_attr, data_format, padding_mode)


class Conv1DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, L]; weight [C, out / groups, k]."""

    _axes, _function = 1, staticmethod(F.conv1d_transpose)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        attributes = (weight_attr, bias_attr, data_format)
        self._build(in_channels, out_channels, *geometry, *attributes, output_padding=output_padding)


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, H, W]; weight [C, out / groups, kh, kw]."""

    _axes, _function = 2, staticmethod(F.conv2d_transpose)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        attributes = (weight_attr, bias_attr, data_format)
        self._build(in_channels, out_channels, *geometry, *attributes, output_padding=output_padding)


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, D, H, W]; weight [C, out / groups, kd, kh, kw]."""

    _axes, _function = 3, staticmethod(F.conv3d_transpose)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__()
        geometry = (kernel_size, stride, padding, dilation, groups)
        attributes = (weight_attr, bias_attr, data_format)
        self._build(in_channels, out_channels, *geometry, *attributes, output_padding=output_padding)
