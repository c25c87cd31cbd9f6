"""Parity of UVDoc with PaddleX' network: names, stages, the grid and the image that is read with it.

The reference is written by tools/golden/uvdoc.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from framework.nn.reparam import fold_norms, reparameterize
from framework.vision.grid_warp import GridWarp
from ocr.models.uvdoc import PARAMS, UVDoc, UVDocConfig
from tests.golden.parity import check_stages, spelled
from tests.golden.thinning import amplify, thin

GAIN, SIZE_HW = 0.8, (150, 100)  # as in tools/golden/uvdoc.py
IMAGE = np.random.RandomState(7).uniform(0, 1, (1, 3, *SIZE_HW)).astype(np.float32)


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "data" / "uvdoc.npz") as data:
        return {name: data[name] for name in data.files}


def filled() -> UVDoc:
    model = UVDoc(UVDocConfig())
    model.set_state_dict(amplify(named_weights(model.state_shapes()), {"gain": GAIN}))
    return model.eval()


def image() -> np.ndarray:
    return IMAGE.transpose(0, 2, 3, 1)


def test_names_and_parameters_are_upstreams() -> None:
    model = UVDoc(UVDocConfig())
    assert spelled(model.state_shapes()) == bytes(reference()["keys"]).decode()
    # Paddle counts the running statistics among the parameters.
    assert sum(value.size for value in model.state_dict().values()) == int(reference()["count"])
    assert sum(value.size for value in model.parameters()) == PARAMS


def test_every_stage_matches_the_reference() -> None:
    stored = reference()
    wanted = {name: value for name, value in stored.items() if name not in ("keys", "count", "grid", "flat")}
    assert len(wanted) == 8
    check_stages(filled(), wanted, image())


@pytest.fixture(scope="module")
def grid() -> np.ndarray:
    """Of the deploy form."""
    return np.asarray(reparameterize(filled())(image()))


def test_the_deploy_form_gives_the_references_grid(grid: np.ndarray) -> None:
    wanted = reference()["grid"].transpose(0, 2, 3, 1)
    assert grid.shape == (1, 45, 31, 2) and wanted.std() > 0.01
    np.testing.assert_allclose(grid, wanted, rtol=0, atol=1e-4)


def test_the_flat_image_is_that_of_upstreams_program(grid: np.ndarray) -> None:
    flat = GridWarp.from_unit_grid(grid[0], SIZE_HW).image(image()[0])
    # Weights of interpolation are of 5 bits in OpenCV: a 32nd of the contrast of neighbours, here up to 1.
    np.testing.assert_allclose(thin(flat.transpose(2, 0, 1)), reference()["flat"], rtol=0, atol=0.04)


def test_folding_in_place_is_the_deploy_form() -> None:
    folded = fold_norms(filled())
    deployed = reparameterize(filled())
    assert folded.state_shapes() == deployed.state_shapes()
    for name, value in deployed.state_dict().items():
        np.testing.assert_array_equal(folded.state_dict()[name], value)
