"""Graphs of TensorFlow, TFLite and Caffe, converted to ONNX, against the results of the originals.

The fixtures are made by tools/golden/foreign_graphs.py, which has the commands of docs/graphs.md.
"""

from pathlib import Path

import numpy as np
import pytest

from framework import jit
from framework.interop.programs import onnx

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", ["tensorflow", "tflite", "caffe"])
def test_results_of_the_original(name: str, tmp_path: Path) -> None:
    with np.load(DATA / f"foreign_{name}.npz") as stored:
        arrays = dict(stored)
    path = tmp_path / "model.onnx"
    path.write_bytes(arrays.pop("model").tobytes())
    x = arrays.pop("x")
    layer = onnx.load(path)
    wanted = [arrays[f"out{number}"] for number in range(len(arrays))]
    for run in (layer, jit.to_static(layer)):
        got = run(x)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert any(name for name, _ in layer.named_parameters())
