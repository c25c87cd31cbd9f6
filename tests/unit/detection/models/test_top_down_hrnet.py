from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import PoseTargets
from detection.models import top_down_hrnet
from detection.models.top_down_hrnet import TopDownHRNet, TopDownHRNetConfig
from framework import nn
from framework.core.errors import ConfigError


def fixed(maps: jax.Array, config: TopDownHRNetConfig) -> TopDownHRNet:
    """A model whose network gives `maps`, whatever it sees."""

    class Fixed(TopDownHRNet):
        def __init__(self) -> None:
            nn.Layer.__init__(self)
            self.config = config

        def forward(self, images: jax.Array) -> jax.Array:
            return maps

    return Fixed()


@pytest.mark.parametrize("variant", top_down_hrnet.VARIANTS)
def test_shapes(variant: str) -> None:
    model = TopDownHRNet(TopDownHRNetConfig(variant))
    graphdef, params, buffers = nn.abstract(model.eval())
    images = jax.ShapeDtypeStruct((3, 384, 288, 3), jnp.float32)
    maps = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b)(x), params, buffers, images)
    assert maps.shape == (3, 96, 72, 17)
    poses = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b).detect(x), params, buffers, images)
    assert poses.keypoints.shape == (3, 1, 17, 3) and poses.scores.shape == (3, 1)


def loss(maps: jax.Array, keypoints: list, valid: bool = True) -> float:
    """Of one image of 64 x 48."""
    points = jnp.asarray(keypoints, jnp.float32)[None, None]
    model = fixed(maps, TopDownHRNetConfig(num_keypoints=maps.shape[-1]))
    targets = PoseTargets(points, jnp.zeros((1, 1, 4)), jnp.asarray([[valid]]))
    return float(model.loss(jnp.zeros((1, 64, 48, 3)), targets).total)


def test_loss() -> None:
    """A keypoint at (26, 29.9) is drawn at pixel (7, 7) of the heatmap: 6.5 is rounded up. One without label is
    free."""
    maps = jnp.full((1, 16, 12, 2), 0.5)
    total = 0.0
    for row in range(16):
        for column in range(12):
            near = abs(row - 7) <= 6 and abs(column - 7) <= 6
            want = math.exp(-((row - 7) ** 2 + (column - 7) ** 2) / 8) if near else 0
            total += (0.5 - want) ** 2
    got = loss(maps, [[26, 29.9, 1], [9, 9, 0]])
    assert got == pytest.approx(0.5 * total / (2 * 16 * 12), rel=1e-5)
    assert loss(maps, [[26, 29.9, 1], [9, 9, 0]], valid=False) == 0


@pytest.mark.parametrize(("x", "counts"), [(-30, True), (-34, False), (69, True), (70, False)])
def test_a_keypoint_far_outside_costs_nothing(x: float, counts: bool) -> None:
    """Pixels -7 and 17 of a map 12 wide still count, though nothing of their Gaussians is drawn at -7."""
    maps = jnp.full((1, 16, 12, 1), 0.5)
    got = loss(maps, [[x, 28, 2]])
    assert (got > 0) == counts


def test_detection_is_in_pixels_of_the_input() -> None:
    rows, columns = np.mgrid[:16, :12]
    peak = 0.8 * np.exp(-((columns - 5.25) ** 2 + (rows - 8.5) ** 2) / 8)
    maps = jnp.asarray(np.stack([peak, 0 * peak], -1)[None], jnp.float32)
    poses = fixed(maps, TopDownHRNetConfig(num_keypoints=2)).detect(jnp.zeros((1, 64, 48, 3)))
    assert poses.keypoints.shape == (1, 1, 2, 3)
    np.testing.assert_allclose(poses.keypoints[0, 0, 0, :2], [21, 34], rtol=0, atol=0.1)
    np.testing.assert_array_equal(poses.keypoints[0, 0, 1], [0, 0, 0])
    np.testing.assert_allclose(poses.scores[0, 0], maps.max() / 2, rtol=1e-6)


def test_an_image_without_peaks_scores_0() -> None:
    poses = fixed(jnp.full((2, 16, 12, 3), -0.1), TopDownHRNetConfig(num_keypoints=3)).detect(
        jnp.zeros((2, 64, 48, 3))
    )
    assert poses.scores.tolist() == [[0], [0]] and not poses.keypoints[..., :2].any()


def test_the_mirror_image_is_looked_at() -> None:
    """It has keypoint 1 at the mirrored place, one pixel to the left, as trained networks do."""
    maps = jnp.zeros((2, 16, 12, 2)).at[0, 8, 5, 0].set(1.0).at[1, 8, 11 - 4, 1].set(0.5)
    model = fixed(maps, TopDownHRNetConfig(num_keypoints=2, flip_pairs=((0, 1),)))
    heat = model.heatmaps(jnp.zeros((1, 64, 48, 3)))
    np.testing.assert_array_equal(heat, jnp.zeros((1, 16, 12, 2)).at[0, 8, 5, 0].set(0.75))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "w18"}, r"unknown variant of TopDownHRNet[\s\S]*'w18'[\s\S]*w32, w48"),
        (
            {"num_keypoints": 2, "flip_pairs": ((1, 1),)},
            "flip_pairs: pairs must name each keypoint at most once",
        ),
    ],
)
def test_refusals(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TopDownHRNetConfig(**options)
