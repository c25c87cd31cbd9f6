"""PicoDet's first version: ESNet, CSP-PAN and a head that shares the convolution of scores and distances.

PP-Structure V2's layout analysis puts neck and head on LCNet.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/heads/pico_head.py (PicoHead), configs/picodet/legacy_model
Differs: an image's best 1000 pairs of box and class are compared in the suppression, not 1000 of each class.
Weights: `state_dict()` has upstream's names; exported programs load by the order of their operations (deploy form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from detection.assigners.simota import simota_batch
from detection.contracts import Targets
from detection.layers.grid import flatten_maps
from detection.layers.nms import DenseDetectorConfig
from detection.layers.pico_head import (
    REG_MAX,
    STRIDES,
    Level,
    PicoDetector,
    PicoHeadBase,
    Size,
    decode,
    localisation_losses,
    output_conv,
)
from detection.losses import varifocal_loss
from detection.models.backbones.esnet import ESNetConfig
from framework.config import register
from framework.engine.task import Losses
from framework.nn import functional as F
from zoo.layers.csp_pan import CSPBlock
from zoo.vision.pp_lcnet import PPLCNetConfig

# configs/picodet/legacy_model/picodet_{s,m,l}_*_coco.yml; its README gives 0.99, 2.15 and 3.31 million parameters.
# The last one: legacy_model/application/layout_analysis/picodet_lcnet_x1_0_layout.yml, counted in the reference.
VARIANTS: dict[str, Size] = {
    "picodet_s_esnet": Size(ESNetConfig("esnet_x0_75"), 96, 2, 992_715),
    "picodet_m_esnet": Size(ESNetConfig("esnet_x1_0"), 128, 4, 2_152_554),
    "picodet_l_esnet": Size(ESNetConfig("esnet_x1_25"), 160, 4, 3_305_009),
    "picodet_layout_1x": Size(PPLCNetConfig("pplcnet_x1_0"), 128, 4, 1_830_688),
}


@dataclass(frozen=True)
class PicoDetESNetConfig(DenseDetectorConfig[Size], table=VARIANTS):
    """See DenseDetectorConfig."""

    variant: str = "picodet_s_esnet"


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
class PicoDetESNet(PicoDetector[PicoDetESNetConfig]):
    """Heights and widths are multiples of 32."""

    def __init__(self, config: PicoDetESNetConfig) -> None:
        super().__init__(config, CSPBlock, PicoSharedHead)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return tuple(
            Level(F.sigmoid(logits), distances) for logits, distances in self.head(self.maps(images))
        )

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        outs = self.head(self.maps(images))
        logits = flatten_maps([out[0] for out in outs])
        levels = [Level(*out) for out in outs]
        project = self.head.distribution_project
        grid, boxes = decode(levels, project)
        scores = jax.lax.stop_gradient(F.sigmoid(logits))
        assigned = simota_batch(grid, scores, boxes, targets, iou_weight=6.0)
        count = jnp.maximum(assigned.positive.sum(dtype=jnp.float32), 1)
        weights = jnp.where(assigned.positive, scores.max(axis=-1), 0)
        total = jnp.maximum(weights.sum(), 1)
        wanted_boxes = assigned.boxes(targets.boxes)
        giou, sides = localisation_losses(levels, grid, boxes, wanted_boxes, weights, project)
        wanted_scores = assigned.scores(targets.labels, self.config.num_classes)
        terms = {
            "loss_vfl": varifocal_loss(logits, wanted_scores, from_logits=True).sum() / count,
            "loss_bbox": 2.0 * giou / total,
            "loss_dfl": 0.25 * sides / total,
        }
        return Losses(sum(terms.values(), jnp.zeros(())), terms)
