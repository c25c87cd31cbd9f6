"""HRNet as segmentation uses it: the maps of its four branches side by side."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.nn import functional as F
from zoo.vision.hrnet import HRNet, HRNetConfig

# The backbones of the segmenters by their names. PaddleSeg publishes segmentation weights of w18 and w48.
BACKBONES: dict[str, str] = {
    "hrnet_w18_small_v1": "w18_small_v1",
    "hrnet_w18": "w18",
    "hrnet_w48": "w48",
}


class JoinedHRNet(HRNet):
    """[N, H, W, in_channels] -> [N, ceil(H / 4), ceil(W / 4), channels].

    Source: HRNetV2 of https://arxiv.org/abs/1908.07919, figure 3 (b), before its 1x1 convolution
    """

    def __init__(self, name: str, in_channels: int, align_corners: bool) -> None:
        super().__init__(
            HRNetConfig(
                BACKBONES[name],
                num_classes=0,
                upsample="bilinear",
                align_corners=align_corners,
                same_padding=True,
                in_channels=in_channels,
            )
        )
        self.channels = sum(feature.channels for feature in self.features)

    def forward(self, x: jax.Array) -> jax.Array:
        first, *others = self.forward_features(x)
        size_hw = first.shape[1:3]
        same = [
            F.interpolate(x, size_hw, mode="bilinear", align_corners=self.config.align_corners)
            for x in others
        ]
        return jnp.concatenate([first, *same], axis=-1)
