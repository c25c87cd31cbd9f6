"""PARSeq: a vision transformer reads a word, in any order that training asks for; from left to right and again after.

Paper: PARSeq, https://arxiv.org/abs/2207.06966
Reference: PaddlePaddle/PaddleOCR configs/rec/rec_vit_parseq.yml, ppocr/modeling/backbones/rec_vit_parseq.py and
    heads/rec_parseq_head.py
Differs: channels last; forward gives logits, where upstream gives probabilities in eval. There is no
    `backbone.cls_token`, which upstream's checkpoint holds unused. See ocr/layers/parseq.py for the decoder.
Weights: official `.pdparams` by name.

    backbone   patches of the image, 8 x 4 pixels each, through a vision transformer
    head       a query for each place of the text, over the symbols read so far and the patches
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from ocr.layers.ctc_head import greedy
from ocr.layers.parseq import END, PARSeqHead
from zoo.contracts import Contract
from zoo.layers.mlp import NARROW
from zoo.layers.variants import VariantConfig
from zoo.vision.vit import Block
from zoo.vision.vit import Size as BlockSize

_IMAGE_HW = (32, 128)
_PATCH_HW = (4, 8)
_MLP_RATIO = 4
_EPSILON = 1e-5
_CLASSES = 95


class Size(NamedTuple):
    """`width` of the tokens; blocks and attention heads of the encoder, then of the decoder.

    `params` with 95 classes and texts of 25 symbols.
    """

    width: int
    depth: int
    heads: int
    decoder_depth: int
    decoder_heads: int
    params: int


# Section 4.3 and table 9 of the paper; "base" is the paper's PARSeq-S, the size that upstream has.
VARIANTS: dict[str, Size] = {
    "parseq_tiny": Size(192, 12, 3, 1, 6, 6_018_143),
    "parseq_base": Size(384, 12, 6, 1, 12, 23_832_671),
}


@dataclass(frozen=True)
class PARSeqConfig(VariantConfig[Size], table=VARIANTS):
    """`num_classes` counts the end of the text, class 0, and the symbols; the default is parseq_dict.txt's.

    None takes the default's, where no task's dictionary decides. `max_text_length` is the most symbols of a text.
    `refine` is how often it is read again.
    """

    variant: str = "parseq_base"
    num_classes: int | None = _CLASSES
    max_text_length: int = 25
    refine: int = 1


class Encoder(nn.Layer):
    """[N, 32, 128, 3] -> normalised patches [N, 128, width], row by row."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        rows, columns = (side // patch for side, patch in zip(_IMAGE_HW, _PATCH_HW))
        block = BlockSize(size.width, size.depth, size.heads, 0, mlp_ratio=_MLP_RATIO, epsilon=_EPSILON)
        self.patch_embed = nn.Sequential(("proj", nn.Conv2D(3, size.width, _PATCH_HW, _PATCH_HW)))
        self.pos_embed = self.create_parameter((1, rows * columns, size.width), NARROW)
        self.blocks = nn.LayerList([Block(block, 0.0) for _ in range(size.depth)])
        self.norm = nn.LayerNorm(size.width, _EPSILON)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.patch_embed(x)  # [N, 8, 16, C]
        x = x.reshape(x.shape[0], -1, x.shape[3]) + self.pos_embed  # [N, 128, C]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


@register("model", config=PARSeqConfig)
class PARSeq(nn.Model[PARSeqConfig]):
    """[N, 32, 128, 3] -> logits [N, max_text_length + 1, num_classes]; class 0 ends the text."""

    # What upstream's checkpoints hold unused.
    training_only = ("backbone.cls_token",)
    example_shape = (1, 32, 128, 3)
    contract = Contract(
        inputs=("n", 32, 128, 3),
        outputs=lambda layer, n, h, w: [(n, layer.config.max_text_length + 1, layer.config.num_classes)],
    )

    def __init__(self, config: PARSeqConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        self.backbone = Encoder(size)
        self.head = PARSeqHead(
            size.width,
            size.decoder_heads,
            _MLP_RATIO,
            size.decoder_depth,
            _CLASSES if config.num_classes is None else config.num_classes,
            config.max_text_length,
            config.refine,
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return self.head(self._encode(x))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Symbols and their probabilities, int32 and float32 [N, 2 * max_text_length], as `ctc_decode` takes them.

        Behind every symbol stands class 0, which keeps equal neighbours apart; behind the end stands nothing else.
        """
        indices, probabilities = greedy(self.forward(x)[:, : self.config.max_text_length])
        indices = jnp.where(jnp.cumsum(indices == END, axis=-1) > 0, END, indices)
        apart = ((0, 0), (0, 0), (0, 1))
        indices = jnp.pad(indices[..., None], apart, constant_values=END)
        probabilities = jnp.pad(probabilities[..., None], apart, constant_values=1.0)
        return indices.reshape(indices.shape[0], -1), probabilities.reshape(indices.shape[0], -1)

    def forward_permuted(self, x: jax.Array, tokens: jax.Array, permutations: jax.Array) -> jax.Array:
        """Training: logits under each order of reading, see PARSeqHead.permuted and draw_permutations."""
        return self.head.permuted(self._encode(x), tokens, permutations)

    def _encode(self, x: jax.Array) -> jax.Array:
        if tuple(x.shape[1:]) != (*_IMAGE_HW, 3):
            raise ShapeError(
                "PARSeq takes words of one size",
                received=x.shape,
                allowed="[N, 32, 128, 3], channels last",
                fix="resize the word to 32 x 128 pixels, whatever its shape",
            )
        return self.backbone(x)
