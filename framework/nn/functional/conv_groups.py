"""Convolutions in groups, as a CPU computes them: XLA's own form goes through groups one by one and leaves vectors of 2
to 16 channels half empty.

Milliseconds of CPU time on 2 cores (Zen 5), float32, XLA's own form first: 56x56x128 in 32 groups of 4, 3x3:
9.8, 1.4 in blocks, 1.0 as sums; 64x64x64 to 128 in 32 groups of 2: 9.6, 1.4, 0.7; 14x14x512 in 32 groups of 16: 0.80,
0.46 in blocks; 128x128x64 in 4 groups of 16, dilated by 8: 13.9, 5.3. Groups of 8 in blocks and as sums: 56x56x24 0.42,
0.30; 14x14x152 0.26, 0.16; 7x7x368 0.19, 0.12; 28x28x256 1.0, 1.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

Convolution = Callable[[jax.Array, jax.Array], jax.Array]  # x [N, H, W, C], kernel [kh, kw, C, out]

# Terms of an output up to which a group is a sum of products of vectors that lie over all groups: 3x3 over 8 channels.
MOST_TERMS = 72
_BLOCK = 16  # channels that are convolved together, with zeros between the groups of a block
# Blocks are operations of their own, which all have to be compiled, so with many groups they grow, up to where the
# zeros take more time than XLA's own form.
_MOST_BLOCKS = 32
_WIDEST_BLOCK = 64


def groups_of_block(groups: int, channels: int) -> int:
    """How many groups of so many input channels to convolve together; 0 where XLA's own form is as good."""
    divisors = [n for n in range(1, groups + 1) if groups % n == 0]
    narrow = [n for n in divisors if n == 1 or n * channels <= _BLOCK]
    size = max(narrow[-1], next(n for n in divisors if groups // n <= _MOST_BLOCKS))
    return size if size == 1 or size * channels <= _WIDEST_BLOCK else 0


def in_blocks(x: jax.Array, kernel: jax.Array, groups: int, convolve: Convolution) -> jax.Array:
    """x [N, H, W, C], kernel [kh, kw, C / groups, out] -> [N, oh, ow, out], by convolutions without groups."""
    kh, kw, channels, outputs = kernel.shape
    together = groups_of_block(groups, channels) or 1
    blocks = groups // together
    if together > 1:
        # [kh, kw, group of the input, C, block, group of the output, out]: zeros between different groups.
        square = kernel.reshape(kh, kw, 1, channels, blocks, together, outputs // groups)
        same = jnp.eye(together, dtype=kernel.dtype)[:, None, None, :, None]
        kernel = lax.optimization_barrier((square * same).reshape(kh, kw, together * channels, outputs))
    pairs = zip(jnp.split(x, blocks, -1), jnp.split(kernel, blocks, -1), strict=True)
    return jnp.concatenate([convolve(images, weights) for images, weights in pairs], -1)


def as_sums(
    x: jax.Array, kernel: jax.Array, groups: int, views: Callable[[jax.Array], list[jax.Array]]
) -> jax.Array:
    """The same as a sum of products: each view of x, each channel of a group, times a vector over all outputs.

    Args:
        views: The kh * kw shifted views of an array like the padded x, see `shift_views`.
    """
    channels, outputs = kernel.shape[2:]
    taps = kernel.reshape(-1, channels, outputs)
    terms: list[jax.Array] = []
    for channel in range(channels):
        # Each output of a group reads the same channel; behind a barrier, or it is repeated for every view.
        repeated = jnp.repeat(x[..., channel::channels], outputs // groups, -1)
        terms.extend(
            view * taps[tap, channel] for tap, view in enumerate(views(lax.optimization_barrier(repeated)))
        )
    return functools.reduce(jnp.add, terms)
