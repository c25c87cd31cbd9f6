"""Rearranging pixels and channels, and sampling at points."""

from __future__ import annotations

from typing import Any

from framework.nn import functional as core
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.face import channels_first, face
from framework.paddle.nn.functional.layout import from_last, to_last

channel_shuffle = face(core.channel_shuffle, data_format="NCHW")
grid_sample = face(core.grid_sample, channels_first)
pixel_shuffle = face(core.pixel_shuffle, data_format="NCHW")
pixel_unshuffle = face(core.pixel_unshuffle, data_format="NCHW")


@operation
def temporal_shift(
    x: Array, seg_num: int, shift_ratio: float = 0.25, name: str | None = None, data_format: str = "NCHW"
) -> Array:
    """Move a share of the channels of [N * seg_num, C, H, W] one frame on, and as many one frame back."""
    return from_last(core.temporal_shift(to_last(x, data_format), seg_num, shift_ratio), data_format)


@operation(name="affine_grid")
def _affine_grid(theta: Array, out_shape: Any, align_corners: bool) -> Array:
    return core.affine_grid(theta, (out_shape[0], *out_shape[2:], out_shape[1]), align_corners)


@checked
def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """The points that `grid_sample` reads for affine maps theta [N, 2, 3], for results [N, C, H, W]."""
    shape = out_shape.tolist() if isinstance(out_shape, Tensor) else [int(n) for n in out_shape]
    return _affine_grid(theta, shape, align_corners)
