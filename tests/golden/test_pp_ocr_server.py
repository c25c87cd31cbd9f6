"""Parity of the PP-OCRv4 and v5 server networks with PaddleOCR's code, stage by stage, in both forms.

The references are written by tools/golden/pp_ocr_server.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_recognizer import TextRecognizer, TextRecognizerConfig
from tests.golden.parity import check_stages, spelled, stages
from tests.golden.thinning import amplify, images, thin

DATA = Path(__file__).parent / "data" / "pp_ocr_server"
DETECTORS = ("PP-OCRv4_server_det", "PP-OCRv5_server_det")
RECOGNIZERS = ("PP-OCRv4_server_rec", "PP-OCRv5_server_rec")
# The two backbones differ, and nothing else but the classes.
VARIANTS = [
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("PP-OCRv4_server_det", "PP-OCRv4_server_rec")),
    *("PP-OCRv5_server_det", "PP-OCRv5_server_rec"),
]
UNUSED = ("backbone.last_conv.", "backbone.fc.")


def make(variant: str, deploy: bool = False, guided: bool = False) -> DBNet | TextRecognizer:
    if variant.endswith("det"):
        return DBNet(DBNetConfig(variant, deploy=deploy))
    return TextRecognizer(TextRecognizerConfig(variant, deploy=deploy, guided=guided))


def image(variant: str) -> np.ndarray:
    case = {"size_hw": (64, 96), "images": 1} if variant.endswith("det") else {"size_hw": (48, 96)}
    return images(case).transpose(0, 2, 3, 1)


def reference(variant: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{variant}.npz") as data:
        return {name: data[name] for name in data.files}


@functools.cache
def filled(variant: str) -> DBNet | TextRecognizer:
    model, gain = make(variant), float(reference(variant)["gain"])
    weights = named_weights(model.state_shapes())
    backbone = {key: value for key, value in weights.items() if key.startswith("backbone.")}
    model.set_state_dict(weights | amplify(backbone, {"gain": gain}))
    return model.eval()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_stage_matches_the_reference(variant: str) -> None:
    stored = reference(variant)
    wanted = {name: stored[name] for name in stored if "." in name or name == "neck"}
    assert len(wanted) == 7
    check_stages(filled(variant), wanted, image(variant))


@pytest.mark.parametrize("variant", [VARIANTS[0], VARIANTS[2]])
def test_maps_match_the_reference_in_eval_and_in_training(variant: str) -> None:
    model, stored = filled(variant), reference(variant)
    pyramid = model.neck(model.backbone(image(variant)))
    found = np.asarray(model.head(pyramid).probability)
    assert stored["map"].std() > 0.1
    np.testing.assert_allclose(thin(found), stored["map"], rtol=0, atol=1e-4)
    model.head.train()
    for layer in model.head.sublayers():
        layer.eval()
    maps = np.stack(model.head(pyramid)[:3], axis=1)
    model.head.eval()
    assert maps.shape == (1, 3, 64, 96)
    np.testing.assert_allclose(thin(maps), stored["training"], rtol=0, atol=2e-4)


@pytest.mark.parametrize("variant", [*DETECTORS, *RECOGNIZERS])
def test_names_and_counts_are_upstreams(variant: str) -> None:
    """But for the classifier of PP-HGNetV2, which upstream builds and does not call."""
    stored = reference(variant)
    model = make(variant, guided=variant.endswith("rec"))
    lines = bytes(stored["keys"]).decode().splitlines()
    assert spelled(model.state_shapes()) == "\n".join(line for line in lines if not line.startswith(UNUSED))
    values, unused, parameters = stored["count"].tolist()
    assert bool(unused) == variant.startswith("PP-OCRv5")
    assert sum(int(np.prod(shape)) for shape in model.state_shapes().values()) == values - unused
    assert sum(parameter.size for parameter in model.parameters()) == parameters - unused
    assert all(name.startswith(type(model).training_only) for name in UNUSED if unused and _has(lines, name))


def _has(lines: list[str], prefix: str) -> bool:
    return any(line.startswith(prefix) for line in lines)


@pytest.mark.slow  # in small: tests/unit of the neck, the head and the backbones
@pytest.mark.parametrize("variant", [*DETECTORS, *RECOGNIZERS])
def test_deploy_form_equals_training_form(variant: str) -> None:
    model, x = filled(variant), image(variant)
    # The map before the sigmoid: behind it most values of such weights are 0 or 1.
    last = "head.cbn_layer.last_1" if variant.endswith("det") else "head.ctc_head.fc"
    want, ours = (stages(form, [last], x)[last] for form in (model, reparameterize(model)))
    assert isinstance(model, nn.Layer) and want.std() > 0.01
    np.testing.assert_allclose(ours, want, rtol=0, atol=2e-5 * max(1.0, float(np.abs(want).max())))


def test_the_recogniser_of_documents_differs_in_its_classes_alone() -> None:
    plain, documents = (TextRecognizerConfig(f"PP-OCRv4_server_rec{end}").parts for end in ("", "_doc"))
    assert documents == plain._replace(num_classes=15_631)
