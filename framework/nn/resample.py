"""Layers that pool, resize, pad and move values between channels and pixels, on channels-last arrays."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from framework.nn import functional as F
from framework.nn.common import Size, check_data_format
from framework.nn.functional.conv import Padding
from framework.nn.layer import Layer

Scale = float | Sequence[float]


class Upsample(Layer):
    """Resizes the spatial axes; see `functional.interpolate`."""

    def __init__(
        self,
        size: Size | None = None,
        scale_factor: Scale | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: int = 0,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.align_mode = align_corners, align_mode

    def forward(self, x: jax.Array) -> jax.Array:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.align_mode)

    def extra_repr(self) -> str:
        return f"size={self.size}, scale_factor={self.scale_factor}, mode={self.mode}"


class UpsamplingNearest2D(Upsample):
    """Resizes [N, H, W, C] by repeating pixels."""

    def __init__(
        self, size: Size | None = None, scale_factor: Scale | None = None, data_format: str = "NHWC"
    ) -> None:
        super().__init__(size, scale_factor, "nearest", data_format=data_format)


class UpsamplingBilinear2D(Upsample):
    """Resizes [N, H, W, C] bilinearly with aligned corners."""

    def __init__(
        self, size: Size | None = None, scale_factor: Scale | None = None, data_format: str = "NHWC"
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True, data_format=data_format)


class Pad2D(Layer):
    """Pads the spatial axes by one number or [left, right, top, bottom]; see `functional.pad`."""

    def __init__(
        self, padding: Size, mode: str = "constant", value: float = 0.0, data_format: str = "NHWC"
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.padding = padding if isinstance(padding, int) else tuple(padding)
        self.mode, self.value = mode, value

    def forward(self, x: jax.Array) -> jax.Array:
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, mode={self.mode}, value={self.value}"


class Pad1D(Pad2D):
    """Pads the time axis by one number or [left, right]."""


class Pad3D(Pad2D):
    """Pads the spatial axes by one number or [left, right, top, bottom, front, back]."""


class ZeroPad2D(Pad2D):
    """Pads the spatial axes with zeros by one number or [left, right, top, bottom]."""

    def __init__(self, padding: Size, data_format: str = "NHWC") -> None:
        super().__init__(padding, data_format=data_format)


class PixelShuffle(Layer):
    """[N, H, W, C * r * r] -> [N, H * r, W * r, C]."""

    def __init__(self, upscale_factor: int, data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, "PixelShuffle")
        self.upscale_factor = upscale_factor

    def forward(self, x: jax.Array) -> jax.Array:
        return F.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Layer):
    """[N, H * r, W * r, C] -> [N, H, W, C * r * r]."""

    def __init__(self, downscale_factor: int, data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, "PixelUnshuffle")
        self.downscale_factor = downscale_factor

    def forward(self, x: jax.Array) -> jax.Array:
        return F.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Layer):
    """Interleaves the channels of `groups` groups."""

    def __init__(self, groups: int, data_format: str = "NHWC") -> None:
        super().__init__()
        check_data_format(data_format, "ChannelShuffle")
        self.groups = groups

    def forward(self, x: jax.Array) -> jax.Array:
        return F.channel_shuffle(x, self.groups)


class Unfold(Layer):
    """The windows of [N, H, W, C] as rows; see `functional.unfold`. Paddle's layer has dilations before strides."""

    def __init__(
        self, kernel_sizes: Size, dilations: Size = 1, paddings: Size = 0, strides: Size = 1
    ) -> None:
        super().__init__()
        self.kernel_sizes, self.dilations = kernel_sizes, dilations
        self.paddings, self.strides = paddings, strides

    def forward(self, x: jax.Array) -> jax.Array:
        return F.unfold(x, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class Fold(Layer):
    """Sums windows back into [N, H, W, C]; see `functional.fold`."""

    def __init__(
        self,
        output_sizes: Size,
        kernel_sizes: Size,
        dilations: Size = 1,
        paddings: Size = 0,
        strides: Size = 1,
    ) -> None:
        super().__init__()
        self.output_sizes, self.kernel_sizes = output_sizes, kernel_sizes
        self.dilations, self.paddings, self.strides = dilations, paddings, strides

    def forward(self, x: jax.Array) -> jax.Array:
        return F.fold(x, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class CosineSimilarity(Layer):
    """x1 . x2 / max(|x1| |x2|, eps) along `axis`."""

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis, self.eps = axis, eps

    def forward(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return F.cosine_similarity(x1, x2, self.axis, self.eps)


# -- pooling -----------------------------------------------------------------------------------------------------------


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
