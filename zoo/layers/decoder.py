"""What the decoders of texts share: attention with rotary positions and a cache, gated feed-forward parts, blocks that
normalise before the residual, and the base class.

Papers: LLaMA: Touvron et al. 2023, https://arxiv.org/abs/2302.13971; grouped queries: https://arxiv.org/abs/2305.13245
Reference: transformers 5 models/llama/modeling_llama.py
Weights: names of Hugging Face; matrices of linear layers are [in, out] here and [out, in] there: pretrained_model.py.
"""

from __future__ import annotations

from typing import ClassVar, Generic, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from framework import nn
from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.adapters import add_adapters
from zoo.layers.decoder_cache import LayerCache as LayerCache
from zoo.layers.decoder_cache import extend_cache, new_layer_cache
from zoo.layers.decoder_cache import write_cache as write_cache
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.pretrained_model import ConfigT, PretrainedModel
from zoo.layers.rope import rotary_tables

Cache = tuple[PyTree, ...]
"""An entry for each layer, such as a LayerCache. The first axis of every array in it is the row."""


class Positions(NamedTuple):
    """Where the tokens of a call stand, and what each sees: made once for all layers."""

    cos: jax.Array
    """[N or 1, T, R / 2] float32"""
    sin: jax.Array
    mask: jax.Array | None
    """[N or 1, 1, T, S] bool: the keys that a token sees; None: all up to its own"""
    near: jax.Array | None
    """As `mask`, for layers with a window"""
    near_tables: tuple[jax.Array, jax.Array] | None = None
    """Cosines and sines of layers with a window, where they are others"""


def linear(size: DecoderSize, inputs: int, outputs: int, bias: bool) -> nn.Linear:
    """A linear layer that starts as GPT's: a normal distribution of `init_std`, and zeros."""
    return nn.Linear(inputs, outputs, I.Normal(0.0, size.init_std), None if bias else False)


class DecoderAttention(nn.Layer):
    """Attention on [N, T, hidden_size] to the tokens up to each one, with rotary positions.

    Families with other projections override `project`.
    """

    interleaved = False

    def __init__(self, size: DecoderSize, layer: int, dropout: float = 0.0) -> None:
        super().__init__()
        width, depth = size.hidden_size, size.head_width
        self.heads, self.kv_heads, self.depth, self.dropout = size.num_heads, size.kv_heads, depth, dropout
        self.windowed = size.window_of(layer) is not None
        self.scale: float | None = None
        self.softcap: float | None = None
        self.q_proj = linear(size, width, self.heads * depth, size.attention_bias)
        self.k_proj = linear(size, width, self.kv_heads * depth, size.attention_bias)
        self.v_proj = linear(size, width, self.kv_heads * depth, size.attention_bias)
        self.o_proj = linear(size, self.heads * depth, width, size.output_bias)

    def project(self, x: jax.Array, at: Positions) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Queries [N, T, H, D], keys and values [N, T, KV, D] of x [N, T, hidden_size], rotated."""
        rows, length, _ = x.shape
        q = self.normalize_query(self.q_proj(x).reshape(rows, length, self.heads, self.depth))
        k = self.normalize_key(self.k_proj(x).reshape(rows, length, self.kv_heads, self.depth))
        v = self.v_proj(x).reshape(rows, length, self.kv_heads, self.depth)
        return self.rotate(q, at), self.rotate(k, at), v

    def normalize_query(self, q: jax.Array) -> jax.Array:
        """Of each head [..., D], before the rotation."""
        return q

    def normalize_key(self, k: jax.Array) -> jax.Array:
        return k

    def rotate(self, x: jax.Array, at: Positions) -> jax.Array:
        return F.apply_rotary(x, at.cos, at.sin, self.interleaved)

    def attend(self, q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None) -> jax.Array:
        """[N, T, hidden_size] of queries [N, T, H, D], keys and values [N, S, KV, D]."""
        dropped = self.dropout if self.training else 0.0
        causal = mask is None
        values = F.scaled_dot_product_attention(
            q, k, v, mask, dropped, causal, self.training, self.scale, self.softcap
        )
        return self.output(values.reshape(*values.shape[:2], -1))

    def output(self, x: jax.Array) -> jax.Array:
        """Heads side by side [N, T, H * D] -> [N, T, hidden_size]"""
        return self.o_proj(x)

    def mask_of(self, at: Positions) -> jax.Array | None:
        return at.near if self.windowed else at.mask

    def forward(self, x: jax.Array, at: Positions) -> jax.Array:
        q, k, v = self.project(x, at)
        return self.attend(q, k, v, self.mask_of(at))

    def new_cache(self, batch: int, length: int, dtype: DTypeLike) -> PyTree:
        """An empty cache of `length` tokens for `batch` rows; in 8 bits for the dtype int8."""
        return new_layer_cache((batch, length, self.kv_heads, self.depth), dtype)

    def decode(
        self, x: jax.Array, at: Positions, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        """As `forward`, for tokens [N, T] at `positions` behind those of the cache; and the cache with them."""
        q, k, v = self.project(x, at)
        cache, keys, values = extend_cache(cache, k, v, positions)
        return self.attend(q, keys, values, self.mask_of(at)), cache


class GatedMLP(nn.Layer):
    """down(activation(gate(x)) * up(x)) on [..., hidden_size]. Source: Shazeer 2020, https://arxiv.org/abs/2002.05202"""

    def __init__(self, size: DecoderSize, hidden: int | None = None) -> None:
        super().__init__()
        width, hidden = size.hidden_size, size.intermediate_size if hidden is None else hidden
        self.activation = ACTIVATIONS[size.activation]
        self.gate_proj = linear(size, width, hidden, size.mlp_bias)
        self.up_proj = linear(size, width, hidden, size.mlp_bias)
        self.down_proj = linear(size, hidden, width, size.mlp_bias)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class DecoderBlock(nn.Layer):
    """x + attention(norm(x)), then x + mlp(norm(x)), on [N, T, hidden_size]."""

    attention_type: ClassVar[type[DecoderAttention]] = DecoderAttention

    def __init__(self, config: DecoderConfig, size: DecoderSize, layer: int) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(size.hidden_size, size.epsilon)
        self.self_attn = self.attention_type(size, layer, config.dropout)
        self.post_attention_layernorm = nn.RMSNorm(size.hidden_size, size.epsilon)
        self.mlp = self.make_mlp(config, size, layer)

    def make_mlp(self, config: DecoderConfig, size: DecoderSize, layer: int) -> nn.Layer:
        """The feed-forward part of layer `layer`."""
        return GatedMLP(size)

    def forward(self, x: jax.Array, at: Positions) -> jax.Array:
        x = x + self.self_attn(self.input_layernorm(x), at)
        return x + self.mlp(self.post_attention_layernorm(x))

    def decode(
        self, x: jax.Array, at: Positions, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        y, cache = self.self_attn.decode(self.input_layernorm(x), at, positions, cache)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), cache

    def new_cache(self, batch: int, length: int, dtype: DTypeLike) -> PyTree:
        """An empty cache of `length` tokens for `batch` rows."""
        return self.self_attn.new_cache(batch, length, dtype)


class DecoderStack(nn.BlockChain):
    """Embedding, blocks and the last norm: `model.` in the names of Hugging Face."""

    embedding_name: ClassVar[str] = "embed_tokens"

    def __init__(self, config: DecoderConfig, size: DecoderSize, block: type[DecoderBlock]) -> None:
        super().__init__()
        start = I.Normal(0.0, size.init_std)
        self.embed_tokens = nn.Embedding(size.vocab_size, size.hidden_size, weight_attr=start)
        self.layers = nn.LayerList([block(config, size, layer) for layer in range(size.num_layers)])
        self.norm = nn.RMSNorm(size.hidden_size, size.epsilon)

    def embed(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        """Tokens [N, T] at positions [N or 1, T] -> [N, T, hidden_size]"""
        return self.embed_tokens(ids)

    def normalize(self, x: jax.Array) -> jax.Array:
        """What stands behind the last block."""
        return self.norm(x)


class Decoder(PretrainedModel[ConfigT], Generic[ConfigT]):
    """Base of the networks that say which token follows: `zoo.contracts.CausalDecoder`.

    `forward` is for training and evaluation, `decode` for generation with a cache.
    """

    block_type: ClassVar[type[DecoderBlock]] = DecoderBlock
    stack_type: ClassVar[type[DecoderStack]] = DecoderStack
    stack_name: ClassVar[str] = "model"
    """The attribute of the stack"""

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        setattr(self, self.stack_name, self.stack_type(config, self.size, self.block_type))
        if not self.size.tie_embeddings:
            self.lm_head = linear(self.size, self.size.hidden_size, self.size.vocab_size, False)
        if config.adapter is not None:
            add_adapters(self, config.adapter)

    @property
    def stack(self) -> DecoderStack:
        return getattr(self, self.stack_name)

    # -- tokens to hidden states ----------------------------------------------------------------------------------

    def embed(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        """Tokens [N, T] int32 at positions [N or 1, T] -> [N, T, hidden_size]"""
        return self.stack.embed(ids, positions)

    @property
    def embedding_name(self) -> str:
        return f"{self.stack_name}.{self.stack.embedding_name}.weight"

    def hidden(
        self, ids: jax.Array, positions: jax.Array | None = None, segments: jax.Array | None = None
    ) -> jax.Array:
        """[N, T, hidden_size] behind the last norm. See `forward`."""
        if ids.ndim != 2:
            raise ShapeError(
                "a decoder takes one id a token",
                where=type(self).__name__,
                received=ids.shape,
                allowed="[N, T]",
            )
        positions = jnp.arange(ids.shape[1])[None] if positions is None else positions
        at = self.see_segments(positions, segments)
        return self.stack.normalize(nn.run_blocks(self.stack.blocks(), self.embed(ids, positions), at))

    def forward(
        self, ids: jax.Array, positions: jax.Array | None = None, segments: jax.Array | None = None
    ) -> jax.Array:
        """Logits [N, T, vocab_size] float32 of what follows each token.

        Args:
            ids: [N, T] int32. Padding stands behind the text: nothing before it sees it.
            positions: [N, T] int32; None: 0, 1, 2 and so on.
            segments: [N, T] int32: a token sees those of its own segment alone, where a row holds several texts.
        """
        return self.logits(self.hidden(ids, positions, segments))

    # -- what a token sees ----------------------------------------------------------------------------------------

    def tables(
        self, positions: jax.Array, valid: jax.Array | None = None, lengths: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """Cosines and sines of positions [N, T]. See `rotary_tables`."""
        size = self.size
        return rotary_tables(size.rope, self.rotary_width, size.max_positions, positions, valid, lengths)

    @property
    def rotary_width(self) -> int:
        """Channels of a head that rotary tables are made for."""
        return self.size.head_width

    def near_tables(
        self, positions: jax.Array, valid: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array] | None:
        """As `tables`, of layers with a window; None: the same."""
        return None

    def see_segments(self, positions: jax.Array, segments: jax.Array | None) -> Positions:
        """For texts without a cache, whose tokens are at `positions` [N or 1, T]."""
        length = positions.shape[1]
        order = jnp.arange(length)
        cos, sin = self.tables(positions)
        mask = near = None
        if segments is not None:
            mask = (order[:, None] >= order) & (segments[:, :, None] == segments[:, None, :])  # [N, T, T]
            mask = mask[:, None]
        if self.has_windows:
            past = order[:, None] - order  # in the row: texts of one row follow one another
            near = (past >= 0) & (past < (self.size.window or length))
            near = near[None, None] if mask is None else near & mask
        return Positions(cos, sin, mask, near, self.near_tables(positions))

    def see_cache(self, positions: jax.Array, length: int, lengths: jax.Array | None = None) -> Positions:
        """For tokens at `positions` [N, T] of a cache of `length` tokens. lengths: See `decode`."""
        valid = positions < length
        cos, sin = self.tables(positions, valid, lengths)
        keys = jnp.arange(length)
        mask = keys <= positions[..., None]  # [N, T, S]
        near = mask & (keys > positions[..., None] - self.size.window) if self.size.window else mask
        near = near[:, None] if self.has_windows else None
        return Positions(cos, sin, mask[:, None], near, self.near_tables(positions, valid))

    @property
    def has_windows(self) -> bool:
        return any(self.size.window_of(layer) is not None for layer in range(self.size.num_layers))

    # -- generation -----------------------------------------------------------------------------------------------

    def new_cache(self, batch: int, length: int, dtype: DTypeLike = "float32") -> Cache:
        """An empty cache of `length` tokens for `batch` rows."""
        return tuple(block.new_cache(batch, length, dtype) for block in self.stack.blocks())

    def decode(
        self, ids: jax.Array, positions: jax.Array, cache: Cache, lengths: jax.Array | None = None
    ) -> tuple[jax.Array, Cache]:
        """Hidden states [N, T, hidden_size] behind the last norm of tokens at their positions in the cache, which sees
        them from then on.

        Args:
            ids: [N, T] int32: one new token a row; or more, of a prompt or of a draft.
            positions: [N, T] int32: a token is written there and sees all up to there. One beyond the end of the cache
                writes nothing, as for padding and rows that are done.
            lengths: [N] int32: tokens of the whole prompt, where it is read in parts: some rotary embeddings depend on
                it (RopeOptions.regime). None: up to these positions.
        """
        at = self.see_cache(positions, jax.tree.leaves(cache)[0].shape[1], lengths)
        x, layers = self.embed(ids, positions), []
        for block, layer in zip(self.stack.blocks(), cache, strict=True):
            x, layer = block.decode(x, at, positions, layer)
            layers.append(layer)
        return self.stack.normalize(x), tuple(layers)
