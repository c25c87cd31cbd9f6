"""Files that `oar convert` does not read itself, and ONNX as its output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from framework import nn
from framework.commands import main
from framework.core.bounded import read_bytes
from framework.core.errors import FormatError, TraceError, WeightError
from framework.export import load_artifact
from framework.inference import Config, Runtime, create_predictor
from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
from framework.interop.programs import onnx
from framework.workflow.convert.graph import compare_with_graph, convert_graph, refuse_foreign
from framework.workflow.domain.weights import load_weights_into
from tests.unit.framework.interop.graph.conftest import model, value

DATA = Path(__file__).parents[4] / "golden" / "data"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (
            "m.tflite",
            r"tf2onnx.convert --tflite m.tflite --output model.onnx .*pip install tensorflow-cpu tf2onnx",
        ),
        ("saved/saved_model.pb", r"tf2onnx.convert --saved-model \S*saved --output model.onnx"),
        ("m.keras", r"load_model\('m.keras'\).export\('saved_model'\).*--saved-model saved_model"),
        ("m.h5", r"load_model\('m.h5'\).export"),
        (
            "m.caffemodel",
            r"caffe2onnx.convert --prototxt m.prototxt --caffemodel m.caffemodel --onnx model.onnx",
        ),
        ("m.prototxt", r"--prototxt m.prototxt --caffemodel m.caffemodel"),
    ],
)
def test_graphs_of_others_name_the_command(name: str, command: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    with pytest.raises(FormatError, match=f"come in through ONNX(.|\n)*{command}"):
        refuse_foreign(path)
    if path.suffix == ".pb":
        with pytest.raises(FormatError, match=command):
            refuse_foreign(path.parent)
    refuse_foreign(tmp_path / "m.onnx")


def test_a_program_of_paddle_becomes_onnx(tmp_path: Path) -> None:
    with np.load(DATA / "paddle_control_segmenter_pdmodel.npz") as stored:
        (tmp_path / "m.pdmodel").write_bytes(stored["program"].tobytes())
        (tmp_path / "m.pdiparams").write_bytes(stored["params"].tobytes())
        x, wanted = stored["in0.x"], stored["out0.1"]
    made = convert_graph(tmp_path / "m.pdmodel")
    made.write(tmp_path / "m.onnx")
    assert compare_with_graph(made) < 1e-4 and made.inputs["x"].shape == ("n", 3, "h", "w")
    np.testing.assert_allclose(onnx.load(tmp_path / "m.onnx")(x)[1], wanted, rtol=1e-5, atol=1e-5)


def test_a_graph_that_needs_float64_is_not_converted(tmp_path: Path) -> None:
    """It is the difference of two products, of which 32 bits hold no digit."""
    arrays = {"w": np.array([[1e9], [1e-3]]), "v": np.array([[1e9], [0.0]])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("MatMul", ["x", "v"], ["t"]),
        helper.make_node("Sub", ["s", "t"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", 2]) for name in ("x", "y"))
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(TraceError, match="computes with float64"):
        compare_with_graph(convert_graph(tmp_path / "m.onnx"))


def test_a_graph_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with np.load(DATA / "paddle_control_segmenter_pdmodel.npz") as stored:
        (tmp_path / "m.pdmodel").write_bytes(stored["program"].tobytes())
        (tmp_path / "m.pdiparams").write_bytes(stored["params"].tobytes())
    read: list[str] = []

    def count(path: Path, *limits: Any) -> bytes:
        read.append(path.name)
        return read_bytes(path, *limits)

    monkeypatch.setattr("framework.interop.source.read_bytes", count)
    assert main(["convert", str(tmp_path / "m.pdmodel"), str(tmp_path / "artifact")]) == 0
    assert read == ["m.pdmodel", "m.pdiparams"]
    net = nn.Sequential(nn.Conv2D(3, 4, 3))
    net.example_shape = (1, 8, 8, 3)
    with pytest.raises(WeightError):  # the network has other layers
        load_weights_into(net, tmp_path / "m.pdmodel")
    assert read[2:] == ["m.pdmodel", "m.pdiparams"]


def _write_graph(path: Path) -> np.ndarray:
    """A convolution with ReLU; returns its kernel."""
    kernel = np.random.default_rng(0).standard_normal((4, 3, 1, 1)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    graph = model(nodes, [value("x", ["n", 3, 8, 8])], arrays={"w": kernel})
    path.write_bytes(graph.SerializeToString())
    return kernel[:, :, 0, 0]


def test_the_engines_of_an_artifact_with_onnx_are_those_that_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = _write_graph(tmp_path / "m.onnx")
    folder = tmp_path / "artifact"
    assert main(["convert", str(tmp_path / "m.onnx"), str(folder), "--format", "onnx"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("engine ")]
    measured = [line.split()[1].rstrip(":") for line in said]
    assert {"onnxruntime", "xla"} <= set(measured)
    artifact = load_artifact(folder)
    table = artifact.setting("engines", default={})
    first = table["cpu"][0] if table else "xla"
    assert first == measured[0] and (not table or table["cpu"][-1] == "xla")
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    wanted = np.maximum(np.einsum("oc,nchw->nohw", kernel, x), 0)
    for name in measured:
        np.testing.assert_allclose(Runtime(engine=name).open(artifact)({"x": x})["y"], wanted, atol=1e-5)
    outputs = create_predictor(Config(folder)).run([x])
    assert isinstance(outputs, list)
    np.testing.assert_allclose(outputs[0], wanted, atol=1e-5)


@pytest.mark.parametrize("wrong_by", [0.1, np.nan, np.inf])
def test_an_engine_with_other_results_is_not_chosen(
    wrong_by: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_graph(tmp_path / "m.onnx")
    run = ONNXRuntimeEngine.run
    monkeypatch.setattr(
        ONNXRuntimeEngine,
        "run",
        lambda *args: {name: y + np.float32(wrong_by) for name, y in run(*args).items()},
    )
    times = convert_graph(tmp_path / "m.onnx").write(tmp_path / "artifact", with_onnx=True)
    wrong = next(one for one in times if one.engine == "onnxruntime")
    assert not wrong.agrees and wrong.difference > 1e-2
    assert "onnxruntime" not in load_artifact(tmp_path / "artifact").setting("engines", default={}).get(
        "cpu", ()
    )


def test_a_format_is_of_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "w.npz", w=np.zeros(2, np.float32))
    command = ["convert", str(tmp_path / "w.npz"), str(tmp_path / "w.safetensors"), "--format", "onnx"]
    assert main(command) == 2
    assert "for a graph that becomes an artifact" in capsys.readouterr().err
    assert not (tmp_path / "w.safetensors").exists()
