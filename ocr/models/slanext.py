"""SLANeXt: the large table network. SAM's image encoder takes the place of SLANet's convolutions, before SLANet's head.

Paper: PaddleOCR 3.0, https://arxiv.org/abs/2507.05595, section 2.3; the head: PP-StructureV2, https://arxiv.org/abs/2210.05391
Reference: PaddlePaddle/PaddleOCR configs/table/SLANeXt_{wired,wireless}.yml, ppocr/modeling/backbones/rec_vary_vit.py,
    heads/table_att_head.py
Differs: channels last; forward gives logits, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name, with `backbone.vision_tower_high.net_3`, which nothing calls.

    backbone   SAM ViT-B, a map at stride 32 of 512 channels
    head       a GRU that attends to the map's places; upstream does not train its boxes, so those mean nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from ocr.layers.sla_head import SLAHead, Structure, read_structure
from ocr.layers.vary_vit import VaryViT, VaryViTConfig
from zoo.contracts import Contract
from zoo.layers.variants import VariantConfig


class Size(NamedTuple):
    """Side of the images in pixels; width, blocks and heads of the encoder and which of its blocks look everywhere;
    width of the head, tokens and numbers of a box; `params` with those that are not called."""

    image_size: int
    width: int
    depth: int
    attention_heads: int
    global_layers: tuple[int, ...]
    hidden: int
    tokens: int
    coordinates: int
    params: int


_VIT_B = (512, 768, 12, 12, (2, 5, 8, 11), 512, 50, 8)
# Upstream's configurations. The two differ in what they were trained on: tables with ruling lines, and without.
VARIANTS: dict[str, Size] = {
    "SLANeXt_wired": Size(*_VIT_B, 95_910_202),
    "SLANeXt_wireless": Size(*_VIT_B, 95_910_202),
}


@dataclass(frozen=True)
class SLANeXtConfig(VariantConfig[Size], table=VARIANTS):
    """`num_tokens` counts start and end; None takes the variant's, where no task's dictionary decides.

    `max_text_length` is the most tokens of a table. The others, see Size, are the variant's where they are None;
    `image_size` is a multiple of 32 pixels.
    """

    variant: str = "SLANeXt_wired"
    num_tokens: int | None = None
    max_text_length: int = 500
    image_size: int | None = None
    width: int | None = None
    depth: int | None = None
    attention_heads: int | None = None
    global_layers: tuple[int, ...] | None = None
    hidden: int | None = None


@register("model", config=SLANeXtConfig)
class SLANeXt(nn.Model[SLANeXtConfig]):
    """[N, S, S, 3] -> logits [N, T, tokens] and boxes [N, T, 8], T = max_text_length + 1, S = image_size."""

    example_shape = (1, 512, 512, 3)
    contract = Contract(
        small={
            "max_text_length": 20,
            "image_size": 64,
            "width": 16,
            "depth": 2,
            "attention_heads": 2,
            "global_layers": (1,),
            "hidden": 16,
        },
        fields={"image_size": 64},
        inputs=("n", 64, 64, 3),
        outputs=lambda layer, n, h, w: [(n, layer.head.steps, count) for count in (50, 8)],
        flat=(r".*net_3\.weight", "upstream's checkpoints have it, and it is called for formulas alone"),
    )

    def __init__(self, config: SLANeXtConfig) -> None:
        super().__init__(config)
        size = config.parts
        tokens = size.tokens if config.num_tokens is None else config.num_tokens
        encoder = VaryViTConfig(
            size.image_size, size.width, size.depth, size.attention_heads, size.global_layers
        )
        self.backbone = VaryViT(encoder)
        self.head = SLAHead(
            VaryViT.out_channels, size.hidden, tokens, size.coordinates, config.max_text_length
        )

    def forward(self, x: jax.Array, tokens: jax.Array | None = None) -> Structure:
        """After the given tokens [N, T] int32, or after those that it says itself; see SLAHead."""
        return self.head(self.encode(x), tokens)

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """As SLANet's: tokens, their probabilities, boxes and the steps that all tables took."""
        return read_structure(self.head, self.encode(x))

    def encode(self, x: jax.Array) -> jax.Array:
        """The map's places, row by row: [N, (S/32)**2, 512]."""
        return self.backbone(x)
