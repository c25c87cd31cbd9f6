import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from tests.family import shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.pp_lcnet_v4 import (
    VARIANTS,
    PPLCNetV4Config,
    RepDWConv,
)


def test_widths_and_strides_of_every_variant() -> None:
    for variant, size in VARIANTS.items():
        model = build_backbone(PPLCNetV4Config(variant)).eval()
        want = [(1, 96 // s, 64 // s, stage.width) for s, stage in zip((4, 8, 16, 32), size.image.stages)]
        assert shapes(model, (1, 96, 64, 3)) == want
        line = build_backbone(PPLCNetV4Config(variant, form="line")).eval()
        assert line.features == (Feature(size.line.stages[-1].width, (48, 8)),)
        assert shapes(line, (2, 48, 320, 3)) == [(2, 1, 40, line.features[0].channels)]
    assert [stage.width for stage in VARIANTS["pplcnetv4_tiny"].image.stages] == [32, 48, 64, 160]
    assert VARIANTS["pplcnetv4_medium"].line.stages[-1].width == 768


def test_names_are_upstream_s() -> None:
    names = set(build_backbone(PPLCNetV4Config("pplcnetv4_tiny", form="line")).state_shapes())
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
    model = build_backbone(PPLCNetV4Config("pplcnetv4_tiny"))
    assert not np.asarray(model.blocks_s1[0].channel_mixer.compress.bn.weight).any()
    assert np.asarray(model.blocks_s2[0].channel_mixer.compress.bn.weight).all()


def test_training_takes_lines_of_any_height() -> None:
    model = build_backbone(PPLCNetV4Config("pplcnetv4_tiny", form="line")).train()
    assert shapes(model, (1, 64, 200, 3)) == [(1, 1, 25, 160)]


def test_other_heights_are_refused_in_eval() -> None:
    model = build_backbone(PPLCNetV4Config("pplcnetv4_tiny", form="line")).eval()
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


def test_fine_lines_keep_a_column_for_every_four_pixels_in_both_modes() -> None:
    config = PPLCNetV4Config("pplcnetv4_tiny", form="line", fine=True)
    for model in (build_backbone(config).train(), build_backbone(config).eval()):
        assert model.features[0].stride == (32, 4)
        for width in (64, 200):
            assert shapes(model, (1, 32, width, 3)) == [(1, 1, width // 4, 160)]
    with pytest.raises(ShapeError, match="32 pixels high"):
        shapes(build_backbone(config).eval(), (1, 48, 64, 3))
