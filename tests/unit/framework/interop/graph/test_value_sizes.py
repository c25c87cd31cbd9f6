"""Graphs whose sizes depend on values: as many rows as ONNX Runtime gives, and few compilations."""

from __future__ import annotations

import jax
import jax.export
import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.inference.graph_engine import GraphEngine
from framework.interop.graph.onnx import OPERATORS, resize
from framework.interop.programs.onnx import load
from framework.interop.source import Source
from tests.unit.framework.interop.graph.conftest import model, value

ort = pytest.importorskip("onnxruntime", reason="the reference")
node = helper.make_node
RNG = np.random.default_rng(4)


def detector() -> bytes:
    """Suppression, a head over the boxes that stay, and a choice among its scores."""
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
        node("Gather", ["kept", "two"], ["column"], axis=1),
        node("Squeeze", ["column", "one"], ["index"]),
        node("Squeeze", ["boxes", "zero"], ["all"]),
        node("Gather", ["all", "index"], ["rows"]),
        node("Gemm", ["rows", "w", "b"], ["logits"]),
        node("Softmax", ["logits"], ["shares"], axis=1),
        node("ReduceMax", ["shares"], ["best"], axes=[1], keepdims=0),
        node("Greater", ["best", "edge"], ["sure"]),
        node("NonZero", ["sure"], ["where"]),
        node("Squeeze", ["where", "zero"], ["numbers"]),
        node("Gather", ["shares", "numbers"], ["y"]),
    ]
    arrays = {
        "most": np.int64([40]), "overlap": np.float32([0.4]), "least": np.float32([0.3]), "zero": np.int64([0]),
        "one": np.int64([1]), "two": np.int64([2]), "w": RNG.normal(size=(4, 5)).astype(np.float32) * 0.1,
        "b": np.zeros(5, np.float32), "edge": np.float32(0.4),
    }  # fmt: skip
    inputs = [value("boxes", [1, "k", 4]), value("scores", [1, 1, "k"])]
    proto = model(nodes, inputs, ["y", "rows"], arrays, opset=16)
    proto.ir_version = 8
    return proto.SerializeToString()


def test_rows_are_those_of_onnx_runtime_and_compile_little() -> None:
    content = detector()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
    counts = set()
    for most in (1.0, 0.5, 0.8, 0.4, 0.2, 0.6):
        corner = RNG.random((1, 60, 2)) * 40
        boxes = np.concatenate([corner, corner + 1 + RNG.random((1, 60, 2)) * 9], -1).astype(np.float32)
        feed = {"boxes": boxes, "scores": (RNG.random((1, 1, 60)) * most).astype(np.float32)}
        for got, want in zip(engine(feed).values(), session.run(None, feed), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        counts.add(len(want))
    programs = [len(chain._function._programs) for chain in engine._programs[3]]
    assert len(counts) > 4 and programs and max(programs) <= 4


def test_nodes_behind_suppression_run_as_one_program_in_blocks_of_rows() -> None:
    """A head of convolutions over as many rows as the values say, with a bias that two nodes share by an Identity."""
    nodes = [
        node("Identity", ["b"], ["same"]),
        node("Greater", ["score", "edge"], ["sure"]),
        node("NonZero", ["sure"], ["where"]),
        node("Squeeze", ["where", "zero"], ["index"]),
        node("Gather", ["x", "index"], ["rows"]),
        node("Conv", ["rows", "k", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", "k2", "same"], ["d"]),
        node("Flatten", ["d"], ["flat"]),
        node("Gemm", ["flat", "w", "offset"], ["y"]),
        node("Softmax", ["y"], ["z"]),
    ]
    arrays = {
        "b": RNG.normal(size=6), "k": RNG.normal(size=(6, 4, 3, 3)), "k2": RNG.normal(size=(6, 6, 1, 1)),
        "w": RNG.normal(size=(6 * 64 * 64, 3)) / 99, "offset": RNG.normal(size=(1, 3)), "edge": np.array(0.5),
    }  # fmt: skip
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()} | {"zero": np.int64([0])}
    proto = model(nodes, [value("x", ["n", 4, 64, 64]), value("score", ["n"])], ["y", "z"], arrays, opset=16)
    proto.ir_version = 8
    content = proto.SerializeToString()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
    x = RNG.normal(size=(100, 4, 64, 64)).astype(np.float32)
    for count in (100, 5, 0, 1):  # more than a block, and none
        feed = {"x": x, "score": (np.arange(100) < count).astype(np.float32)}
        for got, want in zip(engine(feed).values(), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    chains = engine._programs[3]
    assert [chain.result for chain in chains] == ["y", "z"]
    assert (
        len(chains[0]._function._programs) == 4
    )  # blocks of 64, 32, 4 and 1 rows: few programs, none half empty


def test_rows_that_have_an_addend_each_stay_together() -> None:
    nodes = [
        node("NonZero", ["x"], ["where"]),
        node("Transpose", ["where"], ["pairs"]),
        node("Cast", ["pairs"], ["rows"], to=1),
        node("Gemm", ["rows", "w", "addend"], ["y"]),
    ]
    arrays = {"w": np.eye(2, dtype=np.float32), "addend": np.arange(8, dtype=np.float32).reshape(4, 2)}
    proto = model(nodes, [value("x", [3, 3])], arrays=arrays)
    engine = GraphEngine(load(Source("m.onnx", memoryview(proto.SerializeToString()))))
    x = np.float32([[0, 1, 0], [1, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(engine({"x": x})["y"], np.argwhere(x) + arrays["addend"])


def test_sizes_that_come_once_are_resized_without_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """As masks are brought to the sizes of their boxes: a program for each would be compiled with each image."""
    nodes = [
        node("NonZero", ["x"], ["where"]),
        node("Shape", ["where"], ["sizes"]),
        node("Add", ["sizes", "more"], ["larger"]),
        node("Cast", ["where"], ["numbers"], to=1),
        node("Resize", ["numbers", "", "", "larger"], ["y"], mode="linear"),
    ]
    proto = model(nodes, [value("x", [3, 4])], arrays={"more": np.int64([3, 4])}, opset=16)
    proto.ir_version = 8
    content = proto.SerializeToString()
    engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    monkeypatch.setattr(resize, "jnp", None)
    for count in (7, 3, 5):
        x = (np.arange(12) < count).astype(np.float32).reshape(3, 4)
        np.testing.assert_allclose(engine({"x": x})["y"], session.run(None, {"x": x})[0], atol=1e-5)


def test_only_what_depends_on_values_leaves_the_compiled_part() -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("Conv", ["z", "k"], ["c"]), node("NonZero", ["a"], ["y"])]
    kernel = RNG.normal(size=(2, 1, 3, 3)).astype(np.float32)
    proto = model(nodes, [value("x", [3, 4]), value("z", [1, 1, 5, 5])], ["y", "c"], {"k": kernel})
    engine = GraphEngine(load(Source("m.onnx", memoryview(proto.SerializeToString()))))
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    got = engine({"x": x, "z": np.ones((1, 1, 5, 5), np.float32)})
    assert got["y"].tolist() == np.stack(np.nonzero(x > 0)).tolist() and got["c"].shape == (1, 2, 3, 3)
    assert engine._is_compiled and engine._growing == {2}
    assert OPERATORS["NonMaxSuppression"].grows


def test_columns_are_added_up_inside_a_compiled_graph():
    """As VOLO's exporter writes folding; the blocks' size is a constant of the graph."""
    nodes = [
        node("Relu", ["x"], ["columns"]),
        node("Col2Im", ["columns", "size", "block"], ["y"], pads=[1, 1, 1, 1]),
    ]
    arrays = {"size": np.int64([4, 6]), "block": np.int64([3, 3])}
    content = model(nodes, [value("x", [2, 27, 24])], arrays=arrays, opset=18).SerializeToString()
    engine = GraphEngine(load(Source("fold.onnx", memoryview(content))))
    x = RNG.normal(size=(2, 27, 24)).astype(np.float32)
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(engine({"x": x})["y"], session.run(None, {"x": x})[0], atol=1e-5)
    assert engine.compile_count == 1


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_whole_slices_are_scattered(axis: int, reduction: str) -> None:
    """Indices that are the same along the other axes, as detectors put the boxes of each level back in order."""
    inputs = [value("x", [5, 4, 6]), value("updates", [3, 3, 3])]
    index = np.moveaxis(np.broadcast_to(np.array([3, 0, -2])[:, None, None], (3, 3, 3)), 0, axis)
    several = index.copy()
    several[(0,) * 3] = 1  # and here not
    for indices in (index, several):
        nodes = [
            node("NonZero", ["updates"], ["all"]),  # makes what follows run on the host
            node("ReduceMin", ["all"], ["nothing"], keepdims=0),
            node("Cast", ["nothing"], ["zero"], to=1),
            node("Add", ["updates", "zero"], ["rows"]),
            node("ScatterElements", ["x", "indices", "rows"], ["y"], axis=axis, reduction=reduction),
        ]
        proto = model(nodes, inputs, arrays={"indices": indices}, opset=18)
        proto.ir_version = 8
        content = proto.SerializeToString()
        engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
        feed = {"x": RNG.random((5, 4, 6), np.float32), "updates": RNG.random((3, 3, 3), np.float32) + 1}
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(engine(feed)["y"], session.run(None, feed)[0], rtol=1e-6)
        assert engine._programs[1]


def test_a_range_up_to_a_size_that_is_free(open_graph) -> None:
    """Shape, Gather of one number and Cast, as torch writes arange(x.shape[0]), where the size has no number yet."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "zero"], ["size"]),
        node("Cast", ["size"], ["limit"], to=TensorProto.INT64),
        node("Range", ["zero", "limit", "one"], ["y"]),
    ]
    layer = open_graph(nodes, [value("x", ["n"])], ["y"], {"zero": np.int64(0), "one": np.int64(1)})
    free = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), np.float32)
    exported = jax.export.export(jax.jit(lambda x: layer(x)))(free)
    assert np.asarray(exported.call(np.zeros(4, np.float32))).tolist() == [0, 1, 2, 3]
