"""`paddle.sparse.nn`'s layers with parameters, and pooling."""

from __future__ import annotations

import math
from typing import ClassVar

from framework.paddle._kernel.errors import ShapeError
from framework.paddle.nn import BatchNorm1D, BatchNorm2D, BatchNorm3D, Layer
from framework.paddle.nn import SyncBatchNorm as DenseSyncBatchNorm
from framework.paddle.nn.initializer import Normal
from framework.paddle.nn.norm import copy_batch_norm
from framework.paddle.sparse.nn import convolution
from framework.paddle.sparse.nn.convolution import Sizes, sizes_of
from framework.paddle.sparse.tensor import SparseCooTensor, SparseTensor


class BatchNorm(BatchNorm1D):
    """Batch normalisation of the values of the points, channel by channel."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: object = None,
        bias_attr: object = None,
        data_format: str = "NDHWC",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, "NLC", use_global_stats, name
        )

    def forward(self, x: SparseTensor) -> SparseTensor:
        return x.like(super().forward(x.values()))


class SyncBatchNorm(BatchNorm):
    """A batch that is split over devices is one array here, and its mean is that of the whole."""

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with a SyncBatchNorm, which has the same parameters, in place of each batch norm inside: a sparse
        one for a sparse one."""
        if isinstance(layer, BatchNorm1D | BatchNorm2D | BatchNorm3D) and not isinstance(layer, cls):
            return copy_batch_norm(layer, cls if isinstance(layer, BatchNorm) else DenseSyncBatchNorm)
        for name, sublayer in layer.named_children():
            layer._sub_layers[name] = cls.convert_sync_batchnorm(sublayer)
        return layer


class _Conv(Layer):
    _axes: ClassVar[int] = 3
    _function: ClassVar = staticmethod(convolution.conv3d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: object = None,
        bias_attr: object = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        where = f"paddle.sparse.nn.{type(self).__name__}"
        if padding_mode != "zeros" or groups != 1 or weight_attr is False:
            raise ShapeError(
                "padding_mode is 'zeros', groups is 1, and there is a weight",
                where=where,
                received=f"padding_mode={padding_mode!r}, groups={groups}, weight_attr={weight_attr}",
            )
        kernel = sizes_of(kernel_size, self._axes, where)
        self._settings = (stride, padding, dilation)
        self._data_format = data_format or ("NDHWC" if self._axes == 3 else "NHWC")
        deviation = (2.0 / (math.prod(kernel) * in_channels)) ** 0.5
        self.weight = self.create_parameter(
            [*kernel, in_channels, out_channels],
            attr=weight_attr,
            default_initializer=Normal(0.0, deviation),
        )
        self.bias = self.create_parameter([out_channels], attr=bias_attr, is_bias=True)

    def forward(self, x: SparseTensor) -> SparseCooTensor:
        assert self.weight is not None  # refused above
        stride, padding, dilation = self._settings
        return self._function(
            x,
            self.weight,
            self.bias,
            stride=stride,
            padding=padding,
            dilation=dilation,
            data_format=self._data_format,
        )


class Conv3D(_Conv):
    """`conv3d` as a layer."""


class Conv2D(_Conv):
    """`conv2d` as a layer."""

    _axes = 2
    _function = staticmethod(convolution.conv2d)


class _SubmConv(_Conv):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        key: str | None = None,
        weight_attr: object = None,
        bias_attr: object = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            weight_attr,
            bias_attr,
            data_format,
        )


class SubmConv3D(_SubmConv):
    """`subm_conv3d` as a layer."""

    _function = staticmethod(convolution.subm_conv3d)


class SubmConv2D(_SubmConv):
    """`subm_conv2d` as a layer."""

    _axes = 2
    _function = staticmethod(convolution.subm_conv2d)


class MaxPool3D(Layer):
    """`max_pool3d` as a layer."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = (kernel_size, stride, padding, ceil_mode, data_format)

    def forward(self, x: SparseTensor) -> SparseCooTensor:
        return convolution.max_pool3d(x, *self._settings)
