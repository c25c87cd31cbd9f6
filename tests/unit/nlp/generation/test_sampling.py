from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from nlp.generation.engine import request_key
from nlp.generation.options import GenerationOptions
from nlp.generation.row_settings import RowSettings, make_row
from nlp.generation.sampling import choose, warp

DRAWS = 20_000


@pytest.mark.parametrize(
    "changes", [{"temperature": 2.0, "top_k": 9}, {"top_k": 0, "top_p": 0.9}, {"min_p": 0.02}]
)
def test_draws_have_the_probabilities_of_the_scores(changes: dict[str, float]) -> None:
    """Of as many seeds, as rows of one batch."""
    size = 12
    logits = np.random.default_rng(0).normal(size=size).astype(np.float32) * 2
    row = make_row(GenerationOptions().merge(**changes), (), 2, 9, np.zeros(2, np.uint32), size, (1, 1))
    settings = RowSettings(*(jnp.repeat(jnp.asarray(array)[None], DRAWS, axis=0) for array in row))
    keys = np.stack([np.zeros(DRAWS, np.uint32), np.arange(DRAWS, dtype=np.uint32)], axis=1)
    settings = settings._replace(key=jnp.asarray(keys))

    @jax.jit
    def draw(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        scores = warp(scores, settings)
        return choose(scores, jnp.full(DRAWS, 5, jnp.int32), settings), scores[0]

    tokens, scores = draw(jnp.repeat(jnp.asarray(logits)[None], DRAWS, axis=0))
    expected = np.asarray(jax.nn.softmax(scores.astype(jnp.float32)), np.float64)
    drawn = np.bincount(np.asarray(tokens), minlength=size)
    likely = expected > 0
    assert 1 < likely.sum() < size and drawn[~likely].sum() == 0
    probabilities = expected[likely] / expected[likely].sum()
    assert stats.chisquare(drawn[likely], DRAWS * probabilities).pvalue > 1e-3


def test_keys_of_seeds_and_samples_differ() -> None:
    keys = {tuple(request_key(seed, sample)) for seed in (0, 1, -1, 2**32, 2**63) for sample in range(3)}
    assert len(keys) == 15
    assert tuple(request_key(7, 1)) == tuple(request_key(7, 1))


def test_the_least_number_of_new_tokens_takes_precedence_over_the_least_length() -> None:
    """As transformers has it (`_prepare_generated_length`)."""

    def least(**changes: object) -> int:
        options = GenerationOptions().merge(**changes)
        return int(make_row(options, (), 4, 99, np.zeros(2, np.uint32), 8, (1, 1)).min_length)

    assert least(min_new_tokens=3, min_length=20) == least(min_new_tokens=3) == 7
    assert least(min_length=20) == 20
