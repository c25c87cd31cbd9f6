"""Layers over nn.functional: how they print, what they hold, and that they call their function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.paddle import nn
from framework.paddle.nn import functional as F
from framework.paddle.utils import unique_name

# What Paddle 2.6.2 prints.
PRINTED = {
    "ReLU()": "ReLU()",
    "ELU(name='e')": "ELU(alpha=1.0, name=e)",
    "Hardtanh(-2.0)": "Hardtanh(min=-2.0, max=1.0)",
    "RReLU()": "RReLU(lower=0.125, upper=0.3333333333333333, training=True, dtype=float32)",
    "PReLU(3)": "PReLU(num_parameters=3, data_format=NCHW, init=0.25, dtype=float32)",
    "MaxPool2D(3, 2, 1)": "MaxPool2D(kernel_size=3, stride=2, padding=1)",
    "AdaptiveMaxPool2D((2, 3))": "AdaptiveMaxPool2D(output_size=(2, 3), return_mask=False)",
    "CrossEntropyLoss()": "CrossEntropyLoss()",
    "Dropout(0.3)": "Dropout(p=0.3, axis=None, mode=upscale_in_train)",
    "Unfold(3)": "Unfold(kernel_size=3, dilation=1, padding=0, stride=1)",
    "PairwiseDistance(1.0, keepdim=True)": "PairwiseDistance(p=1.0, keepdim=True)",
    "PixelShuffle(2)": "PixelShuffle(upscale_factor=2)",
    "PixelShuffle(2, 'NHWC')": "PixelShuffle(upscale_factor=2, data_format=NHWC)",
    "Pad1D(1)": "Pad1D(padding=[1, 1], mode=constant, value=0.0, data_format=NCL)",
    "UpsamplingNearest2D([3, 4])": "UpsamplingNearest2D(size=[3, 4], data_format=NCHW)",
    "Linear(2, 3)": "Linear(in_features=2, out_features=3, dtype=float32)",
    "Embedding(3, 4, 1)": "Embedding(3, 4, padding_idx=1, sparse=False)",
    "Conv2D(2, 4, 3, 2, groups=2)": "Conv2D(2, 4, kernel_size=[3, 3], stride=[2, 2], groups=2, data_format=NCHW)",
    "Conv1DTranspose(2, 3, 3)": "Conv1DTranspose(2, 3, kernel_size=[3], data_format=NCL)",
    "BatchNorm1D(3)": "BatchNorm1D(num_features=3, momentum=0.9, epsilon=1e-05, data_format=NCL)",
    "LayerNorm(3)": "LayerNorm(normalized_shape=[3], epsilon=1e-05)",
    "GroupNorm(3, 6)": "GroupNorm(num_groups=3, num_channels=6, epsilon=1e-05)",
}


@pytest.mark.parametrize("call", PRINTED)
def test_layers_print_as_in_paddle(call: str) -> None:
    assert repr(eval(f"nn.{call}", {"nn": nn})) == PRINTED[call]


STATE: dict[str, dict[str, tuple[str, list[int], bool]]] = {
    "Linear(2, 3)": {"weight": ("linear_0.w_0", [2, 3], True), "bias": ("linear_0.b_0", [3], True)},
    "Conv2D(2, 4, 3, groups=2)": {
        "weight": ("conv2d_0.w_0", [4, 1, 3, 3], True),
        "bias": ("conv2d_0.b_0", [4], True),
    },
    "Conv2DTranspose(2, 4, 3, bias_attr=False)": {"weight": ("conv2d_transpose_0.w_0", [2, 4, 3, 3], True)},
    "BatchNorm2D(3)": {
        "weight": ("batch_norm2d_0.w_0", [3], True),
        "bias": ("batch_norm2d_0.b_0", [3], True),
        "_mean": ("batch_norm2d_0.w_1", [3], False),
        "_variance": ("batch_norm2d_0.w_2", [3], False),
    },
    "InstanceNorm1D(3)": {
        "scale": ("instance_norm1d_0.w_0", [3], True),
        "bias": ("instance_norm1d_0.b_0", [3], True),
    },
    "LayerNorm([2, 3])": {
        "weight": ("layer_norm_0.w_0", [6], True),
        "bias": ("layer_norm_0.b_0", [6], True),
    },
    "PReLU(3)": {"_weight": ("p_re_lu_0.w_0", [3], True)},
    "SpectralNorm([2, 3])": {
        "weight_u": ("spectral_norm_0.w_0", [2], False),
        "weight_v": ("spectral_norm_0.w_1", [3], False),
    },
}


@pytest.mark.parametrize("call", STATE)
def test_parameters_have_paddles_names(call: str) -> None:
    with unique_name.guard():
        layer = eval(f"nn.{call}", {"nn": nn})
    held = {n: (p.name, p.shape, not p.stop_gradient) for n, p in layer.named_parameters()}
    assert held == STATE[call]
    assert list(layer.state_dict()) == list(held)


def images(*shape: int) -> Any:
    return paddle.Tensor(np.random.default_rng(0).standard_normal(shape).astype("float32"))


def test_first_values_are_paddles() -> None:
    paddle.seed(0)
    conv = nn.Conv2D(64, 64, 3)
    assert abs(conv.weight.numpy().std() / np.sqrt(2 / (9 * 64)) - 1) < 0.02
    assert not conv.bias.numpy().any()
    linear = nn.Linear(300, 200)
    limit = np.sqrt(6 / 500)
    assert 0.99 * limit < np.abs(linear.weight.numpy()).max() <= limit
    table = nn.Embedding(4, 3, padding_idx=-1)
    assert not table.weight.numpy()[3].any() and table.weight.numpy()[:3].all()


def test_layers_call_their_function() -> None:
    x = images(2, 4, 6, 6)
    conv = nn.Conv2D(4, 8, 3, padding=1, padding_mode="reflect")
    padded = F.pad(x, [1, 1, 1, 1], "reflect")
    np.testing.assert_array_equal(conv(x).numpy(), F.conv2d(padded, conv.weight, conv.bias).numpy())
    np.testing.assert_array_equal(nn.MaxPool2D(2)(x).numpy(), F.max_pool2d(x, 2).numpy())
    np.testing.assert_array_equal(nn.Softmax2D()(x).numpy(), F.softmax(x, 1).numpy())
    loss = nn.MSELoss("sum")
    np.testing.assert_array_equal(loss(input=x, label=x * 2.0).numpy(), F.mse_loss(x, x * 2.0, "sum").numpy())
    dropout = nn.Dropout(0.5)
    assert (dropout(x).numpy() == 0).any()
    np.testing.assert_array_equal(dropout.eval()(x).numpy(), x.numpy())


def test_a_setting_can_be_changed_and_an_unknown_one_is_refused() -> None:
    layer = nn.LeakyReLU(0.1)
    layer._negative_slope = 0.5
    np.testing.assert_array_equal(layer(paddle.Tensor([-2.0])).numpy(), [-1.0])
    with pytest.raises(TypeError):
        nn.LeakyReLU(slope=0.1)


def test_batch_norm_trains_and_infers() -> None:
    norm = nn.BatchNorm2D(4)
    x = images(3, 4, 5, 5)
    norm(x)
    np.testing.assert_allclose(norm._mean.numpy(), 0.1 * x.numpy().mean((0, 2, 3)), atol=1e-6)
    norm.eval()
    before = norm._mean.numpy()
    y = norm(x).numpy()
    np.testing.assert_array_equal(norm._mean.numpy(), before)
    shape = (1, 4, 1, 1)
    scale = np.sqrt(norm._variance.numpy() + 1e-5).reshape(shape)
    np.testing.assert_allclose(y, (x.numpy() - before.reshape(shape)) / scale, atol=1e-5)
    with pytest.raises(ValueError, match="4 axes"):
        norm(images(3, 4))


def test_batch_norm_becomes_synchronous() -> None:
    net = nn.Sequential(nn.Conv2D(3, 4, 1), nn.BatchNorm2D(4))
    weight = net[1].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(converted[1], nn.SyncBatchNorm) and converted[1].weight is weight
    assert list(converted.state_dict()) == [
        *("0.weight", "0.bias", "1.weight", "1.bias", "1._mean", "1._variance"),
    ]
    assert converted(images(2, 3, 4, 4)).shape == [2, 4, 4, 4]


def test_spectral_norm_divides_by_the_largest_singular_value() -> None:
    layer = nn.SpectralNorm([3, 4], power_iters=30)
    weight = images(3, 4)
    normal = layer(weight).numpy()
    np.testing.assert_allclose(np.linalg.svd(normal)[1][0], 1, rtol=1e-4)


def test_a_group_norm_without_weight_keeps_ones_that_are_not_trained() -> None:
    norm = nn.GroupNorm(2, 4, weight_attr=False)
    assert norm.weight.stop_gradient and not norm.bias.stop_gradient
    y = norm(images(2, 4, 3, 3)).numpy().reshape(2, 2, -1)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(y.var(-1), 1, atol=1e-3)


def test_trainable_is_a_bool_and_a_dict_of_layers_takes_pairs() -> None:
    layer: Any = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="True or False"):
        layer.weight.trainable = "0"
    layer.weight.trainable = False
    assert layer.weight.stop_gradient
    with pytest.raises(AssertionError, match="takes layers by name"):
        nn.LayerDict().update(1)


def test_state_of_bfloat16_is_read_from_its_bits() -> None:
    layer: Any = nn.Linear(1, 2, bias_attr=False)
    layer.to(dtype="bfloat16")
    layer.set_state_dict({"weight": np.array([[0x3F80, 0x4000]], np.uint16)})
    np.testing.assert_array_equal(layer.weight.astype("float32").numpy(), [[1, 2]])
