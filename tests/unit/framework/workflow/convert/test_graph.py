"""Files that `oar convert` does not read itself, and ONNX as its output."""

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.programs import onnx
from framework.workflow.convert.graph import convert_graph, refuse_foreign

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
    made = convert_graph(tmp_path / "m.pdmodel", tmp_path / "m.onnx")
    assert made.difference < 1e-4 and made.inputs["x"].shape == ("n", 3, "h", "w")
    np.testing.assert_allclose(onnx.load(tmp_path / "m.onnx")(x)[1], wanted, rtol=1e-5, atol=1e-5)
