import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn import functional as F
from framework.nn.reparam import fold_norms
from zoo.layers.conv_bn import ConvBN, ConvBNOptions


def test_names_activation_and_default_padding() -> None:
    layer = ConvBN(3, 4, (1, 7), act=F.relu, options=ConvBNOptions(names=("0", "1"))).eval()
    assert list(layer.state_shapes()) == ["0.weight", "1.weight", "1.bias", "1._mean", "1._variance"]
    layer.set_state_dict(named_weights(layer.state_shapes()))
    x = np.random.RandomState(0).standard_normal((1, 2, 9, 3)).astype(np.float32)
    out = np.asarray(layer(x))
    assert out.shape == (1, 2, 9, 4) and out.min() == 0.0 and out.max() > 0.1


def test_gamma_zero_starts_at_zero_and_one_pixel_works() -> None:
    layer = ConvBN(3, 4, 3, options=ConvBNOptions(gamma=0.0)).eval()
    np.testing.assert_array_equal(layer(jnp.ones((1, 1, 1, 3))), np.zeros((1, 1, 1, 4)))


def test_deploy_form_of_a_strided_grouped_convolution() -> None:
    def build(deploy: bool) -> ConvBN:
        return ConvBN(4, 4, 3, (2, 1), act=F.silu, options=ConvBNOptions(groups=4, deploy=deploy)).eval()  # type: ignore[return-value]

    layer, deployed = build(False), build(True)
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())
    x = np.random.RandomState(0).standard_normal((2, 5, 6, 4)).astype(np.float32)
    assert layer(x).shape == (2, 3, 6, 4)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-6)


def test_a_dilated_convolution_keeps_the_size() -> None:
    layer = ConvBN(1, 1, 3, options=ConvBNOptions(dilation=2)).eval()
    state = {"conv.weight": np.ones((1, 1, 3, 3)), "bn.weight": np.ones(1), "bn.bias": np.zeros(1)}
    layer.set_state_dict(state | {"bn._mean": np.zeros(1), "bn._variance": np.full(1, 1 - 1e-5)})
    x = np.arange(9.0, dtype=np.float32).reshape(1, 3, 3, 1)
    # Taps two pixels apart: the corners see the four corners, the edges two pixels, the middle itself.
    want = [[16, 8, 16], [8, 4, 8], [16, 8, 16]]
    np.testing.assert_allclose(layer(x)[0, ..., 0], want, rtol=1e-6)


def test_a_bias_in_training_form_is_folded_too() -> None:
    layer, deployed = (
        ConvBN(3, 4, 3, options=ConvBNOptions(bias=True, deploy=deploy)).eval() for deploy in (False, True)
    )
    assert list(layer.state_shapes())[:2] == ["conv.weight", "conv.bias"]
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(0).standard_normal((2, 5, 6, 3)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-6)
    without = ConvBN(3, 4, 3).eval()
    without.set_state_dict({k: v for k, v in layer.state_dict().items() if k != "conv.bias"})
    assert np.abs(np.asarray(without(x)) - np.asarray(layer(x))).max() > 0.01


def test_normalisations_are_folded_in_place() -> None:
    depthwise = nn.Conv2D(4, 4, 3, padding=1, groups=4, bias_attr=False)
    model = nn.Sequential(
        ConvBN(3, 4, 3, act=F.relu, options=ConvBNOptions(bias=True)),
        nn.Sequential(depthwise, nn.BatchNorm2D(4)),
        nn.BatchNorm2D(4),
    ).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    x = np.random.RandomState(0).standard_normal((2, 5, 6, 3)).astype(np.float32)
    before = np.asarray(model(x))
    assert fold_norms(model) is model
    np.testing.assert_allclose(model(x), before, atol=1e-5)
    # The last one has no convolution before it.
    assert [name for name in model.state_shapes() if name.endswith("_mean")] == ["2._mean"]
    fold_norms(model)
    np.testing.assert_allclose(model(x), before, atol=1e-5)
