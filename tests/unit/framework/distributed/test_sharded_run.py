"""Checkpoints of a divided state: written by each device or process, read onto any mesh, refused where damaged."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError, WeightError
from framework.distributed import ParallelOptions
from framework.io.checkpoint import CheckpointStore, find_checkpoint, flatten, load_checkpoint
from framework.workflow.domain.weights import checkpoint_weights
from tests.unit.framework.distributed.axes_run import STEPS, make
from tests.unit.framework.distributed.checkpoint_run import LAST


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A run on two devices that have half of the state each, and its losses."""
    folder = tmp_path_factory.mktemp("run")
    trainer, losses = make(ParallelOptions(fsdp=2, smallest=16), folder, dropout=0.1)
    trainer.fit()
    return folder, losses


def test_each_checkpoint_is_whole_and_the_last_ones_stay(run: tuple[Path, list[float]]) -> None:
    folder, _ = run
    store = CheckpointStore(folder / "checkpoints")
    assert list(store.steps()) == [STEPS - 1, STEPS]
    names = {path.name for path in find_checkpoint(folder).iterdir()}
    assert names == {"arrays", "state.json"} and not list((folder / "checkpoints").glob(".writing*"))
    saved = load_checkpoint(find_checkpoint(folder))
    assert saved.step == STEPS and "files" not in saved.meta
    weights = checkpoint_weights(folder)
    assert set(weights) == set(saved.model) and weights["head.weight"].shape == (16, 2)


@pytest.mark.parametrize("options", [None, {"tensor": 2}, {"fsdp": 2, "stage": 1}])
def test_a_run_goes_on_on_another_mesh(run: tuple[Path, list[float]], options: dict[str, Any] | None) -> None:
    folder, before = run
    trainer, losses = make(None if options is None else ParallelOptions(**options, smallest=16), dropout=0.1)
    trainer.resume(folder / "checkpoints" / LAST)
    saved = load_checkpoint(folder / "checkpoints" / LAST)
    for name, value in trainer.state.params.items():
        assert np.array_equal(value, saved.model[name]), name
    for name, value in flatten({"optimizer": trainer.state.optimizer}).items():
        assert np.array_equal(value, saved.train[name]), name
    trainer.fit()
    np.testing.assert_allclose(losses, before[-1:], rtol=2e-6)


def test_damage_is_named(run: tuple[Path, list[float]], tmp_path: Path) -> None:
    folder, _ = run
    source = folder / "checkpoints" / LAST
    trainer, _ = make(ParallelOptions(fsdp=2, smallest=16), dropout=0.1)
    largest = max(
        (source / "arrays").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0
    )
    content = largest.read_bytes()
    try:
        largest.write_bytes(content[:-7])
        with pytest.raises(FormatError, match=r"missing or cut[\s\S]*of [\d,]+ bytes"):
            trainer.resume(source)
        largest.unlink()
        with pytest.raises(FormatError, match=f"{largest.name}: missing"):
            trainer.resume(source)
        with pytest.raises(FormatError, match="missing or cut"):
            load_checkpoint(source)
    finally:
        largest.write_bytes(content)
    trainer.resume(source)
    other, _ = make(None, dropout=0.1, is_moe=True)
    with pytest.raises(WeightError, match="of another model"):
        other.resume(source)


def test_what_was_not_written_to_its_end_is_no_checkpoint(tmp_path: Path) -> None:
    trainer, _ = make(ParallelOptions(fsdp=2, smallest=16), tmp_path)
    store = trainer.store
    assert store is not None
    trainer.save()
    store.wait()
    first = store.last()

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store._publish = fail  # type: ignore[method-assign]
    store.save_sharded(6, trainer.state.params, {}, {})
    with pytest.raises(InputError, match="the checkpoint could not be written"):
        store.wait()
    store._publish = lambda *args: None  # type: ignore[method-assign]  # a process that is killed before
    store.save_sharded(7, trainer.state.params, {}, {})
    store.wait()
    assert store.last() == first and (tmp_path / "checkpoints" / ".writing-step_00000007").is_dir()
    del store._publish
    trainer.save()
    store.wait()
    assert not list((tmp_path / "checkpoints").glob(".writing*")) and store.last() == first


def _start(
    action: str, folder: Path, options: dict[str, Any] | None, **variables: str
) -> subprocess.Popen[str]:
    words = [
        "-m",
        "tests.unit.framework.distributed.checkpoint_run",
        action,
        str(folder),
        json.dumps(options),
    ]
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **variables},
    )


def _rows(*processes: subprocess.Popen[str]) -> list[dict[str, Any]]:
    rows = []
    for process in processes:
        out, errors = process.communicate(timeout=1200)
        assert process.returncode == 0, errors[-3000:]
        rows.append(json.loads(next(line for line in out.splitlines() if line.startswith("{"))))
    return rows


def _pair(action: str, folder: Path, options: dict[str, Any], **last: str) -> list[dict[str, Any]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{probe.getsockname()[1]}"
    shared = {"PADDLE_MASTER": master, "PADDLE_TRAINERS_NUM": "2", "DEVICES": "2"}
    each = [{**shared, "PADDLE_TRAINER_ID": str(rank)} for rank in (0, 1)]
    return _rows(*(_start(action, folder, options, **variables) for variables in each))


@pytest.mark.slow
def test_eight_devices_then_others_then_two_processes(tmp_path: Path) -> None:
    (row,) = _rows(_start("save", tmp_path / "a", {"fsdp": 8}))
    losses = row["losses"]
    pair = _pair("resume", tmp_path / "a", {"fsdp": 4})
    for options, devices in (({"fsdp": 2, "tensor": 4}, "8"), (None, "1")):
        pair += _rows(_start("resume", tmp_path / "a", options, DEVICES=devices))
    for row in pair:
        assert row["equal"], row
        np.testing.assert_allclose(row["losses"], losses[-1:], rtol=2e-6)
    for row in _pair("save", tmp_path / "b", {"fsdp": 4}):  # and what two processes write
        np.testing.assert_allclose(row["losses"] or losses, losses, rtol=2e-6)
    (row,) = _rows(_start("resume", tmp_path / "b", None, DEVICES="1"))
    assert row["equal"]
    np.testing.assert_allclose(row["losses"], losses[-1:], rtol=2e-6)
    arrays = tmp_path / "b" / "checkpoints" / LAST / "arrays"
    max(arrays.rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0).unlink()
    for row in _pair("resume", tmp_path / "b", {"fsdp": 4}):
        assert "missing" in row["error"], row
