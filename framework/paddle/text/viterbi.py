"""Viterbi decoding: the best path of tags through scores and transitions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer


def viterbi(
    scores: jax.Array, transitions: jax.Array, lengths: jax.Array, tags: bool
) -> tuple[jax.Array, jax.Array]:
    """scores [N, T, C], transitions [C, C] (from, to), lengths [N] -> (best scores [N], paths [N, T], 0 beyond the
    length). With `tags` the last row of transitions starts a path, and the one before it is added at its end.

    Source: Viterbi 1967.
    """
    count = scores.shape[2]
    steps = jnp.moveaxis(scores, 1, 0)

    def at_end(t: jax.Array | int) -> jax.Array:
        """What a path that ends with step t gains."""
        return jnp.where((lengths == t + 1)[:, None], transitions[-2], 0)

    first = steps[0] + transitions[-1] + at_end(0) if tags else steps[0]

    def advance(best: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        at, t = inputs
        total = best[:, :, None] + transitions
        going = (t < lengths)[:, None]
        new = total.max(1) + at
        if tags:
            new = new + at_end(t)
        return jnp.where(going, new, best), jnp.where(going, total.argmax(1), jnp.arange(count))

    best, back = lax.scan(advance, first, (steps[1:], jnp.arange(1, steps.shape[0])))

    def follow(tag: jax.Array, before: jax.Array) -> tuple[jax.Array, jax.Array]:
        previous = jnp.take_along_axis(before, tag[:, None], 1)[:, 0]
        return previous, tag

    start, rest = lax.scan(follow, best.argmax(1), back, reverse=True)
    paths = jnp.concatenate([start[:, None], jnp.moveaxis(rest, 0, 1)], 1)
    return best.max(1), jnp.where(jnp.arange(paths.shape[1]) < lengths[:, None], paths, 0)


@operation(name="viterbi_decode", differentiable=False)
def _decode(
    potentials: Array, transition_params: Array, lengths: Array, include_bos_eos_tag: bool, longest: int
) -> tuple[Array, Array]:
    best, paths = viterbi(potentials, transition_params, lengths, include_bos_eos_tag)
    return best, paths[:, :longest].astype(jnp.int64)


@reads_values
def viterbi_decode(
    potentials: Tensor,
    transition_params: Tensor,
    lengths: Tensor,
    include_bos_eos_tag: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(scores [N], paths [N, the greatest length] int64): the best tags by potentials [N, T, C] and transitions [C, C].

    With `include_bos_eos_tag` the last tag begins sequences, and the one before it ends them.
    """
    longest = int(lengths.numpy().max())
    return _decode(potentials, transition_params, lengths, include_bos_eos_tag, longest)


class ViterbiDecoder(Layer):
    """`viterbi_decode` with its transitions."""

    def __init__(
        self, transitions: Tensor, include_bos_eos_tag: bool = True, name: str | None = None
    ) -> None:
        super().__init__()
        self.transitions, self.include_bos_eos_tag = transitions, include_bos_eos_tag

    def forward(self, potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag)
