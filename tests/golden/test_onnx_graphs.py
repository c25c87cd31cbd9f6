"""Graphs of both torch exporters, made by tools/golden/onnx_graphs.py, against torch's outputs."""

from pathlib import Path

import numpy as np
import pytest

from framework import jit
from framework.interop.programs import onnx
from framework.interop.source import Source

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("exporter", ["script", "dynamo"])
@pytest.mark.parametrize("name", ["mobilenet", "transformer", "recurrent", "swin", "detr"])
def test_torch_graphs(name: str, exporter: str) -> None:
    with np.load(DATA / f"onnx_{name}_{exporter}.npz") as stored:
        arrays = dict(stored)
    layer = onnx.load(Source(f"{name}_{exporter}.onnx", memoryview(arrays.pop("model").tobytes())))
    x = arrays.pop("x")
    got = jit.to_static(layer)(x)
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(arrays)
    for i, array in enumerate(got):
        np.testing.assert_allclose(array, arrays[f"out{i}"], rtol=1e-5, atol=1e-5)
    assert all(parameter.trainable for parameter in layer.parameters())
