import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from framework.io.named_weights import named_weights
from tests.family import family
from zoo.contracts import build_backbone
from zoo.layers.reparam import deploy_state
from zoo.vision.pp_lcnet import VARIANTS, PPLCNet, PPLCNetClassifier, PPLCNetClassifierConfig, PPLCNetConfig

ALONG = ((1, 2), (2, 1), (2, 1), (2, 1), (2, 1))


def shapes(model: nn.Layer, x: tuple[int, ...]) -> list[tuple[int, ...]]:
    graphdef, params, buffers = nn.abstract(model.eval())
    image = jax.ShapeDtypeStruct(x, np.float32)
    out = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0], params, buffers, image)
    return [leaf.shape for leaf in jax.tree.leaves(out)]


def shape(model: nn.Layer, x: tuple[int, ...]) -> tuple[int, ...]:
    (only,) = shapes(model, x)
    return only


def test_pooled_or_as_a_map() -> None:
    assert shape(PPLCNet(PPLCNetConfig()), (2, 224, 224, 3)) == (2, 1, 1, 1280)
    plain = PPLCNet(PPLCNetConfig(last_channels=None))
    assert plain.out_channels == 512 and shape(plain, (1, 64, 96, 3)) == (1, 2, 3, 512)
    line = PPLCNet(PPLCNetConfig(scale=0.25, strides=ALONG, last_channels=None))
    assert line.out_channels == 128 and shape(line, (1, 80, 160, 3)) == (1, 5, 80, 128)
    assert shape(line, (1, 1, 1, 3)) == (1, 1, 1, 128)


def test_names_are_upstream_s() -> None:
    names = set(PPLCNet(PPLCNetConfig(scale=0.25)).state_shapes())
    assert {
        "conv1.conv.weight",
        "blocks5.5.dw_conv.bn._mean",
        "blocks6.1.se.conv2.bias",
        "blocks2.0.pw_conv.conv.weight",
        "last_conv.weight",
    } <= names
    assert "last_conv.bias" not in names and not any(name.startswith("blocks5.5.se") for name in names)


def test_inference_takes_four_fifths_of_the_last_layer() -> None:
    model = PPLCNet(PPLCNetConfig(scale=0.25, last_channels=1)).eval()
    state = {name: np.zeros(size) for name, size in model.state_shapes().items()}
    state |= {name: np.ones(array.shape) for name, array in state.items() if name.endswith("_variance")}
    state["blocks6.1.pw_conv.bn.bias"] = np.full(128, 3.0)  # hard swish of 3 is 3
    state["last_conv.weight"][0, 0] = 2
    model.set_state_dict(state)
    np.testing.assert_allclose(model(np.ones((1, 32, 32, 3), np.float32)), [[[[0.8 * 6]]]], rtol=1e-6)


@pytest.mark.parametrize("last_channels", [None, 32])
def test_deploy_form(last_channels: int | None) -> None:
    config = PPLCNetConfig(scale=0.25, strides=ALONG, last_channels=last_channels)
    model, deployed = (PPLCNet(config, deploy).eval() for deploy in (False, True))
    weights = named_weights(model.state_shapes())
    # With larger kernels more of the image arrives at the end.
    model.set_state_dict({name: 3 * array if array.ndim == 4 else array for name, array in weights.items()})
    deployed.set_state_dict(deploy_state(model))
    x = np.random.RandomState(0).standard_normal((3, 32, 16, 3)).astype(np.float32)
    # In float32 the trainable form itself is up to 1.1e-5 of the largest value away from this on some CPUs.
    want = in_float64(model, x)
    assert np.ptp(want, 0).max() > 0.01
    np.testing.assert_allclose(deployed(x), want, atol=1e-5 * max(1.0, np.abs(want).max()))


def in_float64(layer: nn.Layer, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(layer)
    with jax.enable_x64(True):
        wide = [{name: np.asarray(v, np.float64) for name, v in state.items()} for state in (params, buffers)]
        return np.asarray(nn.apply(graphdef, *wide, None, x.astype(np.float64))[0])


# Values in the checkpoints of PaddleClas 2.6 (its models' state_dict()), of which its documents give millions
PUBLISHED = {
    "pplcnet_x0_25": 1_523_936,
    "pplcnet_x0_35": 1_646_930,
    "pplcnet_x0_5": 1_885_048,
    "pplcnet_x0_75": 2_365_232,
    "pplcnet_x1_0": 2_963_464,
    "pplcnet_x1_5": 4_516_248,
    "pplcnet_x2_0": 6_543_400,
    "pplcnet_x2_5": 9_044_920,
}


def state_size(model: nn.Layer) -> int:
    return sum(int(np.prod(shape)) for shape in model.state_shapes().values())


@pytest.mark.parametrize("variant", VARIANTS)
def test_published_counts(variant: str) -> None:
    model = PPLCNetClassifier(PPLCNetClassifierConfig(variant))
    assert state_size(model) == PUBLISHED[variant]


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_classifiers(variant: str) -> None:
    model = PPLCNetClassifier(PPLCNetClassifierConfig(variant))
    assert shapes(model, (2, 224, 224, 3)) == [(2, 1000)]
    backbone = build_backbone(PPLCNetClassifierConfig(variant))
    want = [(1, 224 // f.stride, 224 // f.stride, f.channels) for f in backbone.features]
    assert shapes(backbone, (1, 224, 224, 3)) == want
    assert [f.stride for f in backbone.features] == [4, 8, 16, 32]


def test_an_unknown_classifier_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown variant of PPLCNetClassifier[\s\S]*mean 'pplcnet_x1_0'"):
        PPLCNetClassifierConfig("pplcnet_x10")
