"""YOLOX: CSPDarkNet, a path aggregation network and a head with separate branches, without anchors.

Paper: YOLOX, https://arxiv.org/abs/2107.08430
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/yolo_head.py (YOLOXHead), configs/yolox
Differs: an image's best 1000 pairs of box and class are compared in the suppression, and 100 stay: upstream's own
    choice for speed, for 0.1 % of AP; a batch without objects divides by 1.
Weights: `state_dict()` has PaddleDetection's names. The programs that the authors export (Megvii-BaseDetection/YOLOX)
    load too: `program_ops` joins two convolutions that are one here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from detection.assigners.simota import simota_batch
from detection.contracts import Detections, Detector, DetectorContract, Targets
from detection.layers.csp_blocks import YOLOCSPPAN, base_conv, spatial_conv
from detection.layers.grid import Grid, flatten_maps, make_grid
from detection.layers.nms import NMS, DenseDetectorConfig, multiclass_nms
from detection.losses import binary_cross_entropy_with_logits, iou_loss
from detection.models.backbones.csp_darknet import CSPDarkNetConfig
from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.engine.task import Losses
from framework.interop.weights.weighted import WeightedOp
from framework.nn import initializer as I
from framework.nn.functional.slopes import absolute

STRIDES = (8, 16, 32)
HEAD_WIDTH = 256  # at a multiplier of 1
IOU_WEIGHT = 5.0


class Size(NamedTuple):
    """Multipliers of neck and head, and whether their 3x3 convolutions are separable.

    `entries` are those of the published state, `params` the numbers that it learns.
    """

    backbone: CSPDarkNetConfig
    depth: float
    width: float
    depthwise: bool
    entries: int
    params: int


# configs/yolox of PaddleDetection; table 3 and 4 of the paper: 0.91, 5.06, 9.0, 25.3, 54.2 and 99.1 million parameters
VARIANTS: dict[str, Size] = {
    "nano": Size(CSPDarkNetConfig("nano"), 0.33, 0.25, True, 532, 912_159),
    "tiny": Size(CSPDarkNetConfig("tiny"), 0.33, 0.375, False, 382, 5_055_855),
    "s": Size(CSPDarkNetConfig("s"), 0.33, 0.5, False, 382, 8_968_255),
    "m": Size(CSPDarkNetConfig("m"), 0.67, 0.75, False, 502, 25_326_495),
    "l": Size(CSPDarkNetConfig("l"), 1.0, 1.0, False, 622, 54_208_895),
    "x": Size(CSPDarkNetConfig("x"), 1.33, 1.25, False, 742, 99_071_455),
}


@dataclass(frozen=True)
class YOLOXConfig(DenseDetectorConfig[Size], table=VARIANTS):
    """See DenseDetectorConfig.

    Attributes:
        l1_from: Training steps after which the distance of the sides is part of the loss, None for never. Upstream
            begins when it ends mosaic and mixup, 15 epochs before the last.
    """

    variant: str = "nano"
    l1_from: int | None = None
    nms: NMS = field(default_factory=lambda: NMS(0.01, 0.65, 1000, 100))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.l1_from is not None and self.l1_from < 0:
            raise ConfigError("l1_from is negative", received=self.l1_from, allowed="0 or more, or null")


class Level(NamedTuple):
    """Raw outputs on one map, float32."""

    classes: jax.Array
    """[N, H, W, num_classes] logits"""
    boxes: jax.Array
    """[N, H, W, 4]: centre from the cell's corner, and logarithms of width and height, in strides"""
    objects: jax.Array
    """[N, H, W, 1] logits"""


class FlatOutputs(NamedTuple):
    """The outputs of all maps side by side."""

    grid: Grid
    classes: jax.Array
    """[N, L, num_classes] logits"""
    boxes: jax.Array
    """[N, L, 4] xyxy in strides"""
    objects: jax.Array
    """[N, L, 1] logits"""

    def scores(self) -> jax.Array:
        """[N, L, num_classes]: the geometric mean of the probabilities of an object and of its class."""
        return jnp.sqrt(jax.nn.sigmoid(self.classes) * jax.nn.sigmoid(self.objects))


class YOLOXHead(nn.Layer):
    """A 1x1 convolution, then two 3x3 for the class and two for box and objectness, with own weights on each level."""

    def __init__(
        self, in_channels: Sequence[int], width: int, num_classes: int, depthwise: bool, deploy: bool
    ) -> None:
        super().__init__()
        prior = -math.log((1 - 0.01) / 0.01)  # probabilities start at 0.01

        def branch(bias: Sequence[float]) -> nn.Sequential:
            start = nn.ParamAttr(initializer=I.Assign(np.asarray(bias, np.float32)))
            return nn.Sequential(
                spatial_conv(width, width, 1, depthwise, deploy),
                spatial_conv(width, width, 1, depthwise, deploy),
                nn.Conv2D(width, len(bias), 1, weight_attr=I.Constant(0.0), bias_attr=start),
            )

        self.stem_conv = nn.LayerList(
            [base_conv(channels, width, 1, deploy=deploy) for channels in in_channels]
        )
        self.conv_cls = nn.LayerList([branch([prior] * num_classes) for _ in in_channels])
        box = [0.0, 0.0, math.log(5.0), math.log(5.0)]
        self.conv_reg = nn.LayerList([branch([*box, prior]) for _ in in_channels])

    def forward(self, maps: Sequence[jax.Array]) -> tuple[Level, ...]:
        levels = []
        for stem, classify, regress, x in zip(
            self.stem_conv, self.conv_cls, self.conv_reg, maps, strict=True
        ):
            x = stem(x)
            classes, boxes = classify(x).astype(jnp.float32), regress(x).astype(jnp.float32)
            levels.append(Level(classes, boxes[..., :4], boxes[..., 4:]))
        return tuple(levels)


@register("model", config=YOLOXConfig)
class YOLOX(Detector[YOLOXConfig]):
    """Heights and widths are multiples of 32.

    Images keep their aspect when resized, are filled with 114 to the right and below, and have values of 0 to 255: BGR
    for the authors' weights, RGB for PaddleDetection's.
    """

    example_shape = (1, 416, 416, 3)
    contract = DetectorContract(published_hw=(640, 640), image=(2, 128, 128, 3), gain=1.6)

    def __init__(self, config: YOLOXConfig) -> None:
        size = config.parts
        super().__init__(config, size.backbone, config.deploy)
        channels = self.in_channels
        self.neck = YOLOCSPPAN(channels, size.depth, size.depthwise, config.deploy)
        width = int(HEAD_WIDTH * size.width)
        self.head = YOLOXHead(channels, width, config.num_classes, size.depthwise, config.deploy)

    @staticmethod
    def program_ops(ops: Sequence[WeightedOp]) -> list[WeightedOp]:
        """The operations of an exported program; the authors' two convolutions of box and objectness become one."""
        joined: list[WeightedOp] = []
        for op in ops:
            last = joined[-1] if joined else None
            if last is not None and _outputs(last) == 4 and _outputs(op) == 1:
                arrays = {key: np.concatenate([last.arrays[key], op.arrays[key]]) for key in op.arrays}
                source = {key: f"{last.source[key]} + {op.source[key]}" for key in op.source}
                joined[-1] = WeightedOp("conv", arrays, source, last.node)
            else:
                joined.append(op)
        return joined

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return self.head(self.neck(self.extract(images)))

    def flatten(self, images: jax.Array) -> FlatOutputs:
        levels = self(images)
        grid = make_grid([level.boxes for level in levels], STRIDES)
        raw = flatten_maps([level.boxes for level in levels])
        centre, half = raw[..., :2] + grid.points / grid.strides - 0.5, jnp.exp(raw[..., 2:]) / 2
        return FlatOutputs(
            grid,
            flatten_maps([level.classes for level in levels]),
            jnp.concatenate([centre - half, centre + half], axis=-1),
            flatten_maps([level.objects for level in levels]),
        )

    def detect(self, images: jax.Array) -> Detections:
        predictions = self.flatten(images)
        return multiclass_nms(
            predictions.boxes * predictions.grid.strides, predictions.scores(), self.config.nms
        )

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        predictions = self.flatten(images)
        predicted = predictions.boxes * predictions.grid.strides
        assigned = simota_batch(predictions.grid, predictions.scores(), predicted, targets, varifocal=False)
        positive = assigned.positive[..., None]
        weights = positive.astype(jnp.float32)
        total = jnp.maximum(weights.sum(), 1)
        # Cells without an object take boxes that cost nothing: their own may have overflowed.
        matched = jnp.where(positive, predictions.boxes, 0)
        target = jnp.where(positive, assigned.boxes(targets.boxes) / predictions.grid.strides, 0)
        wanted_scores = assigned.scores(targets.labels, self.config.num_classes)
        classes = binary_cross_entropy_with_logits(predictions.classes, wanted_scores)
        objects = binary_cross_entropy_with_logits(predictions.objects, weights)
        terms = {
            "loss_cls": (classes * weights).sum() / total,
            "loss_obj": objects.sum() / total,
            "loss_iou": (iou_loss(matched, target, square=True) * weights[..., 0]).sum() / total,
        }
        loss = terms["loss_cls"] + terms["loss_obj"] + IOU_WEIGHT * terms["loss_iou"]
        if self.config.l1_from is not None:
            sides = absolute(matched - target).sum() / total
            terms["loss_l1"] = jnp.where(targets.step >= self.config.l1_from, sides, 0)
            loss += terms["loss_l1"]
        return Losses(loss, terms)


def _outputs(op: WeightedOp) -> int:
    """Output channels of a 1x1 convolution, 0 of anything else."""
    shape = op.arrays["weight"].shape
    return shape[0] if op.kind == "conv" and shape[2:] == (1, 1) else 0
