import jax.numpy as jnp
import numpy as np
import pytest

from framework.nn import functional as F
from segmentation.layers.hrnet import JoinedHRNet
from zoo.vision.hrnet import HRNet


@pytest.mark.parametrize(
    ("name", "channels"), [("hrnet_w18_small_v1", 240), ("hrnet_w18", 270), ("hrnet_w48", 720)]
)
def test_channels(name: str, channels: int) -> None:
    assert JoinedHRNet(name, 3, align_corners=False).channels == channels


@pytest.mark.parametrize("align_corners", [False, True])
def test_maps_side_by_side(align_corners: bool) -> None:
    backbone = JoinedHRNet("hrnet_w18_small_v1", 1, align_corners).eval()
    maps = [np.random.default_rng(i).standard_normal((1, 3, 5, 2), np.float32) for i in range(4)]
    maps[3] = maps[3][:, :1, :2]
    backbone.forward_features = lambda x: tuple(map(jnp.asarray, maps))
    out = backbone(np.zeros((1, 12, 20, 1), np.float32))
    np.testing.assert_array_equal(out[..., :6], np.concatenate(maps[:3], axis=-1))
    resized = F.interpolate(jnp.asarray(maps[3]), (3, 5), mode="bilinear", align_corners=align_corners)
    np.testing.assert_array_equal(out[..., 6:], resized)
    if align_corners:  # corners stay what they are, and the middle column is between the two
        np.testing.assert_allclose(
            out[0, 1, [0, 2, 4], 6],
            [maps[3][0, 0, 0, 0], maps[3][0, 0, :, 0].mean(), maps[3][0, 0, 1, 0]],
            rtol=1e-6,
        )


def test_it_is_the_backbone_as_paddleseg_has_it() -> None:
    backbone = JoinedHRNet("hrnet_w18_small_v1", 5, align_corners=False)
    assert (
        isinstance(backbone, HRNet)
        and backbone.config.same_padding
        and backbone.config.upsample == "bilinear"
    )
    assert backbone.state_shapes()["conv_layer1_1.conv.weight"] == (64, 5, 3, 3)
    assert "fc.weight" not in backbone.state_shapes()
