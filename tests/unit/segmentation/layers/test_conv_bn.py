from dataclasses import replace

import numpy as np

from segmentation.layers.conv_bn import BIASED, NAMED, conv_bn, conv_bn_relu


def test_names_bias_and_activation() -> None:
    plain, biased = conv_bn(2, 3, 3), conv_bn_relu(2, 3, 3, options=BIASED)
    norm = [f"_batch_norm.{name}" for name in ("weight", "bias", "_mean", "_variance")]
    assert list(plain.state_shapes()) == ["_conv.weight", *norm]
    assert list(biased.state_shapes()) == ["_conv.weight", "_conv.bias", *norm]
    state = {name: np.zeros(shape, np.float32) for name, shape in biased.state_shapes().items()}
    state |= {"_conv.bias": np.array([-1, 0, 2], np.float32), "_batch_norm.weight": np.full(3, 3, np.float32)}
    state["_batch_norm._variance"] = np.full(3, 1 - 1e-5, np.float32)
    biased.set_state_dict(state)
    out = np.asarray(biased.eval()(np.ones((1, 1, 2, 2), np.float32)))
    np.testing.assert_allclose(out, [[[[0, 0, 6], [0, 0, 6]]]], rtol=1e-6)
    del state["_conv.bias"]
    plain.set_state_dict(state | {"_batch_norm.bias": np.array([-1, 0, 2], np.float32)})
    np.testing.assert_allclose(plain.eval()(np.ones((1, 1, 1, 2), np.float32)), [[[[-1, 0, 2]]]], rtol=1e-6)


def test_sizes() -> None:
    x = np.ones((1, 7, 5, 4), np.float32)
    assert conv_bn_relu(4, 6, 3, options=replace(NAMED, dilation=3)).eval()(x).shape == (1, 7, 5, 6)
    assert conv_bn(4, 4, 3, stride=2, options=replace(NAMED, groups=4)).eval()(x).shape == (1, 4, 3, 4)
