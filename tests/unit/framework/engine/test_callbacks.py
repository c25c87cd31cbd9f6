"""TensorBoard files and profiles of a run; the rest of the callbacks is tested with the Trainer."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from framework.config.bind import bind
from framework.core.disk import DiskError
from framework.core.errors import ConfigError, FormatError, MissingExtraError
from framework.engine.callbacks import EarlyStopping, LogLines, MetricsFile, Profile, print_log
from framework.engine.experiment import TrainOptions
from framework.engine.loggers import TensorBoard, VisualDL, WandB
from framework.io.checkpoint import find_checkpoint
from tests.unit.framework.engine.conftest import PointTask


def test_tensorboard_has_scalars_and_an_image(make, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("tensorboardX", reason="the extra `log` is not installed")

    def visualize(self, outputs, batch, labels):
        assert len(outputs["scores"]) == len(batch["x"]) == 4
        return np.zeros((8, 8, 3), np.uint8)

    monkeypatch.setattr(PointTask, "visualize", visualize, raising=False)
    make(callbacks=[TensorBoard()], folder=tmp_path, epochs=1).fit()
    (events,) = (tmp_path / "tensorboard").iterdir()
    data = events.read_bytes()
    for tag in (b"train/loss", b"train/lr", b"eval/accuracy", b"eval/sample", b"\x89PNG"):
        assert tag in data


@pytest.mark.parametrize(
    ("logger", "package", "extra"),
    [(TensorBoard, "tensorboardX", "log"), (VisualDL, "visualdl", "visualdl"), (WandB, "wandb", "wandb")],
)
def test_without_the_extra_the_message_names_it(
    make, tmp_path: Path, monkeypatch, logger, package, extra
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError, match=rf"'{package}' is not installed(.|\n)*oar-toolkit\[{extra}\]"
    ):
        make(callbacks=[logger(log_dir=tmp_path)]).fit()


class Recorder:
    """Stands for visualdl's LogWriter and for a run of wandb: keeps what is called."""

    def __init__(self, **settings: Any) -> None:
        self.settings, self.calls, self.id = settings, [], settings.get("id") or "first"

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))


def test_visualdl_has_scalars_and_an_image_in_the_folder_of_the_run(
    make, tmp_path: Path, monkeypatch
) -> None:
    opened: list[Recorder] = []
    writer = SimpleNamespace(LogWriter=lambda **settings: opened.append(Recorder(**settings)) or opened[-1])
    monkeypatch.setitem(sys.modules, "visualdl", writer)
    image = np.zeros((8, 8, 3), np.uint8)
    monkeypatch.setattr(PointTask, "visualize", lambda *_: image, raising=False)
    make(callbacks=[VisualDL()], folder=tmp_path, epochs=1).fit()
    (log,) = opened
    assert log.settings == {"logdir": str(tmp_path / "visualdl")}
    assert [call[0] for call in log.calls[-2:]] == ["add_image", "close"]
    tags = {call[2]["tag"] for call in log.calls[:-1]}
    assert tags >= {"train/loss", "train/lr", "eval/accuracy", "eval/sample"}
    with pytest.raises(ConfigError, match=r"VisualDL\.log_dir: there is no folder to write to"):
        make(callbacks=[VisualDL()], epochs=1).fit()


def test_a_resumed_run_goes_on_with_its_run_of_wandb(make, tmp_path: Path, monkeypatch) -> None:
    begun: list[Recorder] = []
    wandb = SimpleNamespace(init=lambda **settings: begun.append(Recorder(**settings)) or begun[-1])
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(PointTask, "visualize", lambda *_: None, raising=False)
    make(callbacks=[WandB(project="p", mode="offline")], folder=tmp_path, epochs=1).fit()
    trainer = make(callbacks=[WandB(project="p", mode="offline")], folder=tmp_path, epochs=2)
    trainer.resume(find_checkpoint(tmp_path))
    trainer.fit()
    assert [run.settings["id"] for run in begun] == [None, "first"]
    assert begun[0].settings["project"] == "p" and begun[0].settings["dir"] == str(tmp_path / "wandb")
    assert begun[0].calls[0][1][0].keys() >= {"train/loss"} and begun[0].calls[0][2] == {"step": 1}
    assert begun[0].calls[-1][0] == "finish"


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(DiskError, match=r"metrics\.jsonl: a folder stands where a file is to be written"):
        MetricsFile(tmp_path / "metrics.jsonl").on_log(None, {"step": 1, "loss": 0.5})  # type: ignore[arg-type]


def watch(
    scores: list[float], state: dict | None = None, upward: bool = True, **settings: Any
) -> tuple[int, dict]:
    """How many evaluations EarlyStopping lets be, and what it keeps."""
    stopping = EarlyStopping(**settings)
    stopping.set_state_dict(state or {})
    trainer: Any = SimpleNamespace(stop=False, higher_is_better=upward)
    done = 0
    for score in scores:
        stopping.on_eval(
            trainer, {"step": 1, "first": score, "eval_loss": score, "best": False, "seconds": 1.0}
        )
        done += 1
        if trainer.stop:
            break
    return done, stopping.state_dict()


def test_early_stopping() -> None:
    falling = [3.0, 2.0, 1.0, 0.5]
    assert watch(falling, patience=2)[0] == 3 and watch(falling, patience=2, upward=False)[0] == 4
    assert (
        watch(falling, monitor="eval_loss")[0] == 4
        and watch(falling, monitor="eval_loss", mode="max")[0] == 2
    )
    # the score that chooses the best checkpoint says itself what is better, also where it is named
    assert watch(falling, monitor="first", upward=False)[0] == 4 and watch(falling, monitor="first")[0] == 2
    assert watch([1.0, 1.05, 1.3], min_delta=0.1)[0] == 2 and watch([1.0, 2.0, 3.0], baseline=1.5)[0] == 1
    no_number = [float("nan"), 1.0, 2.0, float("nan"), 3.0]
    assert watch(no_number, patience=2) == (5, {"bad": 0, "best": 3.0})
    kept = watch([1.0, 0.5], patience=2)[1]
    assert kept == {"best": 1.0, "bad": 1} and watch([0.5, 0.5], state=kept, patience=2)[0] == 1
    with pytest.raises(ConfigError, match=r"no such score(.|\n)*'top1'(.|\n)*first, eval_loss"):
        watch([1.0], monitor="top1")
    with pytest.raises(ConfigError, match="training would end at once"):
        EarlyStopping(patience=0)
    with pytest.raises(FormatError, match="the state of EarlyStopping"):
        watch([1.0], state={"best": "x"})


@pytest.mark.parametrize(
    ("name", "less"),
    [
        *((name, True) for name in ("nats", "bits_per_byte", "val_MAE", "ne", "log_loss", "top1_error")),
        *((name, False) for name in ("f1", "mean_iou", "precision", "one", "acer")),
    ],
)
def test_early_stopping_knows_scores_of_which_less_is_better(name: str, less: bool) -> None:
    """As Lightning and Keras ask for a mode: a run that still became better was ended."""
    trainer: Any = SimpleNamespace(stop=False, higher_is_better=True)
    stopping = EarlyStopping(monitor=name)
    for score in (3.0, 2.0):
        stopping.on_eval(trainer, {"step": 1, "accuracy": 0.5, name: score, "best": False, "seconds": 1.0})
    assert trainer.stop is not less


def test_loggers_and_early_stopping_are_components_of_a_config() -> None:
    text = {
        "callbacks": [{"type": "EarlyStopping", "patience": 3}, {"type": "TensorBoard"}, {"type": "VisualDL"}]
    }
    options = bind({**text, "epochs": 1}, TrainOptions, ("framework",))
    assert options.callbacks == (EarlyStopping(patience=3), TensorBoard(), VisualDL())


@pytest.mark.parametrize("step", [2, 17])  # in the middle, and cut short by the end
def test_a_profile_of_three_steps(make, tmp_path: Path, step: int) -> None:
    make(callbacks=[Profile(tmp_path, step)], epochs=3).fit()
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_scores_of_single_classes_are_in_the_file_and_not_in_the_line(tmp_path: Path, caplog: Any) -> None:
    trainer: Any = SimpleNamespace(step=0)
    row = {"step": 5, "epoch": 1, "mIoU": 0.5, "iou/car": 0.25, "seconds": 1.0, "best": True}
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.on_begin(trainer)
    with caplog.at_level(logging.INFO, logger="oar"):
        for callback in (LogLines(), file):
            callback.on_eval(trainer, row)
    assert caplog.messages == ["step 5  eval  mIoU 0.5000  (best so far)"]
    assert json.loads((tmp_path / "metrics.jsonl").read_text(encoding="utf-8")) == {"kind": "eval", **row}


def test_a_full_standard_output_is_said_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys, "stdout", Full())
    with print_log():
        for number in range(3):
            logging.getLogger("oar").info(f"step {number}")
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said == ["standard output takes no more lines of the log: No space left on device"]
    assert "Traceback" not in capsys.readouterr().err
