"""Published ONNX models as Layers: against the outputs that ONNX Runtime gave (OAR_SHARED), and against it where it is
installed."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from framework import jit
from framework.export import TensorSpec, lower_layer
from framework.interop.graph.layer import GraphLayer
from framework.interop.programs import onnx

FAST = ("silero_vad",)
MODELS = (
    *(
        "deeplab_portrait",
        "fastestdet",
        "nanodet_m_320",
        "person_reid_retail_0288",
        "picodet_s_320",
        "ppocr_v2_cls",
    ),
    *("ppocr_v2_rec_en_number", "ppocr_v3_det_ch", "ppocr_v6_tiny_det", "sinet_portrait", "ultraface_rfb320"),
    *("vittrack", "yolox_nano", "yunet_n"),
)


def read_reference(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs by name, outputs by name and thinning."""
    with np.load(folder / "ref_io.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    floats = {key[3:]: array for key, array in arrays.items() if key.startswith("in:")}
    inputs = {k: a.astype(np.float32) if a.dtype == np.float16 else a for k, a in floats.items()}
    return inputs, {key[4:]: array for key, array in arrays.items() if key.startswith("out:")}


def assert_outputs(layer: GraphLayer, got: object, expected: dict[str, np.ndarray]) -> None:
    arrays = got if isinstance(got, tuple) else (got,)
    names = [spec.name for spec in layer.outputs]
    for key, want in expected.items():
        name, _, thinned = key.partition("|")
        array = np.asarray(arrays[names.index(name)])
        if thinned:
            array = array[:, ::8] if thinned == "::8" else array[..., ::8, ::8]
        np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-4, err_msg=name)


def open_model(shared: Path, name: str) -> tuple[GraphLayer, dict[str, np.ndarray], dict[str, np.ndarray]]:
    paths = sorted((shared / "weights" / name).glob("*.onnx"))
    if not paths:
        pytest.skip(f"{name} of shared/weights is not here (OAR_SHARED)")
    return onnx.load(paths[0]), *read_reference(paths[0].parent)


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS)])
def test_static(shared: Path, name: str) -> None:
    layer, inputs, outputs = open_model(shared, name)
    ordered = [inputs[spec.name] for spec in layer.inputs]
    assert_outputs(layer, jit.to_static(layer)(*ordered), outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAST, *MODELS])
def test_eager(shared: Path, name: str) -> None:
    layer, inputs, outputs = open_model(shared, name)
    assert_outputs(layer, layer(**inputs), outputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["PP-OCRv6_det_small", "PP-OCRv6_rec_small", "ch_ppocr_mobile_v2.0_cls_mobile"]
)
def test_models_of_the_rapidocr_wheel(model: str) -> None:
    ort = pytest.importorskip("onnxruntime", reason="the reference")
    rapidocr = pytest.importorskip("rapidocr", reason="its wheel carries the models")
    path = Path(rapidocr.__file__).parent / "models" / f"{model}.onnx"
    layer = onnx.load(path)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    static = jit.to_static(layer)
    rng = np.random.default_rng(3)
    for shape in {"det": [(1, 3, 160, 224)], "rec": [(2, 3, 48, 160), (1, 3, 48, 320)]}.get(
        model[9:12], [(2, 3, 48, 192)]
    ):
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        (want,) = session.run(None, {layer.inputs[0].name: x})
        np.testing.assert_allclose(static(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_detector_exports_with_symbolic_sizes(shared: Path) -> None:
    layer, inputs, outputs = open_model(shared, "ppocr_v6_tiny_det")
    (name,) = inputs
    spec = {"x": TensorSpec(("n", 3, "32*h", "32*w"))}
    program, weights = lower_layer(layer, spec, platforms=("cpu",))
    assert all(
        weights[kernel].shape[:2] in {(1, 1), (2, 2), (3, 3), (5, 5), (7, 7), (9, 9)}
        for kernel in layer.conv_kernels
    )
    call = jax.jit(program.call)
    assert_outputs(layer, call(weights, {"x": inputs[name]})["output"], outputs)
    other = np.random.default_rng(0).uniform(-1, 1, (2, 3, 64, 96)).astype(np.float32)
    got = call(weights, {"x": other})["output"]
    np.testing.assert_allclose(got, jit.to_static(layer)(other), rtol=1e-4, atol=1e-5)
