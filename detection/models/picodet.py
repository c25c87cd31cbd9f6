"""PicoDet with LCNet, LC-PAN and an aligned head: detectors of 0.7 to 5.8 million parameters.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902 (this is its second version, released with PaddleDetection 2.4)
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/pico_head.py (PicoHeadV2), configs/picodet
Differs: the loss divides by at least 1, which upstream does on several devices only; an image's best 1000 pairs of box
    and class are compared in the suppression, not 1000 of each class.
Weights: `state_dict()` has upstream's names. Upstream stores each output convolution a second time under
    `head.head_cls_list` and `head.head_reg_list`; these names are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment
from detection.assigners.atss import atss
from detection.assigners.tal import task_aligned
from detection.contracts import Detections, Targets
from detection.layers.grid import Grid, flatten_maps
from detection.layers.nms import NMS, multiclass_nms
from detection.layers.pico_head import (
    REG_MAX,
    STRIDES,
    Level,
    PicoHeadBase,
    decode,
    localisation_losses,
    output_conv,
)
from detection.layers.pico_pan import PicoPAN, SpatialThenPointwise, lc_block
from detection.losses import varifocal_loss
from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.engine.task import Losses
from framework.nn import functional as F
from zoo.contracts import build_backbone
from zoo.layers.variants import check_variant
from zoo.vision.pp_lcnet import PPLCNetConfig


class Size(NamedTuple):
    """Backbone, width of neck and head, depth of the head."""

    backbone: str
    width: int
    convs: int


# configs/picodet/picodet_{xs,s,m,l}_*_coco_lcnet.yml; input sizes of 320, 416 and 640 have the same networks.
VARIANTS: dict[str, Size] = {
    "picodet_xs": Size("pplcnet_x0_35", 96, 2),
    "picodet_s": Size("pplcnet_x0_75", 96, 2),
    "picodet_m": Size("pplcnet_x1_5", 128, 4),
    "picodet_l": Size("pplcnet_x2_0", 160, 4),
}
SMALL = "picodet_xs"


@dataclass(frozen=True)
class PicoDetConfig:
    """`deploy` folds the normalisations into convolutions.

    Attributes:
        static_steps: Training steps in which ATSS assigns, before the task-aligned assigner takes over, which needs
            predictions that mean something. The default is upstream's 100 of 300 epochs of COCO.
    """

    variant: str = "picodet_s"
    num_classes: int = 80
    static_steps: int = 61_000
    nms: NMS = field(default_factory=NMS)
    deploy: bool = False

    def __post_init__(self) -> None:
        check_variant("PicoDet", self.variant, VARIANTS)
        if self.static_steps < 0:
            raise ConfigError(
                "static_steps is a number of steps", received=self.static_steps, allowed="0 or more"
            )


class PicoHead(PicoHeadBase):
    """Scores that a map of alignment corrects, and distances, from the same features."""

    def __init__(self, width: int, convs: int, num_classes: int, deploy: bool) -> None:
        super().__init__(width, convs, attend=True, deploy=deploy)
        for level in range(len(STRIDES)):
            self.add_sublayer(f"head_cls{level}", output_conv(width, num_classes, prior=0.01))
            self.add_sublayer(f"head_reg{level}", output_conv(width, 4 * (REG_MAX + 1)))
        self.cls_align = nn.LayerList(
            [SpatialThenPointwise(width, 1, 5, linear=True, deploy=deploy) for _ in STRIDES]
        )

    def state_aliases(self) -> dict[str, str]:
        return {
            f"head_{kind}_list.{level}.{entry}": f"head_{kind}{level}.{entry}"
            for kind in ("cls", "reg")
            for level in range(len(STRIDES))
            for entry in ("weight", "bias")
        }

    def forward(self, maps: Sequence[jax.Array]) -> tuple[Level, ...]:
        return tuple(self._level(x, level) for level, x in enumerate(maps))

    def _level(self, x: jax.Array, level: int) -> Level:
        x = self.conv_feat(x, level)
        attended = self.conv_feat.se[level](x)
        scores = F.sigmoid(getattr(self, f"head_cls{level}")(attended).astype(jnp.float32))
        distances = getattr(self, f"head_reg{level}")(attended).astype(jnp.float32)
        aligned = F.sigmoid(self.cls_align[level](x).astype(jnp.float32))
        return Level(jnp.sqrt(scores * aligned + 1e-9), distances)


@register("model", config=PicoDetConfig)
class PicoDet(nn.Layer):
    """Detector of detection/contracts.py; heights and widths are multiples of 32."""

    training_only: tuple[str, ...] = ()
    example_shape = (1, 320, 320, 3)

    def __init__(self, config: PicoDetConfig) -> None:
        super().__init__()
        self.config = config
        size = VARIANTS[config.variant]
        self.backbone = build_backbone(PPLCNetConfig(variant=size.backbone, deploy=config.deploy))
        in_channels = [feature.channels for feature in self.backbone.features[1:]]
        self.neck = PicoPAN(in_channels, size.width, lc_block, config.deploy)
        self.head = PicoHead(size.width, size.convs, config.num_classes, config.deploy)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return self.head(self.neck(self.backbone.forward_features(images)[1:]))

    def detect(self, images: jax.Array) -> Detections:
        levels = self(images)
        _, boxes = decode(levels, self.head.distribution_project)
        return multiclass_nms(boxes, flatten_maps([level.scores for level in levels]), self.config.nms)

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        levels = self(images)
        project = self.head.distribution_project
        grid, boxes = decode(levels, project)
        scores = flatten_maps([level.scores for level in levels])
        assigned = self._assign(grid, scores, boxes, targets)
        wanted_scores = assigned.scores(targets.labels, self.config.num_classes)
        wanted_boxes = assigned.boxes(targets.boxes)
        total = jnp.maximum(assigned.quality.sum(), 1)
        place, sides = localisation_losses(levels, grid, boxes, wanted_boxes, assigned.quality, project)
        parts = {
            "loss_vfl": varifocal_loss(scores, wanted_scores).sum() / total,
            "loss_bbox": 2.5 * place / total,
            "loss_dfl": 0.5 * sides / total,
        }
        return Losses(sum(parts.values(), jnp.zeros(())), parts)

    def _assign(self, grid: Grid, scores: jax.Array, boxes: jax.Array, targets: Targets) -> Assignment:
        scores, boxes = jax.lax.stop_gradient((scores, boxes))
        anchors = grid.anchors(5.0)

        def static() -> Assignment:
            one = lambda gt, valid, box: atss(gt, valid, anchors, grid.counts, box)  # noqa: E731
            return jax.vmap(one)(targets.boxes, targets.valid, boxes)

        def aligned() -> Assignment:
            one = lambda score, box, gt, label, valid: task_aligned(score, box, grid.points, gt, label, valid)  # noqa: E731
            return jax.vmap(one)(scores, boxes, targets.boxes, targets.labels, targets.valid)

        return jax.lax.cond(targets.step < self.config.static_steps, static, aligned)
