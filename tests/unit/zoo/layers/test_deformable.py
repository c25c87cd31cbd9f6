import numpy as np

from framework.interop.named_weights import named_weights
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBNOptions
from zoo.layers.deformable import DeformableConv, DeformableConvBN


def test_it_starts_as_half_of_a_plain_convolution() -> None:
    conv = DeformableConv(2, 3, 3, stride=2)
    x = np.random.RandomState(0).standard_normal((1, 7, 6, 2)).astype(np.float32)
    plain = F.conv2d(x, conv.conv_dcn.weight, stride=2, padding=1)
    np.testing.assert_allclose(conv(x), plain / 2, atol=1e-6)


def test_offsets_move_the_taps_and_weights_scale_them() -> None:
    """All taps one pixel to the right, all full: the same as the convolution of the image moved left."""
    conv = DeformableConv(1, 1, 3)
    bias = np.concatenate(
        [np.tile([0.0, 1.0], 9), np.full(9, 50.0)]
    )  # down, right; then what each tap counts
    conv.set_state_dict({**conv.state_dict(), "conv_offset.bias": bias.astype(np.float32)})
    x = np.random.RandomState(0).standard_normal((1, 5, 6, 1)).astype(np.float32)
    moved = np.concatenate([x[:, :, 1:], np.zeros_like(x[:, :, :1])], axis=2)
    # The column left of the image is no tap's here: it is pixel 0 of the moved image's padding.
    want = F.conv2d(moved, conv.conv_dcn.weight, padding=1)
    np.testing.assert_allclose(np.asarray(conv(x))[:, :, 1:], np.asarray(want)[:, :, 1:], atol=1e-5)


def test_deploy_form() -> None:
    layer, deployed = (
        DeformableConvBN(3, 4, 3, 2, act=F.relu, options=ConvBNOptions(deploy=d)).eval()
        for d in (False, True)
    )
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(1).standard_normal((1, 9, 8, 3)).astype(np.float32)
    out = np.asarray(layer(x))
    assert out.shape == (1, 5, 4, 4) and out.std() > 0.05
    np.testing.assert_allclose(deployed(x), out, atol=1e-5)
