"""The head of SLANet: a GRU that looks at the image and says one token of a table's structure after the other.

Paper: PP-StructureV2, https://arxiv.org/abs/2210.05391, section 3.2
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/table_att_head.py (SLAHead), rec_att_head.py (AttentionGRUCell)
Differs: channels last. The products of the image's features are made once and not at every step. `decode` is one loop
    that ends when every table has ended.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from framework import nn
from framework.nn import functional as F

START = 0


class Structure(NamedTuple):
    """What was said of N tables in T steps; of `decode` 0 behind the last step that was run.

    `logits` [N, T, V]; `boxes` [N, T, 4 or 8] in 0 to 1, meant where a token begins a cell.
    """

    logits: jax.Array
    boxes: jax.Array


class StructureDecoder(Protocol):
    """A head that says a table's structure token by token, such as SLAHead."""

    def decode(self, features: jax.Array) -> tuple[Structure, jax.Array]: ...


# Steps done, hidden states, last tokens, which tables have ended, what was said.
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Structure]


class AttentionGRUCell(nn.Layer):
    """A GRU's step over the features that it looks at, [N, P, C], and the token before."""

    def __init__(self, in_channels: int, hidden: int, tokens: int) -> None:
        super().__init__()
        self.i2h = nn.Linear(in_channels, hidden, bias_attr=False)
        self.h2h = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias_attr=False)
        self.rnn = nn.GRUCell(in_channels + tokens, hidden)

    def forward(self, features: jax.Array, keys: jax.Array, token: jax.Array, hidden: jax.Array) -> jax.Array:
        """The next hidden state [N, H].

        Args:
            features: [N, P, C]. keys: `i2h` of them, [N, P, H].
            token: [N, V], one-hot. hidden: [N, H].
        """
        scores = self.score(jnp.tanh(keys + self.h2h(hidden)[:, None]))  # [N, P, 1]
        context = (F.softmax(scores, axis=1) * features).sum(axis=1)  # [N, C]
        return self.rnn(jnp.concatenate([context, token], axis=-1), hidden)[0]


class SLAHead(nn.Layer):
    """Features [N, P, C] -> `Structure`. Token 0 begins a table and the last one ends it."""

    def __init__(self, in_channels: int, hidden: int, tokens: int, coordinates: int, most_steps: int) -> None:
        super().__init__()
        self.hidden, self.tokens, self.coordinates, self.steps = hidden, tokens, coordinates, most_steps + 1
        self.structure_attention_cell = AttentionGRUCell(in_channels, hidden, tokens)
        self.structure_generator = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, tokens))
        self.loc_generator = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, coordinates))

    def forward(self, features: jax.Array, tokens: jax.Array | None = None) -> Structure:
        """All steps: after the given tokens [N, T] int32, the first START; without them after what it said itself."""
        cell, keys = self.structure_attention_cell, self.structure_attention_cell.i2h(features)
        hidden = jnp.zeros((features.shape[0], self.hidden), features.dtype)
        if tokens is not None:

            def follow(hidden: jax.Array, token: jax.Array) -> tuple[jax.Array, jax.Array]:
                hidden = cell(features, keys, self._one_hot(token, features.dtype), hidden)
                return hidden, hidden

            states = jnp.swapaxes(lax.scan(follow, hidden, tokens.T)[1], 0, 1)  # [N, T, H]
            return Structure(self.structure_generator(states), self._locate(states))

        def say(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], Structure]:
            hidden, token = carry
            hidden, step = self._step(features, keys, hidden, token)
            return (hidden, step.logits.argmax(axis=-1).astype(jnp.int32)), step

        start = jnp.full(features.shape[:1], START, jnp.int32)
        _, steps = lax.scan(say, (hidden, start), None, length=self.steps)
        return Structure(*(jnp.swapaxes(array, 0, 1) for array in steps))

    def decode(self, features: jax.Array) -> tuple[Structure, jax.Array]:
        """What it says after its own tokens, and how many steps [] int32 that took: until all tables have ended."""
        count = features.shape[0]
        keys = self.structure_attention_cell.i2h(features)
        said = Structure(
            jnp.zeros((self.steps, count, self.tokens), features.dtype),
            jnp.zeros((self.steps, count, self.coordinates), features.dtype),
        )
        state = (
            jnp.int32(0),
            jnp.zeros((count, self.hidden), features.dtype),
            jnp.full((count,), START, jnp.int32),
            jnp.zeros((count,), bool),
            said,
        )

        def goes_on(state: _State) -> jax.Array:
            return (state[0] < self.steps) & ~state[3].all()

        def advance(state: _State) -> _State:
            place, hidden, token, ended, said = state
            hidden, step = self._step(features, keys, hidden, token)
            token = step.logits.argmax(axis=-1).astype(jnp.int32)
            said = Structure(*(array.at[place].set(new) for array, new in zip(said, step)))
            return place + 1, hidden, token, ended | (token == self.tokens - 1), said

        steps, *_, said = lax.while_loop(goes_on, advance, state)
        return Structure(*(jnp.swapaxes(array, 0, 1) for array in said)), steps

    def _step(
        self, features: jax.Array, keys: jax.Array, hidden: jax.Array, token: jax.Array
    ) -> tuple[jax.Array, Structure]:
        one_hot = self._one_hot(token, features.dtype)
        hidden = self.structure_attention_cell(features, keys, one_hot, hidden)
        return hidden, Structure(self.structure_generator(hidden), self._locate(hidden))

    def _locate(self, hidden: jax.Array) -> jax.Array:
        return F.sigmoid(self.loc_generator(hidden))

    def _one_hot(self, token: jax.Array, dtype: jnp.dtype) -> jax.Array:
        return jax.nn.one_hot(token, self.tokens, dtype=dtype)


def read_structure(
    head: StructureDecoder, features: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Tokens [N, T] int32, their probabilities [N, T], boxes [N, T, 4 or 8] and the steps [] that all tables took.

    Behind the last step everything is 0.
    """
    said, steps = head.decode(features)
    probabilities = jax.nn.softmax(said.logits.astype(jnp.float32), axis=-1).max(axis=-1)
    run = jnp.arange(said.logits.shape[1]) < steps
    best = said.logits.argmax(axis=-1).astype(jnp.int32)
    return jnp.where(run, best, 0), jnp.where(run, probabilities, 0.0), said.boxes, steps
