"""Parity with PaddleSeg of the segmentation models on HRNet, and of the contrast's loss, in evaluation and training.

The references are written by tools/golden/hrnet_segmenters.py.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from segmentation.contracts import Embedded
from segmentation.contrast import PixelContrast
from segmentation.layers.backbone import concat_maps
from segmentation.losses import CrossEntropy
from segmentation.models import fcn, hrnet_w48_contrast, ocrnet
from segmentation.models.fcn import FCN, FCNConfig
from segmentation.models.hrnet_w48_contrast import HRNetW48Contrast, HRNetW48ContrastConfig
from segmentation.models.ocrnet import OCRNet, OCRNetConfig
from tests.golden.parity import KEPT
from tools.golden.hrnet_segmenters_cases import CASES, CONTRASTS, contrast_inputs, damp, images, labels

DATA = Path(__file__).parent / "data" / "hrnet_segmenters"
SLOW = {name for name in CASES if "w48" in name or "full" in name or name.endswith("_w18")}
MODELS = {"FCN": fcn, "OCRNet": ocrnet, "HRNetW48Contrast": hrnet_w48_contrast}
# As PaddleSeg counts them; those of the contrast have 71,133,216 numbers in all.
ENTRIES = {"contrast_w48": 1540, "ocrnet_w18": 1583, "ocrnet_w48": 1583, "fcn_w18": 1533, "fcn_w48": 1533}


@functools.cache
def reference(case: str) -> tuple[dict[str, tuple[int, ...]], dict[str, np.ndarray]]:
    """PaddleSeg's names with their shapes, and its outputs."""
    with np.load(DATA / f"{case}.npz") as data:
        rows = [line.split(" ") for line in bytes(data["keys"]).decode().splitlines()]
        shapes = {name: tuple(map(int, shape.split("x"))) for name, shape in rows}
        return shapes, {name: data[name] for name in data.files if name != "keys"}


def build(name: str) -> nn.Layer:
    case = CASES[name]
    variant = case.backbone.lower()
    if case.model == "OCRNet":
        return OCRNet(OCRNetConfig(variant, align_corners=case.align_corners, dropout=0.0))
    if case.model == "FCN":
        return FCN(FCNConfig(variant, align_corners=case.align_corners))
    return HRNetW48Contrast(HRNetW48ContrastConfig(variant, dropout=0.0))


def load_model(name: str) -> nn.Layer:
    model = build(name)
    assert model.set_state_dict(damp(named_weights(reference(name)[0]))) == ([], [])  # missing, unexpected
    return model


def compare(ours: Mapping[str, Any], want: Mapping[str, np.ndarray]) -> None:
    """Maps [N, H, W, C] with thinned values of [N, C, H, W]."""
    for name, out in ours.items():
        values = want[name]
        flat = np.asarray(out).transpose(0, 3, 1, 2).reshape(-1)
        flat, limit = flat[:: -(-flat.size // KEPT)], 1e-4 * float(np.abs(values).max())
        assert values.std() > 0.01, name
        np.testing.assert_allclose(flat, values, rtol=0, atol=limit, err_msg=name, strict=True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_outputs_match_paddleseg_s(name: str) -> None:
    """Nothing is jitted: the many equal layers compile once each, while the whole takes several times as long."""
    case, want = CASES[name], reference(name)[1]
    model, x = load_model(name).eval(), images(case).transpose(0, 2, 3, 1)
    found: dict[str, jax.Array] = {}
    for watched, layer in model.named_sublayers():
        if watched in case.watched:
            keep = functools.partial(found.__setitem__, watched)
            layer.register_forward_post_hook(lambda layer, args, out, keep=keep: keep(out))
    (found["eval"],) = model(x[:1])  # type: ignore[misc]
    if isinstance(model, HRNetW48Contrast):
        model.proj_head(concat_maps(model.backbone.forward_features(x[:1]), False))
    assert found.keys() == {*case.watched, "eval"}
    compare(found, want)
    if case.train:
        check_training(model.train(), want, x, jnp.asarray(labels(case), jnp.int32))


def check_training(model: nn.Layer, want: dict[str, np.ndarray], x: np.ndarray, truth: jax.Array) -> None:
    outputs: tuple[Any, ...] = model(x)
    assert len(outputs) == (1 if isinstance(model, FCN) else 2)
    if not isinstance(outputs[-1], Embedded):
        compare({f"train.{i}": out for i, out in enumerate(outputs)}, want)
        return
    logits, embedded = outputs
    compare({"train.0": logits, "train.seg": embedded.logits, "train.embed": embedded.embedding}, want)
    in_place = jnp.zeros(embedded.logits.shape[:3], jnp.uint32)
    losses = CrossEntropy()(logits, truth), PixelContrast().compute(embedded, truth, in_place)
    np.testing.assert_allclose(losses, want["losses"], rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if "full" not in name])
def test_every_name_of_paddleseg_is_known(name: str) -> None:
    shapes, want = reference(name)
    model = build(name)
    zeros = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    assert model.set_state_dict(zeros) == ([], [])  # missing, unexpected
    counted = len(shapes), sum(p.size for p in model.parameters() if p.trainable)
    assert counted == (len(model.state_shapes()), int(want["count"]))
    case = CASES[name]
    published = MODELS[case.model].VARIANTS[case.backbone.lower()].params
    assert counted == (ENTRIES.get(name, counted[0]), published)
    if name == "contrast_w48":
        assert sum(int(np.prod(shape)) for shape in model.state_shapes().values()) == 71_133_216


@pytest.mark.parametrize("name", CONTRASTS)
def test_contrast_and_its_gradient(name: str) -> None:
    case = CONTRASTS[name]
    logits, vectors, truth = contrast_inputs(case)
    loss = PixelContrast(case.temperature, case.base_temperature, 255, case.max_samples, case.max_views)
    in_place = jnp.zeros(logits.shape[:3], jnp.uint32)

    def run(vectors: jax.Array) -> jax.Array:
        return loss.compute(Embedded(jnp.asarray(logits), vectors), jnp.asarray(truth, jnp.int32), in_place)

    value, gradient = jax.jit(jax.value_and_grad(run))(vectors)
    want = reference_contrast()
    np.testing.assert_allclose(value, want[f"{name}/loss"].reshape(()), rtol=1e-4)
    expected = want[f"{name}/gradient"]
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@functools.cache
def reference_contrast() -> dict[str, np.ndarray]:
    with np.load(DATA / "contrast.npz") as data:
        return dict(data)
