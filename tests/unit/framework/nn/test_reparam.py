from dataclasses import dataclass

import jax
import numpy as np

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import centred, deploy_state, fuse_conv_bn, reparameterize
from zoo.layers.conv_bn import ConvBN, ConvBNOptions


@dataclass(frozen=True)
class NetConfig:
    width: int = 4
    deploy: bool = False


class Net(nn.Layer):
    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = ConvBN(3, config.width, 3, options=ConvBNOptions(deploy=config.deploy))
        self.plain = nn.Sequential(nn.Conv2D(config.width, 2, 1), nn.BatchNorm2D(2))
        self.register_buffer("shown", np.ones(2), persistable=False)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.plain(self.stem(x))


def test_centred_kernels() -> None:
    kernel = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])[None, None]
    wide = centred(kernel, 7, dilation=2)[0, 0]
    np.testing.assert_array_equal(wide[1::2, 1::2][:3, :3], kernel[0, 0])
    assert wide.sum() == kernel.sum() and wide.shape == (7, 7)
    np.testing.assert_array_equal(centred(kernel, 3), kernel)
    single = centred(np.full((2, 1, 1, 1), 3.0), 3)
    assert single[1, 0, 1, 1] == 3.0 and single.sum() == 6.0


def test_fuse_conv_bn_equals_the_two_layers() -> None:
    conv, bn = nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4, epsilon=0.1).eval()
    both = nn.Sequential(conv, bn)
    both.set_state_dict(named_weights(both.state_shapes()))
    weight, bias = fuse_conv_bn(conv.weight, conv.bias, bn)  # type: ignore[arg-type]
    x = np.random.RandomState(0).standard_normal((2, 5, 6, 3)).astype(np.float32)
    np.testing.assert_allclose(nn.functional.conv2d(x, weight, bias), both(x), atol=1e-6)


def test_reparameterize_keeps_outputs_and_what_has_one_form() -> None:
    net = Net(NetConfig()).eval()
    net.set_state_dict(named_weights(net.state_shapes()))
    deployed = reparameterize(net)
    assert set(deployed.state_dict()) == {
        "stem.conv.weight",
        "stem.conv.bias",
        *(f"plain.{name}" for name in ("0.weight", "0.bias", "1.weight", "1.bias", "1._mean", "1._variance")),
    }
    assert "shown" not in deploy_state(net)
    x = np.random.RandomState(0).standard_normal((1, 5, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), net(x), atol=1e-6)
    assert not deployed.training
    assert reparameterize(deployed) is deployed


def test_what_has_one_form_is_its_own_deploy_form() -> None:
    layer = nn.Linear(1, 1)
    assert reparameterize(layer) is layer
