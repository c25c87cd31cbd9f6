"""PicoDet's first version: ESNet, CSP-PAN and a head that shares the convolution of scores and distances.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/pico_head.py (PicoHead), configs/picodet/legacy_model
Differs: an image's best 1000 pairs of box and class are compared in the suppression, not 1000 of each class.
Weights: `state_dict()` has upstream's names; exported programs load by the order of their operations (deploy form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment
from detection.assigners.simota import simota
from detection.contracts import Detections, Targets
from detection.layers.esnet import ESNet
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
from detection.layers.pico_pan import CSPBlock, PicoPAN
from detection.losses import varifocal_loss
from framework import nn
from framework.config import register
from framework.engine.task import Losses
from framework.nn import functional as F
from zoo.layers.variants import check_variant


class Size(NamedTuple):
    """Width of the backbone and of its 13 blocks, width of neck and head, depth of the head."""

    scale: float
    ratios: tuple[float, ...]
    width: int
    convs: int


_RATIOS = (0.875, 0.5, 1.0, 0.625, 0.5, 0.75, 0.625, 0.625, 0.5, 0.625, 1.0, 0.625, 0.75)
# configs/picodet/legacy_model/picodet_{s,m,l}_*_coco.yml
VARIANTS: dict[str, Size] = {
    "picodet_s_esnet": Size(0.75, (0.875, 0.5, 0.5, 0.5, 0.625, 0.5, 0.625, *(0.5,) * 6), 96, 2),
    "picodet_m_esnet": Size(1.0, _RATIOS, 128, 4),
    "picodet_l_esnet": Size(1.25, _RATIOS, 160, 4),
}
SMALL = "picodet_s_esnet"


@dataclass(frozen=True)
class PicoDetESNetConfig:
    """`deploy` folds the normalisations into convolutions."""

    variant: str = "picodet_s_esnet"
    num_classes: int = 80
    nms: NMS = field(default_factory=NMS)
    deploy: bool = False

    def __post_init__(self) -> None:
        check_variant("PicoDetESNet", self.variant, VARIANTS)


class PicoSharedHead(PicoHeadBase):
    """Logits of scores and distances from one convolution of each level."""

    def __init__(self, width: int, convs: int, num_classes: int, deploy: bool) -> None:
        super().__init__(width, convs, attend=False, deploy=deploy)
        self.num_classes = num_classes
        for level in range(len(STRIDES)):
            # Upstream starts the distances with the bias of the scores too, which a softmax does not see.
            self.add_sublayer(f"head_cls{level}", output_conv(width, num_classes + 4 * (REG_MAX + 1), 0.01))

    def forward(self, maps: Sequence[jax.Array]) -> tuple[tuple[jax.Array, jax.Array], ...]:
        """(class logits [N, H, W, num_classes], distance logits [N, H, W, 4 * (REG_MAX + 1)]) of each map, float32."""
        outs = []
        for level, x in enumerate(maps):
            out = getattr(self, f"head_cls{level}")(self.conv_feat(x, level)).astype(jnp.float32)
            outs.append((out[..., : self.num_classes], out[..., self.num_classes :]))
        return tuple(outs)


@register("model", config=PicoDetESNetConfig)
class PicoDetESNet(nn.Layer):
    """Detector of detection/contracts.py; heights and widths are multiples of 32."""

    training_only: tuple[str, ...] = ()
    example_shape = (1, 320, 320, 3)

    def __init__(self, config: PicoDetESNetConfig) -> None:
        super().__init__()
        self.config = config
        size = VARIANTS[config.variant]
        self.backbone = ESNet(size.scale, size.ratios, config.deploy)
        in_channels = [feature.channels for feature in self.backbone.features]
        self.neck = PicoPAN(in_channels, size.width, CSPBlock, config.deploy)
        self.head = PicoSharedHead(size.width, size.convs, config.num_classes, config.deploy)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return tuple(Level(F.sigmoid(logits), distances) for logits, distances in self._logits(images))

    def _logits(self, images: jax.Array) -> tuple[tuple[jax.Array, jax.Array], ...]:
        return self.head(self.neck(self.backbone.forward_features(images)))

    def detect(self, images: jax.Array) -> Detections:
        levels = self(images)
        _, boxes = decode(levels, self.head.distribution_project)
        return multiclass_nms(boxes, flatten_maps([level.scores for level in levels]), self.config.nms)

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        outs = self._logits(images)
        logits = flatten_maps([out[0] for out in outs])
        levels = [Level(*out) for out in outs]
        project = self.head.distribution_project
        grid, boxes = decode(levels, project)
        scores = jax.lax.stop_gradient(F.sigmoid(logits))
        assigned = self._assign(grid, scores, jax.lax.stop_gradient(boxes), targets)
        count = jnp.maximum(assigned.positive.sum(dtype=jnp.float32), 1)
        weights = jnp.where(assigned.positive, scores.max(axis=-1), 0)
        total = jnp.maximum(weights.sum(), 1)
        wanted_boxes = assigned.boxes(targets.boxes)
        place, sides = localisation_losses(levels, grid, boxes, wanted_boxes, weights, project)
        wanted_scores = assigned.scores(targets.labels, self.config.num_classes)
        parts = {
            "loss_vfl": varifocal_loss(logits, wanted_scores, from_logits=True).sum() / count,
            "loss_bbox": 2.0 * place / total,
            "loss_dfl": 0.25 * sides / total,
        }
        return Losses(sum(parts.values(), jnp.zeros(())), parts)

    def _assign(self, grid: Grid, scores: jax.Array, boxes: jax.Array, targets: Targets) -> Assignment:
        def one(
            scores: jax.Array, boxes: jax.Array, truth: jax.Array, labels: jax.Array, valid: jax.Array
        ) -> Assignment:
            return simota(
                scores, boxes, grid.points, grid.strides, truth, labels, valid, iou_weight=6.0, topk=10
            )

        return jax.vmap(one)(scores, boxes, targets.boxes, targets.labels, targets.valid)
