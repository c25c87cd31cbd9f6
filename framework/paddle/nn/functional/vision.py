"""Rearranging pixels and channels, and sampling at points."""

from __future__ import annotations

from typing import Any

from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.layout import from_last, to_last


@operation
def pixel_shuffle(x: Array, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Array:
    """Channels into blocks of pixels: [N, C r r, H, W] -> [N, C, H r, W r]."""
    return from_last(core.pixel_shuffle(to_last(x, data_format), upscale_factor), data_format)


@operation
def pixel_unshuffle(
    x: Array, downscale_factor: int, data_format: str = "NCHW", name: str | None = None
) -> Array:
    """Blocks of pixels into channels: [N, C, H r, W r] -> [N, C r r, H, W]."""
    return from_last(core.pixel_unshuffle(to_last(x, data_format), downscale_factor), data_format)


@operation
def channel_shuffle(x: Array, groups: int, data_format: str = "NCHW", name: str | None = None) -> Array:
    """Interleave the channels of `groups` groups."""
    return from_last(core.channel_shuffle(to_last(x, data_format), groups), data_format)


@operation
def temporal_shift(
    x: Array, seg_num: int, shift_ratio: float = 0.25, name: str | None = None, data_format: str = "NCHW"
) -> Array:
    """Move a share of the channels of [N * seg_num, C, H, W] one frame on, and as many one frame back."""
    return from_last(core.temporal_shift(to_last(x, data_format), seg_num, shift_ratio), data_format)


@operation
def grid_sample(
    x: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Array:
    """Read [N, C, H, W] at the points grid [N, oh, ow, 2], (x, y) from -1 to 1; volumes with three coordinates."""
    return from_last(core.grid_sample(to_last(x, "NCHW"), grid, mode, padding_mode, align_corners), "NCHW")


@operation(name="affine_grid")
def _affine_grid(theta: Array, out_shape: Any, align_corners: bool) -> Array:
    return core.affine_grid(theta, (out_shape[0], *out_shape[2:], out_shape[1]), align_corners)


def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """The points that `grid_sample` reads for affine maps theta [N, 2, 3], for results [N, C, H, W]."""
    shape = out_shape.tolist() if isinstance(out_shape, Tensor) else [int(n) for n in out_shape]
    return _affine_grid(theta, shape, align_corners)
