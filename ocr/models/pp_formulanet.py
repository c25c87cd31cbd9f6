"""PP-FormulaNet-S: a small convolutional network and a decoder that says three tokens of a formula's LaTeX at a time.

Paper: PP-FormulaNet, https://arxiv.org/abs/2503.18382
Reference: PaddlePaddle/PaddleOCR configs/rec/PP-FormuaNet/PP-FormulaNet{,_plus}-S.yaml, ppocr/modeling/backbones/
    rec_pphgnetv2.py (PPHGNetV2_B4_Formula), heads/rec_ppformulanet_head.py
Differs: channels last. There are no `backbone.pphgnet_b4.last_conv` and `fc`, which upstream's checkpoint holds unused.
Weights: official `.pdparams` by name.

    backbone   PP-HGNetV2-B4, the map at stride 32
    head       MBart's decoder over the map's places
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from ocr.layers.mbart_decoder import START, DecoderConfig, FormulaHead
from zoo.contracts import Contract
from zoo.layers.variants import VariantConfig
from zoo.vision.pp_hgnet_v2 import PPHGNetV2, PPHGNetV2Config


class Size(NamedTuple):
    """The backbone; width, layers, attention heads and hidden width of the decoder; how many tokens it knows, says in a
    step and in all."""

    backbone: str
    width: int
    depth: int
    heads: int
    feed_forward: int
    vocab_size: int
    step: int
    max_tokens: int
    params: int


# Upstream's configurations; "plus" differs in what it was trained on.
VARIANTS: dict[str, Size] = {
    "PP-FormulaNet-S": Size("pphgnetv2_b4", 384, 2, 16, 1536, 50_000, 3, 1024, 57_870_048),
    "PP-FormulaNet_plus-S": Size("pphgnetv2_b4", 384, 2, 16, 1536, 50_000, 3, 1024, 57_870_048),
}


@dataclass(frozen=True)
class PPFormulaNetConfig(VariantConfig[Size], table=VARIANTS):
    """Where None, what the variant has, see Size. `deploy` folds the normalisations into convolutions."""

    variant: str = "PP-FormulaNet-S"
    backbone: str | None = None
    width: int | None = None
    depth: int | None = None
    heads: int | None = None
    feed_forward: int | None = None
    vocab_size: int | None = None
    max_tokens: int | None = None
    deploy: bool = False


class Backbone(nn.Layer):
    """[N, H, W, 3] -> the places at stride 32, row by row."""

    def __init__(self, variant: str, deploy: bool) -> None:
        super().__init__()
        self.pphgnet_b4 = PPHGNetV2(PPHGNetV2Config(variant, num_classes=0, deploy=deploy))
        self.out_channels = self.pphgnet_b4.features[-1].channels

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.pphgnet_b4.forward_features(x)[-1]
        return x.reshape(x.shape[0], -1, x.shape[-1])


@register("model", config=PPFormulaNetConfig)
class PPFormulaNet(nn.Model[PPFormulaNetConfig]):
    """[N, H, W, 3] and the tokens said so far -> logits [N, T, vocab_size]; see FormulaHead."""

    # What upstream's checkpoints hold unused.
    training_only = ("backbone.pphgnet_b4.last_conv.", "backbone.pphgnet_b4.fc.")
    example_shape = (1, 384, 384, 3)
    contract = Contract(
        small={
            "backbone": "pphgnetv2_b0",
            "width": 32,
            "heads": 4,
            "feed_forward": 64,
            "vocab_size": 60,
            "max_tokens": 12,
        },
        outputs=lambda layer, n, h, w: [(n, 3, layer.head.config.vocab_size)],
    )

    def __init__(self, config: PPFormulaNetConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.backbone = Backbone(size.backbone, config.deploy)
        sizes = (size.width, size.depth, size.heads, size.feed_forward, size.vocab_size, size.step)
        self.head = FormulaHead(DecoderConfig(*sizes, size.max_tokens, self.backbone.out_channels))

    def forward(self, x: jax.Array, tokens: jax.Array | None = None) -> jax.Array:
        """Of the tokens `step` places behind those given, [N, T] int32; without any, of the first `step`."""
        if tokens is None:
            tokens = jnp.full((x.shape[0], self.head.config.step), START, jnp.int32)
        return self.head(self.encode(x), tokens)

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Tokens [N, T] int32, their probabilities [N, T] and the steps [] that all formulas took."""
        return self.head.decode(self.encode(x))

    def encode(self, x: jax.Array) -> jax.Array:
        """The map's places, row by row: [N, H/32 * W/32, C]."""
        return self.backbone(x)
