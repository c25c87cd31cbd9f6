"""3x3 convolutions of stride 1 with half of the multiplications: Winograd's algorithm along the rows of an image.

A kernel row of 3 over 4 neighbouring outputs takes 6 products in place of 12 (Lavin and Gray, "Fast Algorithms for
Convolutional Neural Networks", 2015): the columns of the image and of the kernel are combined, the products taken as
matrices, and their results combined. Only the columns are: over both axes there would be a quarter of the products,
but ten times the error and far more memory to write and read, which on a CPU takes the gain back.

The points of the interpolation are 0, 1, -1, 1/2 and -2, of the least error in float32 (Barabasz et al., "Error
analysis and improving the accuracy of Winograd convolution for deep neural networks", 2020): 5e-6 where the plain sum
has 1.5e-6, for outputs of size 1 and 256 channels; 0, 1, -1, 2 and -2 have 9e-6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

OUTPUTS, TAPS = 4, 3  # columns of the image that are made together, columns of the kernel
_POINTS = (0.0, 1.0, -1.0, 0.5, -2.0)  # and infinity

# On 2 cores (Zen 5, 32 MB of cache): 3x3 at 64x128 from 256 to 64 channels takes 0.6 of the time of the plain form, 512
# to 128 at 32x64 0.65, 32 images of 28x28x128 0.7, PP-LiteSeg as a whole 0.88.
_LEAST_PIXELS = 1500  # of all images: with fewer, combining the kernel takes what the products save
_LEAST_CHANNELS = 32  # in and out: with fewer, reading and writing take longer than the products
_LEAST_PRODUCTS = 12_000_000  # pixels * in * out: below, the handful of small operations takes the time
# Pixels and products where the kernel is combined once: 28x28x128 to 128 channels takes 0.7 of the time of the plain
# form, 24x24x64 to 64 0.74, 20x20x256 to 256 0.68, 14x14x256 to 256 0.95.
_LEAST_FOLDED = (350, 2_000_000)
# Pixels of whole blocks for each pixel of a dilated convolution's result up to which it is faster so: 64x64x128 to 128,
# dilated by 2, takes 0.67 of the time of the plain form, 40x40x128 to 256 by 5 0.76, 128x128x64 to 64 by 4 0.87.
MOST_FILLED = 1.3
# Values of the combined columns and of the products that are in memory at once: above, they leave the cache, and the
# C library maps fresh pages for them in every call (32 x 56 x 56 x 64: 58 ms at once, 18 in pairs of images; plain 25).
_MOST_VALUES = 6_000_000
_FEW_VALUES = 2_500_000  # in a loop over images


def _values(channels: int, outputs: int) -> float:
    """Of the combined columns and of the products, for each pixel."""
    return (channels + TAPS * outputs) * (OUTPUTS + TAPS - 1) / OUTPUTS


def worthwhile(channels: int, outputs: int, folds: bool = False) -> tuple[int, int]:
    """The least and the most pixels, of all images of the result together, that are faster so on a CPU than by a plain
    convolution. The least may be above the most. `folds`: the kernel is combined once for all calls."""
    if min(channels, outputs) < _LEAST_CHANNELS:
        return 1, 0
    pixels, products = _LEAST_FOLDED if folds else (_LEAST_PIXELS, _LEAST_PRODUCTS)
    least = max(pixels, -(-products // (channels * outputs)))
    return least, int(_MOST_VALUES / _values(channels, outputs))


def images_at_once(images: int, pixels: int, channels: int, outputs: int, folds: bool = False) -> int:
    """How many of `images`, of so many pixels each, to convolve in one go on a CPU; 0: the plain form is as fast."""
    least, most = worthwhile(channels, outputs, folds)
    if least > most or images * pixels < least:
        return 0
    if images * pixels <= most:
        return images
    few = int(_FEW_VALUES / _values(channels, outputs) / pixels) or int(pixels <= most)
    return next((n for n in range(few, 0, -1) if images % n == 0), 0)


@functools.cache
def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(columns [6, 6], kernel [6, 3], results [4, 6]): y = results @ ((kernel @ w) * (columns @ x)) are the 4 sums
    y[q] = x[q] w[0] + x[q + 1] w[1] + x[q + 2] w[2].

    Toom and Cook: the two sequences as polynomials, multiplied at the points and interpolated; transposed.
    """
    size = OUTPUTS + TAPS - 1
    points = np.array(_POINTS)
    others = [np.delete(points, i) for i in range(size - 1)]
    scale = [math.prod(point - rest) for point, rest in zip(points, others)]
    columns = np.zeros((size, size))
    for i, rest in enumerate(others):
        columns[i, :-1] = np.poly(rest)[::-1]  # the polynomial that is 0 at the other points
    columns[-1] = np.poly(points)[::-1]
    kernel, results = np.zeros((size, TAPS)), np.zeros((size, OUTPUTS))
    kernel[:-1] = np.vander(points, TAPS, increasing=True) / np.array(scale)[:, None]
    results[:-1] = np.vander(points, OUTPUTS, increasing=True)
    kernel[-1, -1] = results[-1, -1] = 1.0  # at infinity
    return columns, kernel, results.T


def _mix(table: np.ndarray, arrays: Sequence[jax.Array]) -> jax.Array:
    """[rows, ...]: row r is the sum of the arrays, array i times table[r, i]. One loop for all rows: it compiles in a
    third of the time of six, and behind a barrier, or XLA would compute the sums again for whatever reads them."""
    columns = [jnp.asarray(column, arrays[0].dtype) for column in table.T]
    parts = [column.reshape(-1, *[1] * array.ndim) * array for column, array in zip(columns, arrays)]
    return lax.optimization_barrier(functools.reduce(jnp.add, parts))


def blocks_of(width: int, apart: int = 1) -> int:
    """How many times OUTPUTS columns, which stand so far apart, cover the width, which may be symbolic."""
    return (width + OUTPUTS * apart - 1) // (OUTPUTS * apart)


def convolve(
    x: jax.Array, kernel: jax.Array, out_hw: tuple[int, int], at_once: int | None, apart: int = 1
) -> jax.Array:
    """x [N, H + 2, apart * (4 * blocks + 2), C], padded to whole blocks of columns, and kernel [3, 3, C, O], whose
    columns stand `apart`, -> [N, H, W, O], `at_once` images at a time, which divides N, or all of them. Sizes may be
    symbolic."""
    # [3, C, 3 * O]: the rows of the kernel side by side, as one product multiplies them.
    by_column = lax.optimization_barrier(jnp.concatenate(list(kernel), -1))
    kernels = _mix(matrices()[1], list(by_column))
    if at_once is None or at_once == x.shape[0]:
        return _convolve_images(x, kernels, out_hw, apart)
    groups = x.reshape(-1, at_once, *x.shape[1:])
    y = lax.map(lambda images: _convolve_images(images, kernels, out_hw, apart), groups)
    return y.reshape(-1, *y.shape[2:])


def _convolve_images(x: jax.Array, kernels: jax.Array, out_hw: tuple[int, int], apart: int) -> jax.Array:
    (height, width), (n, rows, _, channels) = out_hw, x.shape
    blocks = blocks_of(width, apart)
    from_columns, _, to_results = matrices()
    if (
        apart > 1
    ):  # columns of one kernel side by side as channels, so that a block is a slice as without dilation
        x = x.reshape(n, rows, blocks * OUTPUTS + TAPS - 1, apart * channels)
    views = [
        lax.slice(x, (0, 0, j, 0), (n, rows, j + (blocks - 1) * OUTPUTS + 1, x.shape[3]), (1, 1, OUTPUTS, 1))
        for j in range(OUTPUTS + TAPS - 1)
    ]
    if apart > 1:
        views = [view.reshape(n, rows, blocks * apart, channels) for view in views]
    # As [6, n, rows, blocks, C]: to flatten them, jax would have to reason about products of symbolic sizes.
    products = jnp.einsum("tnhwc,tck->tnhwk", _mix(from_columns, views), kernels)
    products = products.reshape(*products.shape[:4], TAPS, kernels.shape[2] // TAPS)
    products = lax.optimization_barrier(products)  # behind the reshape, which would be a copy
    # Row i of the kernel is for the output that stands i rows above.
    sums = functools.reduce(jnp.add, [products[:, :, i : i + height, :, i] for i in range(TAPS)])
    shape = (OUTPUTS, *[1] * (apart > 1), 1)
    factors = [jnp.asarray(column, x.dtype).reshape(shape) for column in to_results.T]
    if apart > 1:
        sums = sums.reshape(*sums.shape[:3], blocks, apart, sums.shape[-1])
    # One pass that writes the 4 columns in their order: a stack of 4 arrays would be copied.
    y = functools.reduce(jnp.add, [total[:, :, :, None] * factor for total, factor in zip(sums, factors)])
    return lax.slice_in_dim(y.reshape(n, height, blocks * OUTPUTS * apart, y.shape[-1]), 0, width, axis=2)
