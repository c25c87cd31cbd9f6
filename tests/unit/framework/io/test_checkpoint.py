"""Checkpoints: whole or not there, found by any path that means them, and refused when they do not fit."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.errors import FormatError, InputError, WeightError
from framework.io.checkpoint import (
    CheckpointStore,
    config_name,
    find_checkpoint,
    flatten,
    load_checkpoint,
    read_meta,
    run_folder,
    unflatten,
    verify_files,
)

MODEL = {"w": np.arange(3, dtype=np.float32)}
TRAIN = {"step": np.int32(4), "optimizer/m/w": np.ones(3, np.float32)}


def test_save_and_load(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    folder = store.save(4, MODEL, TRAIN, {"note": "ü"})
    saved = load_checkpoint(folder)
    assert saved.step == 4 and saved.meta == {"note": "ü"}
    assert np.array_equal(saved.model["w"], MODEL["w"]) and saved.train["step"].shape == ()
    assert store.last() == folder and store.best() is None


def test_the_last_ones_and_the_best_stay(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    for step in range(1, 6):
        store.save(step, MODEL, TRAIN, {}, best=step == 2)
    assert list(store.steps()) == [2, 4, 5] and store.best() == tmp_path / "step_00000002"
    store.mark_best(tmp_path / "step_00000004")
    assert list(store.steps()) == [4, 5]
    store.save(5, {"w": MODEL["w"] + 1}, TRAIN, {})  # the same step again
    assert load_checkpoint(store.steps()[5]).model["w"][0] == 1


def test_what_a_killed_run_left_is_no_checkpoint_and_is_taken_away(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    first = store.save(1, MODEL, TRAIN, {})
    (tmp_path / ".writing-step_00000002-1").mkdir()
    (tmp_path / "step_00000003").mkdir()  # without state.json
    assert store.last() == first
    store.save(4, MODEL, TRAIN, {})
    assert not (tmp_path / ".writing-step_00000002-1").exists()


class _Killed(BaseException):
    """Stands for a signal that ends the process."""


@pytest.mark.parametrize("step", [2, 1])
def test_a_run_that_is_killed_while_it_deletes_leaves_whole_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Step 2 deletes the one before it, and step 1 again the one that it takes the place of."""
    store = CheckpointStore(tmp_path, keep=1)
    store.save(1, MODEL, TRAIN, {})
    delete = shutil.rmtree

    def half(folder: Path, ignore_errors: bool = False) -> None:
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        if files:
            files[0].unlink()
            raise _Killed
        delete(folder, ignore_errors=ignore_errors)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half)
        with pytest.raises(_Killed):
            store.save(step, {"w": MODEL["w"] + 1}, TRAIN, {})
    whole = [load_checkpoint(folder) for folder in tmp_path.glob("step_*")]
    assert [(saved.step, saved.model["w"][0]) for saved in whole] == [(step, 1)]
    store.save(3, MODEL, TRAIN, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000003"]


def test_paths_that_mean_a_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    best = store.save(1, MODEL, TRAIN, {}, best=True)
    last = store.save(2, MODEL, TRAIN, {})
    for path in (tmp_path, tmp_path / "checkpoints"):
        assert find_checkpoint(path) == last and find_checkpoint(path, prefer="best") == best
    assert find_checkpoint(best) == best
    with pytest.raises(InputError, match="there is no checkpoint"):
        find_checkpoint(tmp_path / "other")


def turn_a_bit(path: Path) -> None:
    """Of a number at the end of a file."""
    data = bytearray(path.read_bytes())
    data[-2] ^= 0x10
    path.write_bytes(data)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    folder = CheckpointStore(tmp_path).save(1, MODEL, TRAIN, {})
    (folder / "model.safetensors").write_bytes(b"\x00" * 5)
    with pytest.raises(FormatError, match=r"model\.safetensors"):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "train.safetensors"])
def test_a_bit_that_has_turned_is_found(tmp_path: Path, name: str) -> None:
    folder = CheckpointStore(tmp_path).save(1, MODEL, TRAIN, {})
    turn_a_bit(folder / name)
    with pytest.raises(FormatError, match=rf"(?s){name}: the file is damaged.*SHA-256.*delete `sha256`"):
        load_checkpoint(folder)
    state = json.loads((folder / "state.json").read_text("utf-8"))
    del state["sha256"]  # as checkpoints of earlier releases, which are read as they are
    (folder / "state.json").write_text(json.dumps(state), "utf-8")
    assert load_checkpoint(folder).step == 1


def test_a_bit_that_has_turned_in_an_array_of_several_devices_is_found(tmp_path: Path) -> None:
    divided = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("data",)), PartitionSpec("data"))
    array = jax.device_put(np.random.default_rng(0).random(4096, np.float32), divided)
    store = CheckpointStore(tmp_path)
    folder = store.save_sharded(1, {"w": array}, {}, {})
    store.wait()
    assert np.array_equal(load_checkpoint(folder).model["w"], array)
    files = [path for path in (folder / "arrays").rglob("*") if path.is_file()]
    damaged = max(files, key=lambda path: path.stat().st_size)
    turn_a_bit(damaged)
    saved = read_meta(folder)  # sizes are right
    with pytest.raises(FormatError, match=rf"(?s){damaged.name}: the file is damaged.*SHA-256"):
        load_checkpoint(folder)
    raised = 0
    for rank in range(2):  # of two processes each compares some of the files
        try:
            verify_files(saved, rank, 2)
        except FormatError:
            raised += 1
    assert raised == 1
    damaged.unlink()
    with pytest.raises(FormatError, match="no such file"):
        verify_files(saved)


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"folder": 3}', '{"folder": "../.."}', "{}", "[" * 100_000]
)
def test_a_damaged_mark_of_the_best_is_named(tmp_path: Path, text: str) -> None:
    store = CheckpointStore(tmp_path)
    last = store.save(1, MODEL, TRAIN, {}, best=True)
    (tmp_path / "best.json").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"best\.json: the file is damaged(.|\n)*delete the file"):
        find_checkpoint(tmp_path, prefer="best")
    assert find_checkpoint(tmp_path) == last


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        '{"no": "step"}',
        '{"step": "4"}',
        '{"step": [1]}',
        '{"step": -1}',
        '{"step": 1, "sums": []}',
        '{"step": 1, "since_best": null}',
        '{"step": 1, "labels": "ab"}',
        '{"step": 1, "sha256": "ab"}',
        '{"step": 1, "sha256": {"model.safetensors": 7}}',
    ],
)
def test_a_damaged_state_is_named(tmp_path: Path, text: str) -> None:
    folder = CheckpointStore(tmp_path).save(1, MODEL, TRAIN, {})
    (folder / "state.json").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"state\.json: the file is damaged"):
        load_checkpoint(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file's size stands for a full disk")
def test_where_there_is_no_room_earlier_checkpoints_stay_and_nothing_is_half_written(tmp_path: Path) -> None:
    import resource

    store = CheckpointStore(tmp_path / "run", keep=1)
    large = {"w": np.zeros(100_000, np.float32)}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save(step: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            store.save(step, large, TRAIN, {}, best=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with pytest.raises(
        InputError, match=r"400,016 bytes to write, [\d,]+ bytes left(.|\n)*no earlier checkpoint"
    ):
        save(1)
    first = store.save(2, large, TRAIN, {}, best=True)
    with pytest.raises(
        InputError,
        match=r"step_00000003: the checkpoint(.|\n)*larger than its file system(.|\n)*step_00000002",
    ):
        save(3)
    assert [path.name for path in sorted(store.root.iterdir())] == ["best.json", "step_00000002"]
    assert store.best() == store.last() == first
    store.save(3, large, TRAIN, {})  # there is room again


def test_trees_by_path() -> None:
    tree = {"a": (jnp.zeros(2), {"b": jnp.ones((), jnp.int32)}), "c": {}}
    flat = flatten(tree, "opt")
    assert list(flat) == ["opt/a/0", "opt/a/1/b"]
    again = unflatten(tree, {**flat, "other": np.zeros(1)}, "opt")
    assert again["c"] == {} and again["a"][1]["b"] == 1
    with pytest.raises(WeightError, match="made with other settings") as caught:
        unflatten(tree, {"opt/a/0": np.zeros(3), "opt/x": np.zeros(1)}, "opt", where="here")
    for text in ("opt/a/0: (3,)", "opt/a/1/b: missing", "opt/x: unexpected", "here"):
        assert text in str(caught.value)


def test_the_config_that_a_run_wrote_is_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "shapes"
    (run / "checkpoints").mkdir(parents=True)
    assert run_folder(run / "config.yml") == run and config_name(run / "config.yml") == "shapes"
    monkeypatch.chdir(run)
    assert config_name(Path("config.yml")) == "shapes"
    for other in (run / "other.yml", tmp_path / "config.yml"):
        assert run_folder(other) == Path("output") / other.stem and config_name(other) == other.stem
