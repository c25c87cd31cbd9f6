"""deform_conv2d, Paddle's: a convolution whose taps move."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.nn.functional.conv import pair

Size = int | Sequence[int]


def deform_conv2d(
    x: jax.Array,
    offset: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    mask: jax.Array | None = None,
) -> jax.Array:
    """[N, H', W', out]: a convolution that reads each tap `offset` beside its place, between pixels, 0 outside.

    Source: Dai et al. 2017, https://arxiv.org/abs/1703.06211; with `mask` Zhu et al. 2018,
    https://arxiv.org/abs/1811.11168

    Args:
        x: [N, H, W, in]. weight: [out, in / groups, kh, kw]. bias: [out].
        offset: [N, H', W', 2 * deformable_groups * kh * kw] in pixels: for each group of channels and each tap, row by
            row, first down and then right.
        mask: [N, H', W', deformable_groups * kh * kw], what taps are multiplied by.

    Raises:
        ShapeError: shapes do not fit.
    """
    steps = (pair(stride, "stride"), pair(padding, "padding"), pair(dilation, "dilation"))
    if x.ndim != 4 or weight.ndim != 4:
        raise ShapeError(
            "the operands have other ranks",
            where="deform_conv2d",
            received=f"x {list(x.shape)}, weight {list(weight.shape)}",
            allowed="x [N, H, W, in], weight [out, in / groups, kh, kw]",
        )
    kernel = weight.shape[2:]
    out_hw = tuple(
        (size + 2 * pad - spread * (taps - 1) - 1) // step + 1
        for size, taps, step, pad, spread in zip(x.shape[1:3], kernel, *steps, strict=True)
    )
    taps = deformable_groups * kernel[0] * kernel[1]
    expected = {"offset": (x.shape[0], *out_hw, 2 * taps), "mask": (x.shape[0], *out_hw, taps)}
    for key, value in (("offset", offset), ("mask", mask)):
        if value is not None and value.shape != expected[key]:
            raise ShapeError(
                f"the {key} has another shape",
                where=f"deform_conv2d.{key}",
                received=list(value.shape),
                allowed=list(expected[key]),
                fix="maps are channels-last here: .transpose(0, 2, 3, 1)",
            )
    channels = x.shape[3]
    if channels != weight.shape[1] * groups or channels % deformable_groups or weight.shape[0] % groups:
        raise ShapeError(
            "channels do not divide into groups",
            where="deform_conv2d",
            received=f"x {list(x.shape)}, weight {list(weight.shape)}, groups {groups}, "
            f"deformable_groups {deformable_groups}",
            allowed="in and out multiples of groups, in of deformable_groups, weight [out, in / groups, kh, kw]",
        )
    out = _deform_conv2d(x, offset, weight, mask, steps=steps, spread=deformable_groups, groups=groups)
    return out if bias is None else out + bias


@functools.partial(jax.jit, static_argnames=("steps", "spread", "groups"))
def _deform_conv2d(
    x: jax.Array,
    offset: jax.Array,
    weight: jax.Array,
    mask: jax.Array | None,
    *,
    steps: tuple[tuple[int, int], ...],
    spread: int,
    groups: int,
) -> jax.Array:
    (n, height, width, channels), (out, _, *kernel) = x.shape, weight.shape
    stride, padding, dilation = steps
    rows, columns = offset.shape[1:3]
    moved = offset.reshape(n, rows, columns, spread, *kernel, 2)
    starts = [jnp.arange(count) * step - pad for count, step, pad in zip((rows, columns), stride, padding)]
    reach = [np.arange(taps) * step for taps, step in zip(kernel, dilation)]
    y = moved[..., 0] + (starts[0][:, None, None, None, None] + reach[0][:, None]).astype(moved.dtype)
    x_ = moved[..., 1] + (starts[1][:, None, None, None] + reach[1]).astype(moved.dtype)
    # One row a pixel, and one more of zeros for what lies outside: [N, spread, H * W + 1, C / spread].
    pixels = x.reshape(n, height * width, spread, -1).swapaxes(1, 2)
    pixels = jnp.pad(pixels, ((0, 0), (0, 0), (0, 1), (0, 0)))
    top, left = jnp.floor(y), jnp.floor(x_)
    total: jax.Array | float = 0.0
    for down in (0, 1):
        for right in (0, 1):
            row, column = (top + down).astype(jnp.int32), (left + right).astype(jnp.int32)
            share = (1 - jnp.abs(y - (top + down))) * (1 - jnp.abs(x_ - (left + right)))
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = jnp.where(inside, row * width + column, height * width)
            place = jnp.moveaxis(place, 3, 1).reshape(n, spread, -1)
            found = jnp.take_along_axis(pixels, place[..., None], axis=2)
            found = found.reshape(n, spread, rows, columns, -1, channels // spread)
            share = share if mask is None else share * mask.reshape(share.shape)
            total = total + found * jnp.moveaxis(share, 3, 1).reshape(*found.shape[:-1], 1)
    assert isinstance(total, jax.Array)
    taps = jnp.moveaxis(total, 1, 4).reshape(n, rows, columns, -1, groups, channels // groups)
    kernels = weight.reshape(groups, out // groups, channels // groups, -1)
    return jnp.einsum("nhwkgc,gock->nhwgo", taps, kernels).reshape(n, rows, columns, out)
