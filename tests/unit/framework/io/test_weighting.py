"""The weights of samples by their classes, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from framework.config import bind
from framework.core.errors import ConfigError
from framework.io.weighting import SamplerConfig, compute_weights, make_sampler

NAMES = ("cat", "dog", "owl")
LABELS = [np.array(labels, np.int32) for labels in ([0], [0], [0, 1], [], [1, 1])]


class Labelled:
    class_names = NAMES

    def read_labels(self) -> Sequence[np.ndarray]:
        return LABELS


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({"type": "WeightedRandom", "weights": {"dog": 3.0}}, [1, 1, 3, 1, 3]),
        ({"type": "WeightedRandom", "weights": {"cat": 0.5, "dog": 0.25}}, [0.5, 0.5, 0.5, 0.25, 0.25]),
        ({"type": "ClassBalanced"}, [1 / 3, 1 / 3, 1 / 2, 1 / 3, 1 / 2]),
        ({"type": "RepeatFactor", "threshold": 0.5}, [1, 1, 1.25**0.5, 1, 1.25**0.5]),  # dog: 2 of 5 images
    ],
)
def test_weights(settings: dict[str, Any], weights: list[float]) -> None:
    found = compute_weights(bind(settings, SamplerConfig), LABELS, NAMES)
    np.testing.assert_allclose(found, weights)


def test_a_balanced_sampler_draws_classes_alike() -> None:
    class Lopsided(Labelled):
        def read_labels(self) -> Sequence[np.ndarray]:
            return [np.array([int(n >= 90)]) for n in range(100)]

    sampler = make_sampler(SamplerConfig("ClassBalanced", num_samples=2000), Lopsided(), seed=0)
    drawn = np.array(list(sampler))
    assert len(sampler) == 2000 and 0.45 < (drawn >= 90).mean() < 0.55
    assert list(sampler) == drawn.tolist()
    sampler.set_epoch(1)
    assert list(sampler) != drawn.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "Weighted"}, r"'WeightedRandom' or 'ClassBalanced' or 'RepeatFactor'"),
        ({"type": "WeightedRandom"}, "weights belong to WeightedRandom"),
        ({"type": "ClassBalanced", "weights": {"cat": 1.0}}, "weights belong to WeightedRandom"),
        ({"type": "WeightedRandom", "weights": {"cat": -1.0}}, "a weight is out of range"),
        ({"type": "RepeatFactor", "threshold": 0.0}, "a sampler is out of range"),
        ({"type": "RepeatFactor", "num_samples": 0}, "a sampler is out of range"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bind(settings, SamplerConfig)


def test_a_class_or_a_data_set_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"unknown class(?s:.)*dig(?s:.)*did you mean 'dog'"):
        make_sampler(SamplerConfig("WeightedRandom", {"dig": 1.0}), Labelled(), 0)
    with pytest.raises(ConfigError, match=r"cannot be sampled by class(?s:.)*received: list"):
        make_sampler(SamplerConfig("ClassBalanced"), [1, 2], 0)
