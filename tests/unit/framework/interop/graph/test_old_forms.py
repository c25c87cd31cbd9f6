"""Forms that exporters wrote before opset 14, integers beyond 32 bits, and loops without rounds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.unit.framework.interop.graph.conftest import Load, model, value

node = helper.make_node
RNG = np.random.default_rng(2)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("op", ["Add", "Div", "Pow"])
def test_the_second_operand_of_opset_6_stands_at_an_axis(op: str, open_graph: Load) -> None:
    x, c = np.abs(numbers(2, 3, 4, 3)), np.float32([1, 2, 3])
    layer = open_graph([node(op, ["x", "c"], ["y"], axis=1, broadcast=1)], arrays={"c": c}, opset=6)
    expected = {"Add": np.add, "Div": np.divide, "Pow": np.power}[op](x, c[:, None, None])
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5)
    slopes = open_graph([node("PRelu", ["x", "c"], ["y"])], arrays={"c": c}, opset=6)
    np.testing.assert_allclose(slopes(-x), -x * c[:, None, None], rtol=1e-6)


def test_batch_normalisation_with_five_results_trains(open_graph: Load) -> None:
    ort = pytest.importorskip("onnxruntime", reason="the reference")
    arrays = {"s": numbers(3), "b": numbers(3), "m": numbers(3), "v": np.abs(numbers(3)) + 0.5}
    results = ["y", "m2", "v2", "sm", "sv"]
    nodes = [node("BatchNormalization", ["x", *arrays], results, epsilon=1e-3)]
    x = numbers(2, 3, 4, 4)
    proto = model(nodes, [value("x", x.shape)], results, arrays, opset=9)
    proto.ir_version = 8
    want = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    for got, expected in zip(open_graph(nodes, ["x"], results, arrays, opset=9)(x), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_nearest_of_opset_10_takes_the_next_pixel_where_an_axis_shrinks(open_graph: Load) -> None:
    """The example of Resize-10: not pixel 1 for the place 1.67; where an axis grows it is the pixel before."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    for scales, want in (((0.6, 0.6), [[1, 3]]), ((1, 1.5), [[1, 1, 2, 3, 3, 4], [5, 5, 6, 7, 7, 8]])):
        arrays = {"s": np.float32([1, 1, *scales])}
        layer = open_graph([node("Resize", ["x", "s"], ["y"])], arrays=arrays, opset=10)
        assert np.asarray(layer(x))[0, 0].tolist() == want


def test_scales_are_numbers_of_32_bits(open_graph: Load) -> None:
    """20 times 0.65 is 13, and the pixel 11 / 1.1 is 10, as in onnxruntime."""
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 1, 20)
    for scale, size in ((0.65, 13), (0.7, 14), (0.95, 19), (1.1, 22)):
        layer = open_graph(
            [
                node(
                    "Resize",
                    ["x", "", "s"],
                    ["y"],
                    coordinate_transformation_mode="asymmetric",
                    nearest_mode="floor",
                )
            ],
            arrays={"s": np.float32([1, 1, 1, scale])},
        )
        y = np.asarray(layer(x))
        assert y.shape[3] == size
    assert y[0, 0, 0, 11] == 10


@pytest.mark.parametrize(
    ("coordinates", "mode", "rounding", "size", "scale", "expected"),
    [
        ("align_corners", "nearest", "round_prefer_floor", 7, 0.7, [0, 2, 4, 6]),
        ("align_corners", "linear", "", 5, 0.7, [0, 2, 4]),  # as torch and Paddle: not 2.4 pixels, but 3
        ("align_corners", "cubic", "", 5, 0.7, [0, 2, 4]),
        ("asymmetric", "nearest", "round_prefer_ceil", 7, 2 / 7, [0, 4]),
        ("half_pixel", "nearest", "floor", 7, 1 / 7, [2]),
        ("half_pixel_symmetric", "nearest", "floor", 5, 0.3, [1]),
        ("half_pixel_symmetric", "nearest", "floor", 5, 0.6, [0, 1, 3]),
    ],
)
def test_resize_rounds_positions_as_onnxruntime(
    open_graph: Load, coordinates: str, mode: str, rounding: str, size: int, scale: float, expected: list[int]
) -> None:
    """Corners are aligned for whole sizes, positions have 32 bits, and what is nearly a half is a half."""
    attrs = {"nearest_mode": rounding} if rounding else {}
    layer = open_graph(
        [
            node(
                "Resize",
                ["x", "", "s"],
                ["y"],
                mode=mode,
                coordinate_transformation_mode=coordinates,
                **attrs,
            )
        ],
        arrays={"s": np.float32([1, 1, 1, scale])},
        opset=19,
    )
    x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
    np.testing.assert_allclose(np.asarray(layer(x))[0, 0, 0], expected, atol=1e-6)


def test_arithmetic_on_int64_has_64_bits(open_graph: Load) -> None:
    nodes = [
        node("Mul", ["x", "k"], ["p"]),
        node("Mod", ["p", "m"], ["z"]),
        node("Cast", ["z"], ["f"], to=TensorProto.FLOAT),
        node("Gather", ["table", "z"], ["g"]),
    ]
    arrays = {"k": np.int64(1000003), "m": np.int64(1000), "table": np.arange(1000, dtype=np.float32)}
    inputs = [value("x", ["n"], TensorProto.INT64)]
    layer = open_graph(nodes, inputs, ["p", "z", "f", "g"], arrays)
    x = np.int64([5000, 70000, -3])
    product, rest, real, row = layer(x)
    assert np.asarray(product).tolist() == (x * 1000003).tolist()
    assert np.asarray(rest).tolist() == (x * 1000003 % 1000).tolist() == np.asarray(row).tolist()
    assert np.asarray(real).dtype == np.float32


def test_a_loop_without_rounds_collects_no_rows(open_graph: Load) -> None:
    body = helper.make_graph(
        [node("Add", ["a", "x"], ["b"]), node("Identity", ["b"], ["row"]), node("Identity", ["on"], ["go"])],
        "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("a", [2])],
        [value("go", [], TensorProto.BOOL), value("b", [2]), value("row", [2])],
    )
    inputs = [value("rounds", [], TensorProto.INT64), value("x", [2])]
    layer = open_graph(
        [node("Loop", ["rounds", "", "x"], ["last", "all"], body=body)], inputs, ["last", "all"]
    )
    x = np.float32([1, 2])
    last, rows = layer(np.array(0), x)
    assert rows.shape == (0, 2) and np.asarray(last).tolist() == [1, 2]
    assert np.asarray(layer(np.array(2), x)[1]).tolist() == [[2, 4], [3, 6]]


def test_a_short_time_transform_of_signals_without_channels(open_graph: Load) -> None:
    step, window = np.int64(16), np.hanning(64).astype(np.float32)
    nodes = [node("STFT", ["x", "step", "window"], ["y"])]
    layer = open_graph(nodes, arrays={"step": step, "window": window})
    x = numbers(2, 400)
    frames = np.stack([x[:, i * 16 : i * 16 + 64] * window for i in range(22)], 1)
    expected = np.fft.rfft(frames)
    got = np.asarray(layer(x))
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, rtol=1e-4, atol=1e-4)
