"""Operators of com.microsoft against ONNX Runtime, whose own they are."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from framework.interop.graph.layer import GraphLayer
from framework.interop.programs.onnx import load
from framework.interop.source import Source
from tests.unit.framework.interop.graph.conftest import model

ort = pytest.importorskip("onnxruntime", reason="the reference")
RNG = np.random.default_rng(1)
MS = {"com.microsoft": 1}


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def bytes_of(*shape: int, kind: type = np.uint8) -> np.ndarray:
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, shape, kind, endpoint=True)


def tensor(name: str, array: np.ndarray) -> object:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


# Kernels of 7 bits: where a processor has no VNNI, ONNX Runtime saturates sums of two products at 16 bits.
SCALE, ZERO = np.float32(0.02), np.uint8(120)
CASES = {
    "FusedConv": ([numbers(1, 3, 6, 5), numbers(4, 3, 3, 3), numbers(4)], {"activation": "Relu"}),
    "FusedGemm": ([numbers(2, 3), numbers(3, 4), numbers(4)], {"activation": "Sigmoid"}),
    "FusedMatMul": ([numbers(2, 3, 4), numbers(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    "Gelu": ([numbers(2, 5)], {}),
    "QuickGelu": ([numbers(2, 5)], {"alpha": 1.5}),
    "FastGelu": ([numbers(2, 5), numbers(5)], {}),
    "BiasGelu": ([numbers(2, 5), numbers(5)], {}),
    "SkipLayerNormalization": (
        [numbers(2, 3, 8), numbers(2, 3, 8), numbers(8), numbers(8)],
        {"epsilon": 1e-5},
    ),
    "SkipSimplifiedLayerNormalization": ([numbers(2, 3, 8), numbers(2, 3, 8), numbers(8)], {"epsilon": 1e-5}),
    "QLinearAdd": ([bytes_of(2, 3), SCALE, ZERO, bytes_of(2, 3), SCALE, ZERO, np.float32(0.03), ZERO], {}),
    "QLinearMul": ([bytes_of(2, 3), SCALE, ZERO, bytes_of(3), SCALE, ZERO, np.float32(0.05), ZERO], {}),
    "QLinearSigmoid": ([bytes_of(2, 3), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], {}),
    "QLinearLeakyRelu": ([bytes_of(2, 3), SCALE, ZERO, SCALE, ZERO], {"alpha": 0.1}),
    "QLinearSoftmax": (
        [bytes_of(2, 3), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)],
        {"axis": -1, "opset": 13},
    ),
    "QGemm": (
        [
            *(bytes_of(2, 3), SCALE, ZERO, bytes_of(4, 3, kind=np.int8) // 2, np.float32(0.1), np.int8(3)),
            *(np.int32([40, -800, 3, 0]), np.float32(0.3), np.uint8(100)),
        ],
        {"transB": 1},
    ),
    "QLinearGlobalAveragePool": ([bytes_of(1, 3, 4, 4), SCALE, ZERO, SCALE, ZERO], {"channels_last": 0}),
    "QLinearConcat": (
        [SCALE, ZERO, bytes_of(2, 3), SCALE, ZERO, bytes_of(2, 2), SCALE, np.uint8(99)],
        {"axis": 1},
    ),
    "MatMulIntegerToFloat": (
        [bytes_of(2, 3), bytes_of(3, 4, kind=np.int8) // 2, SCALE, np.float32([0.1]), ZERO, np.int8(3)],
        {},
    ),
    "DynamicQuantizeMatMul": (
        [numbers(2, 3), bytes_of(3, 4, kind=np.int8) // 2, np.float32([0.1]), np.int8(3)],
        {},
    ),
}


def both(name: str) -> tuple[list[np.ndarray], tuple]:
    arrays, attributes = CASES[name]
    arrays = [np.asarray(array) for array in arrays]
    names = [f"x{i}" for i in range(len(arrays))]
    call = helper.make_node(name, names, ["y"], domain="com.microsoft", **attributes)
    kind = arrays[0].dtype if name != "QLinearConcat" else arrays[1].dtype
    if name == "MatMulIntegerToFloat":
        kind = np.dtype(np.float32)
    proto = model([call], [tensor(n, a) for n, a in zip(names, arrays)], opset=17, domains=MS)
    proto.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(kind)
    proto.ir_version = 9
    content = proto.SerializeToString()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    want = session.run(None, dict(zip(names, arrays)))
    layer: GraphLayer = load(Source(name, memoryview(content)))
    return want, (layer(*arrays),)


@pytest.mark.parametrize("name", CASES)
def test_against_onnx_runtime(name: str) -> None:
    (want,), (got,) = both(name)
    array = np.asarray(got[0] if isinstance(got, tuple) else got)
    assert array.dtype == want.dtype and array.shape == want.shape
    if want.dtype == np.float32:
        np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-4)
    else:  # a tie may fall to either side
        assert np.abs(array.astype(int) - want.astype(int)).max() <= 1
