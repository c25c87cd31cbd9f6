"""Quantisation to int8: which layers and tensors, ranges, the nodes that are written, and the search for what holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.compress import (
    Quantizer,
    Range,
    calibrate,
    find_layers,
    insert_qdq,
    layer_noise,
    leave_in_float,
    quantized_tensors,
)
from framework.compress.calibrate import model_runner
from framework.compress.ranges import MOST_VALUES, Histogram, quantize_weight, sample
from framework.compress.search import relative_error
from framework.compress.weight_only import quantize_weights
from framework.core.errors import FormatError, InputError
from framework.export import Artifact, TensorSpec, load_artifact, lower_program
from framework.export.formats.onnx import write_onnx
from framework.interop.programs.onnx import load

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
SPREAD = np.float32(
    [1, 2, 4, 8, 16, 32, 64, 128]
)  # of the channels of a kernel: one scale for all loses the first
CONSTANTS = {
    "stem.weight": RNG.standard_normal((8, 3, 3, 3)).astype(np.float32) * SPREAD[:, None, None, None] / 64,
    "stem.bias": RNG.standard_normal(8).astype(np.float32),
    "deep.weight": RNG.standard_normal((8, 8, 3, 3)).astype(np.float32) / 8,
    "head.weight": RNG.standard_normal((8, 5)).astype(np.float32),
    "flat": np.array([0, -1], np.int64),
}


def make_model():
    """image [n, 3, h, w] -> y [m, 5], z: a convolution, a residual pair of one kernel, a product, another reader."""
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        node("Conv", ["image", "stem.weight", "stem.bias"], ["a"], pads=[1] * 4, name="a"),
        node("Relu", ["a"], ["b"], name="b"),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2], name="c"),
        node("Conv", ["c", "deep.weight"], ["d"], pads=[1] * 4, name="d"),
        node("Add", ["c", "d"], ["e"], name="e"),
        node("Conv", ["e", "deep.weight"], ["f"], pads=[1] * 4, name="f"),
        node("GlobalAveragePool", ["f"], ["g"], name="g"),
        node("Flatten", ["g"], ["h"], name="h"),
        node("MatMul", ["h", "head.weight"], ["y"], name="y"),
        node("Sigmoid", ["f"], ["z"], name="z"),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "network",
        [value("image", onnx.TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [
            value("y", onnx.TensorProto.FLOAT, ["n", 5]),
            value("z", onnx.TensorProto.FLOAT, ["n", 8, "u", "v"]),
        ],
        [onnx.numpy_helper.from_array(array, name) for name, array in CONSTANTS.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def make_feeds(count: int = 4) -> list[dict[str, np.ndarray]]:
    return [{"image": RNG.standard_normal((2, 3, 16, 12)).astype(np.float32)} for _ in range(count)]


def test_layers_have_the_names_of_their_weights() -> None:
    layers = find_layers(make_model())
    assert [one.name for one in layers] == ["stem.weight", "deep.weight", "deep.weight#2", "head.weight"]
    assert [one.axis for one in layers] == [0, 0, 0, 1]
    assert [one.bias for one in layers] == ["stem.bias", None, None, None]


def test_what_only_a_head_reads_stays_float() -> None:
    model = make_model()
    layers = find_layers(model)
    assert quantized_tensors(model, layers) == {"image", *"bcdegfh"} - {"z", "y"}
    # Without the product nothing needs what its way up gives.
    assert quantized_tensors(model, layers, {"head.weight"}) == {"image", *"bcde"}
    # A sum whose reader stays in float32 is not computed in int8 either.
    assert quantized_tensors(model, layers, {"head.weight", "deep.weight#2"}) == {"image", *"bc"}


@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.5, 2.0), (-4.0, -1.0), (0.0, 0.0)])
def test_zero_is_exact_in_every_range(low: float, high: float) -> None:
    found = Range.of(low, high)
    assert 0 <= found.zero_point <= 255 and found.scale > 0
    assert -found.zero_point * found.scale <= low + found.scale
    assert (255 - found.zero_point) * found.scale >= high - found.scale


def test_a_sample_has_values_of_all_channels_and_places() -> None:
    small = np.arange(60.0).reshape(3, 4, 5)
    assert np.array_equal(sample(small), small.ravel()) and sample(np.zeros((0, 3))).size == 0
    assert sample(np.float32(3)[()].reshape(())).tolist() == [3.0]
    for channels in (24, 32, 97):
        array = np.broadcast_to(np.arange(channels), (300, 200, channels))
        values = sample(array)
        assert len(values) <= MOST_VALUES
        counts = np.bincount(values, minlength=channels)
        assert counts.min() > 0.9 * counts.max() > 100
    rows = sample(np.broadcast_to(np.arange(500)[:, None, None], (500, 300, 16)))
    assert len(set(rows.tolist())) == 500


def test_a_range_cuts_off_what_is_far_outside() -> None:
    values = np.concatenate([RNG.standard_normal(100_000), [400.0]]).astype(np.float32)
    seen = Histogram()
    seen.see_extent(values)
    seen.count(values)
    best = seen.best_range()

    def error(chosen: Range) -> float:
        whole = np.clip(np.rint(values / chosen.scale) + chosen.zero_point, 0, 255)
        return float(np.square((whole - chosen.zero_point) * chosen.scale - values).sum())

    assert error(best) < error(Range.of(seen.low, seen.high))


@pytest.mark.parametrize("bits", [7, 8])
def test_each_channel_of_a_weight_has_its_scale(bits: int) -> None:
    weight = CONSTANTS["stem.weight"]
    whole, scales = quantize_weight(weight, 0, bits)
    limit = 2 ** (bits - 1) - 1
    assert whole.dtype == np.int8 and (np.abs(whole).max((1, 2, 3)) == limit).all()
    assert (np.abs(whole * scales[:, None, None, None] - weight) <= scales[:, None, None, None] * 0.501).all()


def unfused_runner(model):
    """Return what computes each node in float32: fused products of 8 bits overflow in CPUs that have no VNNI."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return lambda feed: dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize(("bits", "runner"), [(8, unfused_runner), (7, model_runner)])
def test_the_quantised_model_is_close_and_smaller(bits: int, runner) -> None:
    model, feeds = make_model(), make_feeds()
    layers = find_layers(model)
    ranges = calibrate(model, feeds, quantized_tensors(model, layers))
    small = insert_qdq(model, layers, ranges, bits=bits)
    onnx.checker.check_model(small, full_check=True)
    kinds = {one.data_type for one in small.graph.initializer if one.name.startswith("deep.weight_int8")}
    assert kinds == {onnx.TensorProto.INT8}
    kept = {one.name for one in small.graph.initializer}
    assert not kept & {"stem.weight", "stem.bias", "deep.weight", "head.weight"}
    for feed in feeds:
        wanted, got = model_runner(model)(feed), runner(small)(feed)
        assert 1e-4 < relative_error(wanted["y"], got["y"]) < 0.05
        assert relative_error(wanted["z"], got["z"]) < 0.05
    # Pooling passes values on, so both sides of it have one scale.
    scales = {one.name: onnx.numpy_helper.to_array(one) for one in small.graph.initializer}
    assert scales["b_scale"] == scales["c_scale"]


def test_layers_in_float_are_as_they_were() -> None:
    model, feeds = make_model(), make_feeds()
    layers = find_layers(model)
    ranges = calibrate(model, feeds, quantized_tensors(model, layers))
    none = insert_qdq(model, layers, ranges, {one.name for one in layers})
    assert [node.op_type for node in none.graph.node] == [node.op_type for node in model.graph.node]
    some = insert_qdq(model, layers, ranges, {"deep.weight#2", "head.weight"})
    kept = {one.name for one in some.graph.initializer}
    assert {"deep.weight", "head.weight", "deep.weight_int8"} <= kept and "stem.weight" not in kept
    noise = layer_noise(model, layers, ranges, feeds)
    assert noise.keys() == {one.name for one in layers} and min(noise.values()) > 0


def test_a_quantised_model_is_read_back(tmp_path: Path) -> None:
    model, feeds = make_model(), make_feeds()
    layers = find_layers(model)
    small = insert_qdq(model, layers, calibrate(model, feeds, quantized_tensors(model, layers)))
    file = write_onnx(small, tmp_path / "small.onnx")[-1]
    layer = load(file).eval()
    options = (
        runtime.SessionOptions()
    )  # sums of int8 overflow on CPUs without VNNI: compared is what is written
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    for wanted, got in zip(session.run(None, feeds[0]), layer(feeds[0]["image"])):
        assert relative_error(wanted, np.asarray(got)) < 0.005  # sums in another order round to the next step


def test_what_cannot_be_quantised_is_said(tmp_path: Path) -> None:
    model, feeds = make_model(), make_feeds()
    onnx.save(model, tmp_path / "a.onnx")
    quantizer = Quantizer.read(tmp_path / "a.onnx", feeds)
    done = quantizer.quantize().write(tmp_path)
    assert done == [tmp_path / "model.onnx"]
    with pytest.raises(FormatError, match="QuantizeLinear in it"):
        Quantizer.read(done[0], feeds)
    with pytest.raises(FormatError, match="max_loss"):
        quantizer.search(tmp_path / "model.onnx", lambda in_float: False)
    with pytest.raises(InputError, match="no examples"):
        Quantizer.read(tmp_path / "a.onnx", [])
    with pytest.raises(InputError, match="not finite"):
        Quantizer.read(tmp_path / "a.onnx", [{"image": np.full((1, 3, 8, 8), np.nan, np.float32)}])


@pytest.mark.parametrize("needed", [0, 1, 2, 3, 5, 6, 7])
def test_the_search_leaves_the_noisiest_in_float(needed: int) -> None:
    noise = {f"layer{n}": float(n) for n in range(8)}
    asked: list[int] = []

    def holds(in_float: frozenset[str]) -> bool:
        asked.append(len(in_float))
        return len(in_float) >= needed

    found = leave_in_float(noise, holds)
    assert found == {f"layer{n}" for n in range(8 - max(needed, 1), 8)}
    assert len(asked) == len(set(asked)) <= 6


def test_the_search_gives_up_where_only_floats_hold() -> None:
    assert leave_in_float({"a": 1.0, "b": 2.0, "c": 0.5}, lambda in_float: len(in_float) == 3) is None
    assert leave_in_float({"a": 1.0}, lambda in_float: False) is None


def test_weights_are_int8_in_the_file_and_floats_when_loaded(tmp_path: Path) -> None:
    weights = {
        "kernel": RNG.standard_normal((3, 3, 16, 32)).astype(np.float32) * np.repeat(SPREAD, 4),
        "bias": RNG.standard_normal(32).astype(np.float32),
        "table": RNG.standard_normal((64, 32)).astype(np.float32)
        * RNG.uniform(1, 50, (64, 1)).astype(np.float32),
        "left": RNG.standard_normal((3, 3, 16, 32)).astype(np.float32),
    }
    rounded, scales = quantize_weights(weights, {"left"})
    assert scales["kernel"].shape == (1, 1, 1, 32) and scales["table"].shape == (64, 1)
    assert scales.keys() == {"kernel", "table"}
    for name, scale in scales.items():
        assert (np.abs(rounded[name] - weights[name]) <= 0.501 * scale).all()

    def fn(weights, inputs):
        return {"y": inputs["x"] * weights["kernel"].sum() + weights["table"].sum() + weights["left"].sum()}

    program = lower_program(fn, weights, {"x": TensorSpec(("n",))})
    small = Artifact({}, {"float32": program}, rounded, scales).save(tmp_path / "small")
    large = Artifact({}, {"float32": program}, weights).save(tmp_path / "large")
    sizes = [(folder / "program_weights.safetensors").stat().st_size for folder in (small, large)]
    assert sizes[0] < 0.6 * sizes[1]
    again = load_artifact(small)
    for name, array in rounded.items():
        np.testing.assert_array_equal(again.weights[name], array)
    once_more = load_artifact(again.save(tmp_path / "copy"))
    np.testing.assert_array_equal(once_more.weights["table"], rounded["table"])
    assert once_more.scales.keys() == scales.keys()
