from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError


@pytest.mark.parametrize(
    ("layer", "weight"),
    [
        (nn.Conv2D(6, 4, 3, groups=2), (4, 3, 3, 3)),
        (nn.Conv2D(6, 4, (1, 5)), (4, 6, 1, 5)),
        (nn.Conv1D(6, 4, 3), (4, 6, 3)),
        (nn.Conv3D(6, 4, 3), (4, 6, 3, 3, 3)),
        (nn.Conv2DTranspose(6, 4, 3, groups=2), (6, 2, 3, 3)),
        (nn.Conv1DTranspose(6, 4, 3), (6, 4, 3)),
    ],
)
def test_weights_have_paddles_layout(layer, weight):
    assert layer.state_shapes() == {"weight": weight, "bias": (4,)}


def test_weights_start_as_paddles():
    conv = np.asarray(nn.Conv2D(64, 32, 3, groups=2).weight)
    assert conv.std() == pytest.approx(
        (2 / (9 * 64)) ** 0.5, rel=0.03
    )  # in_channels, not in_channels / groups
    transposed = np.asarray(nn.Conv2DTranspose(64, 32, 3).weight)
    assert np.abs(transposed).max() <= (6 / (9 * 96)) ** 0.5
    assert nn.Conv2D(1, 3, 1).bias.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (nn.Conv2D(3, 4, 3, stride=2, padding=1), (2, 7, 9, 3), (2, 4, 5, 4)),
        (nn.Conv2D(3, 4, 3, padding="SAME", stride=2), (2, 8, 9, 3), (2, 4, 5, 4)),
        (nn.Conv1D(3, 4, 3, stride=2), (2, 9, 3), (2, 4, 4)),
        (nn.Conv1D(3, 4, [3], stride=[2], padding="SAME"), (2, 9, 3), (2, 5, 4)),
        (nn.Conv3D(3, 4, 3, padding="SAME"), (1, 4, 5, 6, 3), (1, 4, 5, 6, 4)),
        (nn.Conv3D(3, 4, 2, padding=[1, 0, 0, 1, 0, 0]), (1, 4, 5, 6, 3), (1, 4, 5, 5, 4)),
        (nn.Conv2DTranspose(3, 4, 2, stride=2), (2, 5, 6, 3), (2, 10, 12, 4)),
        (nn.Conv2DTranspose(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 5, 6, 3), (2, 10, 12, 4)),
        (nn.Conv1DTranspose(3, 4, 4, stride=2, padding=[1]), (2, 5, 3), (2, 10, 4)),
    ],
)
def test_output_shapes(layer, shape, expected):
    assert layer(jnp.ones(shape)).shape == expected


def test_one_pixel_and_an_empty_batch():
    layer = nn.Conv2D(2, 1, 3, padding=1)
    layer.weight, layer.bias = np.ones((1, 2, 3, 3)), np.array([0.5])
    assert layer(jnp.ones((1, 1, 1, 2))).tolist() == [[[[2.5]]]]
    assert layer(jnp.ones((0, 4, 4, 2))).shape == (0, 4, 4, 1)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("reflect", [5, 6, 9, 10]), ("replicate", [4, 6, 9, 11]), ("circular", [7, 6, 9, 8])],
)
def test_padding_modes(mode, expected):
    layer = nn.Conv1D(1, 1, 3, padding=1, padding_mode=mode, bias_attr=False)
    layer.weight = np.ones((1, 1, 3))
    assert layer(jnp.array([1.0, 2.0, 3.0, 4.0])[None, :, None])[0, :, 0].tolist() == expected


def test_padding_modes_follow_the_axes():
    for padding in ([1, 2], [(1, 1), (2, 2)], [1, 1, 2, 2]):
        layer = nn.Conv2D(1, 1, 1, padding=padding, padding_mode="replicate")
        assert layer(jnp.ones((1, 4, 5, 1))).shape == (1, 6, 9, 1)


def test_repr_tells_the_geometry():
    assert repr(nn.Conv2D(3, 8, 3, 2, 1)) == (
        "Conv2D(3, 8, kernel_size=(3, 3), stride=2, padding=1, dilation=1, groups=1)"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2D(3, 4, 3, groups=2), "Conv2D: channels divide into groups"),
        (lambda: nn.Conv2D(3, 4, (3, 3, 3)), "Conv2D: kernel_size has another number of axes"),
        (lambda: nn.Conv2D(3, 4, 3, padding_mode="mirror"), "Conv2D: unknown padding_mode"),
        (
            lambda: nn.Conv2D(3, 4, 3, padding="SAME", padding_mode="reflect"),
            "padding_mode needs padding in numbers",
        ),
        (lambda: nn.Conv2D(3, 4, 3)(jnp.ones((1, 5, 5, 2))), "conv2d: input, weight and groups do not agree"),
        (lambda: nn.Conv2D(3, 4, 3)(jnp.ones((1, 2, 5, 3))), "the kernel is larger than the padded image"),
        (lambda: nn.Conv3D(3, 4, 3)(jnp.ones((1, 5, 5, 3))), "conv3d: input, weight and groups do not agree"),
        (
            lambda: nn.Conv3D(3, 4, 3, padding=[1, 1])(jnp.ones((1, 5, 5, 5, 3))),
            "padding does not fit the spatial axes",
        ),
        (
            lambda: nn.Conv2DTranspose(3, 4, 3)(jnp.ones((1, 5, 5, 2))),
            "conv2d_transpose: input, weight and groups",
        ),
        (lambda: nn.Linear(3, 4)(jnp.ones((1, 2))), "linear: last axis of x against rows of the weight"),
        (lambda: nn.functional.matmul(jnp.ones((2, 3)), jnp.ones((2, 3))), "matmul: the inner axes differ"),
        (
            lambda: nn.Conv2D(1, 1, 3, stride=[1, 2, 3])(jnp.ones((1, 5, 5, 1))),
            "stride takes",
        ),
        (
            lambda: nn.Conv2D(1, 1, 3, padding=[1, 2, 3])(jnp.ones((1, 5, 5, 1))),
            "padding does not fit the spatial axes",
        ),
        (lambda: nn.Conv2D(1, 1, 3, padding="FULL")(jnp.ones((1, 5, 5, 1))), "unknown padding"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


def test_output_size_of_transposed_convolutions():
    for axes, shape, size in (
        (1, (2, 4, 3), [8]),
        (2, (2, 4, 5, 3), [8, 10]),
        (3, (1, 2, 3, 2, 3), [4, 6, 4]),
    ):
        layer = getattr(nn, f"Conv{axes}DTranspose")(3, 2, 3, stride=2, padding=1)
        padded = getattr(nn, f"Conv{axes}DTranspose")(3, 2, 3, stride=2, padding=1, output_padding=1)
        padded.set_state_dict(layer.state_dict())
        x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)
        y = layer(x, output_size=size)
        assert y.shape == (shape[0], *size, 2) and jnp.array_equal(y, padded(x))
        assert layer(x, [n - 1 for n in size]).shape == layer(x).shape
        for wrong in ([n + 1 for n in size], [n - 2 for n in size]):
            with pytest.raises(ShapeError, match="output_size is not one that this convolution has"):
                layer(x, wrong)
        with pytest.raises(ShapeError, match="output_padding"):
            padded(x, size)
