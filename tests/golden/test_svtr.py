"""Parity of SVTR with PaddleOCR's code, stage by stage, with and without its rectification.

The references are written by tools/golden/svtr.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from ocr.models.svtr import SVTR, SVTRConfig
from tests.family import family
from tests.golden.parity import check_stages, spelled, stages
from tests.golden.thinning import images, soft_images
from zoo.vision.svtr import VARIANTS, SVTRNetConfig

DATA = Path(__file__).parent / "data" / "svtr"
LAST_BIAS = "transform.stn_head.stn_fc2.bias"
CASES: dict[str, SVTRConfig] = {
    "svtr_tiny_stn": SVTRConfig(rectify=(32, 100)),
    **{variant: SVTRConfig(SVTRNetConfig(variant)) for variant in VARIANTS},
    "svtr_tiny_ch": SVTRConfig(SVTRNetConfig(image_hw=(32, 320), columns=40, out_channels=96)),
}


def reference(case: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{case}.npz") as data:
        return {name: data[name] for name in data.files}


def filled(case: str) -> tuple[SVTR, np.ndarray]:
    """The model with the reference's weights, and the reference's images."""
    model = SVTR(CASES[case])
    weights = named_weights(model.state_shapes())
    if LAST_BIAS in weights:
        weights[LAST_BIAS] = 0.5 * weights[LAST_BIAS] + np.asarray(model.state_dict()[LAST_BIAS])
        x = soft_images((64, 256))
    else:
        x = images({"size_hw": model.backbone.size.image_hw})
    model.set_state_dict(weights)
    model.eval()
    return model, x.transpose(0, 2, 3, 1)


@pytest.mark.parametrize("case", CASES)
def test_names_and_counts_are_upstreams(case: str) -> None:
    model, stored = SVTR(CASES[case]), reference(case)
    assert spelled(model.state_shapes()) == bytes(stored["keys"]).decode()
    counts = [sum(parameter.size for parameter in part.parameters()) for part in (model, model.backbone)]
    assert counts == stored["count"].tolist()


@pytest.mark.parametrize("case", family(["svtr_tiny_stn", "svtr_small", "svtr_tiny", "svtr_tiny_ch"]))
def test_every_stage_matches_the_reference(case: str) -> None:
    """A place in the image that differs in its seventh digit is one of 2e-3 pixels: upstream inverts in float32."""
    model, x = filled(case)
    wanted = {name: value for name, value in reference(case).items() if "." in name or name == "transform"}
    assert len(wanted) >= 8
    check_stages(model, wanted, x)


def test_the_deploy_form_computes_the_same() -> None:
    model, x = filled("svtr_tiny_stn")
    want, ours = (stages(form, ["head.fc"], x)["head.fc"] for form in (model, reparameterize(model)))
    assert want.std() > 0.5
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4 * float(np.abs(want).max()))
