"""What every model of language takes and gives."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax


class Tokens(NamedTuple):
    """N texts, padded to T tokens; the real ones come first."""

    ids: jax.Array
    """[N, T] int32; [N, T, K] where K features of each token are added up"""
    mask: jax.Array
    """[N, T] bool: False is padding"""
    type_ids: jax.Array | None = None
    """[N, T] int32: 0 for the first text of a pair and 1 for the second"""


class TextClassifier(Protocol):
    """A Layer. `forward` gives logits [N, num_classes] float32. What is padded does not change a text's result."""

    def forward(self, tokens: Tokens) -> jax.Array: ...


class Tagger(Protocol):
    """A Layer that gives each token one of L tags."""

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        """A float32 scalar, the mean over texts or tokens; `tags` [N, T] int32, below 0 where a token has none."""
        ...

    def tag(self, tokens: Tokens) -> tuple[jax.Array, jax.Array]:
        """The tags [N, T] int32 and how probable each is, [N, T] float32 in [0, 1]."""
        ...
