"""MBart's decoder over the places of an image, as formula networks have it: several tokens at each step.

Paper: mBART, https://arxiv.org/abs/2001.08210; PP-FormulaNet, https://arxiv.org/abs/2503.18382, section 3.2 (several
    tokens a step)
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/rec_ppformulanet_head.py (PPFormulaNet_Head) and
    rec_unimernet_head.py (MBartDecoder)
Differs: keys and values of a step are written into room that is there from the beginning, so that decoding is one loop,
    which ends when every formula has ended. No end is forced at token 1536, which upstream's lengths do not reach.
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
from zoo.layers.attention import Attention

START, PAD, END = 0, 1, 2
_OFFSET = 2  # rows of the table of positions that MBart leaves out
_DROPOUT = 0.1
_INIT = nn.initializer.Normal(std=0.02)


@dataclass(frozen=True)
class DecoderConfig:
    """`step` tokens are said at once; `max_tokens` are the most of a formula. `memory` is the width of what is read."""

    width: int
    depth: int
    heads: int
    feed_forward: int
    vocab_size: int
    step: int
    max_tokens: int
    memory: int


class DecoderState(NamedTuple):
    """What goes through the loop: steps done, the tokens of the last step [N, S] and which of their places still say
    something [N, S], which formulas have ended [N], all tokens and their probabilities [steps, N, S], and of each layer
    the keys and values."""

    place: jax.Array
    last: jax.Array
    open: jax.Array
    ended: jax.Array
    tokens: jax.Array
    probabilities: jax.Array
    caches: list[KeysValues]


class MBartDecoderLayer(nn.Layer):
    """Self-attention, attention to the image and a feed-forward part, each on the normalised input and added to it."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, names = config.width, ("q_proj", "k_proj", "v_proj", "out_proj")
        linear = partial(nn.Linear, weight_attr=_INIT)
        self.self_attn = Attention(width, config.heads, names, linear)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.encoder_attn = Attention(width, config.heads, names, linear)
        self.encoder_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = linear(width, config.feed_forward)
        self.fc2 = linear(config.feed_forward, width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(_DROPOUT)

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
        y = self.self_attn_layer_norm(x)
        own = self.self_attn.keys_values(y)
        if cache is not None:
            own = write_keys_values(cache, own, place)
        x = x + self.dropout(self.self_attn(y, own, visible))
        x = x + self.dropout(self.encoder_attn(self.encoder_attn_layer_norm(x), memory))
        return x + self.dropout(self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))), own


class MBartDecoder(nn.Layer):
    """Tokens [N, T] at the positions from `place` on -> [N, T, C] and each layer's keys and values."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.width)
        rows = config.max_tokens + config.step + _OFFSET
        self.embed_tokens = nn.Embedding(config.vocab_size, config.width, PAD, weight_attr=_INIT)
        self.embed_positions = nn.Embedding(rows, config.width, weight_attr=_INIT)
        self.layers = nn.LayerList([MBartDecoderLayer(config) for _ in range(config.depth)])
        self.layernorm_embedding = nn.LayerNorm(config.width)
        self.layer_norm = nn.LayerNorm(config.width)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(
        self,
        tokens: jax.Array,
        memories: list[KeysValues],
        visible: jax.Array,
        caches: list[KeysValues] | None = None,
        place: jax.Array | int = 0,
    ) -> tuple[jax.Array, list[KeysValues]]:
        positions = self.embed_positions(jnp.arange(tokens.shape[1]) + place + _OFFSET)
        x = self.embed_tokens(tokens) * self.scale + positions
        x, found = self.dropout(self.layernorm_embedding(x)), []
        for number, layer in enumerate(self.layers):
            x, own = layer(x, memories[number], visible, None if caches is None else caches[number], place)
            found.append(own)
        return self.layer_norm(x), found


class FormulaHead(nn.Layer):
    """The places of an image [N, P, memory] -> logits of the tokens of its LaTeX."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.steps = config.max_tokens // config.step
        self.decoder = nn.Layer()
        self.decoder.model = nn.Layer()
        self.decoder.model.decoder = MBartDecoder(config)
        self.decoder.lm_head = nn.Linear(config.width, config.vocab_size, weight_attr=_INIT, bias_attr=False)
        if config.memory != config.width:
            self.enc_to_dec_proj = nn.Linear(config.memory, config.width)

    def forward(self, features: jax.Array, tokens: jax.Array) -> jax.Array:
        """Logits [N, T, V]: those at place t are of the token `step` places behind tokens[:, t].

        Args:
            tokens: [N, T] int32, `step` times START first; PAD is seen by none.

        Raises:
            ShapeError: there are more tokens than positions.
        """
        step, length, most = self.config.step, tokens.shape[1], self.config.max_tokens + self.config.step
        if length > most:
            raise ShapeError(
                "there are more tokens than positions",
                where="FormulaHead",
                received=length,
                allowed=f"{most}",
                fix="leave long formulas out, or set model.max_tokens",
            )
        places = jnp.arange(length)
        # The tokens of one step see each other.
        past = places[None, :] < (places[:, None] // step + 1) * step
        visible = past[None, None] & (tokens != PAD)[:, None, None, :]
        x, _ = self.decoder.model.decoder(tokens, self._memories(features), visible)
        return self.decoder.lm_head(x)

    def decode(self, features: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Tokens [N, T] int32, their probabilities [N, T], T = steps * step, and how many steps [] that took.

        Each of the `step` places of a step goes on until it has said END, and is PAD from there on; a formula has ended
        with its first END. Behind the last step tokens are PAD.
        """
        count, config = features.shape[0], self.config
        memories, room = self._memories(features), self.steps * config.step
        width = config.width // config.heads
        empty = jnp.zeros((count, room, config.heads, width), features.dtype)
        state = DecoderState(
            jnp.int32(0),
            jnp.full((count, config.step), START, jnp.int32),
            jnp.ones((count, config.step), bool),
            jnp.zeros((count,), bool),
            jnp.full((self.steps, count, config.step), PAD, jnp.int32),
            jnp.zeros((self.steps, count, config.step), jnp.float32),
            [(empty, empty) for _ in range(config.depth)],
        )

        def goes_on(state: DecoderState) -> jax.Array:
            return (state.place < self.steps) & ~state.ended.all()

        def advance(state: DecoderState) -> DecoderState:
            first = state.place * config.step
            visible = (jnp.arange(room) < first + config.step)[None, None, None]
            x, caches = self.decoder.model.decoder(state.last, memories, visible, state.caches, first)
            logits = self.decoder.lm_head(x).astype(jnp.float32)  # [N, step, V]
            told = jnp.where(state.open, logits.argmax(axis=-1).astype(jnp.int32), PAD)
            sure = jnp.where(state.open, jax.nn.softmax(logits, axis=-1).max(axis=-1), 0.0)
            return DecoderState(
                state.place + 1,
                told,
                state.open & (told != END),
                state.ended | (told == END).any(axis=-1),
                state.tokens.at[state.place].set(told),
                state.probabilities.at[state.place].set(sure),
                caches,
            )

        end = lax.while_loop(goes_on, advance, state)
        tokens, probabilities = (
            array.swapaxes(0, 1).reshape(count, room) for array in (end.tokens, end.probabilities)
        )
        return tokens, probabilities, end.place

    def _memories(self, features: jax.Array) -> list[KeysValues]:
        """Of each layer the keys and values of the image."""
        if self.config.memory != self.config.width:
            features = self.enc_to_dec_proj(features)
        return [layer.encoder_attn.keys_values(features) for layer in self.decoder.model.decoder.layers]
