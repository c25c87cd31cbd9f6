import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from tests.family import family
from zoo.contracts import Feature, build_backbone
from zoo.vision.mobilenet_v1 import VARIANTS, DepthwiseSeparable, MobileNetV1, MobileNetV1Config, _LeakyReLU

# Values in the checkpoints of PaddleClas 2.6 (its models' state_dict()): 4.25 M and so on in its documents
PUBLISHED = {
    "mobilenetv1_x0_25": 475_544,
    "mobilenetv1_x0_5": 1_342_536,
    "mobilenetv1_x0_75": 2_601_976,
    "mobilenetv1_x1_0": 4_253_864,
}


def shapes(model: nn.Layer, x: tuple[int, ...]) -> list[tuple[int, ...]]:
    graphdef, params, buffers = nn.abstract(model.eval())
    image = jax.ShapeDtypeStruct(x, np.float32)
    out = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0], params, buffers, image)
    return [leaf.shape for leaf in jax.tree.leaves(out)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_published_counts(variant: str) -> None:
    model = MobileNetV1(MobileNetV1Config(variant))
    assert sum(int(np.prod(s)) for s in model.state_shapes().values()) == PUBLISHED[variant]


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_shapes(variant: str) -> None:
    model = MobileNetV1(MobileNetV1Config(variant))
    assert shapes(model, (2, 224, 224, 3)) == [(2, 1000)]
    backbone = build_backbone(MobileNetV1Config(variant))
    assert not any(name.startswith("fc") for name in backbone.state_shapes())
    want = [(1, 224 // f.stride, 224 // f.stride, f.channels) for f in backbone.features]
    assert shapes(backbone, (1, 224, 224, 3)) == want


def test_maps_of_the_smallest_size_and_of_one_pixel() -> None:
    backbone = build_backbone(MobileNetV1Config("mobilenetv1_x0_25"))
    assert backbone.features == (Feature(32, 4), Feature(64, 8), Feature(128, 16), Feature(256, 32))
    assert shapes(backbone, (1, 1, 1, 3)) == [(1, 1, 1, c) for c in (32, 64, 128, 256)]


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown variant of MobileNetV1[\s\S]*mean 'mobilenetv1_x0_5'"):
        MobileNetV1Config("mobilenetv1_x05")


def test_a_block_with_a_leaky_activation_by_hand() -> None:
    """One pixel, kernels of ones: (2, -1) is activated to (2, -0.1), whose sum is 1.9."""
    block = DepthwiseSeparable(2, 1, 1, _LeakyReLU(0.1)).eval()
    state = {name: np.zeros(shape) for name, shape in block.state_shapes().items()}
    for name in state:
        if name.endswith("_variance"):
            state[name] += 1 - 1e-5
        elif name.endswith("bn.weight"):
            state[name] += 1
    state["depthwise_conv.conv.weight"][:, 0, 1, 1] = 1
    state["pointwise_conv.conv.weight"] += 1
    block.set_state_dict(state)
    x = np.array([2.0, -1.0], np.float32).reshape(1, 1, 1, 2)
    np.testing.assert_allclose(block(x), [[[[1.9]]]], rtol=1e-6)
    low = np.array([-2.0, 0.1], np.float32).reshape(1, 1, 1, 2)  # activated to (-0.2, 0.1), sum -0.1
    np.testing.assert_allclose(block(low), [[[[-0.01]]]], rtol=1e-5)


# (ours, PaddleDetection's, paddle.vision's, retinaface-pytorch's with the statistics called as in Paddle)
NAMES = [
    ("conv.conv.weight", "conv1._conv.weight", "conv1.0.weight", "stage1.0.0.weight"),
    ("conv.bn._mean", "conv1._batch_norm._mean", "conv1.1._mean", "stage1.0.1._mean"),
    (
        "blocks.0.depthwise_conv.conv.weight",
        "conv2_1._depthwise_conv._conv.weight",
        "conv2_1._depthwise_conv.0.weight",
        "stage1.1.0.weight",
    ),
    (
        "blocks.7.pointwise_conv.bn.bias",
        "conv5_2._pointwise_conv._batch_norm.bias",
        "conv5_2._pointwise_conv.1.bias",
        "stage2.2.4.bias",
    ),
    (
        "blocks.12.pointwise_conv.conv.weight",
        "conv6._pointwise_conv._conv.weight",
        "conv6._pointwise_conv.0.weight",
        "stage3.1.3.weight",
    ),
    (
        "blocks.11.depthwise_conv.bn._variance",
        "conv5_6._depthwise_conv._batch_norm._variance",
        "conv5_6._depthwise_conv.1._variance",
        "stage3.0.1._variance",
    ),
]


@pytest.mark.parametrize("names", NAMES)
def test_other_official_spellings(names: tuple[str, ...]) -> None:
    model = MobileNetV1(MobileNetV1Config("mobilenetv1_x0_25", num_classes=3))
    shape = model.state_shapes()[names[0]]
    for other in names[1:]:
        missing, unexpected = model.set_state_dict({other: np.full(shape, 0.5)}, strict=False)
        assert names[0] not in missing and not unexpected, other


def test_depthwise_kernels_start_by_their_own_fan() -> None:
    model = MobileNetV1(MobileNetV1Config("mobilenetv1_x1_0", num_classes=0))
    kernel = np.asarray(model.blocks[12].depthwise_conv.conv.weight)  # 1024 kernels of nine taps
    assert abs(float(kernel.std()) - (2 / 9) ** 0.5) < 0.02
