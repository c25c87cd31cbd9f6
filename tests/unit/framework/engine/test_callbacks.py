"""TensorBoard files and profiles of a run; the rest of the callbacks is tested with the Trainer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import MissingExtraError
from framework.engine.callbacks import Profile, TensorBoard
from tests.unit.framework.engine.conftest import PointTask


def test_tensorboard_has_scalars_and_a_picture(make, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("tensorboardX", reason="the extra `log` is not installed")

    def picture(self, outputs, batch, labels):
        assert len(outputs["scores"]) == len(batch["x"]) == 4
        return np.zeros((8, 8, 3), np.uint8)

    monkeypatch.setattr(PointTask, "picture", picture, raising=False)
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
