"""Rows behind nodes whose sizes depend on values: the blocks in which they are computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from framework.inference.graph_engine import GraphEngine, load_graph
from framework.inference.row_chains import block_sizes
from framework.interop.graph.rows import find_chains
from tests.unit.framework.interop.graph.conftest import model, value

ort = pytest.importorskip("onnxruntime", reason="the reference")
node = helper.make_node


@pytest.mark.parametrize(
    ("count", "most", "costs", "blocks"),
    [
        (0, 8, (1, 0.1), ()),
        (3, 8, (1, 0.1), (2, 1)),
        (9, 8, (1, 0.1), (8, 1)),
        (23, 8, (1, 0.1), (8, 8, 4, 2, 1)),
        (9, 256, (1, 32), (16,)),  # weights take longer to read than rows to compute
        (150, 256, (1, 32), (128, 32)),
        (300, 256, (1, 32), (256, 64)),
    ],
)
def test_rows_are_computed_in_the_cheapest_blocks(
    count: int, most: int, costs: tuple[float, float], blocks: tuple[int, ...]
) -> None:
    assert block_sizes(count, most, *costs) == blocks


def test_views_of_rows_alone_are_not_compiled(tmp_path: Path) -> None:
    nodes = [
        node("NonZero", ["x"], ["found"]),
        node("Transpose", ["found"], ["rows"], perm=[1, 0]),
        node("Flatten", ["rows"], ["y"]),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [value("x", [2, 3])]).SerializeToString())
    program = load_graph(path).program
    assert find_chains(program, range(len(nodes)), ()) == []


def test_a_pass_over_some_nodes_reads_their_weights_alone(tmp_path: Path) -> None:
    nodes = [node("Gemm", ["x", "a"], ["h"]), node("Gemm", ["h", "b"], ["y"])]
    a, b = (np.full((3, 3), number, np.float32) for number in (2, 5))
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [value("x", [2, 3])], arrays={"a": a, "b": b}).SerializeToString())
    layer = load_graph(path)
    del layer._parameters[layer.graph.roles["b"].name]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(layer.run_nodes([0], {"x": x}, ["h"])["h"], x @ a)


def test_any_number_of_rows_has_the_values_of_the_graph(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(6, 4, 3, 3)).astype(np.float32)
    weight = rng.normal(size=(6 * 25, 5)).astype(np.float32)
    nodes = [
        node("NonZero", ["chosen"], ["found"]),
        node("Squeeze", ["found", "zero"], ["rows"]),
        node("Gather", ["x", "rows"], ["some"]),
        node("Conv", ["some", "kernel"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Flatten", ["b"], ["c"]),
        node("Gemm", ["c", "weight"], ["y"]),
    ]
    arrays = {"zero": np.array([0], np.int64), "kernel": kernel, "weight": weight}
    inputs = [value("x", [20, 4, 5, 5]), value("chosen", [20])]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, inputs, arrays=arrays).SerializeToString())
    engine, peer = GraphEngine(load_graph(path)), ort.InferenceSession(path)
    x = rng.normal(size=(20, 4, 5, 5)).astype(np.float32)
    for count in (0, 1, 5, 9, 20):
        given = {"x": x, "chosen": (np.arange(20) < count).astype(np.float32)}
        (want,) = peer.run(None, given)
        np.testing.assert_allclose(engine(given)["y"], want, rtol=1e-4, atol=1e-5)
