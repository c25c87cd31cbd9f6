"""Values at the edges of what operators say, as public reports on other importers found them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.core.errors import FormatError, InputError, ShapeError
from framework.inference.graph_engine import GraphEngine
from tests.unit.framework.interop.graph.conftest import Load, value

node = helper.make_node


def test_the_last_pieces_of_an_uneven_split_are_empty(open_graph: Load) -> None:
    names = ["a", "b", "c", "d"]  # of tvm#18751
    layer = open_graph([node("Split", ["x"], names, num_outputs=4)], ["x"], names, opset=18)
    assert [out.shape for out in layer(jnp.arange(5.0))] == [(2,), (2,), (1,), (0,)]
    assert [out.shape for out in layer(jnp.arange(8.0))] == [(2,)] * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_largest_are_no_numbers_of_either_sign(dtype: type, open_graph: Load) -> None:
    layer = open_graph(
        [node("TopK", ["x", "k"], ["y", "i"])], ["x"], ["y", "i"], {"k": np.array([4], np.int64)}
    )
    x = np.array([np.nan, 3, -np.inf, np.nan, 0, 2], dtype)
    x[0] = -x[0]  # as 0 / 0 is on x86; of openvino#35898
    values, indices = layer(jnp.asarray(x))
    assert indices.tolist() == [0, 3, 1, 5]
    np.testing.assert_array_equal(values, np.array([np.nan, np.nan, 3, 2], dtype))


def test_blocks_of_a_vector_have_their_scales(open_graph: Load) -> None:
    x = np.array([10, 20, 30, 40, 50, 60, 70, 80], np.int8)  # of onnxruntime#32730
    arrays = {"s": np.array([0.5, 2], np.float32), "z": np.array([0, 10], np.int8)}
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=0, block_size=4),
        node("QuantizeLinear", ["y", "s", "z"], ["q"], axis=0, block_size=4),
    ]
    layer = open_graph(nodes, [value("x", [8], TensorProto.INT8)], ["y", "q"], arrays, opset=21)
    y, q = layer(jnp.asarray(x))
    assert y.tolist() == [5, 10, 15, 20, 80, 100, 120, 140] and q.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TensorProto.INT8, [44, 0, 0, 0, 50, -50, 127, -128, 0]),
        (TensorProto.UINT8, [44, 0, 0, 0, 50, 206, 127, 128, 0]),
        (TensorProto.UINT16, [300, 0, 0, 0, 50, 65486, 127, 65408, 0]),
    ],
)
def test_floats_become_short_integers_by_their_lowest_bits(
    kind: int, expected: list[int], open_graph: Load
) -> None:
    x = np.array([300, np.nan, np.inf, -np.inf, 50.9, -50.9, 127.5, -128.5, 1e30], np.float32)  # of tvm#19542
    layer = open_graph([node("Cast", ["x"], ["y"], to=kind)])
    assert layer(jnp.asarray(x)).tolist() == expected


def test_floats_that_need_64_bits_as_integers(open_graph: Load) -> None:
    """onnxruntime#25207: they were the largest integer of 32 bits."""
    x = np.array([-1, 1.9, 3e9, -3e9, 1e15], np.float32)
    layer = open_graph([node("Cast", ["x"], ["i"], to=TensorProto.INT64), node("Neg", ["i"], ["y"])])
    assert layer(jnp.asarray(x)).tolist() == (-x.astype(np.int64)).tolist()
    cast = node("Cast", ["x"], ["y"], to=TensorProto.UINT64)
    engine = GraphEngine(open_graph([cast], [value("x", [2])]))
    assert engine({"x": x[1:3]})["y"].tolist() == [1, 3_000_000_000]
    layer = open_graph([node("Cast", ["x"], ["i"], to=TensorProto.INT64), node("Gather", ["x", "i"], ["y"])])
    assert layer(jnp.asarray(x[:2])).tolist() == [x[1], x[1]]  # as indices they have 32 again


def test_a_threshold_that_nan_does_not_exceed(open_graph: Load) -> None:
    """tvm#19572: of ONNX's operator NaN is not above the threshold, and gives 0."""
    x = np.array([np.nan, 1.5, -3, np.inf, -np.inf], np.float32)
    layer = open_graph([node("ThresholdedRelu", ["x"], ["y"])])
    assert layer(jnp.asarray(x)).tolist() == [0, 1.5, 0, np.inf, 0]


def test_a_loop_without_rounds_behind_the_compiled_part(open_graph: Load) -> None:
    body = helper.make_graph(
        [node("MatMul", ["h", "w"], ["g"]), node("Identity", ["go_in"], ["go_out"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go_in", [], TensorProto.BOOL), value("h", [2, 3])],
        [value("go_out", [], TensorProto.BOOL), value("g", [2, 3]), value("g", [2, 3])],
    )
    body.node.append(node("Identity", ["g"], ["row"]))
    body.output[2].name = "row"
    layer = open_graph(
        [node("Abs", ["x"], ["start"]), node("Loop", ["trips", "", "start"], ["y", "rows"], body=body)],
        [value("x", [2, 3]), value("trips", [], TensorProto.INT64)],
        ["y", "rows"],
        {"w": np.eye(3, dtype=np.float32) * 2},
    )
    engine, x = GraphEngine(layer), np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    for trips in (0, 2):
        out = engine({"x": x, "trips": np.int64(trips)})
        np.testing.assert_array_equal(out["y"], np.abs(x) * 2**trips)
        assert out["rows"].shape == (trips, 2, 3)


SMALL = np.array([[3, -5, 7, 4], [9, 8, -3, 3]], np.int64)
LARGE = SMALL * 1_000_000_007  # beyond 32 bits


def _of_large(nodes: list, outputs: list, arrays: dict, open_graph: Load) -> dict[str, np.ndarray]:
    arrays = {"factor": np.array(1_000_000_007, np.int64), **arrays}
    layer = open_graph(
        [node("Mul", ["x", "factor"], ["w"]), *nodes],
        [value("x", [2, 4], TensorProto.INT64)],
        outputs,
        arrays,
    )
    return GraphEngine(layer)({"x": SMALL})


@pytest.mark.parametrize(
    ("made", "arrays", "expected"),
    [
        (node("GatherND", ["w", "at"], ["y"]), {"at": np.array([[0, 1], [1, 2]])}, LARGE[[0, 1], [1, 2]]),
        (node("Trilu", ["w"], ["y"]), {}, np.triu(LARGE)),
        (node("Compress", ["w", "c"], ["y"], axis=1), {"c": np.array([False, True, True, False])}, LARGE[:, 1:3]),
        (
            node("ScatterND", ["w", "at", "new"], ["y"]),
            {"at": np.array([[0, 0]]), "new": np.array([5_000_000_000])},
            np.concatenate([[5_000_000_000], LARGE.ravel()[1:]]).reshape(2, 4),
        ),
        (node("ReverseSequence", ["w", "n"], ["y"], batch_axis=0, time_axis=1), {"n": np.array([4, 1])},
         np.stack([LARGE[0, ::-1], LARGE[1]])),
    ],
)  # fmt: skip
def test_every_operator_takes_integers_of_64_bits(
    made: object, arrays: dict, expected: np.ndarray, open_graph: Load
) -> None:
    """They wrapped around in silence wherever an operator does no arithmetic."""
    assert _of_large([made], ["y"], arrays, open_graph)["y"].tolist() == expected.tolist()


def test_the_largest_of_64_bits_and_sequences_of_them(open_graph: Load) -> None:
    nodes = [
        node("TopK", ["w", "k"], ["v", "at"], axis=1),
        node("SplitToSequence", ["w"], ["s"], axis=0),
        node("SequenceAt", ["s", "one"], ["row"]),
        node("ConcatFromSequence", ["s"], ["all"], axis=1),
    ]
    got = _of_large(nodes, ["v", "at", "row", "all"], {"k": np.array([2]), "one": np.array(1)}, open_graph)
    assert got["v"].tolist() == [[LARGE[0, 2], LARGE[0, 3]], [LARGE[1, 0], LARGE[1, 1]]]
    assert got["at"].tolist() == [[2, 3], [0, 1]]
    assert got["row"].tolist() == LARGE[1:].tolist() and got["all"].tolist() == LARGE.reshape(1, 8).tolist()


def test_the_state_of_a_scan_grows_to_64_bits(open_graph: Load) -> None:
    state, row = (helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in ("a", "r"))
    after, copy = (helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in ("b", "c"))
    nodes = [node("Add", ["a", "r"], ["b"]), node("Identity", ["b"], ["c"])]
    body = helper.make_graph(nodes, "body", [state, row], [after, copy])
    nodes = [
        node("Gather", ["x", "zero"], ["first"], axis=0),
        node("Scan", ["first", "w"], ["y", "rows"], body=body, num_scan_inputs=1),
    ]
    got = _of_large(nodes, ["y", "rows"], {"zero": np.array(0)}, open_graph)
    assert got["rows"].tolist() == (SMALL[0] + np.cumsum(LARGE, 0)).tolist()
    assert got["y"].tolist() == got["rows"][-1].tolist()


def test_numbers_become_text_and_text_numbers(open_graph: Load) -> None:
    layer = open_graph([node("Cast", ["x"], ["y"], to=TensorProto.STRING)], [value("x", [2, 4])], ["y"])
    x = np.array([[0, -1.5, 1 / 3, 1e20], [123456789, np.nan, -np.inf, 1e5]], np.float32)
    expected = [["0", "-1.5", "0.33333334", "1e+20"], ["1.2345679e+08", "NaN", "-INF", "100000"]]
    assert GraphEngine(layer)({"x": x})["y"].tolist() == expected
    for kind, texts, numbers in (
        (TensorProto.FLOAT, ["-2.5", "1e3", "INF"], [-2.5, 1000, np.inf]),
        (TensorProto.INT64, ["-2", "3.9", " 7"], [-2, 3, 7]),
    ):
        layer = open_graph(
            [node("Cast", ["x"], ["y"], to=kind)], [value("x", [3], TensorProto.STRING)], ["y"]
        )
        engine = GraphEngine(layer)
        assert engine({"x": np.array(texts, object)})["y"].tolist() == numbers
    with pytest.raises(InputError, match="no number"):
        engine({"x": np.array(["a", "1", "2"], object)})


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0,), (0, 3, 1)])
def test_gathering_nothing_of_nothing_has_the_axes_of_the_index(
    shape: tuple[int, ...], open_graph: Load
) -> None:
    index = value("i", ["n"] * len(shape), TensorProto.INT64)
    layer = open_graph([node("Gather", ["x", "i"], ["y"], axis=1)], [value("x", [3, "m", 4]), index])
    y = layer(jnp.zeros((3, 0, 4)), jnp.zeros(shape, jnp.int32))
    assert y.shape == (3, *shape, 4)


def test_an_output_of_64_bits_is_one(open_graph: Load) -> None:
    layer = open_graph(
        [node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)],
        [value("x", ["n"])],
        [value("y", ["n"], TensorProto.DOUBLE)],
    )
    y = GraphEngine(layer)({"x": np.array([0.5, -2], np.float32)})["y"]
    assert y.dtype == np.float64 and y.tolist() == [0.5, -2]


def test_numbers_that_cancel_in_float64_are_left_as_they_are(open_graph: Load) -> None:
    """What skl2onnx writes of a Gaussian process: the difference of two sums is its variance."""
    x, w, total = np.array([[1e4, 1.0]]), np.array([[1e4, 0.1], [3.0, 7.0]]), np.array(1e8)
    nodes = [
        node("Transpose", ["w"], ["turned"]),
        node("MatMul", ["x", "turned"], ["product"]),
        node("Sub", ["product", "total"], ["y"]),
        node("Cast", ["y"], ["short"], to=TensorProto.FLOAT),
        node("Greater", ["product", "total"], ["larger"]),
        node("NonZero", ["larger"], ["places"]),  # from here on the host
        node("Transpose", ["places"], ["rows"]),
        node("GatherND", ["product", "rows"], ["picked"]),
        node("Sub", ["picked", "total"], ["rest"]),
    ]
    kinds = {"y": TensorProto.DOUBLE, "short": TensorProto.FLOAT, "rest": TensorProto.DOUBLE}
    outputs = [value(name, None, kind) for name, kind in kinds.items()]
    inputs = [value("x", ["n", 2], TensorProto.DOUBLE)]
    results = GraphEngine(open_graph(nodes, inputs, outputs, {"w": w, "total": total}))({"x": x})
    want = x @ w.T - total
    np.testing.assert_allclose(results["y"], want, rtol=1e-7)
    np.testing.assert_array_equal(results["rest"], results["y"][want > 0])
    assert {name: array.dtype.name for name, array in results.items()} == {
        "y": "float64",
        "short": "float32",
        "rest": "float64",
    }


def test_a_loop_keeps_float64(open_graph: Load) -> None:
    state = [value(name, [], TensorProto.DOUBLE) for name in ("s", "t")]
    condition = [value(name, [], TensorProto.BOOL) for name in ("c", "d")]
    steps = [node("Identity", ["c"], ["d"]), node("Add", ["s", "x"], ["t"])]
    body = helper.make_graph(
        steps, "b", [value("i", [], TensorProto.INT64), condition[0], state[0]], [condition[1], state[1]]
    )
    layer = open_graph(
        [node("Loop", ["n", "", "start"], ["y"], body=body)],
        [value("n", [], TensorProto.INT64), value("x", [], TensorProto.DOUBLE)],
        [value("y", [], TensorProto.DOUBLE)],
        {"start": np.array(1e9)},
    )
    y = GraphEngine(layer)({"n": np.array(3), "x": np.array(1e-3)})["y"]
    np.testing.assert_allclose(y, 1e9 + 3e-3, rtol=1e-15)


def test_inputs_beyond_32_bits_are_brought_into_range(open_graph: Load) -> None:
    ids = np.array([2**40 + 5, 3, -(2**50)])  # hashes, as graphs of recommendation read them
    nodes = [node("Mod", ["ids", "size"], ["rows"]), node("Gather", ["table", "rows"], ["y"])]
    arrays = {"size": np.array(7), "table": np.arange(14, dtype=np.float32).reshape(7, 2)}
    layer = open_graph(nodes, [value("ids", ["n"], TensorProto.INT64)], ["y"], arrays)
    engine = GraphEngine(layer)
    np.testing.assert_array_equal(engine({"ids": ids})["y"], arrays["table"][ids % 7])
    np.testing.assert_array_equal(engine({"ids": ids[1:2]})["y"], arrays["table"][[3]])
    with pytest.raises(ShapeError, match=r"\(3, 1\) int64"):
        engine({"ids": ids[:, None]})


@pytest.mark.parametrize(("inputs", "outputs"), [([], ["y"]), (["x", "x"], ["y"]), (["x"], ["y", "z"])])
def test_an_identity_of_other_than_one_value_is_refused(
    inputs: list[str], outputs: list[str], open_graph: Load
) -> None:
    with pytest.raises(FormatError, match="hands one value on"):
        open_graph([node("Identity", inputs, outputs)])


def test_an_input_that_has_a_value_in_the_file_is_a_weight(open_graph: Load) -> None:
    x = value("x", ["n"])
    layer = open_graph(
        [node("Add", ["x", "b"], ["y"])], [x, value("b", [1])], arrays={"b": np.array([2], np.float32)}
    )
    engine, ones = GraphEngine(layer), np.ones(3, np.float32)
    assert engine({"x": ones})["y"].tolist() == [3, 3, 3]
    with pytest.raises(ShapeError, match="b: the file has values of it"):
        engine({"x": ones, "b": np.array([5], np.float32)})


def test_a_dictionary_as_an_input_is_named(open_graph: Load) -> None:
    kind = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    nodes = [node("DictVectorizer", ["d"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])]
    layer = open_graph(nodes, [helper.make_value_info("d", kind)], domains={"ai.onnx.ml": 3})
    with pytest.raises(ShapeError, match=r"d: an input of the graph is a dictionary"):
        GraphEngine(layer)({"d": {"a": 1.0}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("weight", "bias"), [((5, 8), (1, 8)), ((5, 8), (8,)), ((8,), (5, 8)), ((1, 1), (5, 8))]
)
def test_weight_and_bias_of_a_layer_norm_spread_each_for_itself(
    weight: tuple[int, ...], bias: tuple[int, ...], open_graph: Load
) -> None:
    rng = np.random.default_rng(0)  # of openvino#30826
    x, w, b = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5, 8), weight, bias))
    layer = open_graph([node("LayerNormalization", ["x", "w", "b"], ["y"], axis=1)], arrays={"w": w, "b": b})
    mean, deviation = x.mean((1, 2), keepdims=True), np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(jnp.asarray(x)), (x - mean) / deviation * w + b, rtol=1e-4, atol=1e-5)


def test_a_token_that_the_table_does_not_have_is_refused(open_graph: Load) -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    nodes = [
        node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
        node("Unsqueeze", ["wide", "axes"], ["rows"]),
        node("Gather", ["table", "rows"], ["y"]),
    ]
    arrays = {"table": table, "axes": np.array([0], np.int64)}
    layer = open_graph(nodes, [value("ids", ["n"], TensorProto.INT32)], arrays=arrays)
    engine = GraphEngine(layer)
    ids = np.array([3, -4, 0], np.int32)
    np.testing.assert_array_equal(engine({"ids": ids})["y"], table[ids][None])
    for wrong in (4, -5):
        with pytest.raises(ShapeError, match="-4 to 3"):
            engine({"ids": np.array([0, wrong], np.int32)})
        with pytest.raises(ShapeError, match="-4 to 3"):
            layer(jnp.array([0, wrong]))


def test_an_index_that_is_taken_modulo_before_is_not_refused(open_graph: Load) -> None:
    nodes = [node("Mod", ["ids", "four"], ["rows"]), node("Gather", ["table", "rows"], ["y"])]
    arrays = {"table": np.arange(4, dtype=np.float32), "four": np.array(4, np.int64)}
    engine = GraphEngine(open_graph(nodes, [value("ids", ["n"], TensorProto.INT64)], arrays=arrays))
    assert engine({"ids": np.array([9, -1])})["y"].tolist() == [1, 3]
