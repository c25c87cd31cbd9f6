"""Moving values between channels and pixels: pixel shuffle, channel shuffle, unfold and fold. Channels-last.

The order of channels is Paddle's, so a convolution before or after takes an official weight unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional.common import check_data_format
from framework.nn.functional.conv import Pads, Pair, out_size, pair, shift_views
from framework.nn.functional.lowering import jitted


@jitted("upscale_factor")
def pixel_shuffle(x: jax.Array, upscale_factor: int) -> jax.Array:
    """[N, H, W, C * r * r] -> [N, H * r, W * r, C]. Source: Shi et al. 2016."""
    factor = upscale_factor
    if x.ndim != 4 or x.shape[3] % factor**2:
        raise ShapeError(
            "pixel_shuffle: channels divide into blocks",
            received=x.shape,
            allowed=f"[N, H, W, a multiple of {factor**2}]",
        )
    n, h, w, c = x.shape
    out = c // factor**2
    blocks = x.reshape(n, h, w, out, factor, factor).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, h * factor, w * factor, out)


@jitted("downscale_factor")
def pixel_unshuffle(x: jax.Array, downscale_factor: int) -> jax.Array:
    """[N, H * r, W * r, C] -> [N, H, W, C * r * r], the inverse of `pixel_shuffle`."""
    factor = downscale_factor
    if x.ndim != 4 or x.shape[1] % factor or x.shape[2] % factor:
        raise ShapeError(
            "pixel_unshuffle: height and width divide into blocks",
            received=x.shape,
            allowed=f"[N, H, W, C] with H and W multiples of {factor}",
        )
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // factor, factor, w // factor, factor, c).transpose(0, 1, 3, 5, 2, 4)
    return blocks.reshape(n, h // factor, w // factor, c * factor**2)


@jitted("groups")
def channel_shuffle(x: jax.Array, groups: int) -> jax.Array:
    """Interleave the channels of `groups` groups. x [..., C]. Source: Zhang et al. 2018 (ShuffleNet)."""
    if x.shape[-1] % groups:
        raise ShapeError(
            "channel_shuffle: channels divide into groups",
            received=x.shape[-1],
            allowed=f"a multiple of {groups}",
        )
    grouped = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    return jnp.swapaxes(grouped, -1, -2).reshape(x.shape)


@jitted("seg_num", "shift_ratio", "data_format")
def temporal_shift(
    x: jax.Array, seg_num: int, shift_ratio: float = 0.25, data_format: str = "NHWC"
) -> jax.Array:
    """Move a share of the channels of a video one frame on, and as many one frame back; zeros come in.

    x [N * seg_num, H, W, C]: the frames of a video follow one another. Source: Lin et al. 2019 (TSM).
    """
    check_data_format(data_format, "temporal_shift")
    if x.ndim != 4 or x.shape[0] % seg_num or not 0 <= shift_ratio <= 0.5:
        raise ShapeError(
            "temporal_shift: the frames divide into videos, and at most half of the channels moves each way",
            received=f"x {x.shape}, seg_num {seg_num}, shift_ratio {shift_ratio}",
            allowed="[N * seg_num, H, W, C], shift_ratio 0 to 0.5",
        )
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    first, second = int(x.shape[3] * shift_ratio), int(x.shape[3] * 2 * shift_ratio)
    zeros = jnp.zeros_like(frames[:, :1])
    later = jnp.concatenate([zeros, frames[:, :-1]], 1)[..., :first]
    earlier = jnp.concatenate([frames[:, 1:], zeros], 1)[..., first:second]
    return jnp.concatenate([later, earlier, frames[..., second:]], -1).reshape(x.shape)


def _window_pads(paddings: int | Sequence[int]) -> Pads:
    """Paddle's order for unfold and fold: p, [ph, pw] or [top, left, bottom, right]."""
    if isinstance(paddings, int):
        return (paddings, paddings), (paddings, paddings)
    if len(paddings) == 2:
        return (paddings[0], paddings[0]), (paddings[1], paddings[1])
    if len(paddings) == 4:
        return (paddings[0], paddings[2]), (paddings[1], paddings[3])
    raise ShapeError(
        "padding of unfold and fold", received=paddings, allowed="p, [ph, pw] or [top, left, bottom, right]"
    )


@jitted("kernel", "strides", "pads", "dilations")
def _unfold(x: jax.Array, kernel: Pair, strides: Pair, pads: Pads, dilations: Pair) -> jax.Array:
    n, h, w, c = x.shape
    oh, ow = out_size((h, w), kernel, strides, dilations, pads)
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (*pads[0], 0), (*pads[1], 0), (0, 0, 0)])
    views = shift_views(x, kernel, strides, dilations, (oh, ow))
    return jnp.stack(views, -1).reshape(n, oh * ow, c * kernel[0] * kernel[1])


def unfold(
    x: jax.Array,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
) -> jax.Array:
    """The windows of x [N, H, W, C] as rows: [N, windows, C * kh * kw].

    A row runs over channel, then kernel row, then kernel column, as in Paddle, whose result is the transpose
    [N, C * kh * kw, windows].
    """
    if x.ndim != 4:
        raise ShapeError("unfold takes [N, H, W, C]", received=x.shape, allowed="4 axes")
    return _unfold(
        x, pair(kernel_sizes, "kernel_sizes"), pair(strides), _window_pads(paddings), pair(dilations)
    )


@jitted("size", "kernel", "strides", "pads", "dilations")
def _fold(x: jax.Array, size: Pair, kernel: Pair, strides: Pair, pads: Pads, dilations: Pair) -> jax.Array:
    n = x.shape[0]
    oh, ow = out_size(size, kernel, strides, dilations, pads)
    taps = x.reshape(n, oh, ow, -1, kernel[0], kernel[1])
    height, width = size[0] + sum(pads[0]), size[1] + sum(pads[1])
    total = jnp.zeros((n, height, width, taps.shape[3]), x.dtype)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilations[0], j * dilations[1]
            edges = [
                (0, 0, 0),
                (top, height - top - (oh - 1) * strides[0] - 1, strides[0] - 1),
                (left, width - left - (ow - 1) * strides[1] - 1, strides[1] - 1),
                (0, 0, 0),
            ]
            total = total + lax.pad(taps[..., i, j], jnp.zeros((), x.dtype), edges)
    return total[:, pads[0][0] : pads[0][0] + size[0], pads[1][0] : pads[1][0] + size[1]]


def fold(
    x: jax.Array,
    output_sizes: int | Sequence[int],
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
) -> jax.Array:
    """Sum windows [N, windows, C * kh * kw] back into [N, H, W, C]; where windows overlap their values add up."""
    size, kernel = pair(output_sizes, "output_sizes"), pair(kernel_sizes, "kernel_sizes")
    steps, pads, dilation = pair(strides), _window_pads(paddings), pair(dilations)
    oh, ow = out_size(size, kernel, steps, dilation, pads)
    if x.ndim != 3 or x.shape[1] != oh * ow or x.shape[2] % (kernel[0] * kernel[1]):
        raise ShapeError(
            "fold: windows and sizes do not agree",
            received=x.shape,
            allowed=f"[N, {oh * ow}, a multiple of {kernel[0] * kernel[1]}]",
        )
    return _fold(x, size, kernel, steps, pads, dilation)
