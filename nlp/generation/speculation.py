"""Several tokens a step: cheap proposals, of which those are accepted that the model would have written itself.

A proposal is accepted where it equals the token that the model chooses there, by the same draw as without proposals:
greedy and sampled texts are token for token those of plain decoding with the same seed. For proposals of certainty, as
n-grams are, that accepts with probability p(proposal) and else draws from the rest, which is the rule min(1, p/q) with
q = 1. A draft model draws with the same Gumbel noise as the model, so that both choose alike where they agree.

Source: Leviathan et al. 2023 (arXiv 2211.17192); n-grams: Saxena 2023, "prompt lookup decoding"; common noise: Daliri et
al. 2025, "Coupling without communication and drafter-invariant speculative decoding" (arXiv 2408.07978).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from framework.core.errors import ConfigError

if TYPE_CHECKING:
    from nlp.generation.programs import DecoderFunctions

_SIZES = (3, 2)  # n-grams that are looked for, the longer one first


@dataclass(frozen=True)
class Speculation:
    """What proposes tokens.

    Args:
        tokens: Proposals a step, 1 to 16.
        draft: A smaller decoder with the same vocabulary; None proposes what followed the last n-gram before.
    """

    tokens: int = 3
    draft: DecoderFunctions | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= 16:
            raise ConfigError(
                "the number of proposals is out of range", received=self.tokens, allowed="1 to 16"
            )


def ngram_drafts(ids: jax.Array, length: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """What followed the last 3 tokens, or else the last 2, where they stood before for the last time.

    Args:
        ids: [B, S] int32, of which `length` [B] count.

    Returns:
        Tokens [B, count] int32, and how many of them there are [B] int32; 0 where the n-gram is new.
    """
    size = ids.shape[1]
    index = jnp.arange(size)
    ends = length[:, None]
    start = jnp.full(length.shape, size, jnp.int32)  # the first token behind the match; `size` is none
    for n in _SIZES:
        matches = (index >= n - 1) & (index < ends - 1)  # the match's last token
        for back in range(n):
            last = jnp.take_along_axis(ids, jnp.maximum(ends - 1 - back, 0), axis=1)
            matches = matches & (jnp.roll(ids, back, axis=1) == last)
        latest = jnp.where(matches, index, -1).max(-1).astype(jnp.int32)
        start = jnp.where((start == size) & (latest >= 0), latest + 1, start)
    offsets = start[:, None] + jnp.arange(count)
    tokens = jnp.take_along_axis(ids, jnp.clip(offsets, 0, size - 1), axis=1)
    return tokens, jnp.clip(length - start, 0, count)
