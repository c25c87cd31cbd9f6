"""The attention decoder of NRTR, which guides a CTC recogniser in training.

Paper: NRTR, https://arxiv.org/abs/1806.00926
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/rec_nrtr_head.py (Transformer without an encoder)
Differs: the length of the targets is that of the batch's padding, not cut to its longest text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from ocr.layers.svtr import DropoutMLP
from zoo.layers.attention import Attention

# blank, unknown, start and end stand before the symbols; upstream's decoder counts one class more than those
START, END, EXTRA_CLASSES = 2, 3, 4
_linear = partial(nn.Linear, weight_attr=I.XavierNormal())
LONGEST = 5000  # rows of the positional table in upstream's checkpoints


@dataclass(frozen=True)
class NRTRConfig:
    """`dims` is a multiple of 32, the size of an attention head."""

    dims: int = 384
    depth: int = 4


class DecoderBlock(nn.Layer):
    """Causal self-attention, attention to the memory and MLP, each with a residual and then a normalisation."""

    def __init__(self, dims: int, num_heads: int) -> None:
        super().__init__()
        self.self_attn = Attention(dims, num_heads, ("qkv", "out_proj"), _linear)
        self.norm1 = nn.LayerNorm(dims)
        self.cross_attn = Attention(dims, num_heads, ("q", "kv", "out_proj"), _linear)
        self.norm2 = nn.LayerNorm(dims)
        self.mlp = DropoutMLP(dims, 4 * dims, F.relu, _linear)
        self.norm3 = nn.LayerNorm(dims)
        self.dropout1, self.dropout2, self.dropout3 = nn.Dropout(0.1), nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        x = self.norm1(x + self.dropout1(self.self_attn(x, causal=True)))
        x = self.norm2(x + self.dropout2(self.cross_attn(x, self.cross_attn.keys_values(memory))))
        return self.norm3(x + self.dropout3(self.mlp(x)))


class Embeddings(nn.Layer):
    """Rows of a table times the root of its width; class 0 is padding and embeds to zeros."""

    def __init__(self, num_classes: int, dims: int) -> None:
        super().__init__()
        attr = I.Normal(std=dims**-0.5)
        self.embedding = nn.Embedding(num_classes, dims, padding_idx=0, weight_attr=attr)
        self.scale = math.sqrt(dims)

    def forward(self, tokens: jax.Array) -> jax.Array:
        return self.embedding(tokens) * self.scale


def sine_table(length: int, dims: int) -> np.ndarray:
    """[length, dims] float32: sines of the position in even channels, cosines in odd ones.

    Source: Vaswani et al. 2017, section 3.5.
    """
    position = np.arange(length, dtype=np.float32)[:, None]
    rate = np.exp(np.arange(0, dims, 2, dtype=np.float32) * (-math.log(10000.0) / dims))
    table = np.zeros((length, dims), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(position * rate), np.cos(position * rate)
    return table


class PositionalEncoding(nn.Layer):
    """Adds sines and cosines of the position; the table is a buffer because upstream's checkpoints hold it."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.register_buffer("pe", sine_table(LONGEST, dims)[:, None])
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.dropout(x + self.pe[: x.shape[1], 0])


class NRTRDecoder(nn.Layer):
    """Next-token logits from a memory under teacher forcing."""

    def __init__(self, config: NRTRConfig, num_classes: int) -> None:
        super().__init__()
        total = num_classes + EXTRA_CLASSES
        self.embedding = Embeddings(total, config.dims)
        self.positional_encoding = PositionalEncoding(config.dims)
        self.decoder = nn.LayerList(
            [DecoderBlock(config.dims, config.dims // 32) for _ in range(config.depth)]
        )
        self.tgt_word_prj = nn.Linear(config.dims, total, weight_attr=I.XavierNormal(), bias_attr=False)

    def forward(self, memory: jax.Array, tokens: jax.Array) -> jax.Array:
        """memory [N, K, dims], tokens int [N, L + 1] (start, text, end, padding 0) -> logits [N, L, num_classes + 4].

        Logit t predicts tokens[:, t + 1].
        """
        x = self.positional_encoding(self.embedding(tokens[:, :-1]))
        for block in self.decoder:
            x = block(x, memory)
        return self.tgt_word_prj(x)
