"""Parity of FCOS with PaddleDetection: names, boxes and scores of the cells, what each cell learns, the losses.

The reference is written by `tools.golden fcos`. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Targets
from detection.models.fcos import FCOS, FCOSConfig, assign_cells
from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.parity import spelled
from tests.golden.thinning import amplify, thin
from tools.golden.detectors import fcos_objects

DATA = Path(__file__).parent / "data" / "fcos"
# High images, so that every map has an object
REFERENCES: dict[str, dict[str, Any]] = {
    "r50_fpn": {
        "parts": {
            "backbone": {
                "call": "ppdet.modeling.backbones.resnet.ResNet",
                "options": {
                    "depth": 50,
                    "variant": "b",
                    "return_idx": [1, 2, 3],
                    "freeze_at": -1,
                    "freeze_norm": False,
                },
            },
            "neck": {
                "call": "ppdet.modeling.necks.fpn.FPN",
                "options": {
                    "in_channels": "=backbone.out_shape.*.channels",
                    "out_channel": 256,
                    "spatial_scales": [0.125, 0.0625, 0.03125],
                    "extra_stage": 2,
                    "has_extra_convs": True,
                    "use_c5": False,
                },
            },
            "fcos_head": {
                "call": "ppdet.modeling.heads.fcos_head.FCOSHead",
                "options": {
                    "fcos_feat": {
                        "call": "ppdet.modeling.heads.fcos_head.FCOSFeat",
                        "options": {"norm_type": "gn"},
                    },
                    "fcos_loss": {"call": "ppdet.modeling.losses.fcos_loss.FCOSLoss"},
                    "nms": None,
                },
            },
        },
        "run": "tools.golden.detectors.fcos",
        "gain": 0.7,
        "kept": 400,
        "size_hw": [1216, 160],
    }
}
ROW = REFERENCES["r50_fpn"]
SIZE_HW = (1216, 160)


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    with np.load(DATA / "r50_fpn.npz") as data:
        return {name: data[name] for name in data.files}


@pytest.fixture(scope="module")
def model(reference: dict[str, np.ndarray]) -> FCOS:
    """With the weights of the reference, under its names."""
    lines = (line.partition(" ") for line in bytes(reference["keys"]).decode().splitlines())
    shapes = {key: tuple(map(int, shape.split("x"))) for key, _, shape in lines}
    built = FCOS(FCOSConfig()).eval()
    assert len(shapes) == FCOSConfig().parts.entries
    assert spelled(dict(built._without_aliases(shapes))) == spelled(built.state_shapes())
    assert sum(parameter.size for parameter in built.parameters()) == int(reference["count"])
    built.set_state_dict(amplify(named_weights(shapes), ROW))
    return built


def targets() -> Targets:
    boxes, labels, valid = fcos_objects(SIZE_HW)
    return Targets(*map(jnp.asarray, (boxes, labels.astype(np.int32), valid, np.int32(0))))


def test_cells_and_losses(model: FCOS, reference: dict[str, np.ndarray]) -> None:
    x = np.random.RandomState(7).standard_normal((2, 3, *SIZE_HW)).astype(np.float32).transpose(0, 2, 3, 1)
    graphdef, params, buffers = nn.split(model)
    by_iou = nn.split(FCOS(FCOSConfig(quality="iou")).eval())[0]

    @jax.jit
    def run(params: Any, buffers: Any) -> Any:
        found = nn.apply(graphdef, params, buffers, None, x, method="flatten")[0]
        losses = [
            nn.apply(graph, params, buffers, None, x, targets(), method="loss")[0]
            for graph in (graphdef, by_iou)
        ]
        boxes, _, valid = fcos_objects(SIZE_HW)
        cells = assign_cells(found.grid, jnp.asarray(boxes[0]), jnp.asarray(valid[0]))
        return found.scores(), found.boxes(), losses, cells

    scores, boxes, losses, cells = run(params, buffers)
    for name, ours in (("scores", scores), ("boxes", boxes)):
        want = reference[name]
        assert want.std() > 0.01, name
        limit = 1e-4 * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(thin(np.asarray(ours), 400), want, rtol=0, atol=limit, err_msg=name)

    labels = np.where(cells.positive, fcos_objects(SIZE_HW)[1][0][cells.index] + 1, 0)
    np.testing.assert_array_equal(labels, reference["labels"])
    np.testing.assert_allclose(
        thin(np.asarray(cells.quality), 400), reference["centerness"], rtol=0, atol=1e-5
    )
    counts = [-(-SIZE_HW[0] // stride) * -(-SIZE_HW[1] // stride) for stride in (8, 16, 32, 64, 128)]
    assert all((level > 0).any() for level in np.split(labels, np.cumsum(counts)[:-1]))

    for quality, found in zip(("centerness", "iou"), losses, strict=True):
        for name, value in {"loss": found.total, **found.parts}.items():
            want = float(reference[f"{name}@{quality}"].reshape(()))
            assert float(value) == pytest.approx(want, rel=1e-4), f"{name}, {quality}"
    assert not np.isclose(*(float(found.parts["loss_box"]) for found in losses))
