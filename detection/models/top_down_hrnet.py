"""Top-down HRNet: the keypoints of one person, on a heatmap at a quarter of the input's size.

Paper: https://arxiv.org/abs/1902.09212
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/architectures/keypoint_hrnet.py, configs/keypoint/hrnet
Weights: those of PaddleDetection load with 0 missing and 0 extra; `state_dict()` has its names, those of the backbone
    being PaddleClas's. Images are RGB with ImageNet's mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from detection.contracts import DetectorContract, PoseEstimator, Poses, PoseTargets
from detection.layers.heatmap import (
    PoseConfig,
    PoseSize,
    draw_gaussians,
    flip_permutation,
    mirror_maps,
    refine_peaks,
)
from framework import nn
from framework.config import register
from framework.engine.task import Losses
from framework.nn import initializer as I
from zoo.vision.hrnet import HRNetConfig

# configs/keypoint/hrnet of the reference (w48 is in dark_hrnet_w48_256x192.yml). Its README gives 28.6 million
# parameters for the w32, the paper 63.6 for the w48.
VARIANTS: dict[str, PoseSize] = {
    "w32": PoseSize(HRNetConfig("w32", multi_scale_output=False), 1462, 28_536_113),
    "w48": PoseSize(HRNetConfig("w48", multi_scale_output=False), 1462, 63_595_745),
}

STRIDE = 4
SIGMA, RADIUS = 2, 6  # of the Gaussians, in pixels of the heatmap; upstream's for 256 x 192 and for 384 x 288
_LOSS_SCALE = 0.5


@dataclass(frozen=True)
class TopDownHRNetConfig(PoseConfig, table=VARIANTS):
    """See PoseConfig."""

    variant: str = "w32"


@register("model", config=TopDownHRNetConfig)
class TopDownHRNet(PoseEstimator[TopDownHRNetConfig]):
    """One person an image, K = M = 1; sides are multiples of 32."""

    example_shape = (1, 256, 192, 3)
    contract = DetectorContract(slow=True)

    def __init__(self, config: TopDownHRNetConfig) -> None:
        super().__init__(config, config.parts.backbone, strides=(4,))
        self.final_conv = nn.Conv2D(
            self.in_channels[0], config.num_keypoints, 1, weight_attr=I.Normal(std=0.001)
        )

    def forward(self, images: jax.Array) -> jax.Array:
        """Heatmaps [N, H / 4, W / 4, J] float32."""
        return self.final_conv(self.extract(images)[0]).astype(jnp.float32)

    def loss(self, images: jax.Array, targets: PoseTargets) -> Losses:
        """Mean square error of the heatmaps. Keypoints without label, or whose Gaussian is outside, cost nothing."""
        heatmaps = self(images)
        height, width = heatmaps.shape[1:3]
        at = jnp.trunc(targets.keypoints[..., :2] / STRIDE + 0.5).astype(jnp.int32)
        size = jnp.stack([jnp.asarray(side, jnp.int32) for side in (width, height)])
        # One pixel more on the left and above, where the Gaussian ends beside the map, as in the reference.
        inside = ((at - RADIUS < size) & (at + RADIUS + 1 >= 0)).all(axis=-1)
        counts = targets.valid[..., None] & (targets.keypoints[..., 2] > 0) & inside  # [N, 1, J]
        target = draw_gaussians(at, counts, (height, width), SIGMA, RADIUS)
        loss = _LOSS_SCALE * jnp.where(counts[:, :, None], (heatmaps - target) ** 2, 0).mean()
        return Losses(loss)

    def detect(self, images: jax.Array) -> Poses:
        """The score is the mean height of the peaks; a keypoint's own may be any number."""
        heatmaps = self.heatmaps(images)
        peaks, heights = refine_peaks(heatmaps)
        keypoints = jnp.concatenate([peaks * STRIDE, heights[..., None]], axis=-1)[:, None]
        return Poses(keypoints, jnp.clip(heights.mean(axis=1, keepdims=True), 0, 1))

    def heatmaps(self, images: jax.Array) -> jax.Array:
        """Those of `forward`, or their means with the mirror image's if it is looked at."""
        config = self.config
        if not config.flip_pairs:
            return self(images)
        both = self(jnp.concatenate([images, images[:, :, ::-1]]))
        straight, other = both[: images.shape[0]], both[images.shape[0] :]
        other = mirror_maps(other, flip_permutation(config.num_keypoints, config.flip_pairs))
        # A pixel to the right: keypoints are learned at the corners of pixels, and mirrored corners are one off.
        other = jnp.concatenate([other[:, :, :1], other[:, :, :-1]], axis=2)
        return (straight + other) / 2
