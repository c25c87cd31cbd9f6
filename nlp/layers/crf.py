"""Linear-chain conditional random fields: the likelihood of tag sequences, and the best one.

Paper: Lafferty, McCallum and Pereira 2001; the recursions are those of http://www.cs.columbia.edu/~mcollins/fb.pdf
Reference: PaddleNLP paddlenlp/layers/crf.py (`LinearChainCrf`, with_start_stop_tag=True)
Differs: PaddleNLP's normaliser reads its transition matrix as [to, from], its gold score as [from, to], and its
    decoder as [from, to] but for the end of a sequence, which it reads from the row of STOP. Ours is the decoder's
    everywhere, so weights of PaddleNLP give its tags. START and STOP stand at the ends of a sequence only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from framework import nn

_Token = tuple[jax.Array, jax.Array, jax.Array]


class LinearChainCRF(nn.Layer):
    """Scores of L tags in a row. `transitions` [L + 2, L + 2] are from row to column; row L, STOP, holds the scores of
    the tags at the end of a sequence, and row L + 1, START, of those at its beginning.

    Emissions are [N, T, L + 2] float32, as PaddleNLP's networks give them; the columns of STOP and START are not read.
    Real tokens come first in each row: `mask` [N, T] bool says which they are, and at least one is.
    """

    def __init__(self, num_tags: int, learning_rate: float = 0.1) -> None:
        super().__init__()
        self.num_tags = num_tags
        attr = nn.ParamAttr(learning_rate=learning_rate)
        self.transitions = self.create_parameter((num_tags + 2, num_tags + 2), attr)

    def loss(self, emissions: jax.Array, tags: jax.Array, mask: jax.Array) -> jax.Array:
        """Minus the log-likelihood of `tags` [N, T] int32, [N] float32, at least 0."""
        return self.log_normalizer(emissions, mask) - self.score(emissions, tags, mask)

    def score(self, emissions: jax.Array, tags: jax.Array, mask: jax.Array) -> jax.Array:
        """The score of `tags` [N, T], before normalisation, [N] float32."""
        stop, start = self.num_tags, self.num_tags + 1
        tags = jnp.clip(tags, 0, self.num_tags - 1)
        emitted = jnp.take_along_axis(emissions, tags[..., None], axis=-1)[..., 0]
        last = jnp.take_along_axis(tags, mask.sum(1, keepdims=True) - 1, axis=1)[:, 0]
        steps = self.transitions[tags[:, :-1], tags[:, 1:]]
        return (
            jnp.where(mask, emitted, 0).sum(1)
            + jnp.where(mask[:, 1:], steps, 0).sum(1)
            + self.transitions[start, tags[:, 0]]
            + self.transitions[stop, last]
        )

    def log_normalizer(self, emissions: jax.Array, mask: jax.Array) -> jax.Array:
        """The logarithm of the sum over all tag sequences, [N] float32."""
        count = self.num_tags
        inner, begin = self.transitions[:count, :count], self.transitions[count + 1, :count]

        def step(alpha: jax.Array, inputs: _Token) -> tuple[jax.Array, None]:
            emitted, real, first = inputs
            top = lax.stop_gradient(alpha.max(-1, keepdims=True))
            # The sum over the last tag is a matrix product of exponentials, each below 1.
            peak = lax.stop_gradient(inner.max())
            moved = jnp.log(jnp.exp(alpha - top) @ jnp.exp(inner - peak)) + top + peak
            moved = jnp.where(first, begin, moved) + emitted
            return jnp.where(real[:, None] | first, moved, alpha), None

        alpha = jnp.zeros((emissions.shape[0], count), jnp.float32)
        alpha, _ = lax.scan(step, alpha, self._tokens(emissions, mask))
        return jax.nn.logsumexp(alpha + self.transitions[count, :count], axis=-1)

    def _tokens(self, emissions: jax.Array, mask: jax.Array) -> _Token:
        """Token by token: emissions [T, N, L], mask [T, N], whether it is the first [T]."""
        scores = jnp.moveaxis(emissions[..., : self.num_tags].astype(jnp.float32), 1, 0)
        return scores, mask.T, jnp.arange(mask.shape[1]) == 0

    def decode(self, emissions: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Viterbi: the best tags [N, T] int32, 0 behind a sequence's end, and their score [N]."""
        count = self.num_tags
        inner, begin = self.transitions[:count, :count], self.transitions[count + 1, :count]

        def forward(best: jax.Array, inputs: _Token) -> tuple[jax.Array, jax.Array]:
            emitted, real, first = inputs
            paths = best[:, :, None] + inner
            moved = jnp.where(first, begin, paths.max(1)) + emitted
            came_from = jnp.where(real[:, None], paths.argmax(1), jnp.arange(count))
            return jnp.where(real[:, None] | first, moved, best), came_from

        best = jnp.zeros((emissions.shape[0], count), jnp.float32)
        best, came_from = lax.scan(forward, best, self._tokens(emissions, mask))
        final = best + self.transitions[count, :count]

        def backward(tag: jax.Array, pointers: jax.Array) -> tuple[jax.Array, jax.Array]:
            return jnp.take_along_axis(pointers, tag[:, None], axis=1)[:, 0], tag

        _, tags = lax.scan(backward, final.argmax(-1), came_from, reverse=True)
        return jnp.where(mask, tags.T, 0).astype(jnp.int32), final.max(-1)

    def marginals(self, emissions: jax.Array, tags: jax.Array, mask: jax.Array) -> jax.Array:
        """The probability of each of `tags` at its place, over all sequences, [N, T] float32; 0 behind the end.

        It is the derivative of the log-normaliser by the emission.
        """
        gradient = jax.grad(lambda e: self.log_normalizer(e, mask).sum())(emissions.astype(jnp.float32))
        of_tags = jnp.take_along_axis(gradient, tags[..., None], axis=-1)[..., 0]
        return jnp.where(mask, jnp.clip(of_tags, 0, 1), 0)
