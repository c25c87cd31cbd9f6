"""What PP-LiteSeg, SegFormer, DeepLabV3+ and PP-HumanSeg-Lite have in common; parity is in tests/golden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, ShapeError
from framework.export import TensorSpec, lower_layer
from framework.inference import XLAEngine
from framework.interop.named_weights import named_weights
from framework.nn import functional as F
from segmentation.models import (
    cgnet,
    deeplabv3p,
    fcn,
    hrnet_w48_contrast,
    ocrnet,
    pp_humanseg_lite,
    pp_liteseg,
    segformer,
)
from segmentation.models.cgnet import CGNetConfig
from segmentation.models.deeplabv3p import DeepLabV3PConfig
from segmentation.models.fcn import FCNConfig
from segmentation.models.hrnet_w48_contrast import HRNetW48ContrastConfig
from segmentation.models.ocrnet import OCRNetConfig
from segmentation.models.pp_humanseg_lite import PPHumanSegLiteConfig, ShuffleBlock
from segmentation.models.pp_liteseg import PPLiteSegConfig, SpatialFusion, _strongest
from segmentation.models.segformer import SegFormerConfig
from tests.family import family, shapes
from zoo.vision.resnet import ResNet, ResNetConfig

TABLES: tuple[tuple[Any, Any], ...] = (
    (PPLiteSegConfig, pp_liteseg),
    (SegFormerConfig, segformer),
    (DeepLabV3PConfig, deeplabv3p),
    (FCNConfig, fcn),
    (OCRNetConfig, ocrnet),
    (HRNetW48ContrastConfig, hrnet_w48_contrast),
)
# Trained parameters.
COUNTS: dict[Any, int] = {
    **{make(name): size.params for make, module in TABLES for name, size in module.VARIANTS.items()},
    PPHumanSegLiteConfig(): pp_humanseg_lite.PARAMS,
    CGNetConfig(): cgnet.PARAMS,
}
ENTRIES = {
    PPLiteSegConfig("xt"): 250,
    PPLiteSegConfig("t"): 250,
    PPLiteSegConfig("b"): 370,
    SegFormerConfig("b0"): 191,
    SegFormerConfig("b5"): 1067,
    DeepLabV3PConfig("resnet50"): 360,
    PPHumanSegLiteConfig(): 340,
}
SMALL = (
    PPLiteSegConfig("t", 5),
    SegFormerConfig("b0", 5),
    DeepLabV3PConfig("resnet50", 5),
    PPHumanSegLiteConfig(5),
)


def name(config: Any) -> str:
    return "-".join([type(config).__name__.removesuffix("Config"), getattr(config, "variant", "")]).rstrip(
        "-"
    )


@pytest.mark.parametrize("config", COUNTS, ids=name)
def test_published_number_of_parameters(config: Any) -> None:
    assert sum(parameter.size for parameter in build(config).parameters()) == COUNTS[config]


@pytest.mark.parametrize("config", family(ENTRIES, type), ids=name)
def test_entries_and_shapes(config: Any) -> None:
    model = build(config)
    assert len(model.state_shapes()) == ENTRIES[config]
    classes = config.num_classes
    outputs = 3 if isinstance(config, PPLiteSegConfig) else 1
    for h, w in ((512, 1024), (97, 131)):
        assert shapes(model.eval(), (1, h, w, 3)) == [(1, h, w, classes)]
        assert shapes(model.train(), (2, h, w, 3)) == [(2, h, w, classes)] * outputs


@pytest.mark.parametrize(("make", "module"), TABLES, ids=[make.__name__ for make, _ in TABLES])
def test_another_backbone(make: Any, module: Any) -> None:
    """What has maps at the strides that a model reads can stand in for its paper's backbone."""
    backbone = ResNetConfig("resnet18", output_stride=16 if make is DeepLabV3PConfig else 32)
    backbone = replace(backbone, multi_grid=(1, 2)) if make is DeepLabV3PConfig else backbone
    model = build(make(next(iter(module.VARIANTS)), 5, backbone=backbone))
    assert shapes(model.eval(), (1, 64, 96, 3)) == [(1, 64, 96, 5)]
    assert type(model.backbone) is ResNet


@pytest.mark.parametrize("config", SMALL, ids=name)
def test_any_number_of_channels(config: Any) -> None:
    model = build(type(config)(**{**vars(config), "in_channels": 7})).eval()
    assert shapes(model, (1, 360, 480, 7)) == [(1, 360, 480, 5)]


# Fast to compile: these tests compare values and measure nothing.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
FREE, WHOLE = ("n", "h", "w", 3), ("n", "32*h", "32*w", 3)
EXPORTS = (
    (PPHumanSegLiteConfig(5), FREE, (64, 96), (97, 131)),
    (PPLiteSegConfig("t", 5), FREE, (64, 96), (97, 131)),
    (SegFormerConfig("b0", 5), FREE, (64, 96), (97, 131)),
    # The pooled shortcuts of ResNet-vd and its convolutions agree on the size only where it is whole.
    (DeepLabV3PConfig("resnet50", 5), WHOLE, (64, 96), (96, 64)),
)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name(case[0]), marks=[pytest.mark.slow] * (number > 0))
        for number, case in enumerate(EXPORTS)
    ],
)
def test_one_program_runs_on_images_of_several_sizes(case: Any) -> None:
    config, symbolic, *sizes = case
    model = build(config).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    program, weights = lower_layer(
        model,
        {"image": TensorSpec(symbolic)},
        after=lambda out: {"logits": out[0]},
        platforms=("cpu",),
        constraints=("h >= 32", "w >= 32") if symbolic is FREE else (),
    )
    engine = XLAEngine(program, weights, options=QUICK)
    graphdef, params, buffers = nn.split(model)
    call = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0][0])
    for size_hw in sizes:
        x = np.random.RandomState(0).standard_normal((1, *size_hw, 3)).astype(np.float32)
        want = np.asarray(call.lower(params, buffers, x).compile(compiler_options=QUICK)(params, buffers, x))
        out = engine({"image": x})["logits"]
        assert out.shape == (1, *size_hw, 5)
        np.testing.assert_allclose(out, want, rtol=0, atol=2e-5 * np.abs(want).max())


def identity(layer: nn.Layer) -> dict[str, np.ndarray]:
    """A state in which every normalisation does nothing, and all kernels are 0."""
    state = {name: np.zeros(shape, np.float32) for name, shape in layer.state_shapes().items()}
    for name, array in state.items():
        if name.endswith("_variance"):
            array[...] = 1 - 1e-5
        elif name.endswith("_batch_norm.weight"):
            array[...] = 1
    return state


def test_a_fusion_mixes_both_maps_by_one_weight() -> None:
    fusion = SpatialFusion(1, 2, 2).eval()
    state = identity(fusion)
    state["_scale"] = np.ones(1, np.float32)
    state["conv_x._conv.weight"][0, 0, 1, 1], state["conv_x._conv.weight"][1, 0, 1, 1] = 1, 3
    state["conv_out._conv.weight"][[0, 1], [0, 1], 1, 1] = 1
    # mean x, max x, mean y, max y: weigh the first and the last, so that each place is seen.
    state["conv_xy_atten.0._conv.weight"][0, [0, 3], 1, 1] = 1, 10
    state["conv_xy_atten.1._conv.weight"][0, 0, 1, 1] = 0.1
    fusion.set_state_dict(state)
    x = np.full((1, 2, 2, 1), 2, np.float32)  # projected: 2 and 6, mean 4
    y = np.full((1, 1, 1, 2), [[[[1.0, -3.0]]]], np.float32)  # largest 1
    weight = 1 / (1 + np.exp(-0.1 * (4 + 10 * 1)))
    want = [2 * weight + 1 - weight, 6 * weight - 3 * (1 - weight)]
    np.testing.assert_allclose(fusion(x, y), np.broadcast_to(want, (1, 2, 2, 2)), rtol=1e-5)


def test_a_shuffle_block_keeps_half_and_interleaves() -> None:
    block = ShuffleBlock(4, 4, 1).eval()
    state = identity(block)
    for conv in ("_conv", "_depthwise_separable_1.piontwise_conv"):
        state[f"{conv}._conv.weight"][[0, 1], [0, 1], 0, 0] = 2
    state["_depthwise_separable_1.depthwise_conv._conv.weight"][:, 0, 1, 1] = 1
    block.set_state_dict(state)
    x = np.array([1, -2, 3, -4], np.float32).reshape(1, 1, 1, 4)
    # Channels 0 and 1 stay; 2 and 3 are doubled twice, behind ReLUs. Kept and computed channels alternate.
    np.testing.assert_allclose(block(x), [[[[1, 12, -2, 0]]]], rtol=1e-5)


@pytest.mark.parametrize("stride", [8, 16])
def test_the_output_stride_sets_the_dilations(stride: int) -> None:
    backbone = ResNetConfig("resnet50_vd", output_stride=stride, multi_grid=(1, 2, 4))
    model: Any = build(DeepLabV3PConfig(backbone=backbone))
    assert [feature.stride for feature in model.backbone.features] == [4, 8, min(stride, 16), stride]
    blocks = model.backbone.blocks
    last = 2 if stride == 16 else 4
    assert [block.conv1.conv.dilation for block in list(blocks)[-3:]] == [last, 2 * last, 4 * last]
    dilated = [block.depthwise_conv._conv.dilation for block in list(model.head.aspp.aspp_blocks)[1:]]
    assert dilated == ([6, 12, 18] if stride == 16 else [12, 24, 36])


def test_smallest_images() -> None:
    for config in SMALL:
        if not isinstance(config, SegFormerConfig):
            assert shapes(build(config).eval(), (1, 1, 1, 3)) == [(1, 1, 1, 5)]
    with pytest.raises(ShapeError, match="too small for the reductions"):
        shapes(build(SMALL[1]).eval(), (1, 28, 64, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPLiteSegConfig("c"), "unknown variant of PPLiteSeg"),
        (lambda: SegFormerConfig("b6"), "unknown variant of SegFormer"),
        (lambda: DeepLabV3PConfig("resnet34"), "unknown variant of DeepLabV3P"),
        (
            lambda: build(DeepLabV3PConfig(backbone=ResNetConfig("resnet50_vd"))),
            r"no such output stride\s+received: 32\s+allowed: 8, 16",
        ),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_the_slope_of_the_strongest_channel_where_it_is_computed_again() -> None:
    """At this level XLA computes the resized map twice, and no channel equals the largest."""

    def weigh(x: jax.Array) -> jax.Array:
        largest = _strongest(F.interpolate(x, (8, 12), mode="bilinear"))
        return (largest * jnp.sin(jnp.arange(largest.size, dtype=jnp.float32)).reshape(largest.shape)).sum()

    x = np.random.RandomState(0).standard_normal((2, 4, 6, 16)).astype(np.float32)
    slopes = jax.jit(jax.grad(weigh)).lower(x).compile(compiler_options=QUICK)(x)
    # The weights of bilinear resizing add up to 1: all slopes together are those of the outputs.
    np.testing.assert_allclose(np.sum(slopes), np.sin(np.arange(192)).sum(), rtol=1e-3)


def test_the_first_of_equal_channels_takes_the_slope() -> None:
    value, back = jax.vjp(_strongest, jnp.array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]))
    assert value.tolist() == [[3], [0]]
    assert back(jnp.array([[2.0], [5.0]]))[0].tolist() == [[0, 2, 0], [5, 0, 0]]
