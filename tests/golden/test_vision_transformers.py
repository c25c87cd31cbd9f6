"""Parity of MiT, Swin, ViT and DeiT with PaddleSeg, PaddleClas and timm, stage by stage.

The references are written by tools/golden/vision_transformers.py. Weights are drawn from names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.parity import check_stages, spelled
from zoo.vision.mit import MixVisionTransformer, MixVisionTransformerConfig
from zoo.vision.swin import SwinTransformer, SwinTransformerConfig
from zoo.vision.vit import VisionTransformer, VisionTransformerConfig

SLOW = pytest.mark.slow
DATA = Path(__file__).parent / "data" / "vision_transformers"


def load(case: str) -> tuple[str, dict[str, np.ndarray]]:
    """(the reference's names and shapes, its outputs by our names)"""
    with np.load(DATA / f"{case}.npz") as data:
        return bytes(data["keys"]).decode(), {name: data[name] for name in data.files if name != "keys"}


def image(*shape: int) -> np.ndarray:
    """[N, H, W, 3], the values that the references drew as [N, 3, H, W]."""
    n, h, w = shape
    return np.random.RandomState(5).standard_normal((n, 3, h, w)).astype(np.float32).transpose(0, 2, 3, 1)


def filled(model: nn.Layer) -> nn.Layer:
    shapes = model.state_shapes()
    drawn = {name: shape for name, shape in shapes.items() if not name.endswith("relative_position_index")}
    model.set_state_dict(named_weights(drawn))
    return model.eval()


def test_mit_at_an_odd_size() -> None:
    keys, reference = load("mit_b0")
    model = filled(MixVisionTransformer(MixVisionTransformerConfig("mit_b0", num_classes=0)))
    check_stages(model, reference, image(2, 70, 101))
    assert spelled(model.state_shapes()) == keys


def test_swin_where_every_stage_is_padded() -> None:
    keys, reference = load("swin_tiny")
    model = filled(SwinTransformer(SwinTransformerConfig("swin_tiny")))
    check_stages(model, reference, image(1, 260, 300))
    assert spelled(model.state_shapes()) == keys


@pytest.mark.parametrize(
    ("case", "width"),
    [("timm_swin_tiny_wide", 448), pytest.param("timm_swin_tiny", 224, marks=SLOW)],
)
def test_swin_where_a_window_covers_an_axis_of_the_last_stage(case: str, width: int) -> None:
    keys, reference = load(case)
    model = filled(SwinTransformer(SwinTransformerConfig("swin_tiny")))
    check_stages(model, reference, image(1, 224, width))
    theirs = dict(line.split(" ") for line in keys.splitlines())
    zeros = {name: np.zeros([int(n) for n in shape.split("x")]) for name, shape in theirs.items()}
    assert model.set_state_dict(zeros) == ([], [])


@pytest.mark.parametrize(
    ("case", "side"),
    [
        ("deit_tiny", 80),
        ("deit_tiny_distilled", 80),
        pytest.param("vit_small_patch16", 64, marks=SLOW),
        pytest.param("vit_base_patch16", 64, marks=SLOW),
        pytest.param("vit_base_patch32_384", 64, marks=SLOW),
    ],
)
def test_vit(case: str, side: int) -> None:
    keys, reference = load(case)
    model = filled(VisionTransformer(VisionTransformerConfig(case, image_size=side)))
    logits = reference.pop("logits", None)
    x = image(2, side, side)
    check_stages(model, reference, x)
    assert spelled(model.state_shapes()) == keys
    if logits is not None:
        flat = np.asarray(model(x)).reshape(-1)
        np.testing.assert_allclose(flat[:: -(-flat.size // 160)], logits, atol=1e-4 * np.abs(logits).max())
