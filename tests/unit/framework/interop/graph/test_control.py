"""If, Loop and Scan: in Python where the conditions are known, in the program where they are not."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from framework import jit
from framework.core.errors import ShapeError, TraceError
from framework.inference.graph_engine import GraphEngine
from framework.interop.graph.layer import Run
from framework.interop.graph.onnx import OPERATORS

node = helper.make_node


def tensor(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def body(nodes, inputs=(), outputs=(), arrays=None):
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (arrays or {}).items()]
    return helper.make_graph(
        nodes, "body", [tensor(n) for n in inputs], [tensor(n) for n in outputs], tensors
    )


def branches(second_shape=(2,)):
    """Both bodies have a constant of the same name, which is legal."""
    then = body([node("Add", ["x", "c"], ["t"])], outputs=["t"], arrays={"c": np.float32([1, 1])})
    other = body([node("Mul", ["x", "c"], ["e0"]), node("Expand", ["e0", "to"], ["e"])], outputs=["e"],
                 arrays={"c": np.float32([3, 3]), "to": np.int64(second_shape)})  # fmt: skip
    return node("If", ["flag"], ["y"], then_branch=then, else_branch=other)


INPUTS = [tensor("x", [2]), tensor("flag", [], TensorProto.BOOL)]


@pytest.mark.parametrize("flag", [True, False])
def test_if_takes_one_branch(open_graph, flag):
    layer = open_graph([branches()], INPUTS)
    x = np.float32([2, 5])
    want = x + 1 if flag else x * 3
    np.testing.assert_allclose(layer(x, np.asarray(flag)), want)
    np.testing.assert_allclose(jit.to_static(layer)(x, np.asarray(flag)), want)


def test_branches_of_different_shapes_run_eagerly(open_graph):
    layer = open_graph([branches((4, 2))], INPUTS)
    x = np.float32([2, 5])
    assert layer(x, np.asarray(False)).shape == (4, 2)
    with pytest.raises(TraceError, match=r"node 'If#0' (.|\n)*branches give arrays of different shapes"):
        jit.to_static(layer)(x, np.asarray(False))


def powers(condition):
    """v <- v * x, collecting v; ends after the trips, or where `condition` says."""
    nodes = [node("Mul", ["v", "x"], ["moved"]), *condition]
    return body(nodes, ["i", "on", "v"], ["go", "moved", "moved"], {"limit": np.float32(50)})


ALWAYS = [node("Identity", ["on"], ["go"])]
BELOW = [node("Less", ["moved", "limit"], ["go"])]


@pytest.mark.parametrize("trips", [3, 40])
def test_a_loop_with_known_trips(open_graph, trips):
    layer = open_graph(
        [node("Loop", ["trips", "", "one"], ["last", "all"], body=powers(ALWAYS))],
        [tensor("x", [])],
        ["last", "all"],
        arrays={"trips": np.int64(trips), "one": np.float32(1)},
    )
    x = np.float32(1.1)
    want = np.cumprod(np.full(trips, x, np.float64))
    for run in (layer, jit.to_static(layer)):
        last, collected = run(x)
        np.testing.assert_allclose(last, want[-1], rtol=1e-4)
        np.testing.assert_allclose(collected, want, rtol=1e-4)


def test_a_loop_that_its_values_end(open_graph):
    nodes = [node("Loop", ["", "yes", "one"], ["last", "all"], body=powers(BELOW))]
    arrays = {"yes": np.asarray(True), "one": np.float32(1)}
    layer = open_graph(nodes, [tensor("x", [])], ["last", "all"], arrays=arrays)
    last, collected = layer(np.float32(3))
    assert float(last) == 81 and collected.tolist() == [3, 9, 27, 81]
    with pytest.raises(TraceError, match=r"(?s)collects results, .* not known.*run the layer eagerly"):
        jit.to_static(layer)(np.float32(3))
    only_last = open_graph(
        [node("Loop", ["", "yes", "one"], ["last"], body=body(
            [node("Mul", ["v", "x"], ["moved"]), *BELOW], ["i", "on", "v"], ["go", "moved"],
            {"limit": np.float32(50)}))],
        [tensor("x", [])], ["last"], arrays=arrays,
    )  # fmt: skip
    assert float(jit.to_static(only_last)(np.float32(3))) == 81


@pytest.mark.parametrize("trips", [0, 3])
def test_a_loop_whose_state_grows_by_a_number_of_trips_that_comes_in(open_graph, trips):
    grow = body([node("Concat", ["v", "x"], ["moved"], axis=0), *ALWAYS], ["i", "on", "v"], ["go", "moved"])
    layer = open_graph(
        [node("Loop", ["n", "", "x"], ["y"], body=grow)],
        [tensor("x", [2]), tensor("n", [], TensorProto.INT64)],
    )
    x, n = np.float32([1, 5]), np.int64(trips)
    (y,) = GraphEngine(layer)({"x": x, "n": n}).values()
    np.testing.assert_array_equal(y, np.tile(x, trips + 1))
    with pytest.raises(TraceError, match=r"(?s)changes its shapes, .* not known.*run the layer eagerly"):
        jit.to_static(layer)(x, n)


@pytest.mark.parametrize("is_read", [False, True])
def test_what_a_loop_only_makes_longer_is_joined_once(open_graph, monkeypatch, is_read):
    """As detectors collect the masks of boxes; where a round reads what was collected so far, it must be whole."""
    nodes = [
        node("Identity", ["on"], ["go"]),
        node("Concat", ["rows", "x"], ["longer"], axis=-2),
        node("ReduceSum", ["rows" if is_read else "x"], ["total"], keepdims=0),
    ]
    inner = body(nodes, ["i", "on", "rows"], ["go", "longer", "total"])
    layer = open_graph(
        [node("Loop", ["trips", "", "start"], ["y", "totals"], body=inner)],
        [tensor("x", [1, 2]), tensor("start", [1, 2])],
        ["y", "totals"],
        {"trips": np.asarray(4, np.int64)},
    )
    concat, lengths = OPERATORS["Concat"], []

    def join(call, rows, x):
        lengths.append(len(rows))
        return concat.run(call, rows, x)

    monkeypatch.setitem(layer.graph.operators, "Concat", replace(concat, run=join))
    x, start = np.float32([[1, 2]]), np.float32([[5, 6]])
    y, totals = Run(layer).outputs({"x": x, "start": start})
    np.testing.assert_array_equal(y, np.concatenate([start, *[x] * 4]))
    np.testing.assert_array_equal(totals, [11, 14, 17, 20] if is_read else [3] * 4)
    assert lengths == ([1, 2, 3, 4] if is_read else [0] * 4)


def test_a_loop_without_end_is_refused(open_graph):
    endless = body([node("Identity", ["on"], ["go"]), node("Identity", ["v"], ["moved"])],
                   ["i", "on", "v"], ["go", "moved"])  # fmt: skip
    layer = open_graph(
        [node("Loop", ["trips", "yes", "x"], ["y"], body=endless)],
        arrays={"trips": np.int64(2**60), "yes": np.asarray(True)},
    )
    with pytest.raises(ShapeError, match="a loop that does not end"):
        layer(np.float32([1]))


def test_a_loop_over_the_rows_of_nothing_collects_no_rows(open_graph):
    nodes = [  # as tf2onnx writes the loop of crop_and_resize, with no boxes: of tensorflow-onnx#1588
        node("Identity", ["go"], ["on"]),
        node("Add", ["i", "one"], ["end"]),
        node("Slice", ["x", "i", "end", "zero"], ["row"]),
        node("Reshape", ["row", "two"], ["box"]),
        node("Expand", ["box", "size"], ["out"]),
    ]
    inner = body(nodes, ["i", "go"], ["on", "out"])
    outside = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"], axis=0),
        node("Loop", ["rows", ""], ["y"], body=inner),
    ]
    arrays = {"one": [1], "zero": [0], "two": [2], "size": [3, 2]}
    arrays = {name: np.array(numbers, np.int64) for name, numbers in arrays.items()}
    engine = GraphEngine(open_graph(outside, [tensor("x", ["n", 2])], arrays=arrays))
    assert engine({"x": np.zeros((0, 2), np.float32)})["y"].shape == (0, 3, 2)
    y = engine({"x": np.array([[1, 2]], np.float32)})["y"]
    assert y.tolist() == [[[1, 2]] * 3]


def test_scan_runs_along_its_axes(open_graph):
    step = body([node("Add", ["total", "row"], ["sum"]), node("Identity", ["sum"], ["seen"])],
                ["total", "row"], ["sum", "seen"])  # fmt: skip
    layer = open_graph(
        [node("Scan", ["start", "x"], ["last", "all"], body=step, num_scan_inputs=1, scan_input_axes=[1],
              scan_input_directions=[1], scan_output_axes=[1])],
        [tensor("x", [2, 3])], ["last", "all"], arrays={"start": np.zeros(2, np.float32)},
    )  # fmt: skip
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for run in (layer, jit.to_static(layer)):
        last, collected = run(x)
        np.testing.assert_allclose(last, x.sum(1))
        np.testing.assert_allclose(collected, np.cumsum(x[:, ::-1], 1))
