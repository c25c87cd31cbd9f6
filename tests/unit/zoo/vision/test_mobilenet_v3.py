import dataclasses

import jax
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.mobilenet_v3 import (
    UNITS,
    MobileNetV3,
    MobileNetV3Config,
    ResidualUnit,
    Unit,
)


def loud_weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Named weights with larger kernels, without which little of the image arrives at the end of so deep a network."""
    weights = named_weights(shapes)
    return {name: 1.9 * value if value.ndim == 4 else value for name, value in weights.items()}


def test_the_tables_have_the_paper_s_strides() -> None:
    assert [u.stride for u in UNITS["large"]] == [1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1]
    assert [u.stride for u in UNITS["small"]] == [2, 2, 1, 2, 1, 1, 1, 1, 2, 1, 1]


def test_the_detector_gives_four_maps() -> None:
    model = build_backbone(MobileNetV3Config("mobilenetv3_large_x0_5", form="page"))
    assert model.features == (Feature(16, 4), Feature(24, 8), Feature(56, 16), Feature(480, 32))
    assert eval_shapes(model, (1, 64, 96, 3)) == [
        (1, 16, 24, 16),
        (1, 8, 12, 24),
        (1, 4, 6, 56),
        (1, 2, 3, 480),
    ]
    assert eval_shapes(model, (1, 1, 1, 3)) == [(1, 1, 1, c) for c in (16, 24, 56, 480)]


def test_names_are_upstream_s() -> None:
    page = MobileNetV3Config("mobilenetv3_large_x0_5", form="page")
    det = set(build_backbone(page).state_shapes())
    assert {
        "conv.conv.weight",
        "stage0.0.expand_conv.conv.weight",
        "stage1.0.mid_se.conv1.bias",
        "stage2.5.linear_conv.bn._mean",
        "stage3.3.conv.weight",
    } <= det
    plain = build_backbone(dataclasses.replace(page, squeeze=False))
    assert not any("mid_se" in name for name in plain.state_shapes())
    rec = set(build_backbone(MobileNetV3Config("mobilenetv3_small_x0_5", form="line")).state_shapes())
    assert {"conv1.bn._variance", "blocks.10.bottleneck_conv.conv.weight", "conv2.conv.weight"} <= rec


def test_rows_and_columns_of_the_recogniser() -> None:
    config = MobileNetV3Config("mobilenetv3_small_x0_5", form="line", vertical_strides=(1, 2, 2, 2))
    line = build_backbone(config)
    assert line.features == (Feature(288, (32, 4)),)
    assert eval_shapes(line, (2, 32, 100, 3)) == [(2, 1, 25, 288)]
    assert eval_shapes(line, (2, 64, 100, 3)) == [(2, 2, 25, 288)]
    classifier = build_backbone(MobileNetV3Config("mobilenetv3_small_x0_35", form="line"))
    assert classifier.features == (Feature(200, (64, 4)),)
    assert eval_shapes(classifier, (1, 48, 192, 3)) == [(1, 1, 48, 200)]


def test_a_line_that_leaves_no_row_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"too low[\s\S]*1 row of features[\s\S]*32 for the recogniser"):
        eval_shapes(build_backbone(MobileNetV3Config("mobilenetv3_small_x0_5", form="line")), (1, 32, 64, 3))


def test_the_shortcut_stands_where_the_shape_stays_and_the_stride_is_the_integer_one() -> None:
    def has_shortcut(width: int, stride: int | tuple[int, int]) -> bool:
        return ResidualUnit(Unit(3, 16, width, False, "relu", stride), 8, 1.0).shortcut

    assert has_shortcut(8, 1)
    assert not has_shortcut(16, 1) and not has_shortcut(8, 2) and not has_shortcut(8, (1, 1))


def test_a_unit_by_hand() -> None:
    """One pixel: two convolutions pass x on and ReLU cuts it, the gate is 0.2 * 1 + 0.5, the shortcut adds x."""
    unit = ResidualUnit(Unit(3, 8, 8, True, "relu", 1), 8, 1.0).eval()
    state = {name: np.zeros(shape) for name, shape in unit.state_shapes().items()}
    for name, shape in unit.state_shapes().items():
        if name.endswith("_variance"):
            state[name] = np.full(shape, 1 - 1e-5)
        elif name.endswith("bn.weight"):
            state[name] = np.ones(shape)
    for conv in ("expand_conv", "linear_conv"):
        state[f"{conv}.conv.weight"][:, :, 0, 0] = np.eye(8)
    state["bottleneck_conv.conv.weight"][:, 0, 1, 1] = 1
    state["mid_se.conv2.bias"] += 1
    unit.set_state_dict(state)
    x = np.array([2.0, -2.0, 0, 0, 0, 0, 0, 0], np.float32).reshape(1, 1, 1, 8)
    np.testing.assert_allclose(unit(x)[0, 0, 0, :3], [3.4, -2.0, 0.0], rtol=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        MobileNetV3Config("mobilenetv3_large_x0_35", form="page"),
        MobileNetV3Config("mobilenetv3_small_x0_35", form="line"),
    ],
)
def test_deploy_form(config: MobileNetV3Config) -> None:
    model, deployed = (build_backbone(config, deploy).eval() for deploy in (False, True))
    model.set_state_dict(loud_weights(model.state_shapes()))
    deployed.set_state_dict(deploy_state(model))
    x = np.random.RandomState(0).standard_normal((1, 48, 32, 3)).astype(np.float32)
    for ours, want in zip(jax.tree.leaves(deployed(x)), jax.tree.leaves(model(x)), strict=True):
        assert np.ptp(want, (1, 2)).max() > 0.01
        # Rounding of another order of sums, which loud weights carry on: 1.2e-5 after all blocks.
        np.testing.assert_allclose(ours, want, atol=3e-5 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize(("output_stride", "strides"), [(8, [4, 8, 8, 8]), (16, [4, 8, 16, 16])])
def test_maps_for_segmentation(output_stride: int, strides: list[int]) -> None:
    for size in ("large_x1_0", "small_x1_0"):
        config = MobileNetV3Config(f"mobilenetv3_{size}", output_stride=output_stride)
        backbone = build_backbone(config)
        assert [f.stride for f in backbone.features] == strides
        want = [(1, 96 // f.stride, 64 // f.stride, f.channels) for f in backbone.features]
        assert eval_shapes(backbone, (1, 96, 64, 3)) == want
    # NET_CONFIG["large_os8"] and ["small_os8"] of PaddleSeg for 8
    if output_stride == 8:
        large = build_backbone(MobileNetV3Config("mobilenetv3_large_x1_0", output_stride=8))
        dilations = [unit.bottleneck_conv.conv.dilation for unit in large.blocks]
        assert dilations == [1] * 7 + [2] * 6 + [4] * 2


def test_other_output_strides_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"output_stride[\s\S]*8, 16, 32"):
        MobileNetV3(MobileNetV3Config(output_stride=4))


def test_names_of_paddle_detection() -> None:
    model = MobileNetV3(MobileNetV3Config("mobilenetv3_small_x0_35", num_classes=3))
    for ours, theirs in (
        ("conv.conv.weight", "conv1.conv.weight"),
        ("conv.bn._mean", "conv1.bn._mean"),
        ("blocks.0.mid_se.conv1.bias", "conv2.mid_se.conv1.bias"),
        ("blocks.10.linear_conv.bn._variance", "conv12.linear_conv.bn._variance"),
    ):
        value = np.full(model.state_shapes()[ours], 0.5)
        missing, unexpected = model.set_state_dict({theirs: value}, strict=False)
        assert ours not in missing and not unexpected, theirs
