import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from zoo.contracts import Feature
from zoo.vision.mobilenet_v1_enhance import MobileNetV1Enhance, MobileNetV1EnhanceConfig


def shape(model: nn.Layer, x: tuple[int, ...]) -> tuple[int, ...]:
    graphdef, params, buffers = nn.abstract(model.eval())
    image = jax.ShapeDtypeStruct(x, np.float32)
    (row,) = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0], params, buffers, image)
    return row.shape


def test_one_row_an_eighth_of_the_width() -> None:
    model = MobileNetV1Enhance(MobileNetV1EnhanceConfig())
    assert model.features == (Feature(512, (48, 8)),)
    assert shape(model, (2, 48, 320, 3)) == (2, 1, 40, 512)
    assert shape(model, (1, 32, 16, 3)) == (1, 1, 2, 512)
    names = set(model.state_shapes())
    assert {
        "conv1._conv.weight",
        "block_list.12._depthwise_conv._batch_norm._mean",
        "block_list.11._se.conv2.bias",
        "block_list.0._pointwise_conv._conv.weight",
    } <= names
    assert not any(name.startswith("block_list.10._se") for name in names)


def test_other_heights_are_refused() -> None:
    model = MobileNetV1Enhance(MobileNetV1EnhanceConfig())
    with pytest.raises(ShapeError, match=r"one height[\s\S]*4 rows[\s\S]*48 pixels high"):
        shape(model, (1, 64, 64, 3))


def test_deploy_form() -> None:
    model, deployed = (
        MobileNetV1Enhance(MobileNetV1EnhanceConfig(deploy=deploy)).eval() for deploy in (False, True)
    )
    model.set_state_dict(named_weights(model.state_shapes()))
    deployed.set_state_dict(deploy_state(model))
    x = np.random.RandomState(0).standard_normal((1, 48, 32, 3)).astype(np.float32)
    want = np.asarray(model(x)[0])
    assert np.ptp(want, 2).max() > 0.001
    np.testing.assert_allclose(deployed(x)[0], want, atol=1e-6)
