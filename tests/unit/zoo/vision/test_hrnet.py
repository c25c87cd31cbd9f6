import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from tests.family import eval_shapes, family
from zoo.contracts import Feature, build_backbone
from zoo.vision.hrnet import VARIANTS, FuseLayers, Halve, HRNet, HRNetConfig


def count(model: nn.Layer) -> int:
    return sum(parameter.size for parameter in model.parameters())


def test_parameters_of_the_other_forms() -> None:
    # PaddleDetection's top-down HRNet-w32 has 28,536,113 with its last 1x1 convolution to 17 heat maps
    pose = HRNet(HRNetConfig("w32", 0, multi_scale_output=False))
    assert count(pose) + 17 * 32 + 17 == 28_536_113
    # PaddleSeg's HRNet_W48_contrast: 71,046,240 with two heads on 720 channels
    head = (720 * 720 * 9 + 720 * 3) + 19 * 720
    projection = (720 * 720 + 720 * 3) + (720 * 720 + 720)
    assert count(build_backbone(HRNetConfig("w48"))) + head + projection == 71_046_240


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_shapes_of_every_variant(variant: str) -> None:
    assert eval_shapes(HRNet(HRNetConfig(variant)), (1, 224, 224, 3)) == [(1, 1000)]
    model = build_backbone(HRNetConfig(variant))
    width = 16 if variant == "w18_small_v1" else int(variant[1:3])
    assert model.features == tuple(Feature(width * 2**i, 4 * 2**i) for i in range(4))
    assert eval_shapes(model, (2, 97, 64, 3)) == [(2, -(-97 // s), 64 // s, c) for c, s in model.features]


@pytest.mark.parametrize("size_hw", [(1, 1), (33, 66)])
@pytest.mark.parametrize("same_padding", [False, True])
def test_odd_and_tiny_sizes_in_every_form(size_hw: tuple[int, int], same_padding: bool) -> None:
    height, width = size_hw
    for upsample in ("nearest", "bilinear"):
        model = HRNet(HRNetConfig("w18_small_v1", 0, upsample, same_padding=same_padding))
        expected = [(1, -(-height // s), -(-width // s), c) for c, s in model.features]
        assert eval_shapes(model, (1, height, width, 3)) == expected


def test_one_pixel_through_the_classifier() -> None:
    out = HRNet(HRNetConfig("w18_small_v1", num_classes=3)).eval()(np.ones((1, 1, 1, 3), np.float32))
    assert out.shape == (1, 3) and np.isfinite(out).all()


def test_images_of_other_channels() -> None:
    model = HRNet(HRNetConfig("w18_small_v1", num_classes=0, in_channels=5))
    assert eval_shapes(model, (1, 64, 96, 5))[0] == (1, 16, 24, 16)


def test_pose_has_the_finest_map_alone() -> None:
    model = build_backbone(HRNetConfig("w18_small_v1", multi_scale_output=False))
    assert model.features == (Feature(16, 4),)
    assert eval_shapes(model, (1, 64, 96, 3)) == [(1, 16, 24, 16)]
    all_names = set(HRNet(HRNetConfig("w18_small_v1", 0)).state_shapes())
    left_out = all_names - set(model.state_shapes())
    # of the 16 convolutions of the last exchange 3 lead to the finest map; each has a kernel and four vectors
    assert len(left_out) == 13 * 5
    assert all(name.startswith("st4.stage_func_list.0.fuse_func.residual_func_list.") for name in left_out)


def test_halving_pads_as_asked() -> None:
    def middles(same_padding: bool, size: int) -> list[float]:
        """Which pixels of one row stand under the middle of the kernel."""
        kernel = np.zeros((1, 1, 3, 3), np.float32)
        kernel[0, 0, 1, 1] = 1
        conv = Halve(1, 1, same_padding, act=None).eval()
        conv.conv.weight = kernel
        x = np.tile(np.arange(size, dtype=np.float32), (size, 1))[None, :, :, None]
        return np.asarray(conv(x))[0, 0, :, 0].round(3).tolist()

    assert middles(False, 6) == [0, 2, 4]
    assert middles(True, 6) == [1, 3, 5]  # nothing stands left of an even row, so windows lie one further
    assert middles(False, 5) == middles(True, 5) == [0, 2, 4]


@pytest.mark.parametrize(
    ("upsample", "align_corners", "row"),
    [
        ("nearest", False, [1, 1, 3, 3]),
        ("bilinear", False, [1, 1.5, 2.5, 3]),
        ("bilinear", True, [1, 5 / 3, 7 / 3, 3]),
    ],
)
def test_exchange_of_two_branches(upsample: str, align_corners: bool, row: list[float]) -> None:
    config = HRNetConfig("w18_small_v1", 0, upsample, align_corners)  # type: ignore[arg-type]
    fuse = FuseLayers((1, 1), 2, config).eval()
    state = {name: np.zeros(shape) for name, shape in fuse.state_shapes().items()}
    for number in (0, 1):
        state[f"residual_func_list.{number}.bn.weight"] = np.ones(1)
        state[f"residual_func_list.{number}.bn._variance"] = np.full(1, 1 - 1e-5)
    state["residual_func_list.0.conv.weight"] = np.full((1, 1, 1, 1), 2)  # from the coarse branch
    state["residual_func_list.1.conv.weight"][0, 0, 1, 1] = -1  # from the fine one: the pixel in the middle
    fuse.set_state_dict(state)
    line = np.array([10, 0, 0, -9], np.float32)
    fine = np.stack([line, line])[None, :, :, None]
    coarse = np.array([1, 3], np.float32)[None, None, :, None]
    first, second = fuse((fine, coarse))
    want = np.maximum(line + 2 * np.array(row), 0)
    np.testing.assert_allclose(first[0, :, :, 0], [want, want], rtol=1e-6)
    np.testing.assert_allclose(second[0, :, :, 0], [[0, 3]], atol=1e-6)  # relu(1 - 10), relu(3 - 0)


def test_errors() -> None:
    with pytest.raises(ConfigError, match="unknown variant of HRNet") as error:
        HRNetConfig("w18_small_v3")
    assert "allowed: w18, w30" in str(error.value) and "did you mean 'w18_small_v" in str(error.value)
    with pytest.raises(ConfigError, match="align_corners belongs to bilinear upsampling"):
        HRNetConfig(align_corners=True)
    with pytest.raises(ConfigError, match="the classifier reads the maps of all strides") as error:
        HRNet(HRNetConfig(num_classes=7, multi_scale_output=False))
    assert "num_classes=7" in str(error.value)
