"""SVTR: what its config says, and what it takes."""

from typing import Annotated, Any

import numpy as np
import pytest

from framework.config import Kind, bind
from framework.core.errors import ShapeError
from ocr.models.svtr import SVTR, SVTRConfig
from zoo.vision.svtr import SVTRNetConfig

SMALL = SVTRNetConfig(image_hw=(32, 32), columns=8)


def test_binding_from_a_file() -> None:
    tree = {
        "type": "SVTR",
        "backbone": {"type": "SVTRNet", "variant": "svtr_base", "out_channels": 96},
        "rectify": [48, 160],
        "num_classes": None,
    }
    config = bind(tree, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
    assert config == SVTRConfig(SVTRNetConfig("svtr_base", out_channels=96), (48, 160), None)


def test_rectified_lines_have_any_size() -> None:
    model = SVTR(SVTRConfig(SMALL, rectify=(32, 32), num_classes=5)).eval()
    x = np.random.RandomState(0).uniform(-1, 1, (2, 40, 90, 3)).astype(np.float32)
    logits = np.asarray(model(x))
    indices, probabilities = (np.asarray(part) for part in model.read(x))
    assert logits.shape == (2, 8, 5)
    np.testing.assert_array_equal(indices, logits.argmax(-1))
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(probabilities, 1 / odds.sum(-1), rtol=1e-5)


def test_what_it_does_not_take() -> None:
    model = SVTR(SVTRConfig(SMALL))
    with pytest.raises(ShapeError, match=r"takes color images[\s\S]*\[N, H, W, 3\]"):
        model(np.zeros((1, 32, 32, 1), np.float32))
    with pytest.raises(ShapeError, match=r"height 32, width 100[\s\S]*32 by 32"):
        model(np.zeros((1, 32, 100, 3), np.float32))
