"""The decoder of PARSeq: position queries read a text in any order, as masks of attention say.

Paper: PARSeq, https://arxiv.org/abs/2207.06966, sections 3.2 and 3.3; two streams as in XLNet, https://arxiv.org/abs/1906.08237
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/rec_parseq_head.py
Differs: a text is read in a program of fixed shapes, always to the last position, where upstream stops at the batch's
    longest text; the positions behind the end are masked either way. Permutations are drawn by the caller.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import InputError
from framework.nn import functional as F
from framework.nn.functional.attention import KeysValues
from zoo.layers.attention import Attention
from zoo.layers.mlp import NARROW, narrow_linear

DROPOUT = 0.1
END = 0  # class 0 ends a text; start and padding stand behind the symbols


class DecoderLayer(nn.Layer):
    """Attention to the text, attention to the image and an MLP, each behind a normalisation and with a residual."""

    def __init__(self, dims: int, num_heads: int, mlp_ratio: int) -> None:
        super().__init__()
        names = ("q_proj", "k_proj", "v_proj", "out_proj")
        self.self_attn = Attention(dims, num_heads, names, dropout=DROPOUT)
        self.cross_attn = Attention(dims, num_heads, names, dropout=DROPOUT)
        self.linear1, self.linear2 = (
            narrow_linear(dims, mlp_ratio * dims),
            narrow_linear(mlp_ratio * dims, dims),
        )
        self.norm1, self.norm2 = nn.LayerNorm(dims), nn.LayerNorm(dims)
        self.norm_q, self.norm_c = nn.LayerNorm(dims), nn.LayerNorm(dims)
        self.dropout = nn.Dropout(DROPOUT)
        self.dropout1, self.dropout2, self.dropout3 = (nn.Dropout(DROPOUT) for _ in range(3))

    def forward(
        self,
        query: jax.Array,
        content: jax.Array,
        memory: KeysValues,
        query_visible: jax.Array,
        content_visible: jax.Array | None,
    ) -> tuple[jax.Array, jax.Array]:
        """Both streams, [N, Q, C] and [N, T, C]; without `content_visible` the content stays as it is."""
        normed = self.norm_c(content)
        text = self.self_attn.keys_values(normed)
        query = self._stream(query, self.norm_q(query), text, memory, query_visible)
        if content_visible is not None:
            content = self._stream(content, normed, text, memory, content_visible)
        return query, content

    def _stream(
        self, x: jax.Array, normed: jax.Array, text: KeysValues, memory: KeysValues, visible: jax.Array
    ) -> jax.Array:
        x = x + self.dropout1(self.self_attn(normed, text, visible))
        x = x + self.dropout2(self.cross_attn(self.norm1(x), memory))
        return x + self.dropout3(self.linear2(self.dropout(F.gelu(self.linear1(self.norm2(x))))))


class Decoder(nn.Layer):
    """The layers and a normalisation."""

    def __init__(self, dims: int, num_heads: int, mlp_ratio: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.LayerList([DecoderLayer(dims, num_heads, mlp_ratio) for _ in range(depth)])
        self.norm = nn.LayerNorm(dims)

    def memories(self, x: jax.Array) -> list[KeysValues]:
        """The image [N, T, C] as every layer sees it."""
        return [layer.cross_attn.keys_values(x) for layer in self.layers]

    def forward(
        self,
        query: jax.Array,
        content: jax.Array,
        memories: list[KeysValues],
        query_visible: jax.Array,
        content_visible: jax.Array,
    ) -> jax.Array:
        last = len(self.layers) - 1
        for number, (layer, memory) in enumerate(zip(self.layers, memories)):
            # The content behind the last layer is not read.
            own = content_visible if number < last else None
            query, content = layer(query, content, memory, query_visible, own)
        return self.norm(query)


class TokenEmbedding(nn.Layer):
    """Rows of a table times the root of its width."""

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_embeddings, dims, weight_attr=NARROW)
        self.scale = math.sqrt(dims)

    def forward(self, tokens: jax.Array) -> jax.Array:
        return self.scale * self.embedding(tokens)


class PARSeqHead(nn.Layer):
    """Logits of every position of a text from the image's tokens [N, T, dims].

    Classes are the end and the symbols; tokens are these, the start and the padding. A text has `length` symbols at
    most, so there are `length + 1` positions. `refine` is how often a read text is read again with all of itself but
    the symbol in question in view.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_ratio: int,
        depth: int,
        num_classes: int,
        length: int,
        refine: int,
    ) -> None:
        super().__init__()
        self.start, self.padding = num_classes, num_classes + 1
        self.length, self.refine = length, refine
        self.decoder = Decoder(dims, num_heads, mlp_ratio, depth)
        self.head = narrow_linear(dims, num_classes)
        self.text_embed = TokenEmbedding(num_classes + 2, dims)
        self.pos_queries = self.create_parameter((1, length + 1, dims), NARROW)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, image: jax.Array) -> jax.Array:
        """[N, length + 1, num_classes]: from left to right, each symbol from those before it, then refined."""
        positions = self.length + 1
        memories = self.decoder.memories(image)
        order = jnp.arange(positions)
        before = (
            order[None, :] <= order[:, None]
        )  # position i sees the tokens up to i, of which 0 is the start
        tokens = jnp.full((image.shape[0], positions), self.padding, jnp.int32).at[:, 0].set(self.start)
        logits = jnp.zeros((image.shape[0], positions, self.start), image.dtype)

        def step(i: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            tokens, logits = carry
            query = jax.lax.dynamic_slice_in_dim(self.pos_queries[...], i, 1, axis=1)
            row = jax.lax.dynamic_slice_in_dim(before, i, 1, axis=0)
            found = self._decode(tokens, memories, query, row, before)  # [N, 1, num_classes]
            logits = jax.lax.dynamic_update_slice_in_dim(logits, found.astype(logits.dtype), i, axis=1)
            # Behind the last position there is no token; there the last one is written and not read.
            next_token = jnp.argmax(found, axis=-1).astype(jnp.int32)
            written = jax.lax.dynamic_update_slice_in_dim(tokens, next_token, i + 1, axis=1)
            return jnp.where(i < self.length, written, tokens), logits

        tokens, logits = jax.lax.fori_loop(0, positions, step, (tokens, logits))
        # A position sees all tokens but its own symbol, which stands behind it because of the start.
        others = order[None, :] != order[:, None] + 1
        for _ in range(self.refine):
            best = jnp.argmax(logits[:, :-1], axis=-1).astype(jnp.int32)
            tokens = tokens.at[:, 1:].set(best)
            inside = jnp.cumsum(tokens == END, axis=-1) == 0
            visible = others & inside[:, None, None, :]
            logits = self._decode(tokens, memories, self.pos_queries[...], visible, visible)
        return logits

    def permuted(self, image: jax.Array, tokens: jax.Array, permutations: jax.Array) -> jax.Array:
        """Logits [K, N, L + 1, num_classes] under K orders of reading; entry t predicts tokens[:, t + 1].

        tokens int [N, L + 2] are start, text, end and padding; permutations int [K, L + 2] are `draw_permutations`'s.
        """
        content = tokens[:, :-1]
        inside = (content != self.padding) & (content != END)
        memories = self.decoder.memories(image)
        logits = []
        for permutation in permutations:
            query_visible, content_visible = permutation_masks(permutation)
            seen = inside[:, None, None, :]
            query = self.pos_queries[:, : content.shape[1]]
            logits.append(
                self._decode(content, memories, query, query_visible & seen, content_visible & seen)
            )
        return jnp.stack(logits)

    def _decode(
        self,
        tokens: jax.Array,
        memories: list[KeysValues],
        query: jax.Array,
        query_visible: jax.Array,
        content_visible: jax.Array,
    ) -> jax.Array:
        """Logits [N, Q, num_classes] of the positions of `query` [1, Q, dims]."""
        embedded = self.text_embed(tokens)  # [N, T, dims]
        places = self.pos_queries[:, : tokens.shape[1] - 1]
        content = jnp.concatenate([embedded[:, :1], embedded[:, 1:] + places], axis=1)
        query = jnp.broadcast_to(query, (tokens.shape[0], *query.shape[1:]))
        query, content = self.dropout(query), self.dropout(content)
        return self.head(self.decoder(query, content, memories, query_visible, content_visible))


def permutation_masks(permutation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What is visible in an order of reading [T] of the start, the symbols and the end, both bool [T - 1, T - 1].

    First for position queries, of which row i predicts place i + 1 and sees what is read before that; then for the
    content, of which row i stands at place i and sees itself too. Columns are places 0 to T - 2.
    """
    size = permutation.shape[0]
    rank = jnp.zeros(size, jnp.int32).at[permutation].set(jnp.arange(size))
    return rank[None, :-1] < rank[1:, None], rank[None, :-1] <= rank[:-1, None]


def draw_permutations(rng: np.random.Generator, length: int, count: int = 6) -> np.ndarray:
    """Orders of reading a text of `length` symbols: int32 [at most count, length + 2], each from the start on.

    The first is from left to right, the second from right to left, the end first; the others are drawn, each with its
    mirror image. Short texts have fewer. Source: section 3.2 of the paper; small lengths as its code and upstream have
    them.

    Raises:
        InputError: `length` is below 1, or `count` below 2.
    """
    for name, value, least in (("length", length, 1), ("count", count, 2)):
        if value < least:
            raise InputError(
                f"{name} is too small", where="draw_permutations", received=value, allowed=f"{least} or more"
            )
    if length == 1:
        return np.arange(3, dtype=np.int32)[None]
    drawn = min(count // 2, math.factorial(length) // 2) - 1
    if length < 5:
        pool = _unmirrored(length)[1:]
        rows = pool[rng.choice(len(pool), drawn, replace=False)] if drawn else pool[:0]
    else:
        rows = np.array([rng.permutation(length) for _ in range(drawn)], np.int32).reshape(-1, length)
    rows = np.concatenate([np.arange(length, dtype=np.int32)[None], rows])
    rows = np.stack([rows, rows[:, ::-1]], axis=1).reshape(-1, length) + 1
    found = np.pad(rows, ((0, 0), (1, 1)), constant_values=((0, 0), (0, length + 1))).astype(np.int32)
    found[1, 1:] = np.arange(length + 1, 0, -1)
    return found


def random_permutations(key: jax.Array, length: int, count: int = 6) -> jax.Array:
    """As `draw_permutations`, in a program: int32 [count, length + 2] by a key of jax.

    The orders of all `length` places; a shorter text is padded, and the order of its own places is as random.
    `count` is even and at least 2.
    """
    forward = jnp.arange(1, length + 1, dtype=jnp.int32)
    drawn = [jax.random.permutation(one, forward) for one in jax.random.split(key, max(count // 2 - 1, 1))]
    rows = []
    for order in (forward, *drawn[: count // 2 - 1]):
        rows += [jnp.pad(side, (1, 1), constant_values=(0, length + 1)) for side in (order, order[::-1])]
    backward = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.arange(length + 1, 0, -1, dtype=jnp.int32)])
    return jnp.stack([rows[0], backward, *rows[2:]])


def _unmirrored(length: int) -> np.ndarray:
    """All orders of up to 4 symbols but for mirror images of others, that from left to right first."""
    orders = [order for order in itertools.permutations(range(length)) if order[0] < order[-1]]
    return np.array(orders, np.int32).reshape(-1, length)
