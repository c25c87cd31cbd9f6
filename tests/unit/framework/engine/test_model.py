"""framework.Model: Paddle's fit, evaluate, predict on the compiled step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError
from framework.io import DataLoader
from framework.metric import Accuracy
from framework.optimizer import Adam, Momentum
from tests.unit.framework.engine.conftest import Points


def made(**how) -> framework.Model:
    framework.seed(0)
    model = framework.Model(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)))
    model.prepare(Adam(0.03), nn.CrossEntropyLoss(), Accuracy(), **how)
    return model


def test_fit_evaluate_predict(tmp_path: Path) -> None:
    model = made()
    before = model.evaluate(Points(30), batch_size=8)
    scores = model.fit(
        Points(60), Points(30), batch_size=8, epochs=12, verbose=0, save_dir=tmp_path, save_freq=6
    )
    after = model.evaluate(Points(30), batch_size=8)
    assert set(after) == {"acc", "loss"} and after["acc"] == scores["acc"] >= 0.9
    assert after["loss"] < before["loss"]
    (whole,) = model.predict(Points(30), batch_size=8, stack_outputs=True)
    (batches,) = model.predict(Points(30), batch_size=8)
    assert whole.shape == (30, 2) and [len(b) for b in batches] == [8, 8, 8, 6]
    assert (whole.argmax(axis=1) == Points(30).labels).mean() == pytest.approx(after["acc"])
    other = made()
    other.load(tmp_path / "final")
    assert other.evaluate(Points(30), batch_size=8) == after
    assert (tmp_path / "checkpoints").is_dir()


def test_a_second_fit_goes_on_with_the_optimizers_state() -> None:
    once, twice = made(), made()
    once.fit(Points(16), batch_size=8, epochs=1, num_iters=4, shuffle=False, verbose=0)
    for _ in range(2):
        twice.fit(Points(16), batch_size=8, epochs=1, shuffle=False, verbose=0)
    for a, b in zip(once.parameters(), twice.parameters()):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-7)


def test_a_loader_of_ones_own() -> None:
    model = made()
    loader = DataLoader(Points(20), batch_size=8, shuffle=True, num_workers=0)
    model.fit(loader, loader, epochs=2, verbose=0)
    assert set(model.evaluate(loader)) == {"acc", "loss"}


def test_one_batch_at_a_time() -> None:
    model, points = made(), Points(16)
    losses = [model.train_batch(points.points, points.labels) for _ in range(20)]
    assert losses[-1] < 0.7 * losses[0]
    assert model.eval_batch(points.points, points.labels)["acc"] >= 0.9
    assert model.predict_batch(points.points)[0].shape == (16, 2)


def test_bfloat16_and_files(tmp_path: Path) -> None:
    model = made(amp_configs="O1")
    model.fit(Points(16), batch_size=8, epochs=1, verbose=0)
    model.save(tmp_path / "net")
    other = framework.Model(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)))
    other.load(tmp_path / "net", skip_mismatch=True)
    assert np.array_equal(other.network.state_dict()["0.weight"], model.network.state_dict()["0.weight"])
    assert "Linear" in model.summary((1, 2))


def test_errors() -> None:
    model = framework.Model(nn.Linear(2, 2))
    with pytest.raises(ConfigError, match="not prepared for this") as caught:
        model.fit(Points(8))
    assert "no optimizer, loss" in str(caught.value)
    with pytest.raises(ConfigError, match="unknown level"):
        model.prepare(Momentum(0.1), amp_configs="O3")
    model = framework.Model(nn.Linear(2, 2), inputs=3)
    model.prepare(Momentum(0.1), nn.CrossEntropyLoss())
    with pytest.raises(ConfigError, match="too few fields"):
        model.fit(Points(8), batch_size=4, verbose=0)
