"""RoiAlign in compiled graphs, with as many points as the node says or as each box has pixels, against ONNX Runtime."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.inference.graph_engine import GraphEngine
from framework.interop.graph.onnx.regions import roi_align
from framework.interop.programs.onnx import load
from framework.interop.source import Source
from tests.unit.framework.interop.graph.conftest import model, value

node = helper.make_node


def pooling(mode: str, ratio: int, opset: int) -> bytes:
    attributes = {"output_height": 3, "output_width": 4, "spatial_scale": 0.25, "sampling_ratio": ratio}
    nodes = [node("RoiAlign", ["x", "rois", "batch"], ["y"], mode=mode, **attributes)]
    inputs = [
        value("x", ["n", "c", "h", "w"]),
        value("rois", ["r", 4]),
        value("batch", ["r"], TensorProto.INT64),
    ]
    proto = model(nodes, inputs, opset=opset)
    proto.ir_version = 8
    return proto.SerializeToString()


def boxes_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """Inside, over the edges, of less than a pixel and turned inside out."""
    corner = rng.uniform(-5, 60, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(-4, 55, (count, 2))], 1).astype(np.float32)


@pytest.mark.parametrize("opset", [10, 16])  # without half a pixel's shift, and with it
@pytest.mark.parametrize("ratio", [0, 1, 2, 5])
def test_means_are_those_of_onnx_runtime(ratio: int, opset: int) -> None:
    ort, rng = pytest.importorskip("onnxruntime", reason="the reference"), np.random.default_rng(ratio)
    content = pooling("avg", ratio, opset)
    engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    for images, height, width in ((2, 15, 18), (1, 4, 40)):
        x = rng.normal(size=(images, 5, height, width)).astype(np.float32)
        feed = {"x": x, "rois": boxes_of(rng, 24), "batch": rng.integers(0, images, 24)}
        np.testing.assert_allclose(engine(feed)["y"], session.run(None, feed)[0], rtol=1e-4, atol=1e-5)
    assert engine._is_compiled and not engine._programs[1]


@pytest.mark.parametrize("ratio", [0, 2])
def test_maxima_are_those_of_the_weighted_pixels(ratio: int) -> None:
    rng = np.random.default_rng(3)
    engine = GraphEngine(load(Source("m.onnx", memoryview(pooling("max", ratio, 16)))))
    x, rois = rng.normal(size=(1, 2, 15, 18)).astype(np.float32), boxes_of(rng, 12)
    got = engine({"x": x, "rois": rois, "batch": np.zeros(12, np.int64)})["y"]
    for box, pooled in zip(rois * 0.25 - 0.5, got, strict=True):
        bins = [(box[3] - box[1]) / 3, (box[2] - box[0]) / 4]
        points = [ratio or max(0, int(np.ceil(size))) for size in bins]
        for p, q in np.ndindex(3, 4):
            values = []
            for i, j in np.ndindex(*points):
                y = box[1] + (p + (i + 0.5) / points[0]) * bins[0]
                left = box[0] + (q + (j + 0.5) / points[1]) * bins[1]
                if not (-1 <= y <= 15 and -1 <= left <= 18):
                    values.append(np.zeros(2))
                    continue
                y, left = min(max(y, 0), 14), min(max(left, 0), 17)
                for row, a in ((int(y), 1 - y % 1), (min(int(y) + 1, 14), y % 1)):
                    for column, b in ((int(left), 1 - left % 1), (min(int(left) + 1, 17), left % 1)):
                        values.append(x[0, :, row, column] * a * b)
            best = np.max(values, 0) if values else np.zeros(2)
            np.testing.assert_allclose(pooled[:, p, q], best, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("ratio", [0, 2])
def test_boxes_that_stay_are_pooled_also_where_none_does(ratio: int) -> None:
    """Their number differs from call to call, as does what each box needs."""
    ort, rng = pytest.importorskip("onnxruntime", reason="the reference"), np.random.default_rng(8)
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
        node("Gather", ["kept", "two"], ["index"], axis=1),
        node("Squeeze", ["boxes", "zero"], ["all"]),
        node("Gather", ["all", "index"], ["rows"]),
        node("Gather", ["kept", "first"], ["batch"], axis=1),
        *[
            node(
                "RoiAlign",
                ["x", "rows", "batch"],
                ["pooled"],
                output_height=3,
                output_width=3,
                sampling_ratio=ratio,
            )
        ],
        node("Flatten", ["pooled"], ["flat"]),
        node("Gemm", ["flat", "w"], ["y"]),
    ]
    arrays = {
        "most": np.int64([40]), "overlap": np.float32([0.4]), "least": np.float32([0.3]), "zero": np.int64([0]),
        "first": np.int64(0), "two": np.int64(2), "w": rng.normal(size=(27, 2)).astype(np.float32),
    }  # fmt: skip
    inputs = [value("boxes", [1, "k", 4]), value("scores", [1, 1, "k"]), value("x", [1, 3, "h", "w"])]
    proto = model(nodes, inputs, ["y", "pooled"], arrays, opset=16)
    proto.ir_version = 8
    content = proto.SerializeToString()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    engine, counts = GraphEngine(load(Source("m.onnx", memoryview(content)))), []
    for most in (1.0, 0.2, 0.5, 0.1):
        feed = {
            "boxes": boxes_of(rng, 50)[None] / 3,
            "scores": rng.random((1, 1, 50), np.float32) * np.float32(most),
        }
        feed["x"] = rng.normal(size=(1, 3, 20, 24)).astype(np.float32)
        want = session.run(None, feed)
        for got, other in zip(engine(feed).values(), want, strict=True):
            assert got.shape == other.shape
            np.testing.assert_allclose(got, other, rtol=1e-4, atol=1e-4)
        counts.append(len(want[0]))
    assert min(counts) == 0 < max(counts)


@pytest.mark.parametrize("ratio", [0, 2])
def test_maps_have_gradients(ratio: int) -> None:
    rng = np.random.default_rng(5)
    x, rois = jnp.asarray(rng.normal(size=(1, 6, 7, 2)), jnp.float32), jnp.asarray([[0.5, 1, 4, 6.0]])

    def total(x: jax.Array) -> jax.Array:
        return roi_align(x, rois, jnp.zeros(1, jnp.int32), (2, 2), 1.0, ratio, "avg", True).sum()

    # A mean of pixels: linear, and the weights of a bin add up to 1.
    slope = jax.grad(total)(x)
    np.testing.assert_allclose((slope * x).sum(), total(x), rtol=1e-5)
    np.testing.assert_allclose(slope.sum(), 8, rtol=1e-5)
