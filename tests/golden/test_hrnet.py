"""Parity of HRNet's three forms with PaddleClas, PaddleSeg and PaddleDetection, and of their names with ours.

The references are written by tools/golden/hrnet.py. Weights are drawn from the names that the suite uses, so loading
them tests `state_renames` too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.parity import KEPT, spelled
from zoo.vision.hrnet import HRNet, HRNetConfig

DATA = Path(__file__).parent / "data" / "hrnet"
CASES: dict[str, tuple[HRNetConfig, tuple[int, int]]] = {
    "paddleclas_w18": (HRNetConfig("w18"), (64, 96)),
    "paddleseg_w18": (HRNetConfig("w18", 0, "bilinear", same_padding=True), (64, 96)),
    "paddleseg_w48": (HRNetConfig("w48", 0, "bilinear", same_padding=True), (64, 96)),
    "paddleseg_w18_small_v1": (
        HRNetConfig("w18_small_v1", 0, "bilinear", align_corners=True, same_padding=True),
        (65, 98),
    ),
    "paddleseg_w18_small_v2": (HRNetConfig("w18_small_v2", 0, "bilinear"), (64, 96)),
    "ppdet_w32_pose": (HRNetConfig("w32", 0, multi_scale_output=False), (64, 96)),
}
SIZES = ("paddleseg_w18", "paddleseg_w48")  # the others have every branch of the code


def reference(case: str) -> tuple[dict[str, tuple[int, ...]], dict[str, np.ndarray]]:
    """The suite's names with their shapes, and its outputs."""
    with np.load(DATA / f"{case}.npz") as data:
        rows = [line.split(" ") for line in bytes(data["keys"]).decode().splitlines()]
        shapes = {name: tuple(map(int, shape.split("x"))) for name, shape in rows}
        return shapes, {name: data[name] for name in data.files if name != "keys"}


def image(size_hw: tuple[int, int]) -> np.ndarray:
    x = np.random.RandomState(7).standard_normal((1, 3, *size_hw)).astype(np.float32)
    return x.transpose(0, 2, 3, 1)


def outputs_of(model: nn.Layer, names: list[str], x: np.ndarray) -> dict[str, np.ndarray]:
    """What named sublayers give, as [N, C, H, W]; `st4.i` is map i.

    Nothing is jitted: the many equal layers compile once each, while the whole takes several times as long.
    """
    found: dict[str, jax.Array] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(layer: nn.Layer, args: tuple, out: jax.Array | tuple[jax.Array, ...]) -> None:
            if isinstance(out, tuple):
                found.update({f"{name}.{i}": x for i, x in enumerate(out)})
            else:
                found[name] = out

        return hook

    for name, layer in model.named_sublayers():
        if name in {*names, "st4"}:
            layer.register_forward_post_hook(keep(name))
    model(x)
    arrays = {name: np.asarray(out) for name, out in found.items() if name in names}
    return {name: out.transpose(0, 3, 1, 2) if out.ndim == 4 else out for name, out in arrays.items()}


@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SIZES)) for c in CASES])
def test_outputs_match_the_suite_s(case: str) -> None:
    config, size_hw = CASES[case]
    shapes, want = reference(case)
    model = HRNet(config)
    assert model.set_state_dict(named_weights(shapes)) == ([], [])  # missing, unexpected
    ours = outputs_of(model.eval(), list(want), image(size_hw))
    assert ours.keys() == want.keys()
    for name, values in want.items():
        flat = ours[name].reshape(-1)
        flat, limit = flat[:: -(-flat.size // KEPT)], 1e-4 * float(np.abs(values).max())
        np.testing.assert_allclose(flat, values, rtol=0, atol=limit, err_msg=name, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_every_name_of_the_suite_is_known(case: str) -> None:
    shapes, _ = reference(case)
    model = HRNet(CASES[case][0])
    zeros = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    assert model.set_state_dict(zeros) == ([], [])  # missing, unexpected
    if case.startswith("paddleclas"):
        assert spelled(model.state_shapes()) == spelled(shapes)


def test_names_are_known_below_a_larger_model_too() -> None:
    shapes, _ = reference("ppdet_w32_pose")
    model = nn.Sequential(("backbone", HRNet(CASES["ppdet_w32_pose"][0])))
    arrays = {f"backbone.{name}": np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    assert model.set_state_dict(arrays) == ([], [])


def test_each_name_leads_to_its_own_array() -> None:
    """Arrays of equal shape could be swapped unseen: every one is numbered in upstream's order, which is also ours."""
    shapes, _ = reference("paddleseg_w18_small_v2")
    model = HRNet(CASES["paddleseg_w18_small_v2"][0])
    ones = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    theirs, ours = (
        "st4.stage_st4_2.fuse_func.residual_st4_2_layer_4_2_2._conv.weight",
        "st4.stage_func_list.1.fuse_func.residual_func_list.14.conv.weight",
    )
    model.set_state_dict(ones | {theirs: np.full(shapes[theirs], 7, np.float32)})
    assert [name for name, value in model.state_dict().items() if (np.asarray(value) == 7).all()] == [ours]
