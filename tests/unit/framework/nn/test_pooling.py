from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F

X = jnp.arange(16.0).reshape(1, 4, 4, 1)


def flat(x):
    return np.asarray(x).ravel().tolist()


def test_layers_by_hand():
    assert flat(nn.MaxPool2D(2)(X)) == [5, 7, 13, 15]
    assert flat(nn.AvgPool2D(2)(X)) == [2.5, 4.5, 10.5, 12.5]
    assert flat(nn.AdaptiveAvgPool2D(1)(X)) == [7.5]
    assert flat(nn.AdaptiveMaxPool2D(1)(X)) == [15]
    assert flat(nn.AdaptiveMaxPool2D(2)(X)) == [5, 7, 13, 15]
    assert flat(nn.AdaptiveAvgPool2D((None, 1))(X)) == [1.5, 5.5, 9.5, 13.5]
    line = jnp.arange(6.0).reshape(1, 6, 1)
    assert flat(nn.MaxPool1D(2)(line)) == [1, 3, 5]
    assert flat(nn.AvgPool1D(3, stride=3)(line)) == [1, 4]
    assert flat(nn.AvgPool1D(2, padding=1, exclusive=False)(line)) == [0, 1.5, 3.5, 2.5]
    assert flat(nn.AdaptiveAvgPool1D(2)(line)) == [1, 4]
    assert flat(nn.AdaptiveMaxPool1D(4)(line)) == [1, 2, 4, 5]


def test_padding_behind_counts_as_far_as_padding_before() -> None:
    """Of Paddle 2.6.2, which clips a window at the size and the padding before it, be it even or not."""
    image = X + 1
    means = [3.5, 4.5, 5.5, 6, 7.5, 8.5, 9.5, 10, 11.5, 12.5, 13.5, 14, 13.5, 14.5, 15.5, 16]
    assert flat(F.avg_pool2d(image, 2, 1, "SAME", exclusive=False)) == means
    assert flat(F.avg_pool2d(image, 2, 1, [[0, 1], [0, 1]], exclusive=False)) == means
    before = F.avg_pool2d(image, 2, 1, [[1, 0], [1, 0]], exclusive=False)
    assert flat(before)[:5] == [0.25, 0.75, 1.25, 1.75, 1.5]
    line = jnp.arange(1.0, 8).reshape(1, 7, 1)
    assert flat(F.avg_pool1d(line, 2, 2, [0, 1], exclusive=False)) == [1.5, 3.5, 5.5, 7]
    assert flat(F.avg_pool1d(line, 3, 2, [0, 1], ceil_mode=True, exclusive=False)) == [2, 4, 6, 7]


def test_padding_of_max_pooling_holds_pad_value():
    negative = -jnp.ones((1, 2, 2, 1))
    assert flat(nn.MaxPool2D(3, 2, 1)(negative)) == [-1]
    assert flat(nn.MaxPool2D(3, 2, 1, pad_value=0.0)(negative)) == [0]
    assert flat(nn.MaxPool2D(3, 1, 1, pad_value=0.0)(negative)) == [0] * 4


def test_a_window_that_lies_in_the_padding_alone_is_dropped():
    # Paddle returns a third row of -3.4e38 here, and NaN for the average.
    x = jnp.arange(9.0).reshape(1, 3, 3, 1)
    assert F.max_pool2d(x, 2, 2, 1, ceil_mode=True).shape == (1, 2, 2, 1)
    assert np.isfinite(F.avg_pool2d(x, 2, 2, 1, ceil_mode=True)).all()


@pytest.mark.parametrize("output", [1, 2, 4])
def test_means_over_many_pixels_keep_their_digits(output: int):
    x = np.random.default_rng(0).random((2, 128, 64, 8), np.float32)
    rows = x.astype(np.float64).reshape(2, output, 128 // output, output, 64 // output, 8).mean((2, 4))
    found = F.adaptive_avg_pool2d(jnp.asarray(x), output)
    np.testing.assert_allclose(found, rows, rtol=2e-6)
    low = F.adaptive_avg_pool2d(jnp.asarray(x, jnp.bfloat16), output)
    assert low.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(low, np.float32), rows, rtol=1e-2)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_windows_of_16_bits_are_added_in_float32(dtype):
    """A CPU does so by itself, a GPU adds in the type that the program names."""
    x = jax.ShapeDtypeStruct((1, 64, 64, 2), dtype)
    program = jax.jit(lambda x: F.avg_pool2d(x, 16)).lower(x)
    added = re.findall(r"stablehlo\.add .*: tensor<(\w+)>", program.as_text())
    assert added == ["f32"] and program.out_info.dtype == dtype


def test_the_gradient_of_a_mean_is_spread_evenly():
    x = jnp.asarray(np.random.default_rng(0).random((2, 6, 5, 3), np.float32))
    slope = jax.grad(lambda x: (F.adaptive_avg_pool2d(x, 1) * jnp.arange(3.0)).sum())(x)
    np.testing.assert_allclose(slope, np.broadcast_to(np.arange(3) / 30, x.shape), rtol=1e-6)
    _, moved = jax.jvp(lambda x: F.adaptive_avg_pool2d(x, 1), (x,), (x,))
    np.testing.assert_allclose(moved, x.mean((1, 2), keepdims=True), rtol=1e-6)


def test_one_pixel_and_an_empty_batch():
    one = jnp.full((1, 1, 1, 2), 3.0)
    for layer in (
        nn.MaxPool2D(3, 1, 1),
        nn.AvgPool2D(3, 1, 1),
        nn.AdaptiveAvgPool2D(1),
        nn.AdaptiveAvgPool2D(2),
    ):
        assert set(flat(layer(one))) == {3.0}
    assert nn.AvgPool2D(2)(jnp.ones((0, 4, 4, 2))).shape == (0, 2, 2, 2)


def test_repr():
    assert repr(nn.MaxPool2D(3, 2, 1)) == "MaxPool2D(kernel_size=3, stride=2, padding=1)"


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: F.max_pool2d(jnp.ones((1, 2, 2, 1)), 3),
            "the pooling window is larger than the padded input",
        ),
        (
            lambda: F.avg_pool2d(jnp.ones((1, 2, 2, 1)), 3),
            "the pooling window is larger than the padded input",
        ),
        (lambda: F.max_pool2d(jnp.ones((2, 2, 1)), 2), r"max_pool2d takes \[N, H, W, C\]"),
        (lambda: F.avg_pool2d(jnp.ones((2, 2, 1)), 2), r"avg_pool2d takes \[N, H, W, C\]"),
        (lambda: F.adaptive_avg_pool2d(jnp.ones((2, 2, 1)), 1), r"adaptive_avg_pool2d takes \[N, H, W, C\]"),
        (lambda: F.max_pool2d(X, (2, 2, 2)), "kernel_size takes one number, or one for each axis"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()


def test_strides_are_above_zero():
    x, weight = jnp.ones((1, 4, 4, 1)), jnp.ones((1, 1, 2, 2))
    for run in (
        lambda: F.max_pool2d(x, 2, stride=0),
        lambda: F.avg_pool2d(x, 0),
        lambda: F.conv2d(x, weight, stride=(1, 0)),
        lambda: F.conv2d_transpose(x, weight, stride=0),
    ):
        with pytest.raises(ShapeError, match="strides must be above 0"):
            run()
