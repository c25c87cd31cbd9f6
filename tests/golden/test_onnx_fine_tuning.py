"""A published text detector, loaded from its ONNX file, learns on receipts and leaves again (OAR_SHARED)."""

from __future__ import annotations

import csv
from pathlib import Path

import cv2
import jax.numpy as jnp
import numpy as np
import pytest

from framework import jit, nn
from framework.export import TensorSpec
from framework.export.artifact import load_artifact
from framework.export.formats.onnx import export_layer
from framework.inference.engine import XLAEngine
from framework.interop.graph.layer import GraphLayer
from framework.interop.programs import onnx
from framework.optimizer import AdamW

SIZE, STEPS, BATCH = (416, 320), 20, 2  # height and width of what is learnt on


def read_receipt(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Image [3, H, W] as the detector takes it, and the map [H, W] of text: its boxes at 0.6 of their size."""
    image = cv2.imread(str(path))
    assert image is not None
    scale = np.array([SIZE[1] / image.shape[1], SIZE[0] / image.shape[0]])
    text = np.zeros(SIZE, np.uint8)
    with (path.parent.parent / "box" / f"{path.stem}.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            corners = np.array(row[:8], float).reshape(4, 2) * scale
            shrunk = corners.mean(0) + 0.6 * (corners - corners.mean(0))
            cv2.fillPoly(text, [shrunk.round().astype(np.int32)], 1)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    x = (cv2.resize(image, SIZE[::-1], interpolation=cv2.INTER_AREA) / 255 - mean) / std
    return x.transpose(2, 0, 1).astype(np.float32), text.astype(np.float32)


def map_loss(layer: GraphLayer, images: jnp.ndarray, text: jnp.ndarray) -> jnp.ndarray:
    """Cross entropy and Dice of the map of probabilities."""
    found = jnp.clip(layer(images)[:, 0], 1e-6, 1 - 1e-6)
    entropy = -(text * jnp.log(found) + (1 - text) * jnp.log1p(-found)).mean()
    return entropy + 1 - 2 * (found * text).sum() / (found.sum() + text.sum() + 1)


@pytest.mark.slow
def test_a_detector_learns_and_is_exported_again(shared: Path, tmp_path: Path) -> None:
    file = shared / "weights" / "ppocr_v6_tiny_det" / "det.onnx"
    receipts = sorted((shared / "data" / "sroie" / "train" / "img").glob("*.jpg"))[:8]
    if not file.is_file() or not receipts:
        pytest.skip("ppocr_v6_tiny_det and sroie are not there (OAR_SHARED)")
    layer = onnx.load(file)
    name = layer.inputs[0].name
    images, text = (np.stack(arrays) for arrays in zip(*map(read_receipt, receipts), strict=True))
    before = np.asarray(jit.to_static(layer)(images[:1]))

    layer.train()
    optimizer = AdamW(learning_rate=2e-4, parameters=layer.parameters())
    step = nn.value_and_grad(layer, map_loss)
    losses = []
    for number in range(STEPS):
        chosen = (number * BATCH + np.arange(BATCH)) % len(receipts)
        loss, grads = step(images[chosen], text[chosen])
        optimizer.step(layer, grads)
        losses.append(float(loss))
    print("losses", np.round(losses, 3).tolist())
    rounds = np.reshape(losses, (-1, len(receipts) // BATCH)).mean(1)  # each has every receipt once
    assert (np.diff(rounds) < 0).all() and rounds[-1] < 0.9 * rounds[0]

    layer.eval()
    inputs = {name: TensorSpec(("n", 3, "32*h", "32*w"))}
    jit.save(layer, tmp_path / "detector", input_spec=[jit.InputSpec(inputs[name].shape, name=name)])
    (again,) = export_layer(layer, inputs, tmp_path / "detector.onnx", ["map"])
    artifact = load_artifact(tmp_path / "detector")
    engine = XLAEngine(artifact.programs["float32"], artifact.weights)
    runtime = pytest.importorskip("onnxruntime")
    # With its blocked layout ONNX Runtime differs by 1.8e-4 from itself without it, on this sharpened map.
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    session = runtime.InferenceSession(str(again), options, providers=["CPUExecutionProvider"])
    for x in (images[:1], images[2:4, :, :224, :288]):
        want = np.asarray(layer(x))
        (ours,), (theirs,) = engine({name: x}).values(), session.run(None, {name: x})
        print(f"artifact {np.abs(ours - want).max():.1e}, ONNX {np.abs(theirs - want).max():.1e}")
        np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4)
        np.testing.assert_allclose(theirs, want, rtol=0, atol=1e-4)
    assert np.abs(np.asarray(layer(images[:1])) - before).max() > 0.1
    assert np.abs(np.asarray(onnx.load(again)(images[:1])) - np.asarray(layer(images[:1]))).max() < 1e-4
