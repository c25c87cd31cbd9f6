"""Parity of ResNet, ResNet-vd and CSPResNet with Paddle's own, stage by stage, loaded by each reference's own names.

The references are written by tools/golden/resnet.py. Weights are drawn from the names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from tests.golden.parity import check_stages
from zoo.vision.csp_resnet import CSPResNet, CSPResNetConfig
from zoo.vision.resnet import ResNet, ResNetConfig

DATA = Path(__file__).parent / "data" / "resnet"
# One case of each branch runs by default: basic blocks, grouped bottlenecks, vd with dilation, CSPResNet.
_SLOW = pytest.mark.slow
CASES: dict[str, ResNetConfig | CSPResNetConfig] = {
    "resnet18": ResNetConfig("resnet18"),
    "resnet18_vd": ResNetConfig("resnet18_vd"),
    "resnet50": ResNetConfig("resnet50"),
    "resnet50_vd": ResNetConfig("resnet50_vd"),
    "resnet18_vision": ResNetConfig("resnet18", project_first=False),
    "resnext50_32x4d": ResNetConfig("resnext50_32x4d"),
    "resnet50_vd_os8": ResNetConfig("resnet50_vd", 0, output_stride=8, multi_grid=(1, 2, 4)),
    "resnet18_vd_os16": ResNetConfig("resnet18_vd", 0, output_stride=16),
    "resnet50_det": ResNetConfig("resnet50", 0),
    "resnet101_vd_det": ResNetConfig("resnet101_vd", 0),
    "csp_resnet_s": CSPResNetConfig("s"),
}
OURS = ("resnet18", "resnet18_vd", "resnet50", "resnet50_vd", "csp_resnet_s")  # those whose names are ours
DEFAULT = ("resnet18", "resnext50_32x4d", "resnet50_vd_os8")


def load(case: str) -> tuple[dict[str, tuple[int, ...]], dict[str, np.ndarray]]:
    """Names and shapes of the reference's state dict, and the thinned output of each stage."""
    with np.load(DATA / f"{case}.npz") as data:
        lines = (line.split() for line in bytes(data["keys"]).decode().splitlines())
        shapes = {name: tuple(int(n) for n in shape.split("x")) for name, shape in lines}
        return shapes, {name: data[name] for name in data.files if name != "keys"}


def model_of(case: str) -> nn.Layer:
    config = CASES[case]
    return (ResNet(config) if isinstance(config, ResNetConfig) else CSPResNet(config)).eval()


def image() -> np.ndarray:
    return np.random.RandomState(7).standard_normal((1, 3, 75, 101)).astype(np.float32).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("case", CASES)
def test_the_names_of_the_reference_lead_to_ours(case: str) -> None:
    model, (shapes, _) = model_of(case), load(case)
    aliases = model.state_aliases()
    assert {aliases.get(name, name): shape for name, shape in shapes.items()} == model.state_shapes()
    assert len(shapes) == len(model.state_shapes())
    assert (case in OURS) == (shapes == model.state_shapes())


@pytest.mark.parametrize(
    "case",
    [
        case if case in DEFAULT else pytest.param(case, marks=_SLOW)
        for case in CASES
        if case != "csp_resnet_s"
    ],
)
def test_matches_the_reference_at_every_stage(case: str) -> None:
    model, (shapes, reference) = model_of(case), load(case)
    model.set_state_dict(named_weights(shapes))
    check_stages(model, reference, image())


def test_csp_resnet_matches_the_reference_in_both_forms() -> None:
    model, (shapes, reference) = model_of("csp_resnet_s"), load("csp_resnet_s")
    weights = named_weights(shapes)
    model.set_state_dict(weights)
    alphas = [float(value[0]) for name, value in weights.items() if name.endswith("alpha")]
    assert len(alphas) == 6 and min(alphas) < 0 < max(alphas)
    deployed = CSPResNet(CSPResNetConfig("s", deploy=True)).eval()
    deployed.set_state_dict(deploy_state(model))
    for form in (model, deployed):
        check_stages(form, reference, image(), 1e-5)  # the values are a tenth of the other networks'
