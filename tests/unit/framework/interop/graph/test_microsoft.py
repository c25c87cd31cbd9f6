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


CONSTANT = ("MatMulNBits", "MatMulBnb4", "DynamicQuantizeLSTM", "QAttention")
HEADS = {"num_heads": 2}
SHARED = {"num_heads": 4, "kv_num_heads": 2}
MASK = np.int32([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
ANGLES = np.cos(RNG.random((16, 8))).astype(np.float32), np.sin(RNG.random((16, 8))).astype(np.float32)
BIT = {"bits": 4, "N": 6, "K": 48, "block_size": 16}


def grouped(past: int, queries: int, lengths: list[int]) -> list[np.ndarray | None]:
    shapes = ((2, queries, 64), (2, queries, 32), (2, queries, 32), (2, 2, past, 16), (2, 2, past, 16))
    return [*(numbers(*shape) for shape in shapes), np.int32(lengths), np.int32(past + queries)]


def projected() -> list[np.ndarray]:
    return [numbers(2, 5, 8), numbers(8, 24), numbers(24)]


# (operator, inputs, attributes, which outputs are compared); weights are constants, as optimisers write them.
MORE: list[tuple[str, list, dict, tuple[int, ...]]] = [
    ("Attention", [*projected(), MASK], HEADS, (0,)),
    ("Attention", [*projected(), np.int32([4, 5, 1, 0])], HEADS, (0,)),
    ("Attention", [*projected(), None, numbers(2, 2, 2, 3, 4)], HEADS | {"unidirectional": 1}, (0, 1)),
    ("Attention", [*projected(), None, None, numbers(2, 2, 5, 5)], HEADS | {"scale": 0.3}, (0,)),
    (
        "Attention",
        [numbers(2, 5, 8), numbers(8, 28), numbers(28)],
        HEADS | {"qkv_hidden_sizes": [8, 8, 12]},
        (0,),
    ),
    ("MultiHeadAttention", [numbers(2, 5, 8), numbers(2, 6, 8), numbers(2, 6, 8), numbers(24)], HEADS, (0,)),
    (
        "MultiHeadAttention",
        [*(numbers(2, 5, 8) for _ in range(3)), None, None, None, numbers(2, 2, 3, 4), numbers(2, 2, 3, 4)],
        HEADS | {"unidirectional": 1},
        (0, 1, 2),
    ),
    ("GroupQueryAttention", grouped(0, 5, [4, 4]), SHARED, (0, 1, 2)),
    ("GroupQueryAttention", grouped(5, 1, [5, 5]), SHARED | {"local_window_size": 3}, (0, 1, 2)),
    ("GroupQueryAttention", [*grouped(5, 1, [3, 5]), *ANGLES], SHARED | {"do_rotary": 1}, (0,)),
    ("GroupQueryAttention", grouped(0, 5, [4, 4]), SHARED | {"softcap": 2.0, "smooth_softmax": 1}, (0,)),
    ("RotaryEmbedding", [numbers(2, 5, 32), np.int64([2]), *ANGLES], {"interleaved": 1}, (0,)),
    (
        "EmbedLayerNormalization",
        [MASK, MASK, numbers(9, 8), numbers(6, 8), numbers(2, 8), numbers(8), numbers(8), MASK],
        {"epsilon": 1e-5},
        (0, 1),
    ),
    ("MatMulNBits", [numbers(3, 48), bytes_of(6, 3, 8), numbers(6, 3), bytes_of(6, 2)], BIT, (0,)),
    (
        "MatMulBnb4",
        [numbers(3, 64), bytes_of(192), numbers(12)],
        {"N": 6, "K": 64, "block_size": 32, "quant_type": 1},
        (0,),
    ),
    (
        "GatherBlockQuantized",
        [bytes_of(9, 16), np.int32([3, 0, 8]), numbers(9, 2)],
        {"bits": 4, "block_size": 16},
        (0,),
    ),
    (
        "DynamicQuantizeLSTM",
        [
            *(
                numbers(4, 2, 3),
                bytes_of(1, 3, 20, kind=np.int8),
                bytes_of(1, 5, 20, kind=np.int8),
                numbers(1, 40),
            ),
            *(None, None, None, None, np.float32([0.01]), np.int8([0]), np.float32([0.01]), np.int8([0])),
        ],
        {"hidden_size": 5},
        (0, 1, 2),
    ),
    (
        "QAttention",
        [
            bytes_of(2, 5, 8),
            bytes_of(8, 24, kind=np.int8) // 2,
            numbers(24),
            SCALE,
            SCALE,
            MASK,
            ZERO,
            np.int8(0),
        ],
        HEADS,
        (0,),
    ),
    (
        "QLinearAveragePool",
        [bytes_of(1, 6, 6, 3), SCALE, ZERO, SCALE, ZERO],
        {"kernel_shape": [3, 3], "channels_last": 1},
        (0,),
    ),
    ("QLinearWhere", [numbers(2, 3) > 0, *[bytes_of(2, 3), SCALE, ZERO] * 2, SCALE, ZERO], {}, (0,)),
    ("NhwcMaxPool", [bytes_of(1, 6, 6, 3)], {"kernel_shape": [2, 2], "strides": [2, 2]}, (0,)),
    ("FusedMatMul", [numbers(4, 2, 3), numbers(3, 2, 5)], {"transBatchA": 1, "transBatchB": 1}, (0,)),
    (
        "FusedGemm",
        [numbers(2, 3), numbers(3, 4), numbers(4)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3},
        (0,),
    ),
]


@pytest.mark.parametrize("number", range(len(MORE)), ids=[f"{name}-{i}" for i, (name, *_) in enumerate(MORE)])
def test_attention_and_weights_of_few_bits(number: int) -> None:
    name, items, attributes, compared = MORE[number]
    arrays = {f"x{i}": np.asarray(item) for i, item in enumerate(items) if item is not None}
    weights = {f"x{i}" for i in range(1, len(items)) if name in CONSTANT} & arrays.keys()
    outputs = [f"y{i}" for i in range(3 if name.startswith("Group") else max(compared) + 1)]
    inputs = [f"x{i}" if item is not None else "" for i, item in enumerate(items)]
    call = helper.make_node(name, inputs, outputs, domain="com.microsoft", **attributes)
    fixed = {n: arrays[n] for n in weights}
    given = {n: array for n, array in arrays.items() if n not in weights}
    proto = model([call], [tensor(n, a) for n, a in given.items()], outputs, fixed, domains=MS)
    quantised = name.startswith(("QLinear", "Nhwc"))
    for output in proto.graph.output:
        kind = (
            np.uint8
            if quantised
            else np.int32
            if name.startswith("Embed") and output.name == "y1"
            else np.float32
        )
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    proto.ir_version = 9
    content = proto.SerializeToString()
    want = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, given)
    layer = load(Source(name, memoryview(content)))
    got = layer(*(given[spec.name] for spec in layer.inputs))
    arrays_of = got if isinstance(got, tuple) else (got,)
    for number in compared:
        array = arrays_of[number]
        assert array.shape == want[number].shape
        atol = 1 if quantised else 1e-2 if "Dynamic" in name else 1e-4
        np.testing.assert_allclose(np.asarray(array, np.float64), want[number], rtol=1e-4, atol=atol)


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
