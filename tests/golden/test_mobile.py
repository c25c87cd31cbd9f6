"""Parity of the mobile backbones and PP-HGNetV2 with PaddleClas, stage by stage, in training and in deploy form.

The references are written by tools/golden/mobile.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from tests.golden.parity import check_stages, spelled, stages
from zoo.vision.mobilenet_v1 import MobileNetV1, MobileNetV1Config
from zoo.vision.mobilenet_v3 import MobileNetV3, MobileNetV3Config
from zoo.vision.pp_hgnet_v2 import PPHGNetV2, PPHGNetV2Config
from zoo.vision.pp_lcnet import PPLCNet, PPLCNetConfig
from zoo.vision.pp_lcnet_v2 import PPLCNetV2, PPLCNetV2Config
from zoo.vision.pp_lcnet_v3 import PPLCNetV3, PPLCNetV3Config

DATA = Path(__file__).parent / "data" / "mobile"
CASES: dict[str, tuple[Any, Any]] = {
    "mobilenetv1_x0_25": (MobileNetV1, MobileNetV1Config),
    "mobilenetv3_small_x0_75": (MobileNetV3, MobileNetV3Config),
    "mobilenetv3_large_x0_5": (MobileNetV3, MobileNetV3Config),
    "pplcnet_x0_35": (PPLCNet, PPLCNetConfig),
    "pplcnetv2_small": (PPLCNetV2, PPLCNetV2Config),
    "pplcnetv3_base": (PPLCNetV3, PPLCNetV3Config),
    "pphgnetv2_b0": (PPHGNetV2, PPHGNetV2Config),
    "pphgnetv2_b4": (PPHGNetV2, PPHGNetV2Config),
}
# The PP-OCR goldens compile the blocks of PP-LCNetV3 in every run.
SLOW = pytest.param("pplcnetv3_base", marks=pytest.mark.slow)
MARKED = [SLOW if case == "pplcnetv3_base" else case for case in CASES]


def image() -> np.ndarray:
    """An odd size: padding and pooling at the borders count."""
    return np.random.RandomState(7).standard_normal((2, 3, 75, 97)).astype(np.float32).transpose(0, 2, 3, 1)


def build(case: str, gain: float) -> nn.Layer:
    model, config = CASES[case]
    model = model(config(case))
    weights = named_weights(model.state_shapes())
    model.set_state_dict({name: gain * w if w.ndim == 4 else w for name, w in weights.items()})
    return model.eval()


@pytest.mark.parametrize("case", MARKED)
def test_every_stage_matches_the_reference(case: str) -> None:
    with np.load(DATA / f"{case}.npz") as data:
        keys, gain = bytes(data["keys"]).decode(), float(data["gain"])
        reference = {name: data[name] for name in data.files if name not in ("keys", "gain")}
    model = build(case, gain)
    check_stages(model, reference, image())
    assert spelled(model.state_shapes()) == keys


@pytest.mark.parametrize("case", ["pplcnetv2_small", SLOW])
def test_deploy_form_equals_training_form(case: str) -> None:
    with np.load(DATA / f"{case}.npz") as data:
        model = build(case, float(data["gain"]))
    want, ours = (stages(form, ["fc"], image())["fc"] for form in (model, reparameterize(model)))
    assert np.ptp(want, axis=0).max() > 0.01
    np.testing.assert_allclose(ours, want, rtol=0, atol=2e-5 * max(1.0, float(np.abs(want).max())))
