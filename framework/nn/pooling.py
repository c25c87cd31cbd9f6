"""Pooling layers on channels-last arrays."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from framework.nn import functional as F
from framework.nn.common import Size, check_data_format
from framework.nn.functional.conv import Padding
from framework.nn.layer import Layer


class _Pool(Layer):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2D(_Pool):
    """Maximum over windows of [N, H, W, C]. `pad_value` is what the padding holds, see `functional.max_pool2d`."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        data_format: str = "NHWC",
        pad_value: float = -float("inf"),
    ) -> None:
        super().__init__()
        check_data_format(data_format, "MaxPool2D")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.pad_value = ceil_mode, pad_value

    def forward(self, x: jax.Array) -> jax.Array:
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.pad_value)


class AvgPool2D(_Pool):
    """Mean over windows of [N, H, W, C]; with `exclusive` padding does not count."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, "AvgPool2D")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.exclusive = ceil_mode, exclusive

    def forward(self, x: jax.Array) -> jax.Array:
        return F.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.exclusive)


class MaxPool1D(_Pool):
    """Maximum over windows of [N, T, C]."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int | str | Sequence[int] = 0,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.ceil_mode = kernel_size, stride, padding, ceil_mode

    def forward(self, x: jax.Array) -> jax.Array:
        return F.max_pool1d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode)


class AvgPool1D(_Pool):
    """Mean over windows of [N, T, C]; with `exclusive` padding does not count."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int | str | Sequence[int] = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.exclusive, self.ceil_mode = exclusive, ceil_mode

    def forward(self, x: jax.Array) -> jax.Array:
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode)


class AdaptiveAvgPool2D(Layer):
    """Mean over `output_size` bins of [N, H, W, C]; None keeps an axis."""

    def __init__(self, output_size: int | Sequence[int | None], data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.output_size = output_size

    def forward(self, x: jax.Array) -> jax.Array:
        return F.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool2D(AdaptiveAvgPool2D):
    """Maximum over `output_size` bins of [N, H, W, C]; None keeps an axis."""

    def forward(self, x: jax.Array) -> jax.Array:
        return F.adaptive_max_pool2d(x, self.output_size)


class AdaptiveAvgPool1D(Layer):
    """Mean over `output_size` bins of [N, T, C]."""

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: jax.Array) -> jax.Array:
        return F.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveMaxPool1D(AdaptiveAvgPool1D):
    """Maximum over `output_size` bins of [N, T, C]."""

    def forward(self, x: jax.Array) -> jax.Array:
        return F.adaptive_max_pool1d(x, self.output_size)
