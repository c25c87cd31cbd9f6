"""Layers that pool, and their inverse, on channels-last arrays. See the functionals of the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax

from framework.nn import functional as F
from framework.nn.common import Size, check_data_format
from framework.nn.functional.conv import Padding
from framework.nn.layer import Layer

Padding1D = int | str | Sequence[int]


class _Pool(Layer):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2D(_Pool):
    """Maximum over windows of [N, H, W, C]; with `return_mask` also the places of the maxima.

    `pad_value` is what the padding holds, see `functional.max_pool2d`.
    """

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NHWC",
        pad_value: float = -float("inf"),
    ) -> None:
        super().__init__()
        check_data_format(data_format, "MaxPool2D")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.return_mask, self.ceil_mode, self.pad_value = return_mask, ceil_mode, pad_value

    def forward(self, x: jax.Array) -> Any:
        geometry = (self.kernel_size, self.stride, self.padding)
        return F.max_pool2d(x, *geometry, self.return_mask, self.ceil_mode, self.pad_value)


class MaxPool1D(_Pool):
    """Maximum over windows of [N, T, C]; with `return_mask` also the places of the maxima."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: Padding1D = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.return_mask, self.ceil_mode = return_mask, ceil_mode

    def forward(self, x: jax.Array) -> Any:
        return F.max_pool1d(x, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode)


class MaxPool3D(_Pool):
    """Maximum over windows of [N, D, H, W, C]; with `return_mask` also the places of the maxima."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, "MaxPool3D")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.return_mask, self.ceil_mode = return_mask, ceil_mode

    def forward(self, x: jax.Array) -> Any:
        return F.max_pool3d(x, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode)


class AvgPool2D(_Pool):
    """Mean over windows of [N, H, W, C]; with `exclusive` padding does not count."""

    _function: ClassVar[Callable[..., jax.Array]] = staticmethod(F.avg_pool2d)

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: float | None = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.exclusive, self.divisor_override = ceil_mode, exclusive, divisor_override

    def forward(self, x: jax.Array) -> jax.Array:
        geometry = (self.kernel_size, self.stride, self.padding)
        return self._function(x, *geometry, self.ceil_mode, self.exclusive, self.divisor_override)


class AvgPool3D(AvgPool2D):
    """Mean over windows of [N, D, H, W, C]; with `exclusive` padding does not count."""

    _function = staticmethod(F.avg_pool3d)


class AvgPool1D(_Pool):
    """Mean over windows of [N, T, C]; with `exclusive` padding does not count."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: Padding1D = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.exclusive, self.ceil_mode = exclusive, ceil_mode

    def forward(self, x: jax.Array) -> jax.Array:
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode)


class LPPool2D(_Pool):
    """(the sum of x**norm_type over windows) ** (1 / norm_type) of [N, H, W, C]."""

    _function: ClassVar[Callable[..., jax.Array]] = staticmethod(F.lp_pool2d)

    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.norm_type, self.ceil_mode = norm_type, ceil_mode
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: jax.Array) -> jax.Array:
        geometry = (self.kernel_size, self.stride, self.padding)
        return self._function(x, self.norm_type, *geometry, self.ceil_mode)


class LPPool1D(LPPool2D):
    """(the sum of x**norm_type over windows) ** (1 / norm_type) of [N, T, C]."""

    _function = staticmethod(F.lp_pool1d)


class AdaptiveAvgPool2D(Layer):
    """Mean over `output_size` bins of [N, H, W, C]; None keeps an axis."""

    _function: ClassVar[Callable[..., jax.Array]] = staticmethod(F.adaptive_avg_pool2d)

    def __init__(self, output_size: int | Sequence[int | None], data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.output_size = output_size

    def forward(self, x: jax.Array) -> jax.Array:
        return self._function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1D(AdaptiveAvgPool2D):
    """Mean over `output_size` bins of [N, T, C]."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool3D(AdaptiveAvgPool2D):
    """Mean over `output_size` bins of [N, D, H, W, C]; None keeps an axis."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool2D(Layer):
    """Maximum over `output_size` bins of [N, H, W, C], None keeps an axis; with `return_mask` also the places."""

    _function: ClassVar[Callable[..., Any]] = staticmethod(F.adaptive_max_pool2d)

    def __init__(
        self,
        output_size: int | Sequence[int | None],
        return_mask: bool = False,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.output_size, self.return_mask = output_size, return_mask

    def forward(self, x: jax.Array) -> Any:
        return self._function(x, self.output_size, self.return_mask)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1D(AdaptiveMaxPool2D):
    """Maximum over `output_size` bins of [N, T, C]; with `return_mask` also the places."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool3D(AdaptiveMaxPool2D):
    """Maximum over `output_size` bins of [N, D, H, W, C], None keeps an axis; with `return_mask` also the places."""

    _function = staticmethod(F.adaptive_max_pool3d)


class MaxUnPool2D(_Pool):
    """The inverse of `MaxPool2D(return_mask=True)` on [N, H, W, C]: `forward(x, indices)`."""

    _function: ClassVar[Callable[..., jax.Array]] = staticmethod(F.max_unpool2d)

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: int | Sequence[int] = 0,
        data_format: str = "NHWC",
        output_size: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.output_size = output_size

    def forward(self, x: jax.Array, indices: jax.Array) -> jax.Array:
        return self._function(x, indices, self.kernel_size, self.stride, self.padding, self.output_size)


class MaxUnPool1D(MaxUnPool2D):
    """The inverse of `MaxPool1D(return_mask=True)` on [N, T, C]: `forward(x, indices)`."""

    _function = staticmethod(F.max_unpool1d)


class MaxUnPool3D(MaxUnPool2D):
    """The inverse of `MaxPool3D(return_mask=True)` on [N, D, H, W, C]: `forward(x, indices)`."""

    _function = staticmethod(F.max_unpool3d)


class FractionalMaxPool2D(Layer):
    """Maximum over random regions of [N, H, W, C]; see `functional.fractional_max_pool2d`."""

    _function: ClassVar[Callable[..., Any]] = staticmethod(F.fractional_max_pool2d)

    def __init__(
        self,
        output_size: int | Sequence[int | None],
        kernel_size: Size | None = None,
        random_u: float | None = None,
        return_mask: bool = False,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.random_u, self.return_mask = random_u, return_mask

    def forward(self, x: jax.Array) -> Any:
        return self._function(x, self.output_size, self.kernel_size, self.random_u, self.return_mask)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, kernel_size={self.kernel_size}, random_u={self.random_u}"


class FractionalMaxPool3D(FractionalMaxPool2D):
    """Maximum over random regions of [N, D, H, W, C]; see `functional.fractional_max_pool2d`."""

    _function = staticmethod(F.fractional_max_pool3d)
