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
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from detection.assigners.tal import assign_scheduled
from detection.contracts import DetectorContract, Targets
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
from detection.layers.pico_pan import lc_block
from detection.losses import varifocal_loss
from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.engine.task import Losses
from framework.nn import functional as F
from zoo.layers.csp_pan import SpatialThenPointwise
from zoo.vision.pp_lcnet import PPLCNetConfig

# configs/picodet/picodet_{xs,s,m,l}_*_coco_lcnet.yml; input sizes of 320, 416 and 640 have the same networks.
# The reference's README gives 0.70, 1.18, 3.46 and 5.80 million parameters.
VARIANTS: dict[str, Size] = {
    "picodet_xs": Size(PPLCNetConfig("pplcnet_x0_35"), 96, 2, 704_254),
    "picodet_s": Size(PPLCNetConfig("pplcnet_x0_75"), 96, 2, 1_186_492),
    "picodet_m": Size(PPLCNetConfig("pplcnet_x1_5"), 128, 4, 3_465_316),
    "picodet_l": Size(PPLCNetConfig("pplcnet_x2_0"), 160, 4, 5_804_500),
}


@dataclass(frozen=True)
class PicoDetConfig(DenseDetectorConfig[Size], table=VARIANTS):
    """See DenseDetectorConfig.

    Attributes:
        static_steps: Training steps in which ATSS assigns, before the task-aligned assigner takes over, which needs
            predictions that mean something. The default is upstream's 100 of 300 epochs of COCO.
    """

    variant: str = "picodet_s"
    static_steps: int = 61_000

    def __post_init__(self) -> None:
        super().__post_init__()
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
class PicoDet(PicoDetector[PicoDetConfig]):
    """Heights and widths are multiples of 32."""

    contract = DetectorContract(published_hw=(416, 416), image=(2, 320, 320, 3))

    def __init__(self, config: PicoDetConfig) -> None:
        super().__init__(config, lc_block, PicoHead)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return self.head(self.maps(images))

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        levels = self(images)
        project = self.head.distribution_project
        grid, boxes = decode(levels, project)
        scores = flatten_maps([level.scores for level in levels])
        assigned = assign_scheduled(grid, scores, boxes, targets, self.config.static_steps)
        wanted_scores = assigned.scores(targets.labels, self.config.num_classes)
        wanted_boxes = assigned.boxes(targets.boxes)
        total = jnp.maximum(assigned.quality.sum(), 1)
        giou, sides = localisation_losses(levels, grid, boxes, wanted_boxes, assigned.quality, project)
        terms = {
            "loss_vfl": varifocal_loss(scores, wanted_scores).sum() / total,
            "loss_bbox": 2.5 * giou / total,
            "loss_dfl": 0.5 * sides / total,
        }
        return Losses(sum(terms.values(), jnp.zeros(())), terms)
