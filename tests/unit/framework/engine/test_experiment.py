"""The sections of a file: bound at once, with their own checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.config import load
from framework.core.errors import ConfigError
from framework.engine.experiment import LoaderConfig, TrainOptions, bind_experiment


def test_a_file_is_bound_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(
        "domain: ocr\nmodel: {type: DBNet, variant: PP-OCRv6_tiny_det}\ntrain: {epochs: 3}\n",
        encoding="utf-8",
    )
    experiment = bind_experiment(load(path, ["train.amp=bfloat16"]))
    assert experiment.model.variant == "PP-OCRv6_tiny_det"
    assert experiment.train == TrainOptions(epochs=3, amp="bfloat16")
    with pytest.raises(ConfigError) as caught:
        bind_experiment(load(path, ["modle.x=1", "train.epoch=2"]))
    assert "2 errors" in str(caught.value)
    assert "did you mean 'model'?" in str(caught.value) and "did you mean 'epochs'?" in str(caught.value)
    with pytest.raises(ConfigError, match="sections are missing") as caught:
        experiment.require("model", "task", "optim")
    assert "also task, optim" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LoaderConfig(None, batch_size=0), "a loader needs samples"),
        (lambda: TrainOptions(epochs=1, iters=1), "training has one length"),
        (lambda: TrainOptions(log_every=0), "log_every is too small"),
    ],
)
def test_impossible_settings(make, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()
