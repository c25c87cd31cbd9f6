from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import InputError, ShapeError
from framework.nn import initializer as I

CHANNELS_FIRST = [
    lambda: nn.Conv2D(1, 1, 1, data_format="NCHW"),
    lambda: nn.Conv1D(1, 1, 1, data_format="NCL"),
    lambda: nn.Conv2DTranspose(1, 1, 1, data_format="NCHW"),
    lambda: nn.BatchNorm2D(1, data_format="NCHW"),
    lambda: nn.GroupNorm(1, 1, data_format="NCHW"),
    lambda: nn.InstanceNorm2D(1, data_format="NCHW"),
    lambda: nn.MaxPool2D(2, data_format="NCHW"),
    lambda: nn.AvgPool2D(2, data_format="NCHW"),
    lambda: nn.AdaptiveAvgPool2D(1, data_format="NCHW"),
    lambda: nn.Upsample(scale_factor=2, data_format="NCHW"),
    lambda: nn.Pad2D(1, data_format="NCHW"),
    lambda: nn.PixelShuffle(2, data_format="NCHW"),
    lambda: nn.Dropout2D(data_format="NCHW"),
    lambda: nn.PReLU(data_format="NCHW"),
]


@pytest.mark.parametrize("make", CHANNELS_FIRST)
def test_channels_first_formats_are_refused(make):
    with pytest.raises(
        ShapeError, match=r"activations are channels-last(.|\n)*data_format='NC(.|\n)*weights keep"
    ):
        make()


def test_channels_last_formats_are_accepted():
    nn.Conv2D(1, 1, 1, data_format="NHWC")
    nn.Conv1D(1, 1, 1, data_format="NLC")


def test_identity_takes_anything():
    assert nn.Identity(3, width=4)("x") == "x"


def test_linear_starts_as_paddles():
    layer = nn.Linear(300, 200)
    assert layer.bias.tolist() == [0.0] * 200
    assert np.asarray(layer.weight).std() == pytest.approx((2 / 500) ** 0.5, rel=0.02)
    assert nn.Linear(2, 2, weight_attr=I.Constant(3.0)).weight.tolist() == [[3.0, 3.0]] * 2


def test_the_padding_row_of_an_embedding_is_zero_and_stays():
    layer = nn.Embedding(4, 3, padding_idx=-1)
    assert layer.weight[3].tolist() == [0.0] * 3 and np.abs(layer.weight[:3]).min() > 0
    layer.weight = np.ones((4, 3))
    assert layer(jnp.array([3, 0])).tolist() == [[0.0] * 3, [1.0] * 3]
    _, grads = nn.value_and_grad(layer, lambda m, ids: m(ids).sum())(jnp.array([3, 0, 0]))
    assert grads["weight"][:, 0].tolist() == [2.0, 0.0, 0.0, 0.0]


def test_errors_of_embeddings():
    with pytest.raises(ShapeError, match=r"Embedding: padding_idx lies outside the table(.|\n)*-4 to 3"):
        nn.Embedding(4, 3, padding_idx=4)
    with pytest.raises(ShapeError, match="embedding takes integers"):
        nn.Embedding(4, 3)(jnp.zeros(2))
    for ids in ([1, 4], [-1, 2], [2**31 - 1, 0]):
        with pytest.raises(InputError, match=r"an id has no row in the table(.|\n)*0 to 3"):
            nn.Embedding(4, 3)(jnp.array(ids))
    assert jax.jit(nn.Embedding(4, 3))(jnp.array([1, 9])).shape == (2, 3)
    assert nn.Embedding(4, 3)(jnp.zeros((0, 2), int)).shape == (0, 2, 3)
    with pytest.raises(ShapeError, match="padding_idx lies outside"):
        nn.functional.embedding(jnp.array([0]), jnp.zeros((2, 2)), padding_idx=2)


def test_flatten_joins_axes():
    assert nn.Flatten()(jnp.ones((2, 3, 4, 5))).shape == (2, 60)
    assert nn.Flatten(0, 1)(jnp.ones((2, 3, 4))).shape == (6, 4)
    assert nn.Flatten()(jnp.ones((0, 3, 4))).shape == (0, 12)


@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
def test_dropout_modes(mode):
    layer = nn.Dropout(0.25, mode=mode)
    out = np.asarray(layer(jnp.ones((100, 100))))
    kept = 1 / 0.75 if mode == "upscale_in_train" else 1.0
    np.testing.assert_allclose(np.unique(out), [0.0, kept], rtol=1e-6)
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert layer.eval()(jnp.ones(1)).tolist() == [1.0 if mode == "upscale_in_train" else 0.75]


def test_dropout_draws_once_along_axes_that_are_not_named():
    out = np.asarray(nn.Dropout(0.5, axis=0)(jnp.ones((50, 7))))
    assert all(len(set(row)) == 1 for row in out.tolist()) and 0 < (out == 0).mean() < 1
    images = np.asarray(nn.Dropout2D(0.5)(jnp.ones((4, 3, 3, 8))))
    assert ((images == images[:, :1, :1]).all((1, 2))).all() and 0 < (images == 0).mean() < 1


def test_the_ends_of_dropout():
    assert nn.functional.dropout(jnp.ones(3), 0.0).tolist() == [1.0] * 3
    assert nn.functional.dropout(jnp.ones(3), 1.0).tolist() == [0.0] * 3
    x = jnp.ones((2, 0))
    assert nn.functional.dropout(x, 0.5).shape == (2, 0)


def test_dropout_takes_a_key():
    x = jnp.ones(64)
    one, two = (nn.functional.dropout(x, 0.5, key=jax.random.key(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_errors_of_dropout():
    with pytest.raises(ShapeError, match=r"unknown dropout mode(.|\n)*downscale_in_infer"):
        nn.functional.dropout(jnp.ones(1), mode="other")
    with pytest.raises(ShapeError, match="dropout: p is a probability"):
        nn.functional.dropout(jnp.ones(1), 1.5)
