"""State dicts of torchvision's classifiers load by torchvision's names and give its logits.

References: tools/golden/torchvision_models.py. Weights are drawn from the names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.torch_state import TorchState
from framework.interop.named_weights import named_weights
from framework.workflow.domain.weights import load_state_into
from tests.golden.thinning import images, thin
from tests.golden.torch_weights import torch_weights
from zoo.vision.mobilenet_v3 import MobileNetV3Config
from zoo.vision.resnet import ResNetConfig
from zoo.vision.swin import SwinTransformerConfig
from zoo.vision.vgg import VGGConfig
from zoo.vision.vit import VisionTransformerConfig

DATA = Path(__file__).parent / "data" / "torchvision"
RESNETS = (
    *(f"resnet{depth}" for depth in (18, 34, 50, 101, 152)),
    *("resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2"),
)
# case: config, side of the image
CASES: dict[str, tuple[Any, int]] = {
    **{name: (ResNetConfig(name), 64) for name in RESNETS},
    "vgg11": (VGGConfig("vgg11"), 64),
    "vgg16_bn": (VGGConfig("vgg16_bn"), 64),
    **{
        f"mobilenet_v3_{size}": (MobileNetV3Config(f"mobilenetv3_{size}_x1_0", original=True), 64)
        for size in ("small", "large")
    },
    "vit_b_16": (VisionTransformerConfig("vit_base_patch16"), 224),
    "swin_t": (SwinTransformerConfig("swin_tiny"), 88),
}


def reference(case: str) -> tuple[dict[str, tuple[int, ...]], set[str], np.ndarray]:
    """Torchvision's names and shapes, which of them are weights of linear layers, and thinned logits."""
    with np.load(DATA / f"{case}.npz") as data:
        lines = [line.split(" ") for line in bytes(data["keys"]).decode().splitlines()]
        shapes = {name: tuple(int(n) for n in shape.split("x") if n) for name, shape, _ in lines}
        return shapes, {name for name, _, kind in lines if kind == "T"}, data["logits"]


def state_of(case: str) -> TorchState:
    shapes, linear, _ = reference(case)
    drawn = torch_weights(shapes, linear, named_weights)
    return TorchState({name: drawn.get(name, np.zeros(shape, np.int64)) for name, shape in shapes.items()})


@pytest.mark.parametrize("case", CASES)
def test_the_names_lead_to_ours(case: str) -> None:
    shapes, linear, _ = reference(case)
    model = build(CASES[case][0])
    constants = ("num_batches_tracked", "relative_position_index")
    found = {
        name: shapes[theirs][::-1] if theirs in linear else shapes[theirs]
        for name, theirs in model._without_aliases({name: name for name in shapes}).items()
        if not name.endswith(constants)
    }
    leaves = {".running_mean": "._mean", ".running_var": "._variance"}
    for theirs, ours in leaves.items():
        found = {name.replace(theirs, ours): shape for name, shape in found.items()}
    ours = {name: s for name, s in model.state_shapes().items() if not name.endswith(constants)}
    if case in ("resnet18", "resnet34"):  # PaddleClas's have a projection more, which loading takes away
        ours = {name: shape for name, shape in ours.items() if not name.startswith("blocks.0.short.")}
    known = model._without_aliases(found)
    assert dict(known) == ours


@pytest.mark.parametrize(
    "case", [case if case == "resnet18" else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_logits_are_torchvisions(case: str) -> None:
    config, side = CASES[case]
    model: nn.Layer = load_state_into(build(config), state_of(case)).eval()
    x = images({"size_hw": (side, side), "images": 1}).transpose(0, 2, 3, 1)
    graphdef, params, buffers = nn.split(model)
    logits = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, x)
    want = reference(case)[2]
    assert want.std() > 0.1
    limit = 1e-4 * max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(thin(np.asarray(logits)), want, rtol=0, atol=limit)
