"""Overrides that follow from what a config says."""

from __future__ import annotations

from typing import cast

import pytest

from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.workflow.train.overrides import class_overrides, evaluation_overrides

EACH_EPOCH = ("train.eval_every=null", "train.save_every=null")


def of(**train: JSON) -> dict[str, JSON]:
    return {"train": cast(JSON, train)}


@pytest.mark.parametrize(
    ("recipe", "settings", "is_short"),
    [
        (of(epochs=300, eval_every=300), of(epochs=12, eval_every=300), True),
        (of(epochs=300, eval_every=300), of(epochs=100, eval_every=300), False),
        (of(epochs=300, eval_every=300), of(epochs=12, eval_every=50), False),  # asked for
        (of(epochs=300, eval_every=300), of(epochs=300, eval_every=300), False),
        (of(iters=2000, eval_every=400), of(epochs=5, iters=None, eval_every=400), True),
        (of(iters=2000, eval_every=400), of(iters=300, eval_every=400), True),
        (of(iters=2000, eval_every=400), of(iters=1000, eval_every=400), False),
        (of(epochs=20), of(epochs=2), False),  # each epoch already
        ({}, {}, False),
    ],
)
def test_short_runs_are_evaluated_each_epoch(
    recipe: dict[str, JSON], settings: dict[str, JSON], is_short: bool
) -> None:
    assert evaluation_overrides(recipe, settings) == (EACH_EPOCH if is_short else ())


def test_classes_of_data_sets_and_model() -> None:
    settings: dict[str, JSON] = {
        "data": {
            "train": {"dataset": {"type": "Folder", "root": "a"}},
            "eval": {"dataset": {"type": "Masks"}},
        }
    }
    changes = class_overrides(settings, ["a", "b"], {"Masks": "Some"}.get)
    assert changes == (
        'data.train.dataset.classes=["a", "b"]',
        "data.eval.dataset=null",
        'data.eval.dataset={"type": "Some", "dataset": {"type": "Masks"}, "classes": ["a", "b"]}',
        "model.num_classes=2",
    )
    with pytest.raises(ConfigError, match="different names"):
        class_overrides(settings, ["a", "a"], {}.get)
    with pytest.raises(ConfigError, match="no data"):
        class_overrides({}, ["a"], {}.get)
