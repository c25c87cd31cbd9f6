"""The layers of paddle.vision.ops. Maps are channels-last."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax

from framework.core.errors import ShapeError
from framework.nn import initializer as I
from framework.nn.common import Size
from framework.nn.containers import Sequential
from framework.nn.conv import Conv2D
from framework.nn.functional.conv import pair
from framework.nn.layer import AttrLike, Layer
from framework.nn.leaf_layers import ReLU
from framework.nn.norm import BatchNorm2D
from framework.vision.ops import roi
from framework.vision.ops.deform import deform_conv2d


class DeformConv2D(Layer):
    """`deform_conv2d` with weight [out, in / groups, kh, kw] and bias [out]; `forward(x, offset, mask=None)`.

    Raises:
        ShapeError: the channels do not divide into groups.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        deformable_groups: int = 1,
        groups: int = 1,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups or in_channels % deformable_groups:
            raise ShapeError(
                "channels do not divide into groups",
                where="DeformConv2D",
                received=f"in_channels {in_channels}, out_channels {out_channels}, groups {groups}, "
                f"deformable_groups {deformable_groups}",
                allowed="multiples of groups, in_channels of deformable_groups",
            )
        kernel = pair(kernel_size, "kernel_size")
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.deformable_groups, self.groups = deformable_groups, groups
        std = math.sqrt(2 / (kernel[0] * kernel[1] * in_channels))
        self.weight = self.create_parameter(
            (out_channels, in_channels // groups, *kernel),
            attr=weight_attr,
            default_initializer=I.Normal(0.0, std),
        )
        self.bias = self.create_parameter((out_channels,), attr=bias_attr, is_bias=True)

    def forward(self, x: jax.Array, offset: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        return deform_conv2d(
            x,
            offset,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.deformable_groups,
            self.groups,
            mask,
        )


class _Pool(Layer):
    def __init__(self, output_size: roi.Size, spatial_scale: float = 1.0) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"


class RoIAlign(_Pool):
    """`roi_align` with a size and a scale."""

    def forward(
        self, x: jax.Array, boxes: jax.Array, boxes_num: jax.Array, aligned: bool = True
    ) -> jax.Array:
        return roi.roi_align(x, boxes, boxes_num, self.output_size, self.spatial_scale, aligned=aligned)


class RoIPool(_Pool):
    """`roi_pool` with a size and a scale."""

    def forward(self, x: jax.Array, boxes: jax.Array, boxes_num: jax.Array) -> jax.Array:
        return roi.roi_pool(x, boxes, boxes_num, self.output_size, self.spatial_scale)


class PSRoIPool(_Pool):
    """`psroi_pool` with a size and a scale."""

    def forward(self, x: jax.Array, boxes: jax.Array, boxes_num: jax.Array) -> jax.Array:
        return roi.psroi_pool(x, boxes, boxes_num, self.output_size, self.spatial_scale)


class ConvNormActivation(Sequential):
    """A convolution, a normalisation and an activation, each of the latter two left out where it is None.

    `padding` keeps the size where it is None; there is a bias where there is no normalisation, if `bias` is None.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: Size = 1,
        padding: int | None = None,
        groups: int = 1,
        norm_layer: Callable[[int], Layer] | None = BatchNorm2D,
        activation_layer: Callable[[], Layer] | None = ReLU,
        dilation: int = 1,
        bias: bool | None = None,
    ) -> None:
        padding = (kernel_size - 1) // 2 * dilation if padding is None else padding
        has_bias = norm_layer is None if bias is None else bias
        layers: list[Layer] = [
            Conv2D(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation,
                groups,
                bias_attr=None if has_bias else False,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer())
        super().__init__(*layers)
