"""The recursions against sums over all tag sequences."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from nlp.layers.crf import LinearChainCRF

TAGS, RNG = 3, np.random.default_rng(0)
TABLE = RNG.normal(size=(TAGS + 2, TAGS + 2)).astype(np.float32)
EMISSIONS = RNG.normal(size=(3, 4, TAGS + 2)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], bool)


@pytest.fixture
def crf() -> LinearChainCRF:
    layer = LinearChainCRF(TAGS)
    layer.set_state_dict({"transitions": TABLE})
    return layer


def sequences(row: int) -> dict[tuple[int, ...], float]:
    """The score of every tag sequence of a row."""
    stop, start, length = TAGS, TAGS + 1, int(MASK[row].sum())
    return {
        tags: float(
            TABLE[start, tags[0]]
            + TABLE[stop, tags[-1]]
            + sum(EMISSIONS[row, place, tag] for place, tag in enumerate(tags))
            + sum(TABLE[a, b] for a, b in itertools.pairwise(tags))
        )
        for tags in itertools.product(range(TAGS), repeat=length)
    }


@pytest.mark.parametrize("row", range(3))
def test_it_is_the_sum_over_all_sequences(crf: LinearChainCRF, row: int) -> None:
    scores = sequences(row)
    normalizer = np.log(np.sum(np.exp(list(scores.values()))))
    best = max(scores, key=lambda tags: scores[tags])
    length = len(best)
    assert crf.log_normalizer(EMISSIONS, MASK)[row] == pytest.approx(normalizer, abs=1e-5)
    tags, score = crf.decode(EMISSIONS, MASK)
    assert tuple(tags[row, :length].tolist()) == best and not tags[row, length:].any()
    assert score[row] == pytest.approx(scores[best], abs=1e-5)
    for place in range(length):
        share = sum(np.exp(s - normalizer) for t, s in scores.items() if t[place] == best[place])
        assert crf.marginals(EMISSIONS, tags, MASK)[row, place] == pytest.approx(share, abs=1e-5)
    some = np.zeros((3, 4), np.int32)
    some[row, :length] = list(scores)[-1]
    assert crf.score(EMISSIONS, some, MASK)[row] == pytest.approx(list(scores.values())[-1], abs=1e-5)
    assert crf.loss(EMISSIONS, some, MASK)[row] == pytest.approx(
        normalizer - list(scores.values())[-1], abs=1e-5
    )


def test_padding_changes_nothing(crf: LinearChainCRF) -> None:
    wide = np.pad(EMISSIONS, ((0, 0), (0, 3), (0, 0)), constant_values=7)
    mask = np.pad(MASK, ((0, 0), (0, 3)))
    tags = np.zeros((3, 7), np.int32)
    assert np.allclose(crf.loss(wide, tags - 1, mask), crf.loss(EMISSIONS, tags[:, :4], MASK), atol=1e-5)


def test_large_scores_stay_finite(crf: LinearChainCRF) -> None:
    gradient = jax.grad(lambda e: crf.loss(e, np.zeros((3, 4), np.int32), MASK).sum())(EMISSIONS * 1e3)
    assert np.isfinite(gradient).all() and np.abs(gradient[1, 2:]).max() == 0
