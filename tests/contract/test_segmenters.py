"""Every segmentation model finds the same masks from its config and weights as from its artifact, pixel for pixel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import framework
import segmentation
from framework.interop import write_safetensors
from framework.workflow.export.export import write_artifact
from tests.contract.cases import CASES, Case

REPO = Path(__file__).resolve().parents[2]
SEGMENTERS = [case for case in CASES if type(case.full).__module__.startswith("segmentation.") and case.small]


def test_there_is_a_row_for_every_model() -> None:
    assert {case.name for case in SEGMENTERS} >= {"PPLiteSeg", "SegFormer", "HRNetW48Contrast", "CGNet"}


@pytest.mark.parametrize("case", SEGMENTERS, ids=str)
def test_config_and_artifact_give_the_same_masks(case: Case, tmp_path: Path) -> None:
    framework.seed(0)
    state = {name: np.asarray(value) for name, value in case.build().state_dict().items()}
    write_safetensors(tmp_path / "model.safetensors", state)
    model = {"type": case.name, "num_classes": case.small.num_classes}
    config = {
        "_base_": (REPO / "configs/_base_/segmentation.yml").as_posix(),
        "model": model | ({"variant": case.variant} if case.variant else {}),
        "weights": (tmp_path / "model.safetensors").as_posix(),
        "export": {"precisions": ["float32"]},
    }
    (tmp_path / "seg.yml").write_text(json.dumps(config), encoding="utf-8")
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (6, 9, 3), np.uint8).repeat(10, axis=0).repeat(10, axis=1)
    labels = segmentation.predictor(tmp_path / "seg.yml", device="cpu")(image).labels
    folder = write_artifact(tmp_path / "seg.yml", tmp_path / "made")
    assert len(np.unique(labels)) > 1 and labels.shape == (60, 90)
    np.testing.assert_array_equal(segmentation.predictor(folder, device="cpu")(image).labels, labels)
