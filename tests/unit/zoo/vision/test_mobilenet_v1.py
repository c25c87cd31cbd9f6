import numpy as np
import pytest

from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.mobilenet_v1 import DepthwiseSeparable, MobileNetV1, MobileNetV1Config, _LeakyReLU


def test_maps_of_the_smallest_size_and_of_one_pixel() -> None:
    backbone = build_backbone(MobileNetV1Config("mobilenetv1_x0_25"))
    assert backbone.features == (Feature(32, 4), Feature(64, 8), Feature(128, 16), Feature(256, 32))
    assert eval_shapes(backbone, (1, 1, 1, 3)) == [(1, 1, 1, c) for c in (32, 64, 128, 256)]


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
