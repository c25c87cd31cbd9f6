"""framework.Model: Paddle's fit, evaluate, predict on the compiled step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError, OarError
from framework.engine.callbacks import LogLines
from framework.io import DataLoader, TensorDataset
from framework.jit import InputSpec
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


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda m: m.fit(X, Y), r"Model\.fit: fit takes a data set(.|\n)*TensorDataset\(\[x, y\]\)"),
        (lambda m: m.fit(), r"fit takes a data set(.|\n)*received: nothing"),
        (lambda m: m.evaluate(X), r"evaluate takes a data set(.|\n)*an array \[8, 2\]"),
        (lambda m: m.fit([X, Y], verbose=0), r"too few fields(.|\n)*1 input and 1 label(.|\n)*TensorDataset"),
        (
            lambda m: m.fit([{"x": X[0], "label": Y[0]}] * 2, verbose=0),
            r"a sample is a dict(.|\n)*'x', 'label'(.|\n)*return \(sample\['x'\], sample\['label'\]\)",
        ),
        (lambda m: m.evaluate([{"x": X[0]}], verbose=0), "a sample is a dict"),
        (lambda m: m.evaluate(Points(8), callbacks=[LogLines()]), "callbacks watch training"),
        (lambda m: m.train_batch(X, np.full(8, 2)), "label 2 of 2 classes"),
        (lambda m: m.save("net", training=False), r"framework\.jit\.save"),
        (lambda m: m.summary(), "how large the input is"),
        (lambda m: m.prepare(amp_configs={"level": "O1", "use": "x"}), "unknown level"),
    ],
)
def test_what_the_model_does_not_take(run, message: str) -> None:
    with pytest.raises(OarError, match=message):
        run(made())


X, Y = Points(8).points, Points(8).labels


def test_arrays_as_a_data_set_and_as_inputs() -> None:
    model = made()
    model.fit(TensorDataset([X, Y]), batch_size=4, epochs=1, verbose=0)
    assert np.array_equal(
        model.predict(X, 4, stack_outputs=True, verbose=0)[0],
        model.predict(Points(8), 4, stack_outputs=True, verbose=0)[0],
    )


def test_verbose_says_what_is_printed(capsys) -> None:
    model = made()
    model.fit(Points(8), batch_size=4, epochs=1, verbose=0)
    model.evaluate(Points(8), batch_size=4, verbose=0)
    model.predict(Points(8), batch_size=4, verbose=0)
    assert capsys.readouterr().out == ""
    model.fit(Points(8), batch_size=4, epochs=1, verbose=2)
    assert "step 2/2" in capsys.readouterr().out
    scores = model.evaluate(Points(16), batch_size=4, log_freq=2, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["eval  batch 2/4", "eval  batch 4/4"] and f"acc {scores['acc']:.4f}" in lines[2]
    model.predict(Points(8), batch_size=4)
    assert capsys.readouterr().out == "predicted 8 samples\n"
    half = model.evaluate(Points(16), batch_size=4, verbose=0, num_iters=2)
    assert half == pytest.approx(model.evaluate(TensorDataset([X, Y]), batch_size=4, verbose=0))


def test_gradients_of_several_batches() -> None:
    """Two halves with one step are one batch; train_batch adds, as Paddle does, where fit averages."""
    whole, halves, added = made(), made(), made()
    for model in (whole, halves, added):
        model.prepare(Momentum(0.1, 0.0), nn.CrossEntropyLoss())
    how = {"shuffle": False, "epochs": 1, "verbose": 0}
    whole.fit(TensorDataset([X, Y]), batch_size=8, **how)
    halves.fit(TensorDataset([X, Y]), batch_size=4, accumulate_grad_batches=2, **how)
    added.prepare(Momentum(0.05, 0.0), nn.CrossEntropyLoss())
    before = np.asarray(added.network[0].weight)
    added.train_batch(X[:4], Y[:4], update=False)
    np.testing.assert_array_equal(added.network[0].weight, before)
    added.train_batch(X[4:], Y[4:])
    for a, b, c in zip(*(model.parameters() for model in (whole, halves, added))):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(a.value, c.value, rtol=1e-5, atol=1e-7)


def test_the_optimizer_is_saved_with_the_network(tmp_path: Path) -> None:
    once, first, second, anew = made(), made(), made(), made()
    once.fit(Points(16), batch_size=8, num_iters=4, shuffle=False, verbose=0)
    first.fit(Points(16), batch_size=8, shuffle=False, verbose=0)
    first.save(tmp_path / "net")
    for model in (second, anew):
        model.load(tmp_path / "net", reset_optimizer=model is anew)
        model.fit(Points(16), batch_size=8, shuffle=False, verbose=0)
    for a, b in zip(once.parameters(), second.parameters()):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-7)
    assert not np.allclose(anew.parameters()[0].value, second.parameters()[0].value, rtol=1e-5)


def test_input_specs() -> None:
    model = framework.Model(nn.Linear(2, 3), inputs=InputSpec([None, 2], "float32"))
    assert "9" in model.summary() and str(model.summary()) == str(model.summary((1, 2)))
