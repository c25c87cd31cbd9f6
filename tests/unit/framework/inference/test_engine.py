from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import DeviceError, ShapeError
from framework.core.process_state import state
from framework.export import Artifact, TensorSpec, lower_layer, lower_program
from framework.inference import XLAEngine, compile_options, enable_compilation_cache
from framework.inference import engine as engine_module

REPO = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def parts():
    layer = nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.ReLU())
    program, weights = lower_layer(layer, {"x": TensorSpec(("n", "8*h", "8*w", 3))}, platforms=("cpu",))
    return layer, program, weights


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_outputs_are_those_of_the_layer(parts):
    layer, program, weights = parts
    x = images(2, 8, 16, 3)
    out = XLAEngine(program, weights)({"x": x})
    assert list(out) == ["output"] and isinstance(out["output"], np.ndarray)
    np.testing.assert_allclose(out["output"], np.asarray(layer.eval()(jax.numpy.asarray(x))), atol=1e-5)


def test_it_compiles_once_for_each_shape(parts):
    run = XLAEngine(*parts[1:])
    assert run.compile_count == 0
    for shape, count in (((1, 8, 8, 3), 1), ((2, 8, 8, 3), 2), ((1, 8, 8, 3), 2)):
        assert run({"x": images(*shape)})["output"].shape == (*shape[:3], 4)
        assert run.compile_count == count
    run.compile({"x": (3, 8, 8, 3)})
    assert run.compile_count == 3


def test_the_programs_used_last_are_kept(parts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine_module, "KEPT", 2)
    run = XLAEngine(*parts[1:])
    one, two, three = (images(n, 8, 8, 3) for n in (1, 2, 3))
    first = run({"x": one})["output"]
    run({"x": two})
    kept = run.compile({"x": (1, 8, 8, 3)})
    run({"x": three})  # the program of two images goes
    assert run.compile({"x": (1, 8, 8, 3)}) is kept
    assert len(run._compiled) == len(run._locks) == 2 and run.compile_count == 3
    run({"x": two})  # that of three goes
    np.testing.assert_array_equal(run({"x": one})["output"], first)
    assert run.compile_count == 3
    other = XLAEngine(*parts[1:])
    other({"x": one})  # the bound is that of the process
    other({"x": two})
    assert not run._compiled and len(other._compiled) == 2
    del run, kept
    gc.collect()
    other({"x": three})
    assert len(other._compiled) == 2 and len(engine_module._recent) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_after_use_is_an_error_and_no_hang(parts, tmp_path: Path):
    folder = Artifact({}, {"float32": parts[1]}, parts[2]).save(tmp_path / "net")
    code = """
import os, sys, numpy as np
from framework.core.errors import DeviceError
from framework.export import load_artifact
from framework.inference import XLAEngine
artifact = load_artifact(sys.argv[1])
if os.fork():
    os.wait()  # the child uses it first: that works
else:
    XLAEngine(artifact.programs["float32"], artifact.weights)
    print("before", flush=True)
    os._exit(0)
run = XLAEngine(artifact.programs["float32"], artifact.weights)
run({"x": np.zeros((1, 8, 8, 3), np.float32)})
if os.fork():
    os.wait()
else:
    try:
        run({"x": np.zeros((1, 8, 8, 3), np.float32)})
    except DeviceError as error:
        print(error, flush=True)
    os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=REPO, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("before\n"), done.stderr
    assert "was forked from one in which jax was at work" in done.stdout and '"spawn"' in done.stdout


def test_start_gives_outputs_that_may_be_under_way(parts):
    out = XLAEngine(*parts[1:]).start({"x": images(1, 8, 8, 3)})["output"]
    assert isinstance(out, jax.Array) and np.asarray(out).shape == (1, 8, 8, 4)


def test_eight_threads_compile_each_shape_once(parts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OAR_COMPILATION_CACHE", "off")  # an earlier run may have kept these programs
    run = XLAEngine(*parts[1:])
    compiled: list[int] = []
    real, together = XLAEngine._compile, threading.Barrier(8)

    def counted(self, lowered):
        compiled.append(1)
        return real(self, lowered)

    monkeypatch.setattr(XLAEngine, "_compile", counted)
    inputs = [images(1 + i % 2, 8, 8, 3) for i in range(8)]

    def work(x: np.ndarray) -> np.ndarray:
        together.wait()
        return run({"x": x})["output"]

    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(work, inputs))
    assert len(compiled) == run.compile_count == 2
    for x, out in zip(inputs, outputs):
        np.testing.assert_array_equal(out, run({"x": x})["output"])


@pytest.mark.parametrize(
    ("inputs", "received"),
    [
        ({"x": np.zeros((1, 8, 9, 3), np.float32)}, r"\(1, 8, 9, 3\) float32"),
        ({"x": np.zeros((1, 8, 8, 4), np.float32)}, r"\(1, 8, 8, 4\) float32"),
        ({"x": np.zeros((0, 8, 8, 3), np.float32)}, r"\(0, 8, 8, 3\) float32"),
        ({"x": np.zeros((8, 8, 3), np.float32)}, r"\(8, 8, 3\) float32"),
        ({"x": np.zeros((1, 8, 8, 3))}, r"\(1, 8, 8, 3\) float64"),
    ],
)
def test_an_input_that_does_not_fit(parts, inputs, received):
    message = rf"x: an input does not fit the program\n  received: {received}\n  allowed: \[n, 8\*h, 8\*w, 3\] float32"
    with pytest.raises(ShapeError, match=message):
        XLAEngine(*parts[1:])(inputs)


def test_a_number_stays_a_number():
    specs = {"x": TensorSpec((3,)), "scale": TensorSpec(())}
    program = lower_program(lambda w, i: {"y": i["x"] * i["scale"]}, {}, specs, ("cpu",))
    out = XLAEngine(program, {})({"x": np.float32([1, 2, 3]), "scale": np.float32(2)})
    assert out["y"].tolist() == [2, 4, 6]


def test_inputs_of_other_names(parts):
    with pytest.raises(
        ShapeError, match=r"other inputs\n  received: image, y\n  allowed: x \[n, 8\*h, 8\*w, 3\]"
    ):
        XLAEngine(*parts[1:])({"image": 1, "y": 2})


def test_a_size_that_two_inputs_share():
    spec = TensorSpec(("n",))
    run = XLAEngine(
        lower_program(lambda w, i: {"y": i["a"] + i["b"]}, {}, {"a": spec, "b": spec}, ("cpu",)), {}
    )
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    assert run({"a": two, "b": two})["y"].tolist() == [2, 2]
    with pytest.raises(ShapeError, match="b: an input does not fit"):
        run({"a": one, "b": two})


def test_expressions_over_sizes_are_checked_by_jax():
    spec = {"x": TensorSpec(("2*h + 1",))}
    run = XLAEngine(lower_program(lambda w, i: {"y": i["x"] + 1}, {}, spec, ("cpu",)), {})
    assert run({"x": np.zeros(5, np.float32)})["y"].shape == (5,)
    with pytest.raises(
        ShapeError, match=r"these shapes\n  received: x \(4,\): .*\n  allowed: x \[2\*h \+ 1\]"
    ):
        run({"x": np.zeros(4, np.float32)})


def test_an_unknown_compile_option_is_dropped_with_a_warning(parts, caplog: pytest.LogCaptureFixture):
    run = XLAEngine(*parts[1:], options={"xla_no_such_option": 1})
    with caplog.at_level(logging.WARNING, "oar"):
        assert run({"x": images(1, 8, 8, 3)})["output"].shape == (1, 8, 8, 4)
    assert "xla_no_such_option" in caplog.text and caplog.text.count("going on without") == 1


def test_compile_options_are_for_cpus_alone():
    class Gpu:
        platform = "gpu"

    assert compile_options(Gpu()) == {}  # type: ignore[arg-type]
    assert "xla_cpu_experimental_ynn_fusion_type" in compile_options(jax.local_devices(backend="cpu")[0])


def test_the_device_is_the_chosen_one(parts, monkeypatch: pytest.MonkeyPatch):
    if len(jax.local_devices(backend="cpu")) < 2:
        pytest.skip("jax was started with one CPU device")
    second = jax.local_devices(backend="cpu")[1]
    out = XLAEngine(*parts[1:], device=second).start({"x": images(1, 8, 8, 3)})["output"]
    assert out.devices() == {second}
    with jax.default_device(second):  # what set_device sets
        assert XLAEngine(*parts[1:]).device == second


def test_a_program_for_another_platform():
    program, weights = lower_layer(nn.Linear(2, 2), {"x": TensorSpec((1, 2))}, platforms=("cuda", "tpu"))
    with pytest.raises(
        DeviceError,
        match=r"not lowered for this device\n  received: cpu\n  allowed: cuda, tpu\n  what to do: export",
    ):
        XLAEngine(program, weights, jax.local_devices(backend="cpu")[0])


# -- the compilation cache: a process of its own, as jax opens it once -------------------------------------------------

_RUN = """
import sys
import numpy as np
from framework.export import load_artifact
from framework.inference import XLAEngine, enable_compilation_cache
artifact = load_artifact(sys.argv[1])
if len(sys.argv) > 2:
    XLAEngine(artifact.programs["float32"], artifact.weights)({"x": np.ones((1, 8, 8, 3), np.float32)})
    enable_compilation_cache(sys.argv[2])
XLAEngine(artifact.programs["float32"], artifact.weights)({"x": np.zeros((2, 8, 8, 3), np.float32)})
"""


def start(artifact: Path, *args: object, **env: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(artifact), *map(str, args)],
        cwd=REPO,
        env={**kept, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_compiled_programs_are_kept(parts, tmp_path: Path):
    folder = Artifact({}, {"float32": parts[1]}, parts[2]).save(tmp_path / "net")
    start(folder, OAR_HOME=str(tmp_path / "home"), OAR_COMPILATION_CACHE="off")
    assert not (tmp_path / "home").exists()
    start(folder, tmp_path / "later", OAR_HOME=str(tmp_path / "home"))
    for kept in (tmp_path / "home" / "compiled", tmp_path / "later"):
        assert any(path.is_file() and path.stat().st_size > 100 for path in kept.rglob("*"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "compiled programs are not kept" in start(folder, OAR_HOME=str(tmp_path / "file"))


def test_the_users_own_cache_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    before = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    monkeypatch.setattr(state, "cache_ready", False)
    monkeypatch.setenv("OAR_COMPILATION_CACHE", "off")
    assert enable_compilation_cache() is None
    monkeypatch.setenv("OAR_COMPILATION_CACHE", "on")
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        assert enable_compilation_cache() == tmp_path
        assert not list(tmp_path.iterdir())
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_no_home_is_no_reason_to_stop(
    parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    before = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    for name in ("OAR_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(state, "cache_ready", False)
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        assert XLAEngine(*parts[1:])({"x": images(1, 8, 8, 3)})["output"].shape == (1, 8, 8, 4)
        assert "compiled programs are not kept: no folder for the cache" in caplog.text
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
