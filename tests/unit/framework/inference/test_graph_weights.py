"""The weights of a graph in its engine: made ready once, so that no call moves or widens them again."""

from __future__ import annotations

import math
import re

import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.inference.graph_engine import GraphEngine
from framework.inference.weight_folding import FoldedFunction
from framework.interop.programs.onnx import load
from framework.interop.source import Source
from tests.unit.framework.interop.graph.conftest import model, value

ort = pytest.importorskip("onnxruntime", reason="the reference")
node = helper.make_node
RNG = np.random.default_rng(8)


def opened(proto) -> tuple[GraphEngine, object]:
    proto.ir_version = 8
    content = proto.SerializeToString()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    return GraphEngine(load(Source("m.onnx", memoryview(content)))), session


def operations(engine: GraphEngine, x: np.ndarray) -> str:
    """What the compiled part does in a call, before XLA has changed it."""
    run = engine._programs[0]
    assert isinstance(run, FoldedFunction)
    return run.lower({"x": jnp.asarray(x)}).compile().as_text() or ""


def check(engine: GraphEngine, session, x: np.ndarray) -> None:
    for got, want in zip(engine({"x": x}).values(), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "group", "size"),
    [((40, 24, 3, 3), 1, (9, 7)), ((24, 24, 3, 5, 3), 1, (6, 10, 7)), ((48, 6, 3, 3), 4, (8, 8))],
)
def test_kernels_lie_as_convolutions_read_them(
    kernel: tuple[int, ...], group: int, size: tuple[int, ...]
) -> None:
    channels = kernel[1] * group
    nodes = [node("Identity", ["w"], ["v"]), node("Conv", ["x", "v"], ["y"], group=group)]
    nodes.append(node("Conv", ["x", "w"], ["z"], group=group, dilations=[2] * len(size)))
    arrays = {"w": RNG.normal(size=kernel).astype(np.float32)}
    engine, session = opened(model(nodes, [value("x", [1, channels, *size])], ["y", "z"], arrays, opset=16))
    ((name, stored),) = engine._weights[0].items()
    assert name == "w" and stored.shape == (*kernel[2:], kernel[1], kernel[0])
    x = RNG.normal(size=(1, channels, *size)).astype(np.float32)
    check(engine, session, x)
    arrays_made = re.findall(r"= f32\[([\d,]+)\]\S* (\S+?)\(", operations(engine, x))
    as_large = {
        operation for shape, operation in arrays_made if math.prod(map(int, shape.split(","))) == stored.size
    }
    assert "parameter" in as_large and as_large <= {"parameter", "bitcast"}


def test_weights_of_eight_bits_are_widened_once() -> None:
    nodes = [
        node("DequantizeLinear", ["q", "scale", "zero"], ["w"], axis=0),
        node("Conv", ["x", "w"], ["c"]),
        node("DequantizeLinear", ["p", "one"], ["m"]),
        node("Transpose", ["m"], ["t"], perm=[1, 0]),
        node("MatMul", ["c", "t"], ["y"]),
    ]
    arrays = {
        "q": RNG.integers(-127, 128, (32, 16, 3, 3)).astype(np.int8),
        "scale": RNG.random(32).astype(np.float32) * 0.01,
        "zero": np.zeros(32, np.int8),
        "p": RNG.integers(-127, 128, (21, 19)).astype(np.int8),
        "one": np.float32(0.02),
    }
    compiled: list[str] = []

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(str(kwargs.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        engine, session = opened(model(nodes, [value("x", [1, 16, 21, 21])], ["y", "m"], arrays, opset=16))
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not {"jit(subtract)", "jit(multiply)", "jit(transpose)"} & set(compiled)  # by all nodes together
    assert {name: array.shape for name, array in engine._weights[2].items()} == {
        "w": (3, 3, 16, 32), "t": (19, 21), "m": (21, 19),
    }  # fmt: skip
    x = RNG.normal(size=(1, 16, 21, 21)).astype(np.float32)
    check(engine, session, x)
    assert "s8[" not in operations(engine, x).split("ENTRY")[0]


def test_what_is_known_before_a_program_runs_stays_so() -> None:
    nodes = [node("Cast", ["sizes"], ["shape"], to=TensorProto.INT64), node("Reshape", ["x", "shape"], ["y"])]
    engine, session = opened(
        model(nodes, [value("x", [2, 6])], ["y"], {"sizes": np.array([3, 4], np.float32)}, opset=16)
    )
    assert engine._weights[2] == {}
    check(engine, session, RNG.normal(size=(2, 6)).astype(np.float32))


@pytest.mark.parametrize("rounds", [True, False])
def test_graphs_that_round_to_8_bits_are_told_to_be_no_faster(
    rounds: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Weights alone in 8 bits are widened once, and cost nothing."""
    arrays = {"w": np.ones((4, 4), np.int8), "s": np.float32(0.1)}
    nodes = [node("DequantizeLinear", ["w", "s"], ["v"]), node("MatMul", ["a", "v"], ["y"])]
    first = [node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["a"])]
    nodes = [*(first if rounds else [node("Relu", ["x"], ["a"])]), *nodes]
    caplog.set_level("INFO", "oar")
    opened(model(nodes, [value("x", [2, 4])], arrays=arrays, opset=13))
    assert ("m.onnx computes with 8 bits, which is not faster" in caplog.text) is rounds
