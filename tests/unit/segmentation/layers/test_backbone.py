import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.nn import functional as F
from segmentation.layers.backbone import (
    build_backbone,
    build_hrnet,
    concat_maps,
    count_channels,
    find_strides,
    hrnet_sizes,
)
from zoo.vision.hrnet import HRNet
from zoo.vision.pp_lcnet import PPLCNetConfig
from zoo.vision.resnet import ResNetConfig
from zoo.vision.stdc import STDCConfig

SIZES = hrnet_sizes(w18_small_v1=0, w18=0, w48=0)


@pytest.mark.parametrize(
    ("name", "channels"), [("hrnet_w18_small_v1", 240), ("hrnet_w18", 270), ("hrnet_w48", 720)]
)
def test_channels(name: str, channels: int) -> None:
    assert count_channels(build_hrnet(None, SIZES[name], 3, align_corners=False)) == channels


@pytest.mark.parametrize("align_corners", [False, True])
def test_maps_are_concatenated(align_corners: bool) -> None:
    maps = [np.random.default_rng(i).standard_normal((1, 3, 5, 2), np.float32) for i in range(4)]
    maps[3] = maps[3][:, :1, :2]
    out = concat_maps([jnp.asarray(x) for x in maps], align_corners)
    np.testing.assert_array_equal(out[..., :6], np.concatenate(maps[:3], axis=-1))
    resized = F.interpolate(jnp.asarray(maps[3]), (3, 5), mode="bilinear", align_corners=align_corners)
    np.testing.assert_array_equal(out[..., 6:], resized)
    if align_corners:  # corners stay what they are, and the middle column is between the two
        np.testing.assert_allclose(
            out[0, 1, [0, 2, 4], 6],
            [maps[3][0, 0, 0, 0], maps[3][0, 0, :, 0].mean(), maps[3][0, 0, 1, 0]],
            rtol=1e-6,
        )


def test_hrnet_as_paddleseg_has_it() -> None:
    backbone = build_hrnet(None, SIZES["hrnet_w18_small_v1"], 5, align_corners=True)
    assert isinstance(backbone, HRNet)
    config = backbone.config
    assert config.same_padding and config.align_corners and config.upsample == "bilinear"
    assert backbone.state_shapes()["conv_layer1_1.conv.weight"] == (64, 5, 3, 3)
    assert "fc.weight" not in backbone.state_shapes()


def test_a_given_backbone_takes_the_place_of_the_size_s() -> None:
    backbone = build_hrnet(ResNetConfig("resnet18"), SIZES["hrnet_w18"], 3, align_corners=False)
    assert count_channels(backbone) == 64 + 128 + 256 + 512


def test_places_of_strides() -> None:
    backbone = build_backbone(STDCConfig(), 3)
    assert find_strides(backbone, (8, 16, 32)) == (2, 3, 4)
    with pytest.raises(ConfigError, match=r"no map at stride 64[\s\S]*STDC, strides 2, 4, 8, 16, 32"):
        find_strides(backbone, (8, 64))


def test_other_channels() -> None:
    assert build_backbone(STDCConfig(in_channels=4), 3).config.in_channels == 4  # pyright: ignore
    with pytest.raises(ConfigError, match=r"3 channels alone[\s\S]*received: 4"):
        build_backbone(PPLCNetConfig("pplcnet_x0_25"), 4)
