"""Correlations, AUC and F1 against scipy and numbers by hand; ties, constants and nothing at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from framework.core.errors import ConfigError
from nlp.pair_metrics import AUC, Pearson, Spearman, TextF1

RNG = np.random.default_rng(0)


def score(metric: Any, found: Any, wanted: Any, name: str = "similarity") -> dict[str, float]:
    """In two batches."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    started = metric.start(("a", "b", "c"))
    for part in (slice(0, 2), slice(2, None)):
        started.update({name: found[part]}, {"label": wanted[part]})
    return started.result()


def test_correlations_are_scipys() -> None:
    wanted = RNG.integers(0, 6, 50)
    found = (wanted + RNG.normal(size=50)).round(0).astype(np.float32)  # with ties
    assert score(Pearson(), found, wanted) == {"pearson": pytest.approx(stats.pearsonr(found, wanted)[0])}
    assert score(Spearman(), found, wanted) == {"spearman": pytest.approx(stats.spearmanr(found, wanted)[0])}


def test_correlations_by_hand() -> None:
    assert score(Pearson(), [1.0, 2.0, 4.0], [0, 1, 3])["pearson"] == pytest.approx(1)
    assert score(Spearman(), [1.0, 9.0, 4.0], [2, 0, 1])["spearman"] == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5, 4 and 1.5, 1.5, 3.5, 3.5: covariance 4, lengths sqrt(4.5) and 2.
    assert score(Spearman(), [0.1, 0.5, 0.5, 0.9], [0, 0, 1, 1])["spearman"] == pytest.approx(
        3 / np.sqrt(4.5) / 2
    )


@pytest.mark.parametrize("metric", [Pearson(), Spearman()])
def test_what_is_constant_says_nothing(metric: Any) -> None:
    (name,) = metric.start(()).result()
    for found, wanted in (([0.5] * 4, [0, 1, 0, 1]), ([0.1, 0.2, 0.3, 0.4], [1] * 4), ([0.5], [1])):
        assert score(metric, found, wanted) == {name: 0.0}
    assert metric.start(()).result() == {name: 0.0}
    # Values that are almost the same, and large.
    assert score(metric, [1e8, 1e8 + 8, 1e8 + 16], [0, 1, 2])[name] == pytest.approx(1)


def test_auc_counts_pairs_in_order() -> None:
    # Matches .9 and .5, others .5 and .1: three of four in order, one tie.
    assert score(AUC(), [0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0]) == {"auc": 3.5 / 4}
    found, wanted = RNG.random(60).round(1), RNG.integers(0, 2, 60)
    greater = found[wanted == 1][:, None] - found[wanted == 0]
    expected = ((greater > 0).mean() + (greater >= 0).mean()) / 2
    assert score(AUC(), found, wanted)["auc"] == pytest.approx(expected)
    assert score(AUC(), [0.3, 0.4], [1, 1]) == {"auc": 0.5} and AUC().start(()).result() == {"auc": 0.5}


def test_f1_by_hand() -> None:
    # found 0 1 1 2, wanted 0 1 2 2
    scores = np.eye(3)[[0, 1, 1, 2]]
    wanted = [0, 1, 2, 2]
    binary = score(TextF1(), scores, wanted, "scores")
    assert binary == {"f1": pytest.approx(2 / 3), "precision": 0.5, "recall": 1.0}
    assert score(TextF1(positive=2), scores, wanted, "scores")["recall"] == 0.5
    macro = score(TextF1("macro"), scores, wanted, "scores")
    assert macro == {
        "f1": pytest.approx((1 + 2 / 3 + 2 / 3) / 3),
        "precision": pytest.approx((1 + 0.5 + 1) / 3),
        "recall": pytest.approx((1 + 1 + 0.5) / 3),
    }
    assert score(TextF1("micro"), scores, wanted, "scores") == {"f1": 0.75, "precision": 0.75, "recall": 0.75}
    nothing = {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    assert score(TextF1(), np.eye(3)[[0, 0]], [0, 0], "scores") == nothing
    for average in ("binary", "macro", "micro"):
        assert TextF1(average).start(("a", "b")).result() == nothing  # type: ignore[arg-type]


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"(?s)unknown class.*received: -1"):
        TextF1(positive=-1)
    with pytest.raises(ConfigError, match="allowed: from 0 to 1"):
        TextF1(positive=2).start(("a", "b"))
    TextF1("macro", positive=2).start(("a", "b"))
