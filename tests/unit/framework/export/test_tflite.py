"""`.tflite` files that LiteRT runs: programs, signatures, loops, smaller types, and the engine."""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import DeviceError, FormatError, InputError, ShapeError
from framework.export import TensorSpec
from framework.export.formats.tflite import packages
from framework.export.formats.tflite.convert import Signature, convert, make_signatures
from framework.export.formats.tflite.metadata import ModelMetadata, TensorMetadata
from framework.export.formats.tflite.model import (
    add_metadata,
    name_tensors,
    read_buffers,
    read_model,
    tensor_shapes,
)
from framework.inference.engines.litert import LiteRTEngine, check_device
from framework.nn import functional as F

if not packages.can_write_tflite():
    pytest.skip("the extra `mobile` is not installed", allow_module_level=True)

RNG = np.random.default_rng(0)
WEIGHTS = {
    "w": RNG.standard_normal((3, 3, 3, 8)).astype(np.float32) * 0.3,
    "v": RNG.standard_normal((8, 4)).astype(np.float32),
}


def network(weights, inputs):
    """An image in uint8, a convolution, padded max-pooling, a mean, a product."""
    x = inputs["image"].astype(jnp.float32) / 255.0
    x = jax.lax.conv_general_dilated(
        x, weights["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    )
    return {"scores": x.mean((1, 2)) @ weights["v"], "least": x.min((1, 2, 3))}


SPECS = {"image": TensorSpec(("n", "8*h", "8*w", 3), "uint8")}


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    return path


def image(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in network(WEIGHTS, {"image": jnp.asarray(x)}).items()}


def open_square(tmp_path: Path) -> LiteRTEngine:
    """The network for images of 16x16."""
    signatures = make_signatures(SPECS, [{"n": 1, "h": 2, "w": 2}])
    return LiteRTEngine(write(tmp_path, convert(network, WEIGHTS, signatures)))


def test_a_file_computes_what_the_function_computes(tmp_path: Path) -> None:
    data = convert(network, WEIGHTS, make_signatures(SPECS, [{"n": 1, "h": 2, "w": 3}]))
    engine = LiteRTEngine(write(tmp_path, data))
    x = image(1, 16, 24, 3)
    out = engine({"image": x})
    assert list(out) == ["least", "scores"]
    for name, array in expected(x).items():
        np.testing.assert_allclose(out[name], array, atol=1e-6)


def test_a_batch_is_run_sample_by_sample_and_in_threads(tmp_path: Path) -> None:
    engine = open_square(tmp_path)
    batches = [image(5, 16, 16, 3) for _ in range(6)]
    results: dict[int, dict[str, np.ndarray]] = {}

    def run(number: int) -> None:
        results[number] = engine({"image": batches[number]})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, batch in enumerate(batches):
        np.testing.assert_allclose(results[number]["scores"], expected(batch)["scores"], atol=1e-6)


def test_the_same_image_gives_the_same_after_another(tmp_path: Path) -> None:
    """PaddleOCR#5201: the second call with an image differed after one with another."""
    engine = open_square(tmp_path)
    first, second = image(1, 16, 16, 3), image(1, 16, 16, 3)
    before = engine({"image": first})["scores"].copy()
    engine({"image": second})
    np.testing.assert_array_equal(engine({"image": first})["scores"], before)


def test_signatures_share_their_weights(tmp_path: Path) -> None:
    heavy = {**WEIGHTS, "v": RNG.standard_normal((8, 40_000)).astype(np.float32)}
    sizes = [{"n": 1, "h": 2, "w": w} for w in (1, 2, 4)]
    several = convert(network, heavy, make_signatures(SPECS, sizes))
    single = convert(network, heavy, make_signatures(SPECS, sizes[:1]))
    assert len(several) < 1.1 * len(single)
    engine = LiteRTEngine(write(tmp_path, several))
    assert engine.compile_count == 3 and engine.inputs["image"].shape == ("n", 16, "image_2", 3)
    for width in (8, 16, 32):
        assert engine({"image": image(2, 16, width, 3)})["scores"].shape == (2, 40_000)
    with pytest.raises(ShapeError, match="not written for these sizes") as error:
        engine({"image": image(1, 16, 24, 3)})
    assert "[1, 16, 32, 3]" in str(error.value) and "--input_size" in str(error.value)


@pytest.mark.parametrize("reads_around", [False, True])
def test_loops_run(tmp_path: Path, reads_around: bool) -> None:
    """A while loop whose end depends on values, one that reads what is around it, and one inside of another."""

    def powers(weights, inputs):
        x = inputs["x"]
        scale = x.sum() if reads_around else jnp.float32(1.0)

        def inner(state):
            count, value = state
            return count + 1, jax.lax.fori_loop(
                0, 3, lambda i, v: v * 0.5 + scale + weights["v"][0, 0], value
            )

        count, value = jax.lax.while_loop(
            lambda state: jnp.abs(state[1]).max() > 3.0 + scale * 0, inner, (0, x)
        )
        return {"count": count[None], "value": value}

    x = np.array([[100.0, 1.0]], np.float32) if not reads_around else np.array([[9.0, -9.5]], np.float32)
    signature = Signature("serving_default", {"x": TensorSpec((1, 2))})
    engine = LiteRTEngine(write(tmp_path, convert(powers, WEIGHTS, [signature])))
    want = powers(WEIGHTS, {"x": jnp.asarray(x)})
    out = engine({"x": x})
    assert int(out["count"][0]) == int(want["count"][0]) > 0
    np.testing.assert_allclose(out["value"], np.asarray(want["value"]), rtol=1e-5)


def test_sums_over_large_images_are_as_exact_as_ours(tmp_path: Path) -> None:
    """LiteRT adds 57,600 numbers one after the other: the mean of PP-OCRv6's blocks at 960 pixels was off by 1e-3."""
    x = (RNG.random((1, 240, 240, 4)) + 3.0).astype(np.float32)

    def fn(weights, inputs):
        return {"mean": inputs["x"].mean((1, 2)), "sum": inputs["x"].sum((1, 2), keepdims=True)}

    engine = LiteRTEngine(
        write(tmp_path, convert(fn, {}, [Signature("serving_default", {"x": TensorSpec(x.shape)})]))
    )
    out = engine({"x": x})
    np.testing.assert_allclose(out["mean"], x.astype(np.float64).mean((1, 2)), rtol=2e-6)
    np.testing.assert_allclose(out["sum"], x.astype(np.float64).sum((1, 2), keepdims=True), rtol=2e-6)


def test_an_operation_that_litert_has_not_is_named() -> None:
    signature = Signature("serving_default", {"x": TensorSpec((1, 4, 4))})
    with pytest.raises(FormatError, match="converter cannot write this program") as error:
        convert(lambda w, i: {"y": jnp.linalg.cholesky(i["x"])}, {}, [signature])
    assert "--format onnx" in str(error.value)


def test_tensors_are_named_and_metadata_is_in_the_file(tmp_path: Path) -> None:
    data = name_tensors(convert(network, WEIGHTS, make_signatures(SPECS, [{"n": 1, "h": 2, "w": 3}])))
    names = [tensor.name.decode() for tensor in read_model(data).subgraphs[0].tensors]
    assert {"image", "scores", "least"} <= set(names) and len(set(names)) == len(names)
    ((inputs, outputs),) = tensor_shapes(data)
    assert inputs == {"image": (1, 16, 24, 3)} and outputs == {"least": (1,), "scores": (1, 4)}
    metadata = ModelMetadata(
        "net", subgraphs=[([TensorMetadata("image", "")], [])], files={"labels.txt": b"a\n"}
    )
    whole = add_metadata(data, metadata, [("OTHER", "text")])
    assert read_buffers(whole)["OTHER"] == b"text" and read_buffers(whole)["TFLITE_METADATA"][4:8] == b"M001"
    again = add_metadata(whole, metadata)
    assert sorted(read_buffers(again)) == ["OTHER", "TFLITE_METADATA"] or b"OTHER" in again
    x = image(1, 16, 24, 3)
    out = LiteRTEngine(write(tmp_path, whole))({"image": x})
    np.testing.assert_allclose(out["scores"], expected(x)["scores"], atol=1e-6)


def test_weights_are_aligned() -> None:
    """Kernels load vectors of 16 bytes."""
    data = name_tensors(convert(network, WEIGHTS, make_signatures(SPECS, [{"n": 1, "h": 2, "w": 3}])))
    contents = [
        one.data.tobytes() for one in read_model(data).buffers if one.data is not None and one.data.size > 64
    ]
    assert len(contents) >= 2 and all(data.find(content) % 16 == 0 for content in contents)


@pytest.mark.parametrize("dtype", ["float16", "int8_weights", "int8"])
def test_smaller_types_stay_near_with_padded_max_pooling(tmp_path: Path, dtype: str) -> None:
    """onnx2tf#444: padding with the least number ruined the ranges of int8."""
    pytest.importorskip("ai_edge_quantizer")
    from framework.compress.tflite import to_float16, to_int8, to_int8_weights

    heavy = {**WEIGHTS, "v": RNG.standard_normal((8, 4000)).astype(np.float32)}
    (signature,) = make_signatures(SPECS, [{"n": 1, "h": 4, "w": 4}])
    data = name_tensors(convert(network, heavy, [signature]))
    feeds = [{"image": image(1, 32, 32, 3)} for _ in range(8)]
    convert_weights = {"float16": to_float16, "int8_weights": to_int8_weights}.get(dtype)
    small = convert_weights(data) if convert_weights else to_int8(data, {signature.name: feeds})
    assert len(small) < 0.75 * len(data)
    full, engine = LiteRTEngine(write(tmp_path, data)), None
    (tmp_path / "small").mkdir()
    engine = LiteRTEngine(write(tmp_path / "small", small))
    assert engine.inputs["image"].dtype == np.uint8 and engine.outputs["scores"].dtype == np.float32
    for feed in feeds:
        want, out = full(feed)["scores"], engine(feed)["scores"]
        assert np.abs(want - out).max() < (0.1 if dtype == "int8" else 0.01) * np.abs(want).max()


@pytest.mark.parametrize("dtype", ["float16", "int8_weights", "int8"])
def test_signatures_of_smaller_types_share_their_weights(dtype: str) -> None:
    """A text recogniser has a signature for each width: its int8 file was six times as large as that in float32."""
    pytest.importorskip("ai_edge_quantizer")
    from framework.compress.tflite import to_float16, to_int8, to_int8_weights

    heavy = {**WEIGHTS, "v": RNG.standard_normal((8, 40000)).astype(np.float32)}
    sizes = [{"n": 1, "h": 2, "w": width} for width in (2, 3, 4)]
    signatures = make_signatures(SPECS, sizes)
    data = name_tensors(convert(network, heavy, signatures))
    feeds = {
        one.name: [{"image": image(1, *one.inputs["image"].shape[1:3], 3)} for _ in range(4)]
        for one in signatures
    }
    convert_weights = {"float16": to_float16, "int8_weights": to_int8_weights}.get(dtype)
    small = convert_weights(data) if convert_weights else to_int8(data, feeds)
    elements = 8 * 40000 * (2 if dtype == "float16" else 1)
    buffers = [one.data for one in read_model(small).buffers if one.data is not None]
    assert elements <= sum(map(len, buffers)) < 1.5 * elements


def test_int8_needs_examples_and_layers(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_quantizer")
    from framework.compress.tflite import to_int8

    (signature,) = make_signatures(SPECS, [{"n": 1, "h": 2, "w": 2}])
    data = name_tensors(convert(network, WEIGHTS, [signature]))
    with pytest.raises(InputError, match="nothing to calibrate with"):
        to_int8(data, {})
    plain = Signature("serving_default", {"x": TensorSpec((1, 4))})
    bare = name_tensors(convert(lambda w, i: {"y": jnp.tanh(i["x"])}, {}, [plain]))
    with pytest.raises(FormatError, match="nothing to quantise"):
        to_int8(bare, {"serving_default": [{"x": np.zeros((1, 4), np.float32)}]})


def test_other_files_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="LiteRT cannot read"):
        LiteRTEngine(write(tmp_path, b"no model"))
    with pytest.raises(DeviceError, match="LiteRT runs on the CPU"):
        check_device("gpu", "auto")
    with pytest.raises(InputError, match="in the types that are in it"):
        check_device("cpu", "bfloat16")


def test_functionals_of_networks_are_written(tmp_path: Path) -> None:
    """Resizing, pooling and activations as models call them."""

    def fn(weights, inputs):
        x = inputs["x"]
        y = F.interpolate(x, size=(12, 10), mode="bilinear")
        y = F.max_pool2d(F.hardswish(y), 3, 2, 1) + F.avg_pool2d(F.sigmoid(y), 2, 2)
        return {"y": y}

    x = RNG.standard_normal((1, 6, 5, 4)).astype(np.float32)
    engine = LiteRTEngine(
        write(tmp_path, convert(fn, {}, [Signature("serving_default", {"x": TensorSpec(x.shape)})]))
    )
    np.testing.assert_allclose(
        engine({"x": x})["y"], np.asarray(fn({}, {"x": jnp.asarray(x)})["y"]), atol=1e-5
    )
