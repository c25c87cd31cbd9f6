"""Parity of the PP-OCRv6 networks with the PyTorch port in rapidocr, and of the official ONNX files with ONNX Runtime.

The references are written by tools/golden/pp_ocrv6.py. Weights of the first are drawn from their names.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from framework.workflow.domain.weights import load_weights_into
from ocr.layers.nrtr import NRTRConfig, NRTRDecoder
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_recognizer import TextRecognizer, TextRecognizerConfig, greedy

DATA = Path(__file__).parent / "data" / "pp_ocrv6"
VARIANTS = [f"PP-OCRv6_{size}_{task}" for task in ("det", "rec") for size in ("tiny", "small", "medium")]
KEPT = 160  # values of each stage, as in the tool
Model = DBNet | TextRecognizer


def build(variant: str) -> Model:
    if variant.endswith("det"):
        return DBNet(DBNetConfig(variant))
    return TextRecognizer(TextRecognizerConfig(variant))


def run(model: Model, x: np.ndarray, watched: tuple[str, ...] = ()) -> tuple[Any, dict[str, np.ndarray]]:
    """(output, outputs of the watched sublayers) of one jitted call in eval mode."""
    model.eval()
    found: dict[str, Any] = {}
    owners = dict(model.named_sublayers())
    for name in watched:
        hook = lambda _, args, out, name=name: found.__setitem__(name, getattr(out, "fused", out))  # noqa: E731
        owners[name].register_forward_post_hook(hook)
    graphdef, params, buffers = nn.split(model)

    @jax.jit
    def call(params: Any, buffers: Any, x: Any) -> Any:
        found.clear()
        out, _ = nn.apply(graphdef, params, buffers, None, x)
        return out, dict(found)

    out, stages = call(params, buffers, x)
    return out, {name: np.asarray(array) for name, array in stages.items()}


def thin(array: np.ndarray) -> np.ndarray:
    flat = (array.transpose(0, 3, 1, 2) if array.ndim == 4 else array).reshape(-1)
    return flat[:: -(-flat.size // KEPT)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_stage_matches_the_reference_in_training_form_and_the_output_in_deploy_form(
    variant: str,
) -> None:
    model = build(variant)
    model.set_state_dict(named_weights(model.state_shapes()))
    shape = (1, 3, 64, 96) if variant.endswith("det") else (2, 3, 48, 96)
    image = np.random.RandomState(6).standard_normal(shape).astype(np.float32).transpose(0, 2, 3, 1)
    with np.load(DATA / f"{variant}.npz") as data:
        reference = {name: data[name] for name in data.files if name != "keys"}

    out, stages = run(model, image, tuple(reference))

    assert stages.keys() == reference.keys()
    for name, want in reference.items():
        assert want.std() > 0.01, name
        scale = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(thin(stages[name]), want, rtol=0, atol=1e-4 * scale, err_msg=name)
    deployed, _ = run(reparameterize(model), image)
    ours, theirs = (np.asarray(getattr(o, "probability", o)) for o in (deployed, out))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * max(1.0, float(np.abs(theirs).max())))


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_and_shapes_are_the_reference_s(variant: str) -> None:
    ours = build(variant).state_shapes()
    with np.load(DATA / f"{variant}.npz") as data:
        keys = bytes(data["keys"]).decode()
    # The port leaves the auxiliary heads out, which upstream trains.
    shapes = {n: s for n, s in ours.items() if not n.startswith(("head.aux_binarize_", "head.aux_thresh_"))}
    assert "\n".join(f"{n} {'x'.join(map(str, s))}" for n, s in sorted(shapes.items())) == keys
    auxiliary = [n for n in ours if n.startswith("head.aux_")]
    assert len(auxiliary) == (6 * 13 if variant.endswith("det") else 0)


def test_the_guiding_decoder_is_a_post_norm_transformer_decoder() -> None:
    decoder = NRTRDecoder(NRTRConfig(dims=64, depth=2), num_classes=10).eval()
    table = "positional_encoding.pe"
    decoder.set_state_dict({**named_weights(decoder.state_shapes()), table: decoder.state_dict()[table]})
    with np.load(DATA / "nrtr.npz") as data:
        logits = decoder(data["memory"], data["tokens"])
        assert data["logits"].std() > 0.1
        np.testing.assert_allclose(np.asarray(logits), data["logits"], rtol=0, atol=1e-5)


def official(task: str) -> Path:
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or spec.origin is None:
        pytest.skip("rapidocr is not installed: its wheel carries the official models")
    return Path(spec.origin).parent / "models" / f"PP-OCRv6_{task}_small.onnx"


def test_the_official_small_detector_gives_what_onnx_runtime_gives() -> None:
    model = load_weights_into(DBNet(DBNetConfig("PP-OCRv6_small_det", deploy=True)), official("det"))
    with np.load(DATA / "official_small.npz") as data:
        page, want = data["page"], data["probability"]
    maps, _ = run(model, (page.astype(np.float32) / 127.5 - 1)[None])
    assert maps.threshold is None and maps.auxiliary == ()
    assert want.max() > 0.99
    np.testing.assert_allclose(np.asarray(maps.probability)[0, ::4, ::4], want, rtol=0, atol=1e-4)


def test_the_official_small_recogniser_reads_what_onnx_runtime_reads() -> None:
    model = load_weights_into(TextRecognizer(TextRecognizerConfig(deploy=True)), official("rec"))
    with np.load(DATA / "official_small.npz") as data:
        line, classes, peaks = data["line"], data["classes"], data["peaks"]
    logits, _ = run(model, (line.astype(np.float32) / 127.5 - 1)[None])
    indices, probabilities = greedy(logits)
    assert logits.shape == (1, 22, 18710)
    np.testing.assert_array_equal(np.asarray(indices)[0], classes)
    np.testing.assert_allclose(np.asarray(probabilities)[0], peaks, rtol=0, atol=1e-4)
