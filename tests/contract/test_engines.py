"""Every engine runs the same function: equal results, the same inputs and outputs, the same errors.

The function is written twice: as an ONNX file by the `onnx` package, and lowered by jax.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from framework.core.errors import DeviceError, FormatError, InputError, MissingExtraError, ShapeError
from framework.export import Artifact, TensorSpec, load_artifact, lower_program
from framework.inference import Engine, Runtime
from framework.inference import runtime as runtime_module
from framework.inference.engines import openvino as openvino_module

ONNX_ENGINES = ("onnxruntime", "openvino")
NAMES = ("xla", *ONNX_ENGINES)
RNG = np.random.default_rng(0)
WEIGHTS = {
    "kernel": RNG.standard_normal((3, 3, 3, 8)).astype(np.float32),  # HWIO
    "bias": RNG.standard_normal(8).astype(np.float32),
    "head": RNG.standard_normal((8, 5)).astype(np.float32),
}


def network(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """image [n, h, w, 3] uint8 and scale [n] int32 -> probability [n, 5], map [n, h, w, 8]."""
    image = (
        inputs["image"].astype(jnp.float32) / 255 * inputs["scale"].astype(jnp.float32)[:, None, None, None]
    )
    x = jax.lax.conv_general_dilated(
        image, weights["kernel"], (1, 1), [(1, 1), (1, 1)], dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jnp.maximum(x + weights["bias"], 0)
    return {"probability": jax.nn.softmax(x.mean((1, 2)) @ weights["head"]), "map": x}


def write_onnx(path: Path) -> None:
    """The same, in ONNX's operators."""
    node = helper.make_node
    kernel = WEIGHTS["kernel"].transpose(3, 2, 0, 1)
    constants = {
        "kernel": kernel,
        "bias": WEIGHTS["bias"],
        "head": WEIGHTS["head"],
        "full": np.float32(255),
        "axes": np.array([1, 2, 3], np.int64),
        "hw": np.array([2, 3], np.int64),
    }
    nodes = [
        node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        node("Div", ["float", "full"], ["unit"]),
        node("Cast", ["scale"], ["factor"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["factor", "axes"], ["factors"]),
        node("Mul", ["unit", "factors"], ["scaled"]),
        node("Transpose", ["scaled"], ["planes"], perm=[0, 3, 1, 2]),
        node("Conv", ["planes", "kernel", "bias"], ["convolved"], pads=[1, 1, 1, 1]),
        node("Relu", ["convolved"], ["positive"]),
        node("Transpose", ["positive"], ["map"], perm=[0, 2, 3, 1]),
        node("ReduceMean", ["positive", "hw"], ["mean"], keepdims=0),
        node("MatMul", ["mean", "head"], ["logits"]),
        node("Softmax", ["logits"], ["probability"], axis=-1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "network",
        [
            value("image", TensorProto.UINT8, ["n", "h", "w", 3]),
            value("scale", TensorProto.INT32, ["n"]),
        ],
        [
            value("probability", TensorProto.FLOAT, ["n", 5]),
            value("map", TensorProto.FLOAT, ["n", "h", "w", 8]),
        ],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


class OnnxFormat:
    """The ONNX file of an artifact."""

    size = 4096

    def write(self, folder: Path) -> list[Path]:
        write_onnx(folder / "model.onnx")
        return [folder / "model.onnx"]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    specs = {"image": TensorSpec(("n", "h", "w", 3), "uint8"), "scale": TensorSpec(("n",), "int32")}
    program = lower_program(network, WEIGHTS, specs, ("cpu",))
    about = {"inputs": {name: [list(spec.shape), spec.dtype] for name, spec in specs.items()}}
    made = Artifact(about, {"float32": program}, WEIGHTS, formats=(OnnxFormat(),))
    return load_artifact(made.save(tmp_path_factory.mktemp("artifact") / "network"))


@pytest.fixture(scope="module")
def opened(artifact: Artifact) -> Callable[[str], Engine]:
    engines = {name: Runtime("cpu", engine=name).open(artifact) for name in NAMES}
    return engines.__getitem__


def inputs(n: int, h: int, w: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n * h * w)
    return {
        "image": rng.integers(0, 256, (n, h, w, 3), dtype=np.uint8),
        "scale": np.arange(1, n + 1, dtype=np.int32),
    }


@pytest.mark.parametrize("name", ONNX_ENGINES)
def test_results_are_those_of_xla(name: str, opened: Callable[[str], Engine]):
    for size in ((1, 8, 8), (3, 5, 17), (2, 32, 1)):
        expected, found = opened("xla")(inputs(*size)), opened(name)(inputs(*size))
        assert list(found) == list(expected) == ["map", "probability"]
        for key, array in expected.items():
            assert found[key].dtype == array.dtype
            np.testing.assert_allclose(found[key], array, atol=1e-4)
    assert opened(name).compile_count == 1


def test_openvino_keeps_a_bounded_number_of_prepared_shapes(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
):
    """Its default is 5,000 operations: a reader of pages of mixed sizes grew to four times its memory over 300."""
    core = openvino_module._open_core(openvino_module.import_openvino())
    asked: list[dict[str, Any]] = []

    class Watched:
        available_devices, read_model = core.available_devices, core.read_model

        def compile_model(self, model: Any, device: str, settings: dict[str, Any]) -> Any:
            asked.append(settings)
            return core.compile_model(model, device, settings)

    monkeypatch.setattr(openvino_module, "_open_core", lambda _: Watched())
    Runtime("cpu", engine="openvino").open(artifact)
    assert 0 < asked[0]["CPU_RUNTIME_CACHE_CAPACITY"] <= 500


@pytest.mark.parametrize("name", NAMES)
def test_outputs_stay_as_they_are_when_the_next_call_comes(name: str, opened: Callable[[str], Engine]):
    engine = opened(name)
    engine.prepare([{"image": (1, 8, 8, 3), "scale": (1,)}])
    first = {key: np.asarray(array) for key, array in engine.start(inputs(1, 8, 8)).items()}
    copies = {key: array.copy() for key, array in first.items()}
    engine({**inputs(1, 8, 8), "scale": np.array([9], np.int32)})
    for key, array in first.items():
        np.testing.assert_array_equal(array, copies[key])


@pytest.mark.parametrize("name", NAMES)
def test_eight_threads_get_their_own_results(name: str, opened: Callable[[str], Engine]):
    sizes = [(1 + i % 2, 8, 8) for i in range(8)]
    expected = [opened(name)(inputs(*size)) for size in sizes]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda size: opened(name)(inputs(*size)), sizes * 4))
    for one, other in zip(expected * 4, found):
        np.testing.assert_allclose(one["map"], other["map"], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_and_outputs_are_declared_alike(name: str, opened: Callable[[str], Engine]):
    engine, xla = opened(name), opened("xla")
    assert dict(engine.inputs) == dict(xla.inputs)
    assert list(engine.outputs) == list(xla.outputs)
    for key, tensor in xla.outputs.items():
        found = engine.outputs[key]
        assert found.dtype == tensor.dtype and len(found.shape) == len(tensor.shape)
        assert found.shape[-1] == tensor.shape[-1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"photo": np.zeros(1)},
            "the program takes other inputs\n  received: photo\n"
            "  allowed: image [n, h, w, 3] uint8, scale [n] int32",
        ),
        (
            {**inputs(1, 8, 8), "image": np.zeros((1, 8, 8, 3), np.float32)},
            "image: an input does not fit the program\n  received: (1, 8, 8, 3) float32\n"
            "  allowed: [n, h, w, 3] uint8",
        ),
        (
            {**inputs(1, 8, 8), "image": np.zeros((1, 8, 8, 4), np.uint8)},
            "image: an input does not fit the program\n  received: (1, 8, 8, 4) uint8\n"
            "  allowed: [n, h, w, 3] uint8",
        ),
        (
            {**inputs(2, 8, 8), "scale": np.ones(3, np.int32)},
            "scale: an input does not fit the program\n  received: (3,) int32\n  allowed: [n] int32",
        ),
    ],
)
def test_errors_are_alike(name: str, wrong: dict[str, Any], message: str, opened: Callable[[str], Engine]):
    with pytest.raises(ShapeError) as error:
        opened(name)(wrong)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ONNX_ENGINES)
def test_what_an_engine_cannot_open(
    name: str, artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    bare = load_artifact(Artifact({}, artifact.programs, artifact.weights).save(tmp_path / "bare"))
    run = Runtime("cpu", engine=name)
    with pytest.raises(
        FormatError, match=r"(?s)no ONNX file.*no model.onnx beside.*oar export -c … --format onnx"
    ):
        run.open(bare)
    write_onnx(tmp_path / "bare" / "model.onnx")
    with pytest.raises(
        FormatError, match="no ONNX file"
    ):  # of unknown origin: its sha256 is not in the config
        run.open(load_artifact(tmp_path / "bare"))
    bare.formats = (OnnxFormat(),)
    whole = load_artifact(bare.save(tmp_path / "whole"))
    whole.config["inputs"] = {"image": [["n", "h", "w", 3], "float32"]}
    with pytest.raises(FormatError, match="the ONNX file has other inputs than the artifact"):
        run.open(whole)
    (tmp_path / "whole" / "model.onnx").write_bytes(b"no ONNX at all")
    with pytest.raises(FormatError, match=r"model.onnx: (OpenVINO|ONNX Runtime) cannot read the file"):
        run.open(whole)
    with pytest.raises(FormatError, match="damaged"):
        load_artifact(tmp_path / "whole")
    with pytest.raises(DeviceError, match=r"(?s)gpu:3.*allowed"):
        Runtime("gpu:3", engine=name).open(artifact)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"oar-toolkit\[{name}\]"):
        run.open(artifact)


def test_what_a_runtime_refuses(artifact: Artifact):
    with pytest.raises(InputError, match=r"'tensorflow'\n  allowed: auto, xla, onnxruntime, openvino"):
        Runtime(engine="tensorflow")
    with pytest.raises(InputError, match="threads=0"):
        Runtime(threads=0)
    with pytest.raises(InputError, match=r"'bfloat16'\n  allowed: auto, float32"):
        Runtime("cpu", "bfloat16", "onnxruntime").open(artifact)


def test_openvino_in_bfloat16_is_near(artifact: Artifact, opened: Callable[[str], Engine]):
    found = Runtime("cpu", "bfloat16", "openvino", threads=1).open(artifact)(inputs(2, 8, 8))
    np.testing.assert_allclose(found["probability"], opened("xla")(inputs(2, 8, 8))["probability"], atol=0.05)


@pytest.mark.parametrize(
    ("engines", "fast", "expected"), [(["openvino"], True, 0), ([], True, 1), (["openvino"], False, 1)]
)
def test_precision_auto_takes_bfloat16_where_the_engine_was_measured_with_it(
    engines: list[str], fast: bool, expected: int, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
):
    from framework.inference.engines import openvino

    chosen: list[str] = []
    monkeypatch.setattr(openvino, "OpenVINOEngine", lambda *given: chosen.append(given[2]))
    monkeypatch.setattr(runtime_module, "bfloat16_is_fast", lambda device: fast)
    monkeypatch.setitem(artifact.config, "bf16_engines", engines)
    Runtime("cpu", engine="openvino").open(artifact)
    assert chosen == [("bfloat16", "float32")[expected]]
    assert Runtime("cpu", engine="onnxruntime").open(artifact) is not None  # which has no bfloat16 here


def test_auto_takes_the_first_engine_of_the_table_that_is_here(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "oar")
    xla = type(Runtime("cpu", engine="xla").open(artifact))
    assert type(Runtime("cpu").open(artifact)) is xla and not caplog.text  # no table
    runtime_module._log_once.cache_clear()
    monkeypatch.setitem(artifact.config, "engines", {"cpu": ["openvino", "onnxruntime"]})
    for _ in range(2):
        assert type(Runtime("cpu").open(artifact)).__name__ == "OpenVINOEngine"
    assert caplog.text.count("engine openvino, the fastest here by the artifact's table for cpu") == 1
    real = runtime_module.importlib.util.find_spec
    monkeypatch.setattr(
        runtime_module.importlib.util, "find_spec", lambda name: None if name == "openvino" else real(name)
    )
    assert type(Runtime("cpu").open(artifact)).__name__ == "ONNXRuntimeEngine"
    monkeypatch.setattr(runtime_module.importlib.util, "find_spec", lambda name: None)
    assert type(Runtime("cpu").open(artifact)) is xla


def test_auto_does_without_an_onnx_file_that_is_not_there(artifact: Artifact, tmp_path: Path):
    table = {"engines": {"cpu": ["onnxruntime"]}}
    bare = load_artifact(Artifact(table, artifact.programs, artifact.weights).save(tmp_path / "bare"))
    assert type(Runtime("cpu").open(bare)) is type(Runtime("cpu", engine="xla").open(artifact))


CTRL_C = """
import gc, signal, sys
from framework.export import load_artifact
from framework.inference import Runtime

artifact = load_artifact(sys.argv[1])
engines = [Runtime("cpu", engine=sys.argv[2]).open(artifact) for _ in range(3)]
del engines[0], engines[0], engines
gc.collect()
signal.signal(signal.SIGINT, lambda number, frame: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize("name", ONNX_ENGINES)
def test_signals_are_handled_after_engines_are_gone(name: str, artifact: Artifact):
    assert artifact.folder is not None
    command = [sys.executable, "-c", CTRL_C, str(artifact.folder), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "handled", done.stderr[-500:]
