import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.io.named_weights import named_weights
from tests.family import family
from zoo.contracts import build_backbone
from zoo.vision.pp_lcnet_v4 import (
    SIZES,
    VARIANTS,
    PPLCNetV4,
    PPLCNetV4Classifier,
    PPLCNetV4ClassifierConfig,
    PPLCNetV4Config,
    RepDWConv,
)


def shapes(model: nn.Layer, x: tuple[int, ...]) -> list[tuple[int, ...]]:
    graphdef, params, buffers = nn.abstract(model)
    image = jax.ShapeDtypeStruct(x, np.float32)
    key = jax.random.key(0)
    out = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, key, x)[0], params, buffers, image)
    return [leaf.shape for leaf in jax.tree.leaves(out)]


def test_widths_and_strides_of_every_variant() -> None:
    for variant in SIZES:
        model = PPLCNetV4(PPLCNetV4Config(variant)).eval()  # type: ignore[arg-type]
        if variant.startswith("det"):
            widths = model.out_channels
            want = [(1, 96 // s, 64 // s, c) for s, c in zip((4, 8, 16, 32), widths)]
            assert shapes(model, (1, 96, 64, 3)) == want
        else:
            assert shapes(model, (2, 48, 320, 3)) == [(2, 1, 40, model.out_channels)]
    assert PPLCNetV4(PPLCNetV4Config("det_tiny")).out_channels == (32, 48, 64, 160)
    assert PPLCNetV4(PPLCNetV4Config("rec_medium")).out_channels == 768


def test_names_are_upstream_s() -> None:
    names = set(PPLCNetV4(PPLCNetV4Config("rec_tiny")).state_shapes())
    assert {
        "conv1.0.conv.weight",
        "conv1.2.bn._mean",
        "blocks2.0.token_mixer.rep_dw.conv.bn.weight",
        "blocks2.0.token_mixer.rep_dw.conv1.weight",
        "blocks2.0.token_mixer.rep_dw.bn._variance",
        "blocks2.0.token_mixer.se.conv2.bias",
        "blocks4.0.token_mixer.dw_conv.conv.weight",
        "blocks5.3.channel_mixer.compress.bn.bias",
    } <= names


def test_a_residual_block_starts_as_its_token_mixer() -> None:
    model = PPLCNetV4(PPLCNetV4Config("det_tiny"))
    assert not np.asarray(model.blocks_s1[0].channel_mixer.compress.bn.weight).any()
    assert np.asarray(model.blocks_s2[0].channel_mixer.compress.bn.weight).all()


def test_training_gives_forty_columns_for_any_width_and_height() -> None:
    model = PPLCNetV4(PPLCNetV4Config("rec_tiny")).train()
    assert shapes(model, (1, 64, 200, 3)) == [(1, 1, 40, 160)]


def test_other_heights_are_refused_in_eval() -> None:
    model = PPLCNetV4(PPLCNetV4Config("rec_tiny")).eval()
    with pytest.raises(ShapeError, match=r"one height[\s\S]*2 rows[\s\S]*48 pixels high"):
        shapes(model, (1, 32, 64, 3))


def test_rep_dw_conv_by_hand_and_in_deploy_form() -> None:
    layer, deployed = RepDWConv(1).eval(), RepDWConv(1, deploy=True).eval()
    state = {name: np.ones(shape) for name, shape in layer.state_shapes().items()}
    for bn in ("conv.bn", "bn"):
        state |= {
            f"{bn}._mean": np.zeros(1),
            f"{bn}._variance": np.full(1, 1 - 1e-5),
            f"{bn}.bias": np.zeros(1),
        }
    state["bn.bias"] = np.full(1, 0.5)
    layer.set_state_dict(state)
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)[None, :, :, None]
    # 3x3 of ones gives the sum 10 everywhere, 1x1 and the identity the pixel each
    want = 10 + 2 * x + 0.5
    np.testing.assert_allclose(layer(x), want, rtol=1e-6)
    np.testing.assert_allclose(deployed(x), want, rtol=1e-6)


def test_deploy_form_of_a_random_rep_dw_conv() -> None:
    layer, deployed = RepDWConv(6, 5).eval(), RepDWConv(6, 5, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(0).standard_normal((2, 7, 9, 6)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-6)


# Upstream has no classifier. By hand: the values of the detector's backbone, 1280 times its last width, and
# 1280 * 1000 + 1000.
PUBLISHED = {
    "pplcnetv4_tiny": 1_879_444,
    "pplcnetv4_small": 4_121_412,
    "pplcnetv4_medium": 16_605_928,
}


def state_size(model: nn.Layer) -> int:
    return sum(int(np.prod(shape)) for shape in model.state_shapes().values())


@pytest.mark.parametrize("variant", VARIANTS)
def test_published_counts(variant: str) -> None:
    model = PPLCNetV4Classifier(PPLCNetV4ClassifierConfig(variant))
    assert state_size(model) == PUBLISHED[variant]


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_classifiers(variant: str) -> None:
    model = PPLCNetV4Classifier(PPLCNetV4ClassifierConfig(variant))
    assert shapes(model.eval(), (2, 224, 224, 3)) == [(2, 1000)]
    backbone = build_backbone(PPLCNetV4ClassifierConfig(variant))
    want = [(1, 224 // f.stride, 224 // f.stride, f.channels) for f in backbone.features]
    assert shapes(backbone.eval(), (1, 224, 224, 3)) == want
    assert [f.stride for f in backbone.features] == [4, 8, 16, 32]


def test_an_unknown_classifier_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown variant of PPLCNetV4Classifier[\s\S]*mean 'pplcnetv4_tiny'"
    ):
        PPLCNetV4ClassifierConfig("pplcnetv4_tin")


def test_a_classifier_is_the_detector_s_backbone_and_the_head() -> None:
    for size in ("tiny", "small", "medium"):
        backbone = PPLCNetV4(PPLCNetV4Config(f"det_{size}"))  # type: ignore[arg-type]
        head = 1280 * backbone.widths[-1] + 1280 * 1000 + 1000
        assert state_size(backbone) + head == PUBLISHED[f"pplcnetv4_{size}"]
        model = PPLCNetV4Classifier(PPLCNetV4ClassifierConfig(f"pplcnetv4_{size}"))
        assert set(backbone.state_shapes()) < set(model.state_shapes())
