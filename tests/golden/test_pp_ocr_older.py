"""Parity of the PP-OCRv3, v4 and v5 mobile networks with the PyTorch port in rapidocr, stage by stage, in both forms.

The references are written by tools/golden/pp_ocr_older.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.io.named_weights import named_weights
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_recognizer import TextRecognizer, TextRecognizerConfig
from tests.golden.parity import check_stages, spelled, stages
from zoo.layers.reparam import reparameterize

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
