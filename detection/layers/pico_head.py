"""What both versions of PicoDet share: the parts of the heads, and the detector around backbone, neck and head.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/pico_head.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from detection.boxes import boxes_to_distances, distances_to_boxes
from detection.contracts import Detections, Detector
from detection.layers.grid import Grid, flatten_maps, make_grid
from detection.layers.nms import DenseDetectorConfig, multiclass_nms
from detection.layers.pico_pan import PicoPAN
from detection.losses import distribution_focal_loss, giou_loss
from framework import nn
from framework.nn import functional as F
from framework.nn.reparam import Arrays
from zoo.contracts import BackboneConfig
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

STRIDES = (8, 16, 32, 64)
REG_MAX = 7
_SMALL_NORMAL = nn.initializer.Normal(0.0, 0.01)


class Size(NamedTuple):
    """Width of neck and head, depth of the head; `params` are the numbers that the published network learns."""

    backbone: BackboneConfig
    width: int
    convs: int
    params: int


class Level(NamedTuple):
    """Raw outputs on one map, float32."""

    scores: jax.Array
    """[N, H, W, num_classes] probabilities"""
    distances: jax.Array
    """[N, H, W, 4 * (REG_MAX + 1)] logits of the distances to the four sides, in strides"""


class Integral(nn.Layer):
    """Logits [..., 4 * (reg_max + 1)] -> expected distances [..., 4] to the left, top, right and bottom side.

    Paper: Li et al. 2020, https://arxiv.org/abs/2006.04388

    The distances 0 to reg_max are a buffer because upstream's checkpoints have them; exported programs do not.
    """

    def __init__(self, reg_max: int, deploy: bool = False) -> None:
        super().__init__()
        self.register_buffer("project", np.arange(reg_max + 1, dtype=np.float32), persistable=not deploy)

    def deploy_state(self) -> Arrays:
        return {}

    def forward(self, logits: jax.Array) -> jax.Array:
        shares = jax.nn.softmax(self.split(logits), axis=-1)
        return (shares * self.project).sum(axis=-1)

    def split(self, logits: jax.Array) -> jax.Array:
        """[..., 4, reg_max + 1] float32."""
        return logits.astype(jnp.float32).reshape(*logits.shape[:-1], 4, self.project.shape[0])


def _conv(width: int, kernel_size: int, deploy: bool, groups: int = 1) -> ConvBN:
    options = ConvBNOptions(groups=groups, initializer=_SMALL_NORMAL, names=("conv", "norm"), deploy=deploy)
    return ConvBN(width, width, kernel_size, act=F.hardswish, options=options)


class PicoFeatures(nn.Layer):
    """Depthwise separable convolutions of each level, with their own weights."""

    def __init__(self, width: int, convs: int, attend: bool, deploy: bool) -> None:
        super().__init__()
        levels = len(STRIDES)
        for level in range(levels):
            deep = [_conv(width, 5, deploy, groups=width) for _ in range(convs)]
            wide = [_conv(width, 1, deploy) for _ in range(convs)]
            self.add_sublayer(f"cls_conv_dw{level}", nn.LayerList(deep))
            self.add_sublayer(f"cls_conv_pw{level}", nn.LayerList(wide))
        if attend:
            self.se = nn.LayerList([PicoAttention(width, deploy) for _ in range(levels)])

    def forward(self, x: jax.Array, level: int) -> jax.Array:
        for spatial, pointwise in zip(
            getattr(self, f"cls_conv_dw{level}"), getattr(self, f"cls_conv_pw{level}"), strict=True
        ):
            x = pointwise(spatial(x))
        return x


class PicoAttention(nn.Layer):
    """Channels weighted by what the whole map holds."""

    def __init__(self, width: int, deploy: bool) -> None:
        super().__init__()
        self.fc = nn.Conv2D(width, width, 1, weight_attr=nn.initializer.Normal(0.0, 0.001))
        self.conv = _conv(width, 1, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.conv(x * F.sigmoid(self.fc(F.global_avg_pool2d(x))))


class PicoHeadBase(nn.Layer):
    """The features of the four maps and how distances are read; subclasses add the output convolutions."""

    def __init__(self, width: int, convs: int, attend: bool, deploy: bool) -> None:
        super().__init__()
        self.distribution_project = Integral(REG_MAX, deploy)
        self.conv_feat = PicoFeatures(width, convs, attend, deploy)
        if not deploy:
            for level in range(len(STRIDES)):
                self.add_sublayer(f"p{level + 3}_feat", _UnusedScale())


class _UnusedScale(nn.Layer):
    """A scalar that upstream's head inherits and its checkpoints carry; nothing reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale_reg", np.ones(1, np.float32))

    def deploy_state(self) -> Arrays:
        return {}


def output_conv(in_channels: int, out_channels: int, prior: float | None = None) -> nn.Conv2D:
    """The last 1x1 convolution, whose sigmoid starts at the probability `prior`."""
    bias = 0.0 if prior is None else -math.log((1 - prior) / prior)
    constant = nn.ParamAttr(initializer=nn.initializer.Constant(bias))
    return nn.Conv2D(in_channels, out_channels, 1, weight_attr=_SMALL_NORMAL, bias_attr=constant)


def decode(levels: Sequence[Level], project: Integral) -> tuple[Grid, jax.Array]:
    """(cells, boxes [N, L, 4] xyxy in pixels)."""
    grid = make_grid([level.distances for level in levels], STRIDES)
    distances = project(flatten_maps([level.distances for level in levels])) * grid.strides
    return grid, distances_to_boxes(grid.points, distances)


def localisation_losses(
    levels: Sequence[Level],
    grid: Grid,
    boxes: jax.Array,
    targets: jax.Array,
    weights: jax.Array,
    project: Integral,
) -> tuple[jax.Array, jax.Array]:
    """(sum of weighted 1 - GIoU, sum of weighted distribution focal loss); boxes and targets [N, L, 4] in pixels,
    weights [N, L]."""
    in_strides = [x / grid.strides for x in (boxes, targets)]
    giou = (giou_loss(*in_strides) * weights).sum()
    logits = project.split(flatten_maps([level.distances for level in levels]))
    distances = boxes_to_distances(grid.points, targets) / grid.strides
    # Upstream keeps the target a tenth below the greatest distance.
    sides = distribution_focal_loss(logits, jnp.clip(distances, 0, REG_MAX - 0.1))  # [N, L, 4]
    return giou, (sides.mean(axis=-1) * weights).sum()


ConfigT = TypeVar("ConfigT", bound=DenseDetectorConfig[Size])


class PicoDetector(Detector[ConfigT]):
    """`block` mixes two maps in the neck, and `head` makes the head from the width of both, its depth, the number of
    classes and whether it is the deploy form. Subclasses have `forward` and `loss`."""

    example_shape = (1, 320, 320, 3)

    def __init__(
        self,
        config: ConfigT,
        block: Callable[[int, int, bool], nn.Layer],
        head: Callable[[int, int, int, bool], PicoHeadBase],
    ) -> None:
        size, deploy = config.parts, config.deploy
        # Before the backbone: the values that a seed gives to parameters follow from their order.
        heads = head(size.width, size.convs, config.num_classes, deploy)
        super().__init__(config, size.backbone, deploy)
        self.nms = config.nms
        self.neck = PicoPAN(self.in_channels, size.width, block, deploy)
        self.head = heads

    def maps(self, images: jax.Array) -> tuple[jax.Array, ...]:
        """What the head reads, [N, H / stride, W / stride, width] at STRIDES."""
        return self.neck(self.extract(images))

    def detect(self, images: jax.Array) -> Detections:
        levels = self(images)
        _, boxes = decode(levels, self.head.distribution_project)
        return multiclass_nms(boxes, flatten_maps([level.scores for level in levels]), self.nms)
