"""The Trainer on a problem of 24 points: it learns, resumes to the bit, and says what is wrong."""

from __future__ import annotations

import json
import logging
import math
import shutil
import signal
from pathlib import Path

import jax
import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, ShapeError, WeightError
from framework.distributed import Partitioner
from framework.engine.callbacks import Callback, EarlyStopping, LogLines, MetricsFile
from framework.engine.stopping import TrainingStopped
from framework.engine.trainer import TrainingError
from framework.io.checkpoint import CheckpointStore, find_checkpoint, load_checkpoint
from framework.optimizer import EMA, Momentum
from framework.optimizer.lr import PolynomialDecay, ReduceOnPlateau, StepDecay
from tests.unit.framework.engine.conftest import Points


class Rows(Callback):
    """Keeps what is logged."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.rows, self.evals, self.stop_at = [], [], stop_at

    def on_step(self, trainer, step):
        if step == self.stop_at:
            raise KeyboardInterrupt

    def on_log(self, trainer, row):
        self.rows.append({k: v for k, v in row.items() if k not in ("samples_per_second", "wait_share")})

    def on_eval(self, trainer, row):
        self.evals.append(row)


def test_it_learns_and_the_model_has_the_result(make):
    rows = Rows()
    trainer = make(epochs=30, callbacks=[rows], dropout=0.0)
    scores = trainer.fit()
    assert scores == {"accuracy": scores["accuracy"], "count": 10.0} and scores["accuracy"] >= 0.8
    assert rows.rows[-1]["loss"] < 0.5 * rows.rows[0]["loss"]
    assert rows.rows[0]["lr"] == pytest.approx(0.1) and set(rows.rows[0]) >= {"largest", "grad_norm"}
    for name, parameter in trainer.model.named_parameters():
        assert np.array_equal(parameter.value, trainer.state.params[name])
    assert [row["step"] for row in rows.rows] == list(range(1, 181))


@pytest.mark.parametrize("workers", [0, 2, 4])
def test_a_killed_run_goes_on_bit_for_bit(make, tmp_path: Path, workers: int):
    whole = Rows()
    options = {"save_every": 4, "eval_every": 6, "ema": EMA(0.9), "log_every": 3}
    straight = make(callbacks=[whole], folder=tmp_path / "a", **options)
    straight.fit()
    broken = Rows(stop_at=10)
    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[broken], folder=tmp_path / "b", **options).fit()
    resumed = Rows()
    trainer = make(callbacks=[resumed], folder=tmp_path / "b", workers=workers, **options)
    trainer.resume(find_checkpoint(tmp_path / "b"))
    assert trainer.step == 8
    trainer.fit()
    assert [row for row in whole.rows if row["step"] > 8] == resumed.rows
    assert [r["accuracy"] for r in whole.evals][1:] == [r["accuracy"] for r in resumed.evals]
    for name, value in straight.state.params.items():
        assert np.array_equal(value, trainer.state.params[name]), name


def test_two_devices_give_the_numbers_of_one(make):
    results = []
    for devices in (jax.devices()[:1], jax.devices()[:2]):
        rows = Rows()
        make(callbacks=[rows], partitioner=Partitioner(devices), epochs=2).fit()
        results.append([row["loss"] for row in rows.rows] + [row["accuracy"] for row in rows.evals])
    np.testing.assert_allclose(*results, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_a_run_that_fails_leaves_the_model_its_arrays(make, count: int):
    """The step consumes its input: that must be copies, on the device where the model's arrays are too."""
    trainer = make(callbacks=[Rows(stop_at=3)], partitioner=Partitioner(jax.devices()[:count]))
    before = {name: np.array(value) for name, value in trainer.model.state_dict().items()}
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    for name, value in trainer.model.state_dict().items():
        assert np.array_equal(value, before[name]), name


def test_the_batch_must_be_divisible_and_the_length_known(make):
    with pytest.raises(ConfigError, match="cannot be divided among the devices"):
        three = Partitioner(jax.devices()[:1])
        three.sizes["data"] = 3
        make(partitioner=three)
    with pytest.raises(ConfigError, match="nothing says how long to train"):
        make(epochs=None)
    with pytest.raises(ConfigError, match=r"fewer samples than a batch\n.*received: 3 samples"):
        make(dataset=Points(3))


def test_a_loss_that_is_no_number_names_step_and_samples(make, tmp_path: Path):
    bad = Points()
    bad.points[7] = np.nan
    with pytest.raises(TrainingError, match="training has diverged") as caught:
        make(dataset=bad, folder=tmp_path, save_every=1).fit()
    assert "step " in str(caught.value) and "7" in str(caught.value).partition("samples")[2]
    assert "--resume" in str(caught.value)
    saved = find_checkpoint(tmp_path)
    from framework.io.checkpoint import load_checkpoint

    assert all(np.isfinite(a).all() for a in load_checkpoint(saved).model.values())


def test_the_moving_average_is_evaluated_and_exported(make, monkeypatch):
    """Computed by hand: (1 - d) d^(n - k) of the parameters after step k, over the sum of these shares."""
    states, evaluated = [], []

    class Keep(Callback):
        def on_log(self, trainer, row):
            values = {**trainer.state.params, **trainer.state.buffers}
            states.append({name: np.asarray(value) for name, value in values.items()})

    trainer = make(epochs=1, ema=EMA(0.5, rule="normal"), callbacks=[Keep()])
    run = trainer.evaluator.run
    monkeypatch.setattr(trainer.evaluator, "run", lambda p, b: evaluated.append({**p, **b}) or run(p, b))
    trainer.fit()
    shares = 0.5 ** np.arange(len(states), 0, -1)
    statistics = {"1._mean", "1._variance"}  # with the parameters of today they would be of another network
    assert statistics < states[-1].keys()
    for name, value in trainer.model.state_dict().items():
        wanted = sum(share * state[name] for share, state in zip(shares, states)) / shares.sum()
        np.testing.assert_allclose(evaluated[-1][name], wanted, rtol=1e-5, atol=1e-6)
        assert np.array_equal(value, evaluated[-1][name])
        assert not np.array_equal(wanted, states[-1][name])


def test_a_run_that_averaged_no_statistics_goes_on_with_those_of_its_model(make, tmp_path: Path):
    make(epochs=1, folder=tmp_path, ema=EMA(0.9)).fit()
    folder = find_checkpoint(tmp_path)
    saved = load_checkpoint(folder)
    old = {
        name: value
        for name, value in saved.train.items()
        if name.rpartition(".")[2] not in ("_mean", "_variance")
    }
    assert len(saved.train) - len(old) == 2
    CheckpointStore(tmp_path / "old" / "checkpoints").save(saved.step, saved.model, old, saved.meta)
    trainer = make(epochs=1, ema=EMA(0.9))
    trainer.resume(find_checkpoint(tmp_path / "old"))
    params, buffers = trainer.evaluated()
    for name in ("1._mean", "1._variance"):
        np.testing.assert_allclose(buffers[name], saved.model[name], rtol=1e-6)
    assert not np.array_equal(params["0.weight"], saved.model["0.weight"])


def test_schedules_by_epochs_keep_to_them_with_several_batches_a_step(make):
    trainer = make(optimizer=Momentum(StepDecay(0.1, 2, by_epoch=True), accumulate=4))
    assert trainer.steps_per_epoch == 6 and trainer.schedule == StepDecay(
        0.1, 3
    )  # two epochs are three steps


def test_the_masks_of_dropout_differ_from_step_to_step(make):
    rows = Rows()
    make(dataset=Points(4), optimizer=Momentum(0.0, 0.9), dropout=0.5, epochs=4, callbacks=[rows]).fit()
    assert len({row["loss"] for row in rows.rows}) > 1


def test_resuming_something_else(make, tmp_path: Path):
    make(folder=tmp_path, epochs=1).fit()
    folder = find_checkpoint(tmp_path)
    with pytest.raises(WeightError, match="another samples") as caught:
        make(dataset=Points(20)).resume(folder)
    assert "samples: 20, saved 24" in str(caught.value)
    with pytest.raises(WeightError, match="made with other settings"):
        make(optimizer=Momentum(0.1, 0.9), ema=EMA(0.9)).resume(folder)
    other = make()
    other.state.params["extra"] = other.state.params["0.bias"]
    with pytest.raises(WeightError, match="of another model") as caught:
        other.resume(folder)
    assert "extra: missing" in str(caught.value)
    with pytest.raises(InputError, match="there is no checkpoint"):
        find_checkpoint(tmp_path / "nowhere")


def test_best_and_last_are_kept(make, tmp_path: Path):
    trainer = make(folder=tmp_path, epochs=6, keep=2, eval_every=6)
    trainer.fit()
    steps = list(trainer.store.steps())
    assert steps[-2:] == [30, 36] and len(steps) <= 3
    assert trainer.store.best() in trainer.store.steps().values()
    again = make(folder=tmp_path)
    again.resume(find_checkpoint(tmp_path))
    assert trainer.best_score is not None
    assert (again.best_score, again.since_best) == (trainer.best_score, trainer.since_best)
    trainer.best_score = None  # a score that is no number is not the best, and a later one is
    worst = -math.inf if trainer.higher_is_better else math.inf
    assert [trainer._better({"score": value}) for value in (math.nan, worst)] == [False, True]
    trainer.best_score = 1.0
    assert not trainer._better({"score": math.nan})


@pytest.mark.parametrize(
    "error", [ShapeError("arrays of different shapes"), RuntimeError("RESOURCE_EXHAUSTED")]
)
def test_an_evaluation_that_fails_costs_no_training(make, tmp_path: Path, monkeypatch, error: Exception):
    trainer = make(folder=tmp_path, epochs=1)

    def fail(params, buffers):
        raise error

    monkeypatch.setattr(trainer.evaluator, "run", fail)
    with pytest.raises(type(error), match=str(error).splitlines()[0]):
        trainer.fit()
    again = make(folder=tmp_path, epochs=1)
    again.resume(find_checkpoint(tmp_path))
    assert again.step == trainer.step > 0
    for name, value in trainer.state.params.items():
        assert np.array_equal(value, again.state.params[name])


def test_the_metrics_file_forgets_what_is_trained_again(make, tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[MetricsFile(path), Rows(stop_at=10)], folder=tmp_path, save_every=4).fit()
    trainer = make(callbacks=[MetricsFile(path)], folder=tmp_path, save_every=4)
    trainer.resume(find_checkpoint(tmp_path))
    trainer.fit()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["step"] for row in rows if row["kind"] == "train"] == list(range(1, 19))
    assert [row["step"] for row in rows if row["kind"] == "eval"] == [6, 12, 18]


def test_lines_of_the_log(make, caplog):
    with caplog.at_level(logging.INFO, "oar"):
        make(callbacks=[LogLines()], epochs=1, log_every=3, lr_batch_size=2).fit()
    text = caplog.text
    assert "learning rate times 2: batch size 4 instead of 2" in text
    assert "step 3/6" in text and "samples/s" in text and "eta 0:00:0" in text and "data wait" in text
    assert "eval  accuracy" in text and "(best so far)" in text


def test_early_stop(make):
    rows = Rows()
    trainer = make(callbacks=[rows, EarlyStopping(patience=2)], epochs=50, optimizer=Momentum(0.0, 0.9))
    trainer.fit()
    assert [row["best"] for row in rows.evals] == [True, False, False] and trainer.step == 18


def test_a_plateau_lowers_the_rate(make, tmp_path: Path):
    rows = Rows()
    schedule = ReduceOnPlateau(0.1, mode="max", factor=0.5, patience=0)
    trainer = make(callbacks=[rows], epochs=4, optimizer=Momentum(schedule, 0.0), folder=tmp_path)
    trainer.fit()
    rates = sorted({round(row["lr"], 6) for row in rows.rows}, reverse=True)
    assert rates[0] == 0.1 and rates[1] == 0.05
    again = make(epochs=5, optimizer=Momentum(schedule, 0.0))
    again.resume(find_checkpoint(tmp_path))
    assert again.plateau.state_dict() == trainer.plateau.state_dict()


def test_a_plateau_follows_the_score_in_its_direction(make):
    with pytest.raises(ConfigError, match="would fall while the score becomes better") as caught:
        make(optimizer=Momentum(ReduceOnPlateau(0.1), 0.0))
    assert "optim.learning_rate.mode=max" in str(caught.value)


def test_schedules_span_the_training(make):
    rows = Rows()
    make(callbacks=[rows], epochs=2, optimizer=Momentum(PolynomialDecay(0.1, None, end_lr=0.0), 0.0)).fit()
    np.testing.assert_allclose([row["lr"] for row in rows.rows], 0.1 * (1 - np.arange(12) / 12), rtol=1e-5)


def test_accumulation_is_one_large_batch(make):
    rows = Rows()
    trainer = make(callbacks=[rows], epochs=2, optimizer=Momentum(0.1, 0.0, accumulate=2), dropout=0.0)
    trainer.fit()
    assert trainer.step == 12 and int(trainer.state.optimizer["step"]) == 6


def test_batches_that_accumulation_leaves_over_are_said(make, caplog):
    for each, is_said in ((5, True), (4, False)):
        caplog.clear()
        trainer = make(epochs=2, optimizer=Momentum(0.1, 0.0, accumulate=each), dropout=0.0)
        trainer.stop = True  # before the first step, which would be compiled
        trainer.fit()
        assert ("the last 2 of 12 batches train nothing" in caplog.text) == is_said


def test_float16_skips_steps_that_overflow(make):
    rows = Rows()
    trainer = make(callbacks=[rows], epochs=2, amp="float16")
    trainer.fit()
    assert float(trainer.state.scaler.scale) > 0 and all(np.isfinite(row["loss"]) for row in rows.rows)


def test_bfloat16_and_recompute_learn_alike(make):
    losses = []
    for options in ({}, {"amp": "bfloat16"}, {"recompute": r"^0$"}):
        rows = Rows()
        make(callbacks=[rows], epochs=2, **options).fit()
        losses.append([row["loss"] for row in rows.rows])
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.05)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-6)


def test_a_full_disk_leaves_the_last_checkpoint(make, tmp_path: Path, monkeypatch):
    from framework.io import checkpoint

    trainer = make(folder=tmp_path, epochs=1)
    trainer.fit()
    before = find_checkpoint(tmp_path)
    shutil.copytree(before, tmp_path / "copy")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_safetensors", full)
    more = make(folder=tmp_path, epochs=2)
    more.resume(before)
    with pytest.raises(InputError, match="the checkpoint could not be written") as caught:
        more.fit()
    assert "the disk is full" in str(caught.value) and str(before) in str(caught.value)
    assert find_checkpoint(tmp_path) == before
    assert not list((tmp_path / "checkpoints").glob(".writing-*"))
    for file in before.iterdir():
        assert file.read_bytes() == (tmp_path / "copy" / file.name).read_bytes()


@pytest.mark.parametrize(("wrong", "shown"), [(7, "label 7 of 2 classes"), (-3, "label -3 of 2 classes")])
def test_a_label_that_is_no_class_stops_training_and_names_the_samples(make, wrong, shown):
    bad = Points()
    bad.labels[[5, 11]] = wrong
    with pytest.raises(TrainingError, match="training has met a label that is no class") as caught:
        make(dataset=bad).fit()
    samples = str(caught.value).partition("samples ")[2].splitlines()[0]
    assert shown in str(caught.value) and "0 to 1, or -100" in str(caught.value)
    assert set(samples.split(", ")) <= {"5", "11"} and samples


def test_a_label_to_ignore_trains(make):
    ignoring = Points()
    ignoring.labels[[5, 11]] = -100
    make(dataset=ignoring, epochs=1).fit()


def test_the_first_and_the_last_step_of_an_epoch_are_logged_with_their_own_rate(make):
    rows = Rows()
    schedule = PolynomialDecay(0.12, 12, end_lr=0.0)
    make(callbacks=[rows], epochs=2, log_every=100, optimizer=Momentum(schedule, 0.0)).fit()
    assert [row["step"] for row in rows.rows] == [1, 6, 12]
    assert [row["lr"] for row in rows.rows] == pytest.approx([0.12, 0.07, 0.01])


class Signal(Callback):
    """Sends a signal at a step, or while an evaluation runs."""

    def __init__(self, at: int, number: int = signal.SIGINT) -> None:
        self.at, self.number = at, number

    def on_step(self, trainer, step):
        if step + 1 == self.at:
            signal.raise_signal(self.number)


# An evaluation is due after step 6.
@pytest.mark.parametrize(("at", "number"), [(4, signal.SIGTERM), (6, signal.SIGINT), (7, signal.SIGINT)])
def test_a_signal_ends_the_step_and_saves_and_the_run_goes_on_bit_for_bit(make, tmp_path, at, number):
    before = signal.getsignal(number)
    options = {"ema": EMA(0.9), "log_every": 4}
    whole, first, second = Rows(), Rows(), Rows()
    straight = make(callbacks=[whole], **options)
    scores = straight.fit()
    with pytest.raises(TrainingStopped) as stopped:
        make(callbacks=[first, Signal(at, number)], folder=tmp_path, **options).fit()
    assert signal.getsignal(number) is before
    assert (stopped.value.signal, stopped.value.step) == (signal.Signals(number).name, at)
    assert stopped.value.checkpoint == find_checkpoint(tmp_path) and "\n" not in str(stopped.value)
    trainer = make(callbacks=[second], folder=tmp_path, **options)
    trainer.resume(find_checkpoint(tmp_path))
    assert trainer.step == at and trainer.fit() == scores
    assert first.rows + second.rows == whole.rows
    assert [row["accuracy"] for row in first.evals + second.evals] == [row["accuracy"] for row in whole.evals]
    for name, value in straight.state.params.items():
        assert np.array_equal(value, trainer.state.params[name]), name
    assert trainer.best_score == straight.best_score and trainer.since_best == straight.since_best


def test_a_callback_goes_on_with_what_it_kept(make, tmp_path):
    """Scores that never get better: the third evaluation ends the run, before and after a resume."""
    still = {"optimizer": Momentum(0.0, 0.9), "epochs": 9}
    first = make(callbacks=[EarlyStopping(patience=2), Signal(13)], folder=tmp_path, **still)
    with pytest.raises(TrainingStopped):
        first.fit()  # in the third epoch, after two evaluations
    trainer = make(callbacks=[Rows(), EarlyStopping(patience=2)], folder=tmp_path, **still)
    trainer.resume(find_checkpoint(tmp_path))
    trainer.fit()
    assert trainer.step == 18


def test_the_second_signal_stops_at_once(make, tmp_path, ctrl_c_interrupts):
    class Twice(Signal):
        def on_step(self, trainer, step):
            super().on_step(trainer, step)
            super().on_step(trainer, step)

    with pytest.raises(KeyboardInterrupt) as caught:
        make(callbacks=[Twice(4)], folder=tmp_path).fit()
    assert not isinstance(caught.value, TrainingStopped)


def test_a_signal_at_the_last_step_is_no_interruption(make, tmp_path):
    class AtTheEnd(Callback):
        def on_eval(self, trainer, row):
            if row["step"] == trainer.total_steps:
                signal.raise_signal(signal.SIGINT)

    assert make(callbacks=[AtTheEnd()], folder=tmp_path, epochs=1).fit()["count"] == 10


def test_without_a_folder_a_signal_leaves_the_model_with_its_last_values(make):
    trainer = make(callbacks=[Signal(3)])
    with pytest.raises(TrainingStopped, match="nothing is saved, as the run has no folder"):
        trainer.fit()
    for name, parameter in trainer.model.named_parameters():
        assert np.array_equal(parameter.value, trainer.state.params[name])


def test_frozen_normalisations_keep_their_statistics(make):
    """Layer 1 is the normalisation: a pattern of all its parameters, given as one string, holds its buffers too."""
    trainer = make(epochs=1, optimizer=Momentum(0.1, 0.9, frozen="^[01]\\."))
    before = {name: np.asarray(value) for name, value in trainer.state.buffers.items()}
    trainer.fit()
    assert sorted(trainer.param_groups) == ["4.bias", "4.weight"]
    assert all(np.array_equal(value, trainer.state.buffers[name]) for name, value in before.items())
    other = make(epochs=1, optimizer=Momentum(0.1, 0.9, frozen="^1\\.weight"))
    other.fit()
    assert any((value != other.state.buffers[name]).any() for name, value in before.items())
    assert not any(layer.statistics_frozen for layer in trainer.model.sublayers())
