"""Parity of STDC1 and STDC2 with PaddleSeg: names, and the maps at all strides. Reference: tools/golden/stdc.py."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.parity import KEPT, spelled
from zoo.vision.stdc import STDC, VARIANTS, STDCConfig

DATA = Path(__file__).parent / "data" / "stdc"


@pytest.mark.parametrize("variant", VARIANTS)
def test_maps_and_names_match_paddleseg(variant: str) -> None:
    with np.load(DATA / f"{variant}.npz") as data:
        keys = bytes(data["keys"]).decode()
        reference = {name: data[name] for name in data.files if name != "keys"}
    model = STDC(STDCConfig(variant, num_classes=0)).eval()
    assert spelled(model.state_shapes()) == keys
    model.set_state_dict(named_weights(model.state_shapes()))
    x = np.random.RandomState(7).standard_normal((1, 3, 65, 98)).astype(np.float32).transpose(0, 2, 3, 1)
    graphdef, params, buffers = nn.split(model)
    run = jax.jit(lambda params, buffers, x: nn.apply(graphdef, params, buffers, None, x)[0])
    maps = run(params, buffers, x)
    assert len(maps) == len(reference) == 5
    for x, (name, want) in zip(maps, reference.items(), strict=True):
        flat = np.asarray(x).transpose(0, 3, 1, 2).reshape(-1)
        flat = flat[:: -(-flat.size // KEPT)]
        np.testing.assert_allclose(flat, want, rtol=0, atol=1e-4 * np.abs(want).max(), err_msg=name)
