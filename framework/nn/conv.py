"""Convolution layers. Activations are channels-last; weights keep Paddle's layouts (OIHW; transposed IOHW)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import Size, check_data_format
from framework.nn.functional.conv import Padding
from framework.nn.layer import AttrLike, Layer


def _kernel(kernel_size: Size, axes: int, where: str) -> tuple[int, ...]:
    kernel = (kernel_size,) * axes if isinstance(kernel_size, int) else tuple(kernel_size)
    if len(kernel) != axes:
        raise ShapeError(
            "kernel_size has another number of axes",
            where=where,
            received=kernel_size,
            allowed=f"1 or {axes} numbers",
        )
    return kernel


class _Conv(Layer):
    """What the convolutions share: weight [out, in/groups, *kernel] from Normal(0, sqrt(2 / (taps * in)))."""

    _axes: int
    _function: Callable[..., jax.Array]
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Padding = 0,
        dilation: Size = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        where = type(self).__name__
        check_data_format(data_format, where)
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                "channels divide into groups",
                where=where,
                received=f"in_channels {in_channels}, out_channels {out_channels}, groups {groups}",
                allowed="multiples of groups",
            )
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ShapeError(
                "unknown padding_mode",
                where=where,
                received=repr(padding_mode),
                allowed="zeros, reflect, replicate or circular",
            )
        if padding_mode != "zeros" and isinstance(padding, str):
            raise ShapeError(
                "padding_mode needs padding in numbers",
                where=where,
                received=repr(padding),
                allowed="numbers",
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _kernel(kernel_size, self._axes, where)
        # A number or a sequence: what the functional of this number of axes takes.
        self.stride: Size = stride
        self.dilation: Size = dilation
        self.padding: Any = padding
        self.groups, self.padding_mode = groups, padding_mode
        if self._transposed:
            shape, default = (in_channels, out_channels // groups, *self.kernel_size), None
        else:
            shape = (out_channels, in_channels // groups, *self.kernel_size)
            default = I.Normal(0.0, math.sqrt(2.0 / (math.prod(self.kernel_size) * in_channels)))
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=default)
        self.bias = self.create_parameter((out_channels,), bias_attr, is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        x, padding = self._pad(x)
        geometry = (self.stride, padding, self.dilation, self.groups)
        return self._function(x, self.weight, self.bias, *geometry)

    def _pad(self, x: jax.Array) -> tuple[jax.Array, Any]:
        """x with its non-zero padding in place, and the padding that is left for the convolution."""
        if self.padding_mode == "zeros":
            return x, self.padding
        given = [self.padding] * self._axes if isinstance(self.padding, int) else self.padding
        sides = 2 if len(given) == self._axes else 1
        edges = [p for edge in given for p in ([edge] * sides if isinstance(edge, int) else edge)]
        # functional.pad counts from the last axis: [left, right, top, bottom].
        reverse = [p for i in range(self._axes - 1, -1, -1) for p in edges[2 * i : 2 * i + 2]]
        return F.pad(x, reverse, self.padding_mode), 0

    def extra_repr(self) -> str:
        parts = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        return f"{parts}, padding={self.padding}, dilation={self.dilation}, groups={self.groups}"


class Conv1D(_Conv):
    """Convolution of [N, T, in_channels]; weight [out, in/groups, k]."""

    _axes = 1

    def forward(self, x: jax.Array) -> jax.Array:
        x, padding = self._pad(x)
        stride, dilation = (v if isinstance(v, int) else v[0] for v in (self.stride, self.dilation))
        return F.conv1d(x, self.weight, self.bias, stride, padding, dilation, self.groups)


class Conv2D(_Conv):
    """Convolution of [N, H, W, in_channels]; weight [out, in/groups, kh, kw]."""

    conv_kernels = ("weight",)
    _axes = 2
    _function = staticmethod(F.conv2d)


class Conv3D(_Conv):
    """Convolution of [N, D, H, W, in_channels]; weight [out, in/groups, kd, kh, kw]."""

    _axes = 3
    _function = staticmethod(F.conv3d)


class _ConvTranspose(_Conv):
    """What the transposed convolutions share: weight [in, out/groups, *kernel] from XavierUniform."""

    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Padding = 0,
        output_padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        geometry = (kernel_size, stride, padding, dilation, groups)
        attrs = (weight_attr, bias_attr)
        super().__init__(in_channels, out_channels, *geometry, "zeros", *attrs, data_format)
        self.output_padding: Size = output_padding

    def forward(self, x: jax.Array, output_size: Size | None = None) -> jax.Array:
        """`output_size` chooses among the sizes that a stride leaves open, instead of output_padding."""
        return self._function(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
            dilation=self.dilation,
            groups=self.groups,
            output_size=output_size,
        )


class Conv1DTranspose(_ConvTranspose):
    """Transposed convolution of [N, T, in_channels]; weight [in, out/groups, k]. Paddle has groups before dilation."""

    _axes = 1
    _function = staticmethod(F.conv1d_transpose)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: int = 1,
        padding: Padding = 0,
        output_padding: int = 0,
        groups: int = 1,
        dilation: int = 1,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NLC",
    ) -> None:
        geometry = (kernel_size, stride, padding, output_padding, dilation, groups)
        super().__init__(in_channels, out_channels, *geometry, weight_attr, bias_attr, data_format)


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution of [N, H, W, in_channels]; weight [in, out/groups, kh, kw]."""

    _axes = 2
    _function = staticmethod(F.conv2d_transpose)


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution of [N, D, H, W, in_channels]; weight [in, out/groups, kd, kh, kw]."""

    _axes = 3
    _function = staticmethod(F.conv3d_transpose)
