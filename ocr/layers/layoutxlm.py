"""The encoder of LayoutXLM and VI-LayoutXLM: tokens with the boxes of their lines, and with LayoutXLM 49 patches of the
page.

Paper: LayoutXLM, https://arxiv.org/abs/2104.08836; VI-LayoutXLM, https://arxiv.org/abs/2210.05391
Reference: PaddleNLP 2.6 paddlenlp/transformers/layoutxlm/{modeling,configuration}.py
Differs: without the visual branch the 49 patches are left out, where upstream appends them and hides them from all
    tokens; what tokens become is the same. Neither the bias of relative positions nor that of distances is there: no
    published model has them.
Weights: names are PaddleNLP's; `visual_LayerNorm` and `visual_segment_embedding` are there without the branch, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from ocr.fields.forms import PAGE
from ocr.layers.layoutxlm_visual import CHANNELS, POOL_HW, VisualBackbone
from zoo.layers.mlp import NARROW, narrow_linear
from zoo.layers.variants import check_variant

COORDINATES = 1024  # rows of the tables of positions on the page
MAX_TOKENS = 514


class EncoderSize(NamedTuple):
    """What a variant says; each entry can be set in the config as well."""

    vocab_size: int = 250_002
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    use_visual_backbone: bool = True
    visual_depths: tuple[int, int, int, int] = (3, 4, 23, 3)
    visual_width: int = 64


# PaddleNLP's configuration.py
SIZES: dict[str, EncoderSize] = {
    "layoutxlm-base-uncased": EncoderSize(),
    "vi-layoutxlm-base-uncased": EncoderSize(use_visual_backbone=False),
}


@dataclass(frozen=True)
class LayoutXLMConfig:
    """A row of `SIZES`; what is not None replaces an entry of it.

    Attributes:
        variant: Upstream's name of the encoder.
        use_visual_backbone: Whether the page's image is read too; VI-LayoutXLM does not.
        dropout: Of hidden states and of attention, and between the layers of the head of RE.
        head_dropout: Of the states that the head reads. PaddleOCR trains without (`dropout=0` in vqa_layoutlm.py).
    """

    variant: str = "vi-layoutxlm-base-uncased"
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    use_visual_backbone: bool | None = None
    visual_depths: tuple[int, int, int, int] | None = None
    visual_width: int | None = None
    dropout: float = 0.1
    head_dropout: float = 0.0

    def size(self) -> EncoderSize:
        """The row with this config's own entries.

        Raises:
            ConfigError: there is no such variant; a width that is no multiple of the heads and of 6, a size below 1.
        """
        check_variant("LayoutXLM", self.variant, SIZES)
        own = {name: value for name in EncoderSize._fields if (value := getattr(self, name)) is not None}
        size = SIZES[self.variant]._replace(**own)
        counts = (size.vocab_size, size.hidden_size, size.num_layers, size.num_heads, size.intermediate_size)
        if min(*counts, *size.visual_depths, size.visual_width) < 1 or (
            size.hidden_size % size.num_heads or size.hidden_size % 6 or size.visual_width % 32
        ):
            raise ConfigError(
                "this is no encoder of LayoutXLM",
                where="model",
                received=", ".join(f"{name} {value}" for name, value in size._asdict().items()),
                allowed="sizes from 1, hidden_size a multiple of num_heads and of 6, visual_width of 32",
            )
        return size


class Embeddings(nn.Layer):
    """The sum of the embeddings of words, places in the order and places on the page: six tables of a sixth of the
    width each, for left, top, right, bottom, height and width."""

    def __init__(self, size: EncoderSize, dropout: float) -> None:
        super().__init__()
        width, part = size.hidden_size, size.hidden_size // 6
        self.word_embeddings = nn.Embedding(size.vocab_size, width, 0, weight_attr=NARROW)
        self.position_embeddings = nn.Embedding(MAX_TOKENS, width, weight_attr=NARROW)
        for axis in "xyhw":
            self.add_sublayer(
                f"{axis}_position_embeddings", nn.Embedding(COORDINATES, part, weight_attr=NARROW)
            )
        self.token_type_embeddings = nn.Embedding(1, width, weight_attr=NARROW)
        self.LayerNorm = nn.LayerNorm(width, epsilon=1e-5)
        self.dropout = nn.Dropout(dropout)

    def place(self, boxes: jax.Array) -> jax.Array:
        """boxes [..., 4] xyxy int32 in 0 to 1000 -> [..., hidden_size]"""
        left, top, right, bottom = (boxes[..., place] for place in range(4))
        parts = (
            self.x_position_embeddings(left),
            self.y_position_embeddings(top),
            self.x_position_embeddings(right),
            self.y_position_embeddings(bottom),
            self.h_position_embeddings(bottom - top),
            self.w_position_embeddings(right - left),
        )
        return jnp.concatenate(parts, axis=-1)

    def forward(self, input_ids: jax.Array, boxes: jax.Array) -> jax.Array:
        """input_ids [N, T], boxes [N, T, 4] -> [N, T, hidden_size]"""
        x = self.word_embeddings(input_ids) + self.position_embeddings(jnp.arange(input_ids.shape[1]))
        x = x + self.place(boxes) + self.token_type_embeddings(jnp.zeros((), jnp.int32))
        return self.dropout(self.LayerNorm(x))


class SelfAttention(nn.Layer):
    """[N, T, C] -> [N, T, C]; mask [N, 1, 1, T] bool says what is seen."""

    def __init__(self, size: EncoderSize, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout_p = size.num_heads, dropout
        self.query, self.key, self.value = (
            narrow_linear(size.hidden_size, size.hidden_size) for _ in range(3)
        )

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        shape = (*x.shape[:2], self.num_heads, x.shape[2] // self.num_heads)
        query, key, value = (part(x).reshape(shape) for part in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p=self.dropout_p, training=self.training
        )
        return mixed.reshape(x.shape)


class Output(nn.Layer):
    """A linear map, added to what it began from and normalised."""

    def __init__(self, in_features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = narrow_linear(in_features, width)
        self.LayerNorm = nn.LayerNorm(width, epsilon=1e-5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: jax.Array, before: jax.Array) -> jax.Array:
        return self.LayerNorm(self.dropout(self.dense(x)) + before)


class Attention(nn.Layer):
    """Self-attention and its output, under upstream's names."""

    def __init__(self, size: EncoderSize, dropout: float) -> None:
        super().__init__()
        self.add_sublayer("self", SelfAttention(size, dropout))
        self.output = Output(size.hidden_size, size.hidden_size, dropout)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Layer):
    """The widening map of the feed-forward part, with GELU."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.dense = narrow_linear(size.hidden_size, size.intermediate_size)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.gelu(self.dense(x))


class EncoderLayer(nn.Layer):
    """Attention and a feed-forward part, each normalised behind its residual."""

    def __init__(self, size: EncoderSize, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(size, dropout)
        self.intermediate = Intermediate(size)
        self.output = Output(size.intermediate_size, size.hidden_size, dropout)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Layer):
    """`layer`, one after the other."""

    def __init__(self, size: EncoderSize, dropout: float) -> None:
        super().__init__()
        self.layer = nn.LayerList([EncoderLayer(size, dropout) for _ in range(size.num_layers)])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Layer):
    """Upstream's map of the first token; neither SER nor RE reads it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = narrow_linear(width, width)


class LayoutXLM(nn.Layer):
    """Tokens with boxes -> hidden states [N, T, hidden_size]. What is padded changes nothing of other tokens."""

    training_only: ClassVar[tuple[str, ...]] = ("embeddings.position_ids",)
    """What files hold besides: a constant"""

    def __init__(self, config: LayoutXLMConfig) -> None:
        super().__init__()
        size = self.size = config.size()
        self.embeddings = Embeddings(size, config.dropout)
        if size.use_visual_backbone:
            self.visual = VisualBackbone(size.visual_depths, size.visual_width)
            self.visual_proj = narrow_linear(CHANNELS, size.hidden_size)
        self.visual_segment_embedding = self.create_parameter((size.hidden_size,), NARROW)
        self.visual_LayerNorm = nn.LayerNorm(size.hidden_size, epsilon=1e-5)
        self.visual_dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(size, config.dropout)
        self.pooler = Pooler(size.hidden_size)

    def forward(
        self, input_ids: jax.Array, bbox: jax.Array, mask: jax.Array, image: jax.Array | None = None
    ) -> jax.Array:
        """The states of the T tokens.

        Args:
            input_ids: [N, T] int32.
            bbox: [N, T, 4] int32, xyxy in 0 to 1000 of the page.
            mask: [N, T] bool, False in the padding.
            image: [N, 224, 224, 3] float32, normalised as upstream does; read with a visual branch alone.

        Raises:
            ShapeError: there are more tokens than positions, or the image is missing.
        """
        count = input_ids.shape[1]
        if isinstance(count, int) and count > MAX_TOKENS:
            raise ShapeError(
                "there are not as many positions as tokens",
                where="LayoutXLM",
                received=f"{count} tokens",
                allowed=f"at most {MAX_TOKENS}",
                fix="cut pages: max_seq_len of the task",
            )
        x = self.embeddings(input_ids, bbox)
        if self.size.use_visual_backbone:
            if image is None:
                raise ShapeError(
                    "this model reads the page's image too",
                    where="LayoutXLM",
                    received="no image",
                    allowed="[N, 224, 224, 3] float32",
                )
            patches = self._embed_patches(image)
            x = jnp.concatenate([x, patches.astype(x.dtype)], axis=1)
            seen = jnp.ones(patches.shape[:2], bool)
            mask = jnp.concatenate([mask, seen], axis=1)
        return self.encoder(x, mask[:, None, None])[:, :count]

    def _embed_patches(self, image: jax.Array) -> jax.Array:
        """[N, 224, 224, 3] -> [N, 49, hidden_size]"""
        rows, columns = POOL_HW
        order = jnp.arange(rows * columns)
        y, x = jnp.divmod(order, columns)
        cells = jnp.stack([x, y, x + 1, y + 1], axis=-1)
        boxes = PAGE * cells // jnp.array([columns, rows, columns, rows])
        patches = self.visual_proj(self.visual(image)) + self.embeddings.position_embeddings(order)
        patches = patches + self.embeddings.place(boxes) + self.visual_segment_embedding
        return self.visual_dropout(self.visual_LayerNorm(patches))
