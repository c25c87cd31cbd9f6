"""SLANet: a small convolutional network reads the structure of a table, tag by tag, with the box of each cell.

Paper: PP-StructureV2, https://arxiv.org/abs/2210.05391, section 3.2
Reference: PaddlePaddle/PaddleOCR configs/table/{SLANet,SLANet_ch,SLANet_plus}.yml, ppocr/modeling/backbones/
    det_pp_lcnet.py, necks/csp_pan.py, heads/table_att_head.py
Differs: channels last; forward gives logits, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name.

    backbone   PP-LCNet, maps at strides 4, 8, 16 and 32
    neck       CSP-PAN of 96 channels, of which the coarsest map goes on
    head       a GRU that attends to the map's places
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from ocr.layers.sla_head import SLAHead, Structure, read_structure
from zoo.contracts import Contract
from zoo.layers.csp_pan import CSPPAN
from zoo.layers.variants import VariantConfig
from zoo.vision.pp_lcnet import PPLCNet, PPLCNetConfig


class Size(NamedTuple):
    """Scale of the backbone, width of neck and head, tokens and numbers of a box; `params` without statistics."""

    backbone: str
    width: int
    hidden: int
    tokens: int
    coordinates: int
    params: int


# Upstream's configurations; SLANet_ch and SLANet_plus differ in their training alone.
VARIANTS: dict[str, Size] = {
    "SLANet": Size("pplcnet_x1_0", 96, 256, 30, 4, 1_875_714),
    "SLANet_ch": Size("pplcnet_x1_0", 96, 256, 50, 8, 1_897_242),
    "SLANet_plus": Size("pplcnet_x1_0", 96, 256, 50, 8, 1_897_242),
}


@dataclass(frozen=True)
class SLANetConfig(VariantConfig[Size], table=VARIANTS):
    """`num_tokens` counts start and end; None takes the variant's, where no task's dictionary decides.

    `max_text_length` is the most tokens of a table. `deploy` folds the normalisations into convolutions.
    """

    variant: str = "SLANet"
    num_tokens: int | None = None
    max_text_length: int = 500
    deploy: bool = False


@register("model", config=SLANetConfig)
class SLANet(nn.Model[SLANetConfig]):
    """[N, H, W, 3] -> logits [N, T, tokens] and boxes [N, T, 4 or 8], T = max_text_length + 1.

    Boxes are in 0 to 1, of what the task says: left, top, right, bottom, or four corners clockwise.
    """

    example_shape = (1, 64, 64, 3)
    contract = Contract(
        outputs=lambda layer, n, h, w: [(n, 501, layer.head.tokens), (n, 501, layer.head.coordinates)]
    )

    def __init__(self, config: SLANetConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        tokens = size.tokens if config.num_tokens is None else config.num_tokens
        self.backbone = PPLCNet(PPLCNetConfig(size.backbone, num_classes=0, deploy=config.deploy))
        widths = [feature.channels for feature in self.backbone.features]
        self.neck = CSPPAN(widths, size.width, deploy=config.deploy, by_size=True)
        self.head = SLAHead(size.width, size.hidden, tokens, size.coordinates, config.max_text_length)

    def forward(self, x: jax.Array, tokens: jax.Array | None = None) -> Structure:
        """After the given tokens [N, T] int32, or after those that it says itself; see SLAHead."""
        return self.head(self.encode(x), tokens)

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Tokens [N, T] int32, their probabilities [N, T], boxes [N, T, 4 or 8] and the steps [] that all tables took.

        Behind the last step everything is 0.
        """
        return read_structure(self.head, self.encode(x))

    def encode(self, x: jax.Array) -> jax.Array:
        """The coarsest map's places, row by row: [N, H/32 * W/32, C]."""
        x = self.neck(self.backbone.forward_features(x))[-1]
        return x.reshape(x.shape[0], -1, x.shape[-1])
