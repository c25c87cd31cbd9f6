"""HigherHRNet: the keypoints of all people at once, on maps at a half of the input's size, and tags that group them.

Paper: https://arxiv.org/abs/1908.10357; tags: Associative Embedding, https://arxiv.org/abs/1611.05424
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/architectures/keypoint_hrhrnet.py, configs/keypoint/higherhrnet
Differs: people are grouped in the program, see detection/layers/tag_grouping.py. SWAHR's scale maps are left out.
Weights: PaddleDetection's names load through `state_renames` with 0 missing and 0 extra; in `state_dict()` the
    backbone's are PaddleClas's. Images are RGB with ImageNet's mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.contracts import DetectorContract, PoseEstimator, Poses, PoseTargets
from detection.layers.heatmap import PoseConfig, PoseSize, draw_gaussians, flip_permutation, mirror_maps
from detection.layers.tag_grouping import group_by_tags
from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.engine.task import Losses
from framework.hub.names import Names
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.vision.hrnet import BasicBlock, HRNetConfig

# configs/keypoint/higherhrnet of the reference, and of the paper's table 1; counted in ppdet, its README gives none
VARIANTS: dict[str, PoseSize] = {
    "w32": PoseSize(HRNetConfig("w32", multi_scale_output=False), 1509, 28_645_331),
}

SIGMA, RADIUS = 2, 7  # of the Gaussians, in pixels of each map
STRIDES = (4, 2)
_BLOCKS = 4
_MOST = 2.0  # that one pixel of a heatmap costs
_TAG_WEIGHT = 0.001


@dataclass(frozen=True)
class HigherHRNetConfig(PoseConfig, table=VARIANTS):
    """`max_people`, `heat_threshold`, `tag_threshold`: see detection/layers/tag_grouping.py; the others: PoseConfig."""

    variant: str = "w32"
    max_people: int = 30
    heat_threshold: float = 0.1
    tag_threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_people < 1:
            raise ConfigError(
                "nobody is looked for", received=f"max_people={self.max_people}", allowed="1 or more"
            )


class Maps(NamedTuple):
    """Raw outputs, float32."""

    coarse: jax.Array
    """[N, H / 4, W / 4, J] heatmaps"""
    tags: jax.Array
    """[N, H / 4, W / 4, J]"""
    fine: jax.Array
    """[N, H / 2, W / 2, J] heatmaps"""


class HrHRNetHead(nn.Layer):
    """Heatmaps and tags of the backbone's finest map; from both together finer heatmaps."""

    state_renames = Names("detection/weights/keypoint.yml", "HrHRNetHead")

    def official_names(self, suite: str) -> dict[str, str]:
        """Names of PaddleDetection to ours."""
        return {name.replace(".bn.", ".norm."): name for name in self.state_shapes() if suite == "paddledet"}

    def __init__(self, width: int, num_keypoints: int) -> None:
        super().__init__()
        small = I.Normal(std=0.001)
        self.num_keypoints = num_keypoints
        self.conv1 = nn.Conv2D(width, 2 * num_keypoints, 1, weight_attr=small)
        self.conv2 = nn.Conv2D(width, num_keypoints, 1, weight_attr=small)
        self.deconv = nn.Sequential(
            nn.Conv2DTranspose(2 * num_keypoints + width, width, 4, 2, 1, weight_attr=small, bias_attr=False),
            nn.BatchNorm2D(width),
            nn.ReLU(),
        )
        self.blocks = nn.Sequential(*(BasicBlock(width) for _ in range(_BLOCKS)))

    def forward(self, x: jax.Array) -> Maps:
        first = self.conv1(x)  # [N, H/4, W/4, 2 * J]
        larger = self.deconv(jnp.concatenate([x, first], axis=-1))  # [N, H/2, W/2, C]
        second = self.conv2(self.blocks(larger))  # [N, H/2, W/2, J]
        coarse, tags = jnp.split(first.astype(jnp.float32), 2, axis=-1)
        return Maps(coarse, tags, second.astype(jnp.float32))


@register("model", config=HigherHRNetConfig)
class HigherHRNet(PoseEstimator[HigherHRNetConfig]):
    """Heights and widths are multiples of 32."""

    example_shape = (1, 512, 512, 3)
    contract = DetectorContract(people=2, slow=True)

    def __init__(self, config: HigherHRNetConfig) -> None:
        super().__init__(config, config.parts.backbone, strides=(4,))
        self.hrhrnet_head = HrHRNetHead(self.in_channels[0], config.num_keypoints)

    def forward(self, images: jax.Array) -> Maps:
        return self.hrhrnet_head(self.extract(images)[0])

    def loss(self, images: jax.Array, targets: PoseTargets) -> Losses:
        """Source: section 3.3; the losses of tags are those of Associative Embedding, section 3.2."""
        maps = self(images)
        used = jnp.ones(images.shape[:3], bool) if targets.ignore is None else ~targets.ignore
        visible = targets.valid[..., None] & (targets.keypoints[..., 2] > 0)
        heat = jnp.zeros(())
        for heatmaps, stride in zip((maps.coarse, maps.fine), STRIDES, strict=True):
            at, inside = _cells(targets.keypoints, stride, heatmaps)
            target = draw_gaussians(at, visible & inside, heatmaps.shape[1:3], SIGMA, RADIUS)
            mask = used[:, ::stride, ::stride, None]
            heat += jnp.where(mask, jnp.minimum((heatmaps - target) ** 2, _MOST), 0).mean()
        at, inside = _cells(targets.keypoints, STRIDES[0], maps.tags)
        pull, push = tag_losses(maps.tags, at, visible & inside)
        terms = {
            "heatmap_loss": heat,
            "pull_loss": _TAG_WEIGHT * pull.mean(),
            "push_loss": _TAG_WEIGHT * push.mean(),
        }
        return Losses(sum(terms.values(), jnp.zeros(())), terms)

    def detect(self, images: jax.Array) -> Poses:
        heat, tags = self.heatmaps(images)
        heat, *tags = (_double_size(x) for x in (heat, *tags))  # [N, H, W, J]
        config = self.config
        return group_by_tags(heat, tags, config.max_people, config.heat_threshold, config.tag_threshold)

    def heatmaps(self, images: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        """(the mean heatmap of both scales, the tags, and those of the mirror image if it is looked at).

        All are [N, H / 2, W / 2, J].
        """
        config = self.config
        if not config.flip_pairs:
            heat, tags = self._concat_outputs(images)
            return heat, [tags]
        order = flip_permutation(config.num_keypoints, config.flip_pairs)
        both = self._concat_outputs(jnp.concatenate([images, images[:, :, ::-1]]))
        n = images.shape[0]
        (heat, other), (tags, theirs) = ((x[:n], x[n:]) for x in both)
        return (heat + mirror_maps(other, order)) / 2, [tags, mirror_maps(theirs, order)]

    def _concat_outputs(self, images: jax.Array) -> tuple[jax.Array, jax.Array]:
        maps = self(images)
        return (_double_size(maps.coarse) + maps.fine) / 2, _double_size(maps.tags)


def _double_size(x: jax.Array) -> jax.Array:
    return F.interpolate(x, (2 * x.shape[1], 2 * x.shape[2]), mode="bilinear")


def _cells(keypoints: jax.Array, stride: int, maps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(the pixels of a map [N, M, J, 2] int32 xy in which keypoints lie, whether these exist [N, M, J])."""
    at = jnp.trunc(keypoints[..., :2] / stride).astype(jnp.int32)
    size = jnp.stack([jnp.asarray(side, jnp.int32) for side in (maps.shape[2], maps.shape[1])])
    return at, ((at >= 0) & (at < size)).all(axis=-1)


def tag_losses(tags: jax.Array, at: jax.Array, visible: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(pull [N], push [N]): the tags of a person are near to their mean, the means of people far from one another.

    Args:
        tags: [N, H, W, J] float32.
        at: [N, M, J, 2] int32, x and y of the pixel in which a keypoint lies.
        shown: [N, M, J] bool: the keypoints that count.
    """
    n, keypoints = tags.shape[0], tags.shape[-1]
    at = jnp.where(visible[..., None], at, 0)
    tags_at = tags[jnp.arange(n)[:, None, None], at[..., 1], at[..., 0], jnp.arange(keypoints)]  # [N, M, J]
    number = visible.sum(axis=-1, dtype=jnp.float32)
    divisor = jnp.maximum(number, 1)
    means = jnp.where(visible, tags_at, 0).sum(axis=-1) / divisor
    spread = jnp.where(visible, (tags_at - means[..., None]) ** 2, 0).sum(axis=-1) / divisor
    real = number > 0
    people = real.sum(axis=-1, dtype=jnp.float32)
    # A person of one keypoint pulls nothing together.
    pull = spread.sum(axis=-1) / jnp.maximum((number > 1).sum(axis=-1, dtype=jnp.float32), 1)
    pairs = real[:, :, None] & real[:, None] & ~jnp.eye(real.shape[1], dtype=bool)
    near = jnp.where(pairs, jnp.exp(-((means[:, :, None] - means[:, None]) ** 2)), 0)
    return pull, near.sum(axis=(1, 2)) / jnp.maximum(2 * people * (people - 1), 1)
