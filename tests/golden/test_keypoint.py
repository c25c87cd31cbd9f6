"""Parity of HigherHRNet and the top-down HRNet with PaddleDetection: names, stages, losses and poses.

Reference: tools/golden/keypoint.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Poses, PoseTargets
from detection.layers.heatmap import refine_peaks
from detection.layers.tag_grouping import group_by_tags
from detection.models.higher_hrnet import HigherHRNet, HigherHRNetConfig
from detection.models.top_down_hrnet import TopDownHRNet, TopDownHRNetConfig
from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn import functional as F
from tests.golden.parity import KEPT
from tools.golden.keypoint_cases import (
    BATCH,
    BOTTOM_UP,
    CALM,
    FLIP_PAIRS,
    SCENES,
    TOP_DOWN,
    WATCHED,
    ignored,
    images,
    peaks,
    people,
    scene,
)

DATA = Path(__file__).parent / "data" / "keypoint"


def sizes(cases: dict[str, tuple[int, int]]) -> list[Any]:
    return [pytest.param(name, marks=[] if "small" in name else pytest.mark.slow) for name in cases]


def load(model: nn.Layer, case: str) -> dict[str, np.ndarray]:
    """Give the model the weights drawn from upstream's names, all and no others; returns the rest of the reference."""
    with np.load(DATA / f"{case}.npz") as data:
        rows = [line.split(" ") for line in bytes(data["keys"]).decode().splitlines()]
        reference = {name: data[name] for name in data.files if name != "keys"}
    weights = named_weights({name: tuple(map(int, shape.split("x"))) for name, shape in rows})
    for name in weights:
        if name.startswith(("hrhrnet_head.conv", "final_conv")):
            weights[name] *= CALM
    assert model.set_state_dict(weights) == ([], [])
    return reference


def channels_last(x: np.ndarray) -> jax.Array:
    return jnp.asarray(x.transpose(0, 2, 3, 1))


def check(found: Any, want: np.ndarray, name: str) -> None:
    """Maps [N, H, W, C] against thinned [N, C, H, W], within 1e-4 of the scale."""
    flat = np.asarray(found).transpose(0, 3, 1, 2).reshape(-1)
    flat = flat[:: -(-flat.size // KEPT)]
    assert flat.size == want.size and want.std() > 0.01, name
    np.testing.assert_allclose(flat, want, rtol=0, atol=1e-4 * float(np.abs(want).max()), err_msg=name)


def watch(model: nn.Layer, names: tuple[str, ...]) -> dict[str, jax.Array]:
    found: dict[str, jax.Array] = {}
    owners = dict(model.named_sublayers())
    for name in names:
        owners[name].register_forward_post_hook(
            lambda layer, args, out, name=name: found.__setitem__(name, out)
        )
    return found


# Nothing is jitted: the many equal layers compile once each, while the whole takes several times as long.


@pytest.mark.parametrize("case", sizes(BOTTOM_UP))
def test_higher_hrnet(case: str) -> None:
    size_hw = BOTTOM_UP[case]
    model = HigherHRNet(HigherHRNetConfig(flip_pairs=FLIP_PAIRS))
    reference = load(model, case)
    found = watch(model.eval(), WATCHED)
    heat, tags = model.heatmaps(channels_last(images(1, size_hw)))
    for name in WATCHED:
        check(found[name][:1], reference[name], name)  # the image; the second one is its mirror image
    assert len(tags) == 2
    for index, ours in enumerate((heat, *tags)):
        check(ours, reference[f"maps {index}"], f"maps {index}")

    keypoints, valid = people(size_hw)
    targets = PoseTargets(
        jnp.asarray(keypoints),
        jnp.zeros((*valid.shape, 4)),
        jnp.asarray(valid),
        jnp.asarray(ignored(size_hw)),
    )
    losses = model.train().loss(channels_last(images(BATCH, size_hw)), targets)
    assert len(losses.parts) == 3
    for name, part in (*losses.parts.items(), ("loss", losses.total)):
        np.testing.assert_allclose(part, reference[f"loss {name}"], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("case", sizes(TOP_DOWN))
def test_top_down_hrnet(case: str) -> None:
    size_hw = TOP_DOWN[case]
    model = TopDownHRNet(TopDownHRNetConfig(flip_pairs=FLIP_PAIRS))
    reference = load(model, case)
    found = watch(model.eval(), ("final_conv",))
    heat = model.heatmaps(channels_last(images(1, size_hw)))
    check(found["final_conv"][:1], reference["final_conv"], "final_conv")
    check(heat, reference["flipped"], "flipped")

    keypoints, _ = people(size_hw)
    targets = PoseTargets(jnp.asarray(keypoints[:, :1]), jnp.zeros((BATCH, 1, 4)), jnp.ones((BATCH, 1), bool))
    loss = model.train().loss(channels_last(images(BATCH, size_hw)), targets).total
    np.testing.assert_allclose(loss, reference["loss"], rtol=1e-4)


@jax.jit
def group(heat: jax.Array, *tags: jax.Array) -> Poses:
    size = (2 * heat.shape[1], 2 * heat.shape[2])
    heat, *full = (F.interpolate(x, size, mode="bilinear") for x in (heat, *tags))
    return group_by_tags(heat, full)


@pytest.mark.parametrize("name", SCENES)
def test_people_of_given_maps(name: str) -> None:
    """The same people with the same keypoints, best first, in pixels of the input."""
    with np.load(DATA / f"{name}.npz") as data:
        keypoints, scores = data["keypoints"], data["scores"]
    order = np.argsort(-scores, kind="stable")
    heat, tags = scene(name)
    poses = group(*(channels_last(x[None]) for x in (heat, *tags)))
    number = len(scores)
    assert poses.scores.shape == (1, 30) and poses.keypoints.shape == (1, 30, 17, 3)
    np.testing.assert_allclose(poses.scores[0, :number], scores[order], rtol=0, atol=1e-5)
    np.testing.assert_allclose(poses.keypoints[0, :number, :, 2], keypoints[order][..., 2], rtol=0, atol=1e-5)
    seen = keypoints[order][..., 2] > 0
    np.testing.assert_allclose(
        np.asarray(poses.keypoints[0, :number])[seen], keypoints[order][seen], rtol=0, atol=1e-4
    )
    assert (
        not np.asarray(poses.keypoints[0, number:]).any() and not np.asarray(poses.scores[0, number:]).any()
    )


def test_peaks_between_the_pixels() -> None:
    with np.load(DATA / "dark.npz") as data:
        want, scores = data["keypoints"], data["scores"]
    places, heights = jax.jit(refine_peaks)(channels_last(peaks()))
    np.testing.assert_allclose(4 * places, want[..., :2], rtol=0, atol=1e-2)
    np.testing.assert_allclose(heights, want[..., 2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(heights.mean(axis=1), scores[:, 0], rtol=0, atol=1e-6)
