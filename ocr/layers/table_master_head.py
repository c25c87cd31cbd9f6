"""The head of TableMaster: a transformer that says a table's structure token by token, and where its cells are.

Paper: TableMASTER, https://arxiv.org/abs/2105.01848; MASTER, https://arxiv.org/abs/1910.02562, section 3.3
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/table_master_head.py
Differs: channels last. Keys and values of earlier tokens are kept, where upstream computes all tokens again at each
    step; both say the same up to the first PAD, which no table has before its end. `decode` is one loop that ends when
    every table has ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional.attention import KeysValues, write_keys_values
from ocr.layers.nrtr import LONGEST, sine_table
from ocr.layers.sla_head import Structure
from zoo.layers.attention import Attention
from zoo.layers.mlp import MLP

EXTRA_TOKENS = 4  # behind those of a dictionary: unknown, start, end, padding
_SHARED = 2  # layers below the two branches
_linear = partial(nn.Linear, weight_attr=nn.initializer.XavierUniform())


@dataclass(frozen=True)
class TableMasterHeadConfig:
    """`most_steps` is one less than the tokens that are said of a table, with its end."""

    width: int
    heads: int
    feed_forward: int
    tokens: int
    coordinates: int
    most_steps: int


class _Steps(NamedTuple):
    """What goes through the loop: steps done, the last tokens [N], which tables have ended [N], the keys and values of
    each layer's earlier tokens, what was said [T, N, …]."""

    place: jax.Array
    last: jax.Array
    ended: jax.Array
    caches: list[KeysValues]
    said: Structure


class NamedAttention(nn.Layer):
    """Attention; its layers are `linears` of queries, keys, values and of the result, as upstream names them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.linears = Attention(width, heads, ("0", "1", "2", "3"), _linear)


class SubLayerNorm(nn.Layer):
    """The normalisation in front of a part of a layer; it has upstream's name."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.norm(x)


class DecoderLayer(nn.Layer):
    """Self-attention, attention to the image and a feed-forward part, each on the normalised input and added to it."""

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.self_attn = NamedAttention(width, heads)
        self.src_attn = NamedAttention(width, heads)
        self.feed_forward = MLP(width, feed_forward, F.relu, ("w_1", "w_2"), _linear)
        self.sublayer = nn.LayerList([SubLayerNorm(width) for _ in range(3)])

    def forward(
        self,
        x: jax.Array,
        memory: KeysValues,
        visible: jax.Array,
        cache: KeysValues | None,
        place: jax.Array | int,
    ) -> tuple[jax.Array, KeysValues]:
        """The next [N, T, C], and the keys and values of all tokens so far.

        Args:
            memory: Keys and values of the image. visible: Boolean, broadcasts to [N, heads, T, tokens].
            cache: Of earlier tokens, into which those of x are written from `place` on.
        """
        y = self.sublayer[0](x)
        own = self.self_attn.linears.keys_values(y)
        if cache is not None:
            own = write_keys_values(cache, own, place)
        x = x + self.self_attn.linears(y, own, visible)
        x = x + self.src_attn.linears(self.sublayer[1](x), memory)
        return x + self.feed_forward(self.sublayer[2](x)), own


class Embeddings(nn.Layer):
    """Rows of a table times the root of its width."""

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.lut = nn.Embedding(tokens, width, weight_attr=nn.initializer.Normal(std=width**-0.5))
        self.scale = math.sqrt(width)

    def forward(self, tokens: jax.Array) -> jax.Array:
        return self.lut(tokens) * self.scale


class PositionalEncoding(nn.Layer):
    """Adds sines and cosines of the positions from `place` on; the table is in upstream's checkpoints."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("pe", sine_table(LONGEST, width)[None])

    def forward(self, x: jax.Array, place: jax.Array | int = 0) -> jax.Array:
        return x + lax.dynamic_slice_in_dim(self.pe, place, x.shape[1], axis=1)


class TableMasterHead(nn.Layer):
    """Places of an image [N, P, C] -> `Structure`. The last four tokens are unknown, start, end and padding.

    Raises:
        ShapeError: at a call, there are more places or tokens than positions.
    """

    def __init__(self, config: TableMasterHeadConfig) -> None:
        super().__init__()
        self.config, self.steps = config, config.most_steps + 1
        self.start, self.end, self.pad = (config.tokens - back for back in (3, 2, 1))
        sizes = config.width, config.heads, config.feed_forward
        self.layers = nn.LayerList([DecoderLayer(*sizes) for _ in range(_SHARED)])
        self.cls_layer = nn.LayerList([DecoderLayer(*sizes)])
        self.bbox_layer = nn.LayerList([DecoderLayer(*sizes)])
        self.cls_fc = _linear(config.width, config.tokens)
        self.bbox_fc = nn.Sequential(_linear(config.width, config.coordinates), nn.Sigmoid())
        self.norm = nn.LayerNorm(config.width)
        self.embedding = Embeddings(config.width, config.tokens)
        self.positional_encoding = PositionalEncoding(config.width)

    def forward(self, features: jax.Array, tokens: jax.Array | None = None) -> Structure:
        """All steps: after the given tokens [N, T] int32, the first the start; without them after what it said itself.

        Steps after padding in `tokens` mean nothing.
        """
        memories = self._memories(features)
        if tokens is None:
            last, _ = lax.scan(
                lambda steps, _: (self._advance(steps, memories), None),
                self._begin(features),
                None,
                length=self.steps,
            )
            return _tables_first(last.said)
        _check_length(tokens.shape[1], "tokens")
        places = jnp.arange(tokens.shape[1])
        visible = (places[None, :] <= places[:, None])[None, None] & (tokens != self.pad)[:, None, :, None]
        return self._say(tokens, memories, visible)[0]

    def decode(self, features: jax.Array) -> tuple[Structure, jax.Array]:
        """What it says after its own tokens, and how many steps [] int32 that took: until all tables have ended."""
        memories = self._memories(features)
        last = lax.while_loop(
            lambda steps: (steps.place < self.steps) & ~steps.ended.all(),
            lambda steps: self._advance(steps, memories),
            self._begin(features),
        )
        return _tables_first(last.said), last.place

    def _memories(self, features: jax.Array) -> list[KeysValues]:
        """Of each layer the keys and values of the image."""
        _check_length(features.shape[1], "places of the image")
        features = self.positional_encoding(features)
        return [layer.src_attn.linears.keys_values(features) for layer in self._all_layers()]

    def _all_layers(self) -> list[DecoderLayer]:
        return [*self.layers, *self.cls_layer, *self.bbox_layer]  # type: ignore[list-item]

    def _begin(self, features: jax.Array) -> _Steps:
        count, config, dtype = features.shape[0], self.config, features.dtype
        room = jnp.zeros((count, self.steps, config.heads, config.width // config.heads), dtype)
        return _Steps(
            jnp.int32(0),
            jnp.full((count,), self.start, jnp.int32),
            jnp.zeros((count,), bool),
            [(room, room) for _ in self._all_layers()],
            Structure(
                jnp.zeros((self.steps, count, config.tokens), dtype),
                jnp.zeros((self.steps, count, config.coordinates), dtype),
            ),
        )

    def _advance(self, steps: _Steps, memories: list[KeysValues]) -> _Steps:
        before = (jnp.arange(self.steps) <= steps.place)[None, None, None]
        visible = before & (steps.last != self.pad)[:, None, None, None]
        new, caches = self._say(steps.last[:, None], memories, visible, steps.caches, steps.place)
        token = new.logits[:, 0].argmax(axis=-1).astype(jnp.int32)
        said = Structure(
            *(kept.at[steps.place].set(one[:, 0].astype(kept.dtype)) for kept, one in zip(steps.said, new))
        )
        return _Steps(steps.place + 1, token, steps.ended | (token == self.end), caches, said)

    def _say(
        self,
        tokens: jax.Array,
        memories: list[KeysValues],
        visible: jax.Array,
        caches: list[KeysValues] | None = None,
        place: jax.Array | int = 0,
    ) -> tuple[Structure, list[KeysValues]]:
        """What follows tokens [N, T], of which the first stands at `place`, and all keys and values."""
        x = self.positional_encoding(self.embedding(tokens), place)
        kept = [None] * len(memories) if caches is None else caches
        pairs: list[KeysValues] = []
        for layer, memory, cache in zip(self.layers, memories, kept):
            x, pair = layer(x, memory, visible, cache, place)
            pairs.append(pair)
        found = []
        for (layer,), memory, cache in zip((self.cls_layer, self.bbox_layer), memories[-2:], kept[-2:]):
            branch, pair = layer(x, memory, visible, cache, place)
            pairs.append(pair)
            found.append(self.norm(branch))
        return Structure(self.cls_fc(found[0]), self.bbox_fc(found[1])), pairs


def _check_length(length: int, what: str) -> None:
    if isinstance(length, int) and length > LONGEST:
        raise ShapeError(
            f"there are more {what} than positions",
            where="TableMasterHead",
            received=length,
            allowed=f"{LONGEST}",
            fix="resize images to 480 x 480 pixels, which has 3600 places",
        )


def _tables_first(said: Structure) -> Structure:
    return Structure(*(jnp.swapaxes(array, 0, 1) for array in said))
