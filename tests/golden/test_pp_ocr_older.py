"""Parity of the PP-OCRv3, v4 and v5 mobile networks with the PyTorch port in rapidocr, stage by stage, in both forms.

The references are written by tools/golden/pp_ocr_older.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_recognizer import TextRecognizer, TextRecognizerConfig
from tests.golden.parity import check_stages, spelled, stages
from zoo.vision.pp_lcnet_v3 import LearnableRepLayer

DATA = Path(__file__).parent / "data" / "pp_ocr_older"
# The detector of PP-OCRv4 is that of v5.
VARIANTS = ["PP-OCRv5_mobile_det", "PP-OCRv3_mobile_rec", "PP-OCRv4_mobile_rec", "PP-OCRv5_mobile_rec"]


def build(variant: str) -> DBNet | TextRecognizer:
    model = (
        DBNet(DBNetConfig(variant))
        if variant.endswith("det")
        else TextRecognizer(TextRecognizerConfig(variant))
    )
    model.set_state_dict(named_weights(model.state_shapes()))
    model.eval()
    return model


def image(variant: str) -> np.ndarray:
    shape = (1, 3, 64, 96) if variant.endswith("det") else (2, 3, 48, 96)
    return np.random.RandomState(5).standard_normal(shape).astype(np.float32).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_training_form_matches_the_reference_at_every_stage(variant: str) -> None:
    model = build(variant)
    with np.load(DATA / f"{variant}.npz") as data:
        keys = bytes(data["keys"]).decode()
        reference = {name: data[name] for name in data.files if name != "keys"}
    check_stages(model, reference, image(variant))
    assert spelled(model.state_shapes()) == keys


@pytest.mark.parametrize("variant", ["PP-OCRv5_mobile_det", "PP-OCRv3_mobile_rec", "PP-OCRv4_mobile_rec"])
def test_deploy_form_equals_training_form(variant: str) -> None:
    model, x = build(variant), image(variant)
    # The maps before the sigmoid: behind it most values of such weights are 0 or 1.
    last = "head.binarize.conv3" if variant.endswith("det") else "head.ctc_head.fc"
    want, ours = (stages(form, [last], x)[last] for form in (model, reparameterize(model)))
    assert want.std() > 0.01
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-5 * max(1.0, float(np.abs(want).max())))


def count(shapes: dict[str, tuple[int, ...]]) -> int:
    return sum(int(np.prod(shape)) for shape in shapes.values())


@pytest.mark.parametrize(
    ("variant", "trained", "deployed", "exported"),
    [
        ("PP-OCRv3_mobile_det", 615978, 573905, 592625),
        ("PP-OCRv5_mobile_det", 3570810, 1171505, 1171721),
        ("PP-OCRv3_mobile_rec", 2652257, 2633369, 2652257),
        ("PP-OCRv4_mobile_rec", 6329629, 2687653, 2690221),
        ("PP-OCRv5_mobile_rec", 7752589, 4110613, 4113181),
    ],
)
def test_sizes(variant: str, trained: int, deployed: int, exported: int) -> None:
    """Values in each form; upstream's export re-parameterises the branches and keeps all other normalisations."""

    def make(deploy: bool) -> nn.Layer:
        if variant.endswith("det"):
            return DBNet(DBNetConfig(variant, deploy=deploy))
        return TextRecognizer(TextRecognizerConfig(variant, deploy=deploy))

    model, shapes, folded = make(False), make(False).state_shapes(), make(True).state_shapes()
    assert (count(shapes), count(folded)) == (trained, deployed)
    reps = tuple(f"{n}." for n, layer in model.named_sublayers() if isinstance(layer, LearnableRepLayer))
    kept = {n: s for n, s in shapes.items() if not n.startswith((*reps, "head.thresh."))}
    kept |= {n: s for n, s in folded.items() if n.startswith(reps)}
    assert count(kept) == exported


def test_the_detector_of_v4_is_that_of_v5() -> None:
    assert DBNetConfig("PP-OCRv4_mobile_det").parts == DBNetConfig("PP-OCRv5_mobile_det").parts
