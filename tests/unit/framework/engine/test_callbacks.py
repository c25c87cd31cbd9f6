"""TensorBoard files and profiles of a run; the rest of the callbacks is tested with the Trainer."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from framework.core.errors import MissingExtraError
from framework.engine.callbacks import LogLines, MetricsFile, Profile, TensorBoard
from tests.unit.framework.engine.conftest import PointTask


def test_tensorboard_has_scalars_and_an_image(make, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("tensorboardX", reason="the extra `log` is not installed")

    def visualize(self, outputs, batch, labels):
        assert len(outputs["scores"]) == len(batch["x"]) == 4
        return np.zeros((8, 8, 3), np.uint8)

    monkeypatch.setattr(PointTask, "visualize", visualize, raising=False)
    make(callbacks=[TensorBoard(tmp_path / "tb")], epochs=1).fit()
    (events,) = (tmp_path / "tb").iterdir()
    data = events.read_bytes()
    for tag in (b"train/loss", b"train/lr", b"eval/accuracy", b"eval/sample", b"\x89PNG"):
        assert tag in data


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[log\]"):
        TensorBoard(tmp_path)


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
