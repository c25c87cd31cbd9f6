"""Parity of the classifiers of paddle.vision: names, stages, logits. Reference: tools/golden/reference.py."""

from __future__ import annotations

from typing import Any

import pytest

from framework.workflow.open.models import create_model
from tests.golden.parity import check_reference

REFERENCES: dict[str, dict[str, Any]] = {
    "alexnet": {
        "call": "paddle.vision.models.alexnet",
        "size_hw": (224, 224),
        "stages": ("_conv1", "_conv2", "_conv5", "_fc6", "_fc7"),
    },
    "densenet121": {
        "call": "paddle.vision.models.densenet121",
        "gain": 1.5,
        "size_hw": (64, 96),
    },
    "densenet161": {
        "call": "paddle.vision.models.densenet161",
        "gain": 1.5,
        "size_hw": (96, 64),
        "stages": ("conv1_func", "db_conv_2", "tr_conv2_blk", "db_conv_3", "db_conv_4", "db_conv_5"),
    },
    "googlenet": {
        "call": "paddle.vision.models.googlenet",
        "size_hw": (192, 224),
        "stages": ("_conv", "_conv_2", "_ince3b", "_ince4a", "_ince4d", "_ince5b"),
        "train": True,
        "eval": "eval.0",  # the inner classifiers run in training alone
    },
    "inception_v3": {
        "call": "paddle.vision.models.inception_v3",
        "gain": 1.5,
        "size_hw": (107, 139),
        "stages": (
            "inception_stem",
            "inception_block_list.0",
            "inception_block_list.3",
            "inception_block_list.4",
            "inception_block_list.8",
            "inception_block_list.9",
        ),
    },
    "mobilenetv2_x1_0": {
        "call": "paddle.vision.models.mobilenet_v2",
        "gain": 1.9,
        "size_hw": (75, 97),
        "stages": ("features.0", "features.1", "features.3", "features.6", "features.17", "features.18"),
        "train": True,
    },
    "mobilenetv2_x0_25": {
        "call": "paddle.vision.models.mobilenet_v2",
        "options": {"scale": 0.25},
        "gain": 1.9,
        "size_hw": (64, 96),
    },
    "shufflenet_v2_x1_0": {
        "call": "paddle.vision.models.shufflenet_v2_x1_0",
        "gain": 1.5,
        "size_hw": (75, 97),
        "stages": ("_conv1", "2_1", "2_2", "3_8", "4_4", "_last_conv"),
    },
    "shufflenet_v2_swish": {
        "call": "paddle.vision.models.shufflenet_v2_swish",
        "gain": 1.7,
        "size_hw": (64, 96),
        "stages": ("_conv1", "2_1", "2_2"),
    },
    "squeezenet1_0": {
        "call": "paddle.vision.models.squeezenet1_0",
        "size_hw": (75, 97),
        "stages": ("_conv1", "_conv3", "_conv4", "_conv7", "_conv8"),
    },
    "squeezenet1_1": {
        "call": "paddle.vision.models.squeezenet1_1",
        "size_hw": (64, 96),
        "stages": ("_conv1", "_conv2", "_conv3", "_conv5", "_conv8"),
    },
}
SLOW = ("densenet161", "mobilenetv2_x0_25", "shufflenet_v2_swish", "squeezenet1_0")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in REFERENCES]
)
def test_matches_paddle_vision(name: str) -> None:
    check_reference(create_model(name), "paddle_vision", name, REFERENCES[name])
