"""Parity of DBNet and DBNet++ on ResNet-50, and of CRNN, with PaddleOCR's code, stage by stage.

The references are written by tools/golden/pp_ocr_server.py. Weights are drawn from upstream's names: none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from framework.config import build, load
from framework.engine.experiment import bind_experiment
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from ocr.models.dbnet import DBNet, DBNetConfig
from tests.golden.parity import check_stages, spelled, stages
from tests.golden.thinning import amplify, images, thin

REPO = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data" / "pp_ocr_server"
PLUS, PLAIN = "DB++_R50", "DB_R50_vd"
# The stages of ResNet-vd have PaddleClas's names here.
OURS = {
    "backbone.conv1_3": "backbone.stem.2",
    **{
        f"backbone.bb_{i}_{n}": f"backbone.blocks.{k}"
        for i, n, k in ((0, 2, 2), (1, 3, 6), (2, 5, 12), (3, 2, 15))
    },
}
VARIANTS = [PLUS, pytest.param(PLAIN, marks=pytest.mark.slow)]


def reference(variant: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{variant}.npz") as data:
        return {name: data[name] for name in data.files}


def upstream_shapes(variant: str) -> dict[str, tuple[int, ...]]:
    lines = bytes(reference(variant)["keys"]).decode().splitlines()
    return {
        name: tuple(map(int, shape.split("x"))) for name, _, shape in (line.partition(" ") for line in lines)
    }


@functools.cache
def filled(variant: str) -> DBNet:
    """Loaded strictly, under upstream's names."""
    model = DBNet(DBNetConfig(variant))
    model.set_state_dict(named_weights(upstream_shapes(variant)))
    model.eval()
    return model


def image() -> np.ndarray:
    return images({"size_hw": (64, 96), "images": 1}).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("variant", [PLUS, PLAIN])
def test_names_and_counts_are_upstreams(variant: str) -> None:
    """DBNet++ has them itself; ResNet-vd has those of PaddleClas and takes upstream's."""
    model, shapes = DBNet(DBNetConfig(variant)), upstream_shapes(variant)
    assert spelled(dict(model._without_aliases(shapes))) == spelled(model.state_shapes())
    assert (model.state_shapes() == shapes) == (variant == PLUS)
    values, unused, parameters = reference(variant)["count"].tolist()
    assert unused == 0 and sum(int(np.prod(shape)) for shape in shapes.values()) == values
    assert sum(parameter.size for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_stage_matches_the_reference(variant: str) -> None:
    stored = reference(variant)
    wanted = {OURS.get(name, name): stored[name] for name in stored if "." in name or name == "neck"}
    assert len(wanted) >= 7
    model = filled(variant)
    check_stages(model, wanted, image())
    found = np.asarray(model(image()).probability)
    np.testing.assert_allclose(thin(found), stored["map"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("variant", "config"),
    [("CRNN_R34_vd", "rec_r34_vd_none_bilstm_ctc"), ("CRNN_MV3", "rec_mv3_none_bilstm_ctc")],
)
def test_crnn_matches_the_reference(variant: str, config: str) -> None:
    """The model of the config that trains it, with the classes of its dictionary."""
    stored = reference(variant)
    experiment = bind_experiment(load(REPO / "configs" / "ocr" / "rec" / f"{config}.yml"))
    assert experiment.task is not None
    model = build(experiment.task.adapt_model(experiment.model))
    assert spelled(model.state_shapes()) == bytes(stored["keys"]).decode()
    assert sum(parameter.size for parameter in model.parameters()) == stored["count"][2]
    weights = named_weights(model.state_shapes())
    backbone = {name: value for name, value in weights.items() if name.startswith("backbone.")}
    model.set_state_dict({**weights, **amplify(backbone, {"gain": float(stored["gain"])})})
    model.eval()
    x = images({"size_hw": (32, 96)}).transpose(0, 2, 3, 1)
    wanted = {name: stored[name] for name in stored if "." in name or name == "neck"}
    assert len(wanted) == 7
    check_stages(model, wanted, x)
    want, ours = (stages(form, ["head.fc"], x)["head.fc"] for form in (model, reparameterize(model)))
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4)
