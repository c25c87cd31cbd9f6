import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from tests.family import shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.pp_lcnet_v3 import (
    LearnableRepLayer,
    PPLCNetV3Config,
)


def test_the_detector_gives_four_maps() -> None:
    model = build_backbone(PPLCNetV3Config("pplcnetv3_x0_75", form="page")).eval()
    assert model.features == (Feature(12, 4), Feature(18, 8), Feature(42, 16), Feature(360, 32))
    assert shapes(model, (2, 96, 64, 3)) == [
        (2, 96 // s, 64 // s, c) for s, c in zip((4, 8, 16, 32), (12, 18, 42, 360))
    ]
    assert shapes(model, (1, 1, 1, 3)) == [(1, 1, 1, c) for c in (12, 18, 42, 360)]


def test_the_recogniser_gives_one_row() -> None:
    model = build_backbone(PPLCNetV3Config(form="line"))
    assert model.features == (Feature(480, (48, 8)),)
    assert shapes(model.eval(), (2, 48, 320, 3)) == [(2, 1, 40, 480)]
    assert shapes(model.train(), (1, 64, 200, 3)) == [(1, 1, 25, 480)]
    assert model.blocks5[0].pw_conv.lab.scale.shape == (1,)
    assert model.state_shapes()["blocks6.0.dw_conv.conv_kxk.0.conv.weight"] == (240, 1, 5, 5)


def test_other_heights_are_refused_in_eval() -> None:
    model = build_backbone(PPLCNetV3Config(form="line")).eval()
    with pytest.raises(ShapeError, match=r"PPLCNetV3 reads text lines of one height[\s\S]*2 rows"):
        shapes(model, (1, 32, 64, 3))


def test_names_are_upstream_s() -> None:
    names = set(build_backbone(PPLCNetV3Config("pplcnetv3_x0_75", form="page")).state_shapes())
    assert {
        "conv1.conv.weight",
        "conv1.bn._mean",
        "blocks2.0.dw_conv.identity._variance",
        "blocks3.0.dw_conv.act.lab.bias",  # stride 2: in the checkpoint, though nothing uses it
        "blocks5.2.dw_conv.conv_kxk.3.conv.weight",
        "blocks5.2.dw_conv.conv_1x1.bn.weight",
        "blocks6.1.se.conv1.bias",
        "blocks6.3.pw_conv.identity.weight",
        "blocks6.3.pw_conv.lab.scale",
        "layer_list.3.weight",
    } <= names
    absent = ("blocks3.0.dw_conv.identity", "blocks3.0.pw_conv.conv_1x1", "blocks6.2.se")
    assert not any(name.startswith(absent) for name in names)


def by_hand(stride: int | tuple[int, int]) -> LearnableRepLayer:
    """Two channels, depthwise 3x3; every normalisation does nothing, every kernel is 1 at its centre."""
    layer = LearnableRepLayer(2, 2, 3, stride, groups=2).eval()
    state = {}
    for name, shape in layer.state_shapes().items():
        last = name.rpartition(".")[2]
        state[name] = np.zeros(shape)
        if last == "_variance":
            state[name] = np.full(shape, 1 - 1e-5)
        elif last in ("weight", "scale"):
            state[name] = np.ones(shape)
        if len(shape) == 4 and shape[2] == 3:
            state[name] = np.zeros(shape)
            state[name][:, :, 1, 1] = 1
    layer.set_state_dict(state | {"lab.bias": np.full(1, 0.5), "act.lab.scale": np.full(1, 2.0)})
    return layer


def test_branches_and_activation_by_hand() -> None:
    x = np.array([1.0, -0.25], np.float32).reshape(1, 1, 1, 2)
    # stride 1: identity, 1x1 and four 3x3 give 6 x, the affine 6 x + 1/2, hard swish and the factor 2 follow
    np.testing.assert_allclose(by_hand(1)(x)[0, 0, 0], [13.0, -2 / 3], rtol=1e-5)
    # the integer 2: five branches and no activation
    np.testing.assert_allclose(by_hand(2)(x)[0, 0, 0], [5.5, -0.75], rtol=1e-5)
    # a pair: five branches and the activation
    np.testing.assert_allclose(by_hand((2, 1))(x)[0, 0, 0], [11.0, 2 * -0.75 * 2.25 / 6], rtol=1e-5)


def test_the_unused_affine_is_not_trained_and_not_deployed() -> None:
    frozen = {name for name, p in by_hand(2).named_parameters() if not p.trainable}
    assert frozen == {"act.lab.scale", "act.lab.bias"}
    assert all(p.trainable for p in by_hand((2, 1)).parameters())
    assert {n for n, p in by_hand(1).named_parameters() if p.attr.learning_rate == 0.1} == {
        f"{name}.{end}" for name in ("lab", "act.lab") for end in ("scale", "bias")
    }
    assert set(LearnableRepLayer(2, 2, 3, 2, groups=2, deploy=True).state_shapes()) == {
        "reparam_conv.weight",
        "reparam_conv.bias",
        "lab.scale",
        "lab.bias",
    }


@pytest.mark.parametrize(
    ("out_channels", "kernel", "stride", "groups"),
    [(6, 3, 1, 6), (6, 5, 2, 6), (6, 5, (1, 2), 6), (6, 1, 1, 1), (8, 1, 1, 1), (6, 3, 1, 2)],
)
def test_deploy_form(out_channels: int, kernel: int, stride: int | tuple[int, int], groups: int) -> None:
    layer, deployed = (
        LearnableRepLayer(6, out_channels, kernel, stride, groups, deploy).eval() for deploy in (False, True)
    )
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(deploy_state(layer))
    x = np.random.RandomState(0).standard_normal((2, 7, 9, 6)).astype(np.float32)
    want = np.asarray(layer(x))
    assert want.std() > 0.1
    np.testing.assert_allclose(deployed(x), want, atol=2e-6 * np.abs(want).max())
