import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from framework.interop.named_weights import named_weights
from tests.family import eval_shapes, family
from zoo.contracts import Feature, build_backbone
from zoo.vision.stdc import STDC, VARIANTS, DenseConcat, STDCConfig


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_shapes_of_every_variant(variant: str) -> None:
    assert eval_shapes(STDC(STDCConfig(variant)), (1, 224, 224, 3)) == [(1, 1000)]
    model = build_backbone(STDCConfig(variant))
    assert model.features == (
        Feature(32, 2),
        Feature(64, 4),
        Feature(256, 8),
        Feature(512, 16),
        Feature(1024, 32),
    )
    for x in ((2, 97, 64, 3), (1, 1, 1, 3)):
        assert eval_shapes(model, x) == [(x[0], -(-x[1] // s), -(-x[2] // s), c) for c, s in model.features]


def test_names_are_upstream_s_though_features_are_the_maps() -> None:
    names = set(STDC(STDCConfig("stdc1")).state_shapes())
    assert {
        "features.0.conv.weight",
        "features.2.avd_layer.0.weight",
        "features.2.avd_layer.1._mean",
        "features.7.conv_list.3.bn.bias",
        "conv_last.conv.weight",
        "fc.weight",
        "linear.weight",
    } <= names
    assert not {"fc.bias", "linear.bias", "features.3.avd_layer.0.weight"} & names
    assert list(STDC(STDCConfig("stdc1")).freeze(r"^features\.0\.")) == [
        "features.0.conv.weight",
        "features.0.bn.weight",
        "features.0.bn.bias",
    ]


def test_a_block_concatenates_what_it_computes_on_the_way() -> None:
    """Identity kernels everywhere: every share is channel 0 of the image; the pooling counts pixels, not padding."""

    def block(halve: bool) -> nn.Layer:
        made = DenseConcat(1, 8, halve).eval()
        state = {name: np.zeros(shape, np.float32) for name, shape in made.state_shapes().items()}
        for name, array in state.items():
            if name.endswith("_variance"):
                array[...] = 1 - 1e-5
            elif array.ndim == 4:
                middle = array.shape[2] // 2
                array[:, 0, middle, middle] = 1
            elif name.endswith(("bn.weight", "layer.1.weight")):
                array[...] = 1
        made.set_state_dict(state)
        return made

    x = np.array([[1, 2], [3, 4]], np.float32)[None, :, :, None]
    kept = np.asarray(block(halve=False)(x))
    assert kept.shape == (1, 2, 2, 8)
    np.testing.assert_allclose(kept, x.repeat(8, -1), rtol=1e-5)
    halved = np.asarray(block(halve=True)(x))
    # half of the channels: the mean of 1 to 4; the others: the pixel that the strided kernel stands on
    np.testing.assert_allclose(halved, [[[[2.5] * 4 + [1] * 4]]], rtol=1e-5)


def test_classifier_squares_pools_and_has_no_bias() -> None:
    model = STDC(STDCConfig("stdc1", num_classes=2)).eval()
    state = dict(named_weights(model.state_shapes()))
    state["conv_last.bn.weight"] = np.zeros(1024)
    state["conv_last.bn.bias"] = np.full(1024, -1.0)
    state["conv_last.bn.bias"][:2] = 3, 1  # squares: 9, 1, and 0 behind the ReLU
    state["fc.weight"] = np.zeros((1024, 1024))
    state["fc.weight"][0, :2] = 2, -1  # 18 and, behind the ReLU, 0
    state["fc.weight"][1, 2] = 5
    state["linear.weight"] = np.ones((1024, 2)) * [1, 0.5]
    model.set_state_dict(state)
    np.testing.assert_allclose(model(np.ones((1, 32, 32, 3), np.float32)), [[23, 11.5]], rtol=1e-5)


def test_kernels_start_at_he_s_scale_by_outputs() -> None:
    state = STDC(STDCConfig("stdc1")).state_dict()
    for name, fan_out in (("features.1.conv.weight", 64 * 9), ("features.6.conv_list.0.conv.weight", 512)):
        assert np.std(np.asarray(state[name])) == pytest.approx((2 / fan_out) ** 0.5, rel=0.03)
    assert np.std(np.asarray(state["linear.weight"])) == pytest.approx(0.001, rel=0.03)


def test_any_number_of_channels() -> None:
    model = STDC(STDCConfig("stdc1", num_classes=0, in_channels=5))
    assert model.state_shapes()["features.0.conv.weight"][1] == 5
    assert eval_shapes(model, (1, 64, 64, 5))[-1] == (1, 2, 2, 1024)


def test_width_sets_all_others() -> None:
    model = build_backbone(STDCConfig("stdc1", width=6))
    assert model.features == (Feature(3, 2), Feature(6, 4), Feature(24, 8), Feature(48, 16), Feature(96, 32))
    assert eval_shapes(model, (1, 64, 64, 3))[-1] == (1, 2, 2, 96)
    assert eval_shapes(STDC(STDCConfig("stdc1", num_classes=7, width=6)), (1, 64, 64, 3)) == [(1, 7)]
    with pytest.raises(ConfigError, match=r"the width is halved\s+received: 5\s+allowed: 2, 4, 6"):
        STDCConfig(width=5)
