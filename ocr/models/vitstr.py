"""ViTSTR: a vision transformer reads a word at once, one symbol from each of its first tokens; no decoder.

Paper: Atienza 2021, https://arxiv.org/abs/2105.08582
Reference: PaddlePaddle/PaddleOCR configs/rec/rec_vitstr_none_ce.yml, ppocr/modeling/backbones/rec_vitstr.py
Differs: takes color images and makes them grey itself; forward gives logits in training and in eval, where upstream
    gives probabilities in eval. A place that upstream reads as its start ends the text here, where upstream writes
    "<s>". Words are scaled to 224 x 224 as those of the other recognisers, linearly, where upstream has cubic ones.
Weights: PaddleOCR's `rec_vitstr_none_ce` by name.

    backbone   patches of 16 x 16 pixels and a class token through blocks of attention; the first tokens are the text
    head       a classifier of each: start, end, and the symbols
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from ocr.layers.ctc_head import CTCHead, CTCHeadConfig, greedy, keep_apart
from ocr.losses.text import smoothed_cross_entropy
from zoo.contracts import Contract
from zoo.layers.mlp import NARROW
from zoo.layers.variants import VariantConfig
from zoo.vision.svtr import Block

_SIDE, _PATCH = 224, 16
_EPSILON = 1e-6
_DEPTH = 12
_CLASSES = 95
_HEAD_DECAY = 4e-4  # upstream's default of the head, in a recipe that decays nothing else
_GREY = (0.299, 0.587, 0.114)  # of R, G and B
END = 1  # of the head's classes; 0 stands at the start, and what follows are the symbols


class Size(NamedTuple):
    """`width` of the tokens, and heads of attention. `params` with 94 symbols and texts of 25 of them."""

    width: int
    heads: int
    params: int


# Table 1 of the paper; counted in the reference
VARIANTS: dict[str, Size] = {
    "vitstr_tiny": Size(192, 3, 5_444_640),
    "vitstr_small": Size(384, 6, 21_506_016),
    "vitstr_base": Size(768, 12, 85_479_264),
}


@dataclass(frozen=True)
class ViTSTRConfig(VariantConfig[Size], table=VARIANTS):
    """`num_classes` counts the end of the text and the symbols, as of the other recognisers; the default is
    EN_symbol_dict.txt's. None takes the default's, where no task's dictionary decides. The head has one class more.

    `max_text_length` is the most symbols of a text.
    """

    variant: str = "vitstr_tiny"
    num_classes: int | None = _CLASSES
    max_text_length: int = 25


class Encoder(nn.Layer):
    """Grey images [N, 224, 224, 1] -> the first `length` of the normalised tokens [N, length, width]."""

    def __init__(self, size: Size, length: int) -> None:
        super().__init__()
        self.length, patches = length, (_SIDE // _PATCH) ** 2
        self.patch_embed = nn.Sequential(("proj", nn.Conv2D(1, size.width, _PATCH, _PATCH)))
        self.pos_embed = self.create_parameter((1, patches + 1, size.width), NARROW)
        self.cls_token = self.create_parameter((1, 1, size.width), NARROW)
        self.blocks = nn.LayerList([Block(size.width, size.heads, 0.0) for _ in range(_DEPTH)])
        self.norm = nn.LayerNorm(size.width, _EPSILON)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.patch_embed(x)  # [N, 14, 14, C]
        n, _, _, c = x.shape
        first = jnp.broadcast_to(self.cls_token, (n, 1, c)).astype(x.dtype)
        x = jnp.concatenate([first, x.reshape(n, -1, c)], axis=1) + self.pos_embed  # [N, 197, C]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, : self.length]


@register("model", config=ViTSTRConfig)
class ViTSTR(nn.Model[ViTSTRConfig]):
    """[N, 224, 224, 3] in 0 to 1 -> logits [N, max_text_length + 2, num_classes + 1]; the first place is the start."""

    example_shape = (1, _SIDE, _SIDE, 3)
    contract = Contract(
        inputs=("n", _SIDE, _SIDE, 3),
        outputs=lambda layer, n, h, w: [(n, layer.config.max_text_length + 2, layer.config.num_classes + 1)],
    )

    def __init__(self, config: ViTSTRConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.backbone = Encoder(size, config.max_text_length + 2)
        num_classes = _CLASSES if config.num_classes is None else config.num_classes
        self.head = CTCHead(CTCHeadConfig(fc_decay=_HEAD_DECAY), size.width, num_classes + 1)

    def forward(self, x: jax.Array) -> jax.Array:
        if tuple(x.shape[1:]) != (_SIDE, _SIDE, 3):
            raise ShapeError(
                "ViTSTR takes words of one size",
                received=x.shape,
                allowed="[N, 224, 224, 3], channels last",
                fix="resize the word to 224 x 224 pixels, whatever its shape",
            )
        grey = (x * jnp.asarray(_GREY, x.dtype)).sum(axis=-1, keepdims=True)
        return self.head(self.backbone(grey))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Symbols and their probabilities, int32 and float32 [N, 2 * (max_text_length + 1)], see `keep_apart`."""
        classes, probabilities = greedy(self.forward(x)[:, 1:])
        return keep_apart(jnp.maximum(classes - END, 0), probabilities)

    def symbol_loss(self, x: jax.Array, target: jax.Array, length: jax.Array, counts: jax.Array) -> jax.Array:
        """The mean cross-entropy of the symbols and the ends of texts, see `LearnsSymbols`."""
        places = jnp.arange(target.shape[1] + 1)[None]
        padded = jnp.pad(target, ((0, 0), (0, 1)))
        wanted = jnp.where(places < length[:, None], padded + END, END)
        weight = jnp.where(places <= length[:, None], counts[:, None], 0.0)
        return smoothed_cross_entropy(self.forward(x)[:, 1:], wanted, weight, smoothing=0.0)
