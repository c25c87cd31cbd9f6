"""PP-YOLOE+: CSPResNet, a path aggregation network of RepVGG blocks and an aligned head without anchors.

Paper: PP-YOLOE, https://arxiv.org/abs/2203.16250; `use_alpha` is what PP-YOLOE+ adds to the network
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/ppyoloe_head.py, configs/ppyoloe
Differs: the loss of a batch is divided by the qualities assigned in the whole batch, over all devices; an image's best
    1000 pairs of box and class are compared in the suppression, not 1000 of each class.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from detection.assigners.assignment import Assignment
from detection.assigners.tal import assign_scheduled
from detection.boxes import boxes_to_distances, distances_to_boxes
from detection.contracts import Detections, Detector, DetectorContract, Targets
from detection.layers.custom_csp_pan import CustomCSPPAN
from detection.layers.grid import Grid, flatten_maps, make_grid
from detection.layers.nms import NMS, DenseDetectorConfig, multiclass_nms
from detection.losses import binary_cross_entropy_with_logits, distribution_focal_loss, giou_loss
from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.engine.task import Losses
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.vision.csp_resnet import CSPResNetConfig

STRIDES = (32, 16, 8)  # coarsest first, as in upstream's names
REG_MAX = 16
NECK_WIDTHS, NECK_DEPTH = (768, 384, 192), 3  # at multipliers of 1
CLASS_WEIGHT, IOU_WEIGHT, DFL_WEIGHT = 1.0, 2.5, 0.5


class Size(NamedTuple):
    """Multipliers of the neck's blocks and channels; entries of the published state, and numbers that it learns."""

    backbone: CSPResNetConfig
    depth: float
    width: float
    entries: int
    params: int


# depth_mult and width_mult of configs/ppyoloe of the reference. With the RepVGG branches folded the parameters are
# the 7.93, 23.43, 52.20 and 98.42 million of its README.
VARIANTS: dict[str, Size] = {
    "s": Size(CSPResNetConfig("s"), 0.33, 0.5, 429, 8_084_594),
    "m": Size(CSPResNetConfig("m"), 0.67, 0.75, 600, 24_134_904),
    "l": Size(CSPResNetConfig("l"), 1.0, 1.0, 771, 54_078_574),
    "x": Size(CSPResNetConfig("x"), 1.33, 1.25, 942, 102_331_508),
}


@dataclass(frozen=True)
class PPYOLOEConfig(DenseDetectorConfig[Size], table=VARIANTS):
    """See DenseDetectorConfig.

    Attributes:
        static_steps: Training steps in which ATSS assigns, before the task-aligned assigner takes over, which needs
            predictions that mean something. The default is upstream's 30 of 80 epochs of COCO in batches of 64.
    """

    variant: str = "s"
    static_steps: int = 54_960
    nms: NMS = field(default_factory=lambda: NMS(0.01, 0.7, 1000, 300))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.static_steps < 0:
            raise ConfigError("static_steps is negative", received=self.static_steps, allowed="0 or more")


class Level(NamedTuple):
    """Raw outputs on one map, float32."""

    classes: jax.Array
    """[N, H, W, num_classes] logits"""
    distances: jax.Array
    """[N, H, W, 4 * (REG_MAX + 1)] logits of the distances to the left, top, right and bottom side, in strides"""


class ESEAttention(nn.Layer):
    """1x1 convolution of channels weighted by the mean of the map."""

    def __init__(self, channels: int, deploy: bool) -> None:
        super().__init__()
        self.fc = nn.Conv2D(channels, channels, 1, weight_attr=I.Normal(0.0, 0.001))
        self.conv = ConvBN(channels, channels, 1, act=F.silu, options=ConvBNOptions(deploy=deploy))

    def forward(self, x: jax.Array, mean: jax.Array) -> jax.Array:
        return self.conv(x * F.sigmoid(self.fc(mean)))


class Projection(nn.Layer):
    """Logits [..., 4 * (REG_MAX + 1)] -> expected distances [..., 4].

    The distances 0 to REG_MAX are a buffer because upstream's checkpoints have them, as a 1x1 convolution.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", np.arange(REG_MAX + 1, dtype=np.float32).reshape(1, -1, 1, 1))

    def forward(self, logits: jax.Array) -> jax.Array:
        return (jax.nn.softmax(split_sides(logits), axis=-1) * self.weight.reshape(-1)).sum(axis=-1)


def split_sides(logits: jax.Array) -> jax.Array:
    """[..., 4 * (REG_MAX + 1)] -> [..., 4, REG_MAX + 1]."""
    return logits.reshape(*logits.shape[:-1], 4, REG_MAX + 1)


class PPYOLOEHead(nn.Layer):
    """Class logits from attended features beside the plain ones, distances from attended features alone."""

    def __init__(self, in_channels: Sequence[int], num_classes: int, deploy: bool) -> None:
        super().__init__()
        prior = -math.log((1 - 0.01) / 0.01)  # scores start at 0.01

        def output(channels: int, width: int, bias: float) -> nn.Conv2D:
            start = nn.ParamAttr(initializer=I.Constant(bias))
            return nn.Conv2D(channels, width, 3, padding=1, weight_attr=I.Constant(0.0), bias_attr=start)

        self.stem_cls = nn.LayerList([ESEAttention(channels, deploy) for channels in in_channels])
        self.stem_reg = nn.LayerList([ESEAttention(channels, deploy) for channels in in_channels])
        self.pred_cls = nn.LayerList([output(channels, num_classes, prior) for channels in in_channels])
        self.pred_reg = nn.LayerList([output(channels, 4 * (REG_MAX + 1), 1.0) for channels in in_channels])
        self.proj_conv = Projection()

    def forward(self, maps: Sequence[jax.Array]) -> tuple[Level, ...]:
        return tuple(self._level(x, level) for level, x in enumerate(maps))

    def _level(self, x: jax.Array, level: int) -> Level:
        mean = F.global_avg_pool2d(x)
        classes = self.pred_cls[level](self.stem_cls[level](x, mean) + x)
        distances = self.pred_reg[level](self.stem_reg[level](x, mean))
        return Level(classes.astype(jnp.float32), distances.astype(jnp.float32))


class FlatOutputs(NamedTuple):
    """The raw outputs of all maps side by side."""

    grid: Grid
    classes: jax.Array
    """[N, L, num_classes] logits"""
    distances: jax.Array
    """[N, L, 4 * (REG_MAX + 1)] logits"""
    boxes: jax.Array
    """[N, L, 4] xyxy in pixels of the input"""


@register("model", config=PPYOLOEConfig)
class PPYOLOE(Detector[PPYOLOEConfig]):
    """Heights and widths are multiples of 32. `forward` gives the coarsest map first."""

    example_shape = (1, 320, 320, 3)
    contract = DetectorContract(published_hw=(640, 640), image=(2, 160, 160, 3))

    def __init__(self, config: PPYOLOEConfig) -> None:
        size = config.parts
        super().__init__(config, size.backbone, config.deploy)
        widths = [max(round(width * size.width), 1) for width in NECK_WIDTHS]
        depth = max(round(NECK_DEPTH * size.depth), 1)
        self.neck = CustomCSPPAN(self.in_channels, widths, depth, config.deploy)
        self.yolo_head = PPYOLOEHead(widths, config.num_classes, config.deploy)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return self.yolo_head(self.neck(self.extract(images)))

    def flatten(self, images: jax.Array) -> FlatOutputs:
        levels = self(images)
        grid = make_grid([level.classes for level in levels], STRIDES)
        distances = flatten_maps([level.distances for level in levels])
        boxes = distances_to_boxes(grid.points, self.yolo_head.proj_conv(distances) * grid.strides)
        return FlatOutputs(grid, flatten_maps([level.classes for level in levels]), distances, boxes)

    def detect(self, images: jax.Array) -> Detections:
        predictions = self.flatten(images)
        return multiclass_nms(predictions.boxes, jax.nn.sigmoid(predictions.classes), self.config.nms)

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        predictions = self.flatten(images)
        scores = jax.nn.sigmoid(predictions.classes)
        assigned = assign_scheduled(
            predictions.grid, scores, predictions.boxes, targets, self.config.static_steps
        )
        quality = assigned.quality
        total = jnp.maximum(quality.sum(), 1)
        target = assigned.boxes(targets.boxes)
        distances = boxes_to_distances(predictions.grid.points, target) / predictions.grid.strides
        # Upstream keeps the target a hundredth below the greatest distance.
        sides = distribution_focal_loss(
            split_sides(predictions.distances), jnp.clip(distances, 0, REG_MAX - 0.01)
        )
        giou = giou_loss(predictions.boxes / predictions.grid.strides, target / predictions.grid.strides)
        terms = {
            "loss_cls": self._class_loss(predictions.classes, assigned, targets.labels) / total,
            "loss_iou": (giou * quality).sum() / total,
            "loss_dfl": (sides.mean(axis=-1) * quality).sum() / total,
        }
        weights = {"loss_cls": CLASS_WEIGHT, "loss_iou": IOU_WEIGHT, "loss_dfl": DFL_WEIGHT}
        return Losses(jnp.asarray(sum(weights[name] * part for name, part in terms.items())), terms)

    def _class_loss(self, logits: jax.Array, assigned: Assignment, labels: jax.Array) -> jax.Array:
        """The summed varifocal loss. Unlike detection.losses.varifocal_loss a positive of quality 0 weighs 0 and does
        not become a negative, as upstream has it here."""
        target = assigned.scores(labels, self.config.num_classes)
        weight = (
            assigned._replace(quality=assigned.positive.astype(jnp.float32)).scores(
                labels, self.config.num_classes
            )
            > 0
        )
        weights = jnp.where(weight, target, 0.75 * jax.nn.sigmoid(logits) ** 2)
        return (weights * binary_cross_entropy_with_logits(logits, target)).sum()
