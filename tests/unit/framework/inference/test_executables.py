from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from framework import nn
from framework.core.errors import ShapeError
from framework.export import Artifact, TensorSpec, load_artifact, lower_layer
from framework.inference import XLAEngine, executables

REPO = Path(__file__).resolve().parents[4]
X = np.random.default_rng(0).standard_normal((2, 8, 8, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def parts():
    layer = nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.ReLU())
    return lower_layer(layer, {"x": TensorSpec(("n", "8*h", "8*w", 3))}, platforms=("cpu",))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own; jax's cache is off, as what comes from it cannot be kept."""
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield tmp_path / "home"
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


def run(parts) -> np.ndarray:
    return XLAEngine(*parts)({"x": X})["output"]


def program_files(home: Path) -> list[Path]:
    """Those with machine code: a signature takes a hundred bytes."""
    return [path for path in sorted(home.rglob("*.xla")) if path.stat().st_size > 1000]


def refuse(*args: object, **kwargs: object) -> None:
    raise AssertionError("this must not be called")


def test_a_second_start_neither_reads_the_program_nor_lowers_it(
    parts, home: Path, monkeypatch, tmp_path: Path
):
    folder = Artifact({}, {"float32": parts[0]}, parts[1]).save(tmp_path / "net")
    made = run(parts)
    assert len(program_files(home)) == 1
    monkeypatch.setattr(XLAEngine, "_lower", refuse)
    monkeypatch.setattr("framework.export.artifact.export.deserialize", refuse)
    artifact = load_artifact(folder)
    engine = XLAEngine(artifact.programs["float32"], artifact.weights)
    np.testing.assert_array_equal(engine({"x": X})["output"], made)
    np.testing.assert_array_equal(engine({"x": X})["output"], made)  # the first call of a kept program waits
    assert engine.compile_count == 1
    assert engine.inputs["x"].shape == ("n", "8*h", "8*w", 3) and engine.outputs["output"].shape[3] == 4
    with pytest.raises(
        ShapeError, match=r"(?s)x: an input does not fit the program.*\[n, 8\*h, 8\*w, 3\] float32"
    ):
        engine({"x": X[:, :7]})


def test_turned_off_nothing_is_written_and_results_are_the_same(parts, home: Path, monkeypatch):
    kept = run(parts), run(parts)
    monkeypatch.setenv("OAR_COMPILATION_CACHE", "off")
    monkeypatch.setenv("OAR_HOME", str(home / "other"))
    without = run(parts)
    assert not (home / "other").exists()
    for one in kept:
        np.testing.assert_array_equal(one, without)


def damage(data: bytes, kind: str) -> bytes:
    return {
        "one bit": data[:-1] + bytes([data[-1] ^ 1]),
        "its tag": data[:10] + bytes([data[10] ^ 1]) + data[11:],
        "cut off": data[: len(data) // 2],
        "empty": b"",
        "a pickle": b"\x80\x04\x95" + data[3:],
    }[kind]


@pytest.mark.parametrize("kind", ["one bit", "its tag", "cut off", "empty", "a pickle"])
def test_a_changed_file_is_made_again_and_never_handed_over(
    kind: str, parts, home: Path, monkeypatch, caplog: pytest.LogCaptureFixture
):
    made = run(parts)
    (path,) = program_files(home)
    whole = path.read_bytes()
    path.write_bytes(damage(whole, kind))
    with monkeypatch.context() as patch:
        patch.setattr(executables, "Executable", refuse)
        np.testing.assert_array_equal(run(parts), made)
    assert "a kept program was changed or is damaged, it is made again" in caplog.text
    assert len(path.read_bytes()) > len(whole) // 2  # written anew
    monkeypatch.setattr(XLAEngine, "_lower", refuse)
    np.testing.assert_array_equal(run(parts), made)


def test_a_file_of_another_program_or_of_another_user_is_not_taken(parts, home: Path):
    made = run(parts)
    (own,) = program_files(home)
    XLAEngine(*parts)({"x": X[:1]})
    other = next(path for path in program_files(home) if path != own)
    own.write_bytes(other.read_bytes())  # valid, but bound to its own name
    np.testing.assert_array_equal(run(parts), made)
    store = executables.open_store()
    assert store is not None
    key = own.stem
    assert store.load(key)
    assert executables.ExecutableStore(own.parent, b"x" * 32).load(key) is None
    assert not own.exists()


def test_what_the_runtime_cannot_load_or_run_is_made_again(
    parts, home: Path, monkeypatch, caplog: pytest.LogCaptureFixture
):
    made = run(parts)
    (path,) = program_files(home)
    store = executables.open_store()
    assert store is not None
    store.save(path.stem, b"bytes of this user's that are no program")
    np.testing.assert_array_equal(run(parts), made)
    assert "a kept program cannot be loaded and is made again" in caplog.text

    def fail(self, arguments):
        raise RuntimeError("NOT_FOUND: Function fusion not found")

    monkeypatch.setattr(executables.Executable, "_run", fail)
    engine = XLAEngine(*parts)
    np.testing.assert_array_equal(engine({"x": X})["output"], made)
    assert "a kept program does not run and is made again: NOT_FOUND" in caplog.text
    assert engine.compile_count == 1 and path.is_file()


def test_a_full_disk_is_said_once_and_stops_nothing(parts, home: Path, monkeypatch, caplog):
    made = run(parts)
    for path in home.rglob("*.xla"):
        path.unlink()

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(executables.os, "replace", full)
    engine = XLAEngine(*parts)
    for count in (1, 2):
        np.testing.assert_array_equal(engine({"x": X[:count]})["output"], made[:count])
    assert caplog.text.count("compiled programs are not kept") == 1
    assert not list(home.rglob("*.xla")) and not list(home.rglob("*.tmp"))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX'")
def test_a_secret_that_others_could_read_is_not_used(parts, home: Path, caplog: pytest.LogCaptureFixture):
    run(parts)
    secret = home / "compiled" / "key"
    assert secret.stat().st_mode & 0o777 == 0o600 and secret.stat().st_size == 32
    for mode in (0o644, 0o660):
        secret.chmod(mode)
        executables._store.cache_clear()
        assert executables.open_store() is None
    assert "must belong to you and be open to nobody else" in caplog.text
    assert run(parts).shape == (2, 8, 8, 4)
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    executables._store.cache_clear()
    assert executables.open_store() is None and "is damaged; delete it" in caplog.text
    executables._store.cache_clear()


def test_the_folder_is_bounded_and_what_was_used_last_stays(tmp_path: Path):
    store = executables.ExecutableStore(tmp_path / "kept", b"s" * 32, limit=3500)
    data = {name: np.random.default_rng(n).bytes(1000) for n, name in enumerate("abc")}
    for age, name in enumerate("abc"):
        store.save(name, data[name])
        os.utime(store.path(name), (age, age))
    left = tmp_path / "kept" / ".0.tmp"
    left.write_bytes(b"of a killed process")
    os.utime(left, (1, 1))
    assert store.load("a") == data["a"]  # used now
    store.save("d", data["a"])
    assert store.load("b") is None
    assert [store.load(name) for name in "acd"] == [data["a"], data["c"], data["a"]]
    assert not left.exists()


_RUN = """
import sys
import numpy as np
from framework.export import load_artifact
from framework.inference import XLAEngine
artifact = load_artifact(sys.argv[1])
engine = XLAEngine(artifact.programs["float32"], artifact.weights)
print(float(engine({"x": np.ones((1, 8, 8, 3), np.float32)})["output"].sum()))
"""


def test_two_processes_start_at_once(parts, home: Path, tmp_path: Path):
    folder = Artifact({}, {"float32": parts[0]}, parts[1]).save(tmp_path / "net")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, str(folder)],
            cwd=REPO,
            env=kept,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    texts = [process.communicate(timeout=120) for process in both]
    assert texts[0] == texts[1] and texts[0][0] and not texts[0][1], texts
    assert len(program_files(home)) == 1 and not list(home.rglob("*.tmp"))


def test_shapes_are_prepared_in_the_background(parts, home: Path, caplog: pytest.LogCaptureFixture):
    engine = XLAEngine(*parts)
    before = engine.compile_count
    wanted = [{"x": (n, 8, 8, 3)} for n in (1, 2, 3)]
    caplog.set_level(logging.INFO, "oar")
    engine.prepare([*wanted, {"x": (1, 8, 8, 4)}])  # the last one is the error of the call that needs it
    for shapes in wanted:
        engine.compile(shapes)  # waits for the thread that is at it
    assert before == 0 and engine.compile_count == 3
    np.testing.assert_array_equal(engine({"x": X})["output"], run(parts))
    engine.prepare(wanted)
    assert engine.compile_count == 3
