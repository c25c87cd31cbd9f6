import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.pp_lcnet import PPLCNet, PPLCNetConfig

ALONG = ((1, 2), (2, 1), (2, 1), (2, 1), (2, 1))


def test_pooled_or_as_a_map() -> None:
    pooled = build_backbone(PPLCNetConfig(pool=True))
    assert pooled.features == (Feature(1280, 0),) and eval_shapes(pooled, (2, 224, 224, 3)) == [
        (2, 1, 1, 1280)
    ]
    plain = build_backbone(PPLCNetConfig())
    assert plain.features == (Feature(64, 4), Feature(128, 8), Feature(256, 16), Feature(512, 32))
    assert eval_shapes(plain, (1, 64, 96, 3))[-1] == (1, 2, 3, 512)
    line = build_backbone(PPLCNetConfig("pplcnet_x0_25", strides=ALONG))
    assert line.features[-1] == Feature(128, (16, 2)) and eval_shapes(line, (1, 80, 160, 3))[-1] == (
        1,
        5,
        80,
        128,
    )
    assert eval_shapes(line, (1, 1, 1, 3))[-1] == (1, 1, 1, 128)


def test_names_are_upstream_s() -> None:
    names = set(PPLCNet(PPLCNetConfig("pplcnet_x0_25")).state_shapes())
    assert {
        "conv1.conv.weight",
        "blocks5.5.dw_conv.bn._mean",
        "blocks6.1.se.conv2.bias",
        "blocks2.0.pw_conv.conv.weight",
        "last_conv.weight",
    } <= names
    assert "last_conv.bias" not in names and not any(name.startswith("blocks5.5.se") for name in names)


def test_inference_takes_four_fifths_of_the_last_layer() -> None:
    model = PPLCNet(PPLCNetConfig("pplcnet_x0_25", 0, pool=True)).eval()
    state = {name: np.zeros(size) for name, size in model.state_shapes().items()}
    state |= {name: np.ones(array.shape) for name, array in state.items() if name.endswith("_variance")}
    state["blocks6.1.pw_conv.bn.bias"] = np.full(128, 3.0)  # hard swish of 3 is 3
    state["last_conv.weight"][0, 0] = 2
    model.set_state_dict(state)
    (out,) = model(np.ones((1, 32, 32, 3), np.float32))
    np.testing.assert_allclose(out[0, 0, 0, :2], [0.8 * 6, 0], rtol=1e-6)


@pytest.mark.parametrize("pool", [False, True])
def test_deploy_form(pool: bool) -> None:
    config = PPLCNetConfig("pplcnet_x0_25", 0, strides=ALONG, pool=pool)
    model, deployed = (build_backbone(config, deploy).eval() for deploy in (False, True))
    weights = named_weights(model.state_shapes())
    # With larger kernels more of the image arrives at the end.
    model.set_state_dict({name: 3 * array if array.ndim == 4 else array for name, array in weights.items()})
    deployed.set_state_dict(deploy_state(model))
    x = np.random.RandomState(0).standard_normal((3, 32, 16, 3)).astype(np.float32)
    # In float32 the trainable form itself is up to 1.1e-5 of the largest value away from this on some CPUs.
    want = in_float64(model, x)
    assert np.ptp(want, 0).max() > 0.01
    np.testing.assert_allclose(deployed(x)[-1], want, atol=1e-5 * max(1.0, np.abs(want).max()))


def in_float64(layer: nn.Layer, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(layer)
    with jax.enable_x64(True):
        wide = [{name: np.asarray(v, np.float64) for name, v in state.items()} for state in (params, buffers)]
        return np.asarray(nn.apply(graphdef, *wide, None, x.astype(np.float64))[0][-1])
