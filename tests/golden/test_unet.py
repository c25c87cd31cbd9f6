"""Parity of UNet with PaddleSeg: names, stages, logits. Reference: `tools.golden unet`."""

from __future__ import annotations

from typing import Any

import pytest

from segmentation.models.unet import UNet, UNetConfig
from tests.golden.parity import check_reference

REFERENCES: dict[str, dict[str, Any]] = {
    "bilinear": {
        "call": "paddleseg.models.UNet",
        "options": {"num_classes": 19},
        "size_hw": (97, 130),
        "stages": ("encode.double_conv", "encode.down_sample_list.3", "decode.up_sample_list.0", "decode"),
        "train": True,
    },
    "align_corners": {
        "call": "paddleseg.models.UNet",
        "options": {"num_classes": 5, "align_corners": True, "in_channels": 4},
        "size_hw": (65, 49),
        "stages": ("decode.up_sample_list.0", "decode"),
    },
    "deconv": {
        "call": "paddleseg.models.UNet",
        "options": {"num_classes": 5, "use_deconv": True},
        "size_hw": (64, 48),
        "stages": ("decode.up_sample_list.0.deconv", "decode.up_sample_list.0", "decode"),
    },
}


@pytest.mark.parametrize("name", REFERENCES)
def test_matches_paddleseg(name: str) -> None:
    case = REFERENCES[name]
    check_reference(UNet(UNetConfig(**case["options"])), "unet", name, case)
