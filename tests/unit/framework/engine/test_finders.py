"""The learning rate and the batch size that are suggested, and that a run is left alone."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError
from framework.engine import finders
from framework.engine.experiment import TrainOptions
from framework.engine.finders import LRFinding, find_batch_size, find_lr
from framework.engine.trainer import TrainingError
from framework.io import DataLoader, Dataset
from framework.optimizer import SGD
from framework.optimizer.lr import CosineAnnealingDecay
from framework.vision import image
from tests.unit.framework.engine.conftest import Points, PointTask


def sweep(dataset: Dataset | None = None, **how: Any) -> tuple[nn.Layer, LRFinding]:
    framework.seed(0)
    model, task = nn.Linear(2, 2), PointTask()
    loader = DataLoader(
        dataset or Points(64), shuffle=True, drop_last=True, batch_size=16, pack=task.pack, num_workers=0
    )
    return model, find_lr(
        model, task, SGD(CosineAnnealingDecay(5.0, None)), loader, TrainOptions(epochs=1), **how
    )


def test_a_rate_is_suggested_and_the_model_stays_as_it_is(tmp_path: Path) -> None:
    framework.seed(0)
    before = {name: np.asarray(p.value) for name, p in nn.Linear(2, 2).named_parameters()}
    model, found = sweep(start=1e-4, end=1e4, steps=60)
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(parameter.value, before[name])
    assert found.suggestion is not None and 1e-2 < found.suggestion < 50
    assert (
        found.rates[0] == pytest.approx(1e-4) and len(found.rates) == len(found.losses) < 60
    )  # it went up and ended
    ratios = np.array(found.rates[1:]) / found.rates[:-1]
    np.testing.assert_allclose(ratios, 1e8 ** (1 / 59), rtol=1e-6)
    table, drawing = found.write(tmp_path)
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert float(rows[3]["learning_rate"]) == found.rates[3] and float(rows[3]["loss"]) == found.losses[3]
    assert (image.read(drawing) == [213, 94, 0]).all(-1).sum() > 300  # the line at the suggestion


def test_the_steepest_fall_is_suggested() -> None:
    """The loss is flat, falls at rate 1, is flat again, and grows: the middle of the fall."""
    rates = tuple(np.logspace(-4, 2, 61))
    losses = (1 / (1 + np.exp(3 * np.log(rates))) + np.maximum(0, np.log(rates) - 3)).tolist()
    assert finders._suggest(rates, losses) == pytest.approx(1.0, rel=0.3)
    assert (
        finders._suggest(rates, list(np.linspace(1, 2, 61))) is None
        and finders._suggest(rates[:5], losses[:5]) is None
    )


def test_what_cannot_be_swept() -> None:
    with pytest.raises(ConfigError, match=r"nothing to sweep over(.|\n)*start 1.0, end 0.1"):
        sweep(start=1.0, end=0.1)
    with pytest.raises(ConfigError, match="steps from 20"):
        sweep(steps=10)
    wrong = Points(64)
    wrong.labels[3] = 5
    with pytest.raises(
        TrainingError, match="no class"
    ):  # unlike a loss that is no number because of the rate
        sweep(wrong)


def test_the_largest_batch_that_fits(make) -> None:
    """What is said is what the compiler says of that size; twice the size would not fit."""
    trainer = make(dataset=Points(24))
    batch = {"x": np.zeros((4, 2), np.float32), "label": np.zeros(4, np.int32)}
    sizes = {size: finders._measure(trainer, batch, size) for size in (4, 8)}
    assert sizes[8] > sizes[4] + 10
    found = find_batch_size(trainer, free=sizes[4] + 10, share=1.0)
    assert (found.batch_size, found.needed, found.limited_by) == (4, sizes[4], "memory")
    with pytest.raises(ConfigError, match="not even the smallest batch fits"):
        find_batch_size(trainer, free=100)


def test_growing_asks_for_few_sizes() -> None:
    """Memory that grows by a constant a sample: four sizes are enough, whatever the answer."""
    for allowed, answer in ((99, None), (109, 1), (10_000, 512), (10**9, 2**20)):
        asked: list[int] = []

        def needed(size: int, asked: list[int] = asked) -> int:
            asked.append(size)
            return 90 + 10 * size + size // 3

        assert finders._grow(needed, 1, 2**20, allowed) == answer
        assert len(set(asked)) <= 6


def test_the_memory_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 100, "bytes_in_use": 30}, platform="gpu")
    assert finders.free_memory(gpu) == 70
    silent: Any = SimpleNamespace(memory_stats=lambda: None, platform="tpu")
    with pytest.raises(ConfigError, match=r"memory of the device is unknown(.|\n)*free="):
        finders.free_memory(silent)
    cpu: Any = SimpleNamespace(memory_stats=lambda: None, platform="cpu")
    monkeypatch.setattr(finders, "_system_memory", lambda: 500)
    monkeypatch.setattr(finders, "_container_memory", lambda: 200)
    assert finders.free_memory(cpu) == 200
