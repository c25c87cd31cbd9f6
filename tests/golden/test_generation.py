"""Parity of nlp.generation with transformers: scores after each processor, greedy texts, beams.

The references are written by `tools.golden generation`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nlp.generation.options import GenerationOptions
from nlp.generation.processors import process
from nlp.generation.row_settings import RowSettings, fit_table, make_row, table_size
from nlp.generation.sampling import warp
from tools.golden.generation import ENDS, LENGTHS, LIMIT, PROCESSORS, PROMPTS, VOCAB_SIZE, rows

DATA = Path(__file__).parent / "data" / "generation"


def batch_settings(options: list[dict[str, Any]], prompts: list[int]) -> RowSettings:
    """A row for each of the options, in one batch."""
    built = []
    for changes, prompt in zip(options, prompts, strict=True):
        merged = GenerationOptions(eos_token_id=tuple(ENDS)).merge(**changes)
        words = [word for word in merged.bad_words if not isinstance(word, str)]
        table = table_size(merged, words)
        built.append(make_row(merged, words, prompt, LIMIT, np.zeros(2, np.uint32), VOCAB_SIZE, table))
    widest = built[0]
    for row in built:
        widest = fit_table(widest, row)[0]
    fitted = [fit_table(widest, row)[1] for row in built]
    return RowSettings(*(jnp.stack(arrays) for arrays in zip(*fitted, strict=True)))


@jax.jit
def processed(scores: jax.Array, ids: jax.Array, length: jax.Array, settings: RowSettings) -> jax.Array:
    return warp(process(scores, ids, length, settings), settings)


def assert_scores(found: jax.Array, expected: np.ndarray, case: str) -> None:
    finite = np.isfinite(expected)
    assert (np.isfinite(found) == finite).all(), case
    np.testing.assert_allclose(
        np.asarray(found)[finite], expected[finite], rtol=1e-5, atol=1e-5, err_msg=case
    )


def test_scores_of_every_processor() -> None:
    """All cases are rows of one batch: none changes the scores of another."""
    ids, scores = rows()
    names = [(case, row) for case in PROCESSORS for row in range(len(LENGTHS))]
    options = [PROCESSORS[case] for case, _ in names]
    settings = batch_settings(options, [PROMPTS[row] for _, row in names])
    at = np.array([row for _, row in names])
    found = processed(
        jnp.asarray(scores[at]), jnp.asarray(ids[at], jnp.int32), jnp.asarray(np.array(LENGTHS)[at]), settings
    )
    with np.load(DATA / "processors.npz") as stored:
        assert set(stored.files) == set(PROCESSORS)
        for number, (case, row) in enumerate(names):
            assert_scores(found[number], stored[case][row], f"{case}, row {row}")


@pytest.mark.parametrize("case", PROCESSORS)
def test_scores_of_a_processor_alone(case: str) -> None:
    ids, scores = rows()
    settings = batch_settings([PROCESSORS[case]] * len(LENGTHS), list(PROMPTS))
    found = processed(jnp.asarray(scores), jnp.asarray(ids, jnp.int32), jnp.asarray(LENGTHS), settings)
    with np.load(DATA / "processors.npz") as stored:
        assert_scores(found, stored[case], case)


def test_the_goldens_say_something() -> None:
    with np.load(DATA / "processors.npz") as stored:
        for case in PROCESSORS:
            rows_differ = (stored[case] != stored["none"]).any(-1)
            assert rows_differ.any() or case in ("none", "ngram_long"), case
