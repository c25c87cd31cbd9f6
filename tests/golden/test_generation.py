"""Parity of nlp.generation with transformers: scores after each processor, greedy texts, beams.

The references are written by `tools.golden generation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nlp import llm
from nlp.generation.options import GenerationOptions
from nlp.generation.processors import process
from nlp.generation.row_settings import RowSettings, fit_table, make_row, table_size
from nlp.generation.sampling import warp
from nlp.llm import LanguageModel
from tools.golden.generation import (
    BEAMS,
    ENDS,
    GREEDY,
    LENGTHS,
    LIMIT,
    MODELS,
    PROCESSORS,
    PROMPTS,
    TEXT_PROMPTS,
    VOCAB_SIZE,
    prompt,
    rows,
    write_folder,
)

DATA = Path(__file__).parent / "data" / "generation"


def batch_settings(options: list[dict[str, Any]], prompts: list[int]) -> RowSettings:
    """A row for each of the options, in one batch."""
    built = []
    for changes, prompt_length in zip(options, prompts, strict=True):
        merged = GenerationOptions(eos_token_id=tuple(ENDS)).merge(**changes)
        words = [word for word in merged.bad_words if not isinstance(word, str)]
        table = table_size(merged, words)
        built.append(make_row(merged, words, prompt_length, LIMIT, np.zeros(2, np.uint32), VOCAB_SIZE, table))
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


@pytest.fixture(scope="module", params=MODELS)
def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LanguageModel]:
    name = request.param
    loaded = llm.load(write_folder(tmp_path_factory.mktemp("models") / name, name))
    yield loaded
    loaded.writer.close()


@pytest.fixture
def stored(model: LanguageModel) -> dict[str, np.ndarray]:
    assert model.folder is not None
    with np.load(DATA / f"{model.folder.name}.npz") as data:
        return dict(data)


@pytest.mark.parametrize("case", GREEDY)
def test_greedy_texts(model: LanguageModel, stored: dict[str, np.ndarray], case: str) -> None:
    """All prompts in one batch of different lengths, and each alone."""
    expected = [stored[f"greedy/{case}/{length}"].tolist() for length in TEXT_PROMPTS]
    prompts = [prompt(length) for length in TEXT_PROMPTS]
    results = model.generate(prompts, **GREEDY[case])
    assert [list(result.ids) for result in results] == expected
    alone = [model.generate(ids, **GREEDY[case]) for ids in prompts]
    assert [list(result.ids) for result in alone] == expected


@pytest.mark.parametrize("case", BEAMS)
def test_beams(model: LanguageModel, stored: dict[str, np.ndarray], case: str) -> None:
    for length in TEXT_PROMPTS:
        results = model.generate(prompt(length), **BEAMS[case])
        texts = results if isinstance(results, list) else [results]
        expected, scores = stored[f"beam/{case}/{length}"], stored[f"beam_scores/{case}/{length}"]
        assert [one.score for one in texts] == pytest.approx(scores.tolist(), rel=1e-6, abs=1e-4)
        for text, row in zip(texts, expected, strict=True):
            assert list(text.ids) == row[: len(text.ids)].tolist()
            padding = set(row[len(text.ids) :].tolist())
            assert padding <= {0, _ends(case)[0]}  # what transformers pads with
            assert not padding or text.ids[-1] in (*_ends(case), *model.model.size.eos_ids)


def _ends(case: str) -> list[int]:
    ends = BEAMS[case].get("eos_token_id", 0)
    return ends if isinstance(ends, list) else [ends]


def test_a_row_of_a_ragged_batch_is_the_row_alone(model: LanguageModel) -> None:
    """Logarithms of probabilities, not only tokens."""
    prompts = [prompt(length) for length in TEXT_PROMPTS]
    options = {"max_new_tokens": 12, "logprobs": 5}
    together = model.generate(prompts, **options)
    for ids, row in zip(prompts, together, strict=True):
        alone = model.generate(ids, **options)
        for one, other in zip(alone.logprobs, row.logprobs, strict=True):
            assert one.token == other.token
            assert [log for _, log in one.top] == pytest.approx([log for _, log in other.top], abs=1e-5)
