"""Parity of VGG with paddle.vision: names, stages, logits. Reference: `tools.golden vgg`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.nn import functional as F
from tests.golden.parity import check_reference
from zoo.vision.vgg import VGG, VGGConfig

REFERENCES: dict[str, dict[str, Any]] = {
    "vgg11": {
        "call": "paddle.vision.models.vgg11",
        "size_hw": (64, 96),
        "images": 2,
        "stages": ("features.2", "features.10", "features.20", "classifier.0", "classifier.3"),
    },
    "vgg16_bn": {
        "call": "paddle.vision.models.vgg16",
        "options": {"batch_norm": True, "num_classes": 0, "with_pool": False},
        "size_hw": (75, 97),
        "stages": ("features.6", "features.13", "features.23", "features.33", "features.43"),
        "train": True,
    },
}


@pytest.mark.parametrize("name", [pytest.param("vgg11", marks=pytest.mark.slow), "vgg16_bn"])
def test_matches_paddle_vision(name: str) -> None:
    case = REFERENCES[name]
    classes = case.get("options", {}).get("num_classes", 1000)
    check_reference(VGG(VGGConfig(name, num_classes=classes)), "vgg", name, case)


def test_the_classifier_reads_channels_first() -> None:
    """The default run's share of `vgg11`, whose linear layers alone have 120 million weights."""
    model = VGG(VGGConfig("vgg11", num_classes=5, hidden_size=8)).eval()
    x = np.random.RandomState(7).standard_normal((2, 64, 96, 3)).astype(np.float32)
    pooled = np.asarray(F.adaptive_avg_pool2d(model.forward_features(x)[-1], 7))
    want = model.classifier(np.stack([image.transpose(2, 0, 1).reshape(-1) for image in pooled]))
    assert np.ptp(want, axis=0).max() > 1e-3
    np.testing.assert_allclose(model(x), want, rtol=0, atol=1e-6)
