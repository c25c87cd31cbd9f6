"""Log-probabilities in chunks are those of the whole, with their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ShapeError
from nlp.token_scores import token_scores

RNG = np.random.default_rng(0)
HIDDEN = jnp.asarray(RNG.normal(size=(2, 7, 5)).astype(np.float32))
WEIGHT = jnp.asarray(RNG.normal(size=(5, 11)).astype(np.float32))
TARGETS = jnp.asarray([[1, 2, -100, 4, 10, 0, -100], [3, -100, 3, 3, 1, 2, 9]], jnp.int32)


def _expected(hidden: jax.Array, weight: jax.Array) -> jax.Array:
    logs = jax.nn.log_softmax(hidden @ weight)
    chosen = jnp.take_along_axis(logs, jnp.maximum(TARGETS, 0)[..., None], -1)[..., 0]
    return jnp.where(TARGETS >= 0, chosen, 0)


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 100])
def test_chunks_change_nothing(chunks: int) -> None:
    def total(hidden: jax.Array, weight: jax.Array) -> jax.Array:
        return token_scores(hidden, TARGETS, lambda x: x @ weight, chunks).log_likelihood.sum()

    found = token_scores(HIDDEN, TARGETS, lambda x: x @ WEIGHT, chunks)
    np.testing.assert_allclose(found.log_likelihood, _expected(HIDDEN, WEIGHT), atol=2e-6)
    np.testing.assert_array_equal(found.right, ((HIDDEN @ WEIGHT).argmax(-1) == TARGETS) & (TARGETS >= 0))
    ours = jax.grad(total, (0, 1))(HIDDEN, WEIGHT)
    theirs = jax.grad(lambda h, w: _expected(h, w).sum(), (0, 1))(HIDDEN, WEIGHT)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=5e-6), ours, theirs)


def test_the_logits_of_a_batch_are_never_whole() -> None:
    def total(hidden: jax.Array, weight: jax.Array) -> jax.Array:
        return token_scores(hidden, targets, lambda x: x @ weight, 8).log_likelihood.sum()

    hidden, weight = jnp.zeros((2, 64, 4)), jnp.zeros((4, 1000))
    targets = jnp.zeros((2, 64), jnp.int32)
    text = str(jax.make_jaxpr(jax.grad(total, (0, 1)))(hidden, weight))
    assert "[2,8,1000]" in text
    assert not any(shape in text for shape in ("[2,64,1000]", "[128,1000]", "[8,2,8,1000]"))


def test_targets_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        token_scores(HIDDEN, TARGETS[:, :3], lambda x: x, 1)
