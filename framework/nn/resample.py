"""Layers that resize, pad and move values between channels and pixels, on channels-last arrays."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from framework.nn import functional as F
from framework.nn.common import Size, check_data_format
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


def _pad_layer(name: str, base: type[Pad2D], mode: str, doc: str) -> type[Pad2D]:
    """A layer that pads in one mode: `padding` alone is its argument, and `value` for the constant."""

    def constant(self: Pad2D, padding: Size, value: float = 0.0, data_format: str = "NHWC") -> None:
        base.__init__(self, padding, mode, value, data_format)

    def fixed(self: Pad2D, padding: Size, data_format: str = "NHWC") -> None:
        base.__init__(self, padding, mode, 0.0, data_format)

    members = {
        "__init__": constant if name.startswith("Constant") else fixed,
        "__doc__": doc,
        "__module__": __name__,
    }
    return type(name, (base,), members)


_ZERO, _CONSTANT = "Pads the {} with zeros.", "Pads the {} with `value`."
_REFLECT = "Pads the {} with what is inside, mirrored at the edge pixel."
_REPLICATE, _WRAP = "Pads the {} with the edge pixel.", "Pads the {} with what is at the other end."
_LINE, _PLANE = (
    "time axis by one number or [left, right]",
    "spatial axes by one number or [left, right, top, bottom]",
)
_VOLUME = "spatial axes by one number or [left, right, top, bottom, front, back]"
ZeroPad1D = _pad_layer("ZeroPad1D", Pad1D, "constant", _ZERO.format(_LINE))
ZeroPad2D = _pad_layer("ZeroPad2D", Pad2D, "constant", _ZERO.format(_PLANE))
ZeroPad3D = _pad_layer("ZeroPad3D", Pad3D, "constant", _ZERO.format(_VOLUME))
ConstantPad1D = _pad_layer("ConstantPad1D", Pad1D, "constant", _CONSTANT.format(_LINE))
ConstantPad2D = _pad_layer("ConstantPad2D", Pad2D, "constant", _CONSTANT.format(_PLANE))
ConstantPad3D = _pad_layer("ConstantPad3D", Pad3D, "constant", _CONSTANT.format(_VOLUME))
ReflectionPad1D = _pad_layer("ReflectionPad1D", Pad1D, "reflect", _REFLECT.format(_LINE))
ReflectionPad2D = _pad_layer("ReflectionPad2D", Pad2D, "reflect", _REFLECT.format(_PLANE))
ReflectionPad3D = _pad_layer("ReflectionPad3D", Pad3D, "reflect", _REFLECT.format(_VOLUME))
ReplicationPad1D = _pad_layer("ReplicationPad1D", Pad1D, "replicate", _REPLICATE.format(_LINE))
ReplicationPad2D = _pad_layer("ReplicationPad2D", Pad2D, "replicate", _REPLICATE.format(_PLANE))
ReplicationPad3D = _pad_layer("ReplicationPad3D", Pad3D, "replicate", _REPLICATE.format(_VOLUME))
CircularPad1D = _pad_layer("CircularPad1D", Pad1D, "circular", _WRAP.format(_LINE))
CircularPad2D = _pad_layer("CircularPad2D", Pad2D, "circular", _WRAP.format(_PLANE))
CircularPad3D = _pad_layer("CircularPad3D", Pad3D, "circular", _WRAP.format(_VOLUME))


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
