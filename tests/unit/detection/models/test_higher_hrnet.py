from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import PoseTargets
from detection.models.higher_hrnet import HigherHRNet, HigherHRNetConfig, Maps, tag_losses
from framework import nn
from framework.core.errors import ConfigError


def fixed(maps: Maps, config: HigherHRNetConfig) -> HigherHRNet:
    """A model whose network gives `maps`, whatever it sees."""

    class Fixed(HigherHRNet):
        def __init__(self) -> None:
            nn.Layer.__init__(self)
            self.config = config

        def forward(self, images: jax.Array) -> Maps:
            return maps

    return Fixed()


def empty(batch: int = 1, keypoints: int = 2) -> Maps:
    """The maps of an image of 32 x 48."""
    coarse = jnp.zeros((batch, 8, 12, keypoints))
    return Maps(coarse, coarse, jnp.zeros((batch, 16, 24, keypoints)))


def targets(keypoints: list, valid: list, ignore: np.ndarray | None = None) -> PoseTargets:
    points = jnp.asarray(keypoints, jnp.float32)
    mask = None if ignore is None else jnp.asarray(ignore)
    return PoseTargets(points, jnp.zeros((*points.shape[:2], 4)), jnp.asarray(valid), mask)


def test_shapes() -> None:
    model = HigherHRNet(HigherHRNetConfig())
    graphdef, params, buffers = nn.abstract(model.eval())
    images = jax.ShapeDtypeStruct((2, 512, 640, 3), jnp.float32)
    maps = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b)(x), params, buffers, images)
    assert [x.shape for x in maps] == [(2, 128, 160, 17), (2, 128, 160, 17), (2, 256, 320, 17)]
    poses = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b).detect(x), params, buffers, images)
    assert poses.keypoints.shape == (2, 30, 17, 3) and poses.scores.shape == (2, 30)


def test_tags_of_people() -> None:
    """Tags 1 and 3 of one person, 4 of another with one keypoint; a third person has no keypoint."""
    tags = jnp.zeros((1, 2, 3, 2)).at[0, 0, 1, 0].set(1).at[0, 1, 2, 1].set(3).at[0, 1, 0, 0].set(4)
    at = jnp.asarray([[[[1, 0], [2, 1]], [[0, 1], [99, 99]], [[0, 0], [0, 0]]]], jnp.int32)
    shown = jnp.asarray([[[True, True], [True, False], [False, False]]])
    pull, push = tag_losses(tags, at, shown)
    np.testing.assert_allclose(pull, [1.0])  # the only person of two keypoints is 1 away from its mean of 2
    np.testing.assert_allclose(push, [2 * math.exp(-4) / (2 * 2 * 1)], rtol=1e-6)


def test_one_person_pushes_nobody_and_nobody_costs_nothing() -> None:
    tags = jnp.ones((2, 2, 2, 2)).at[0, 0, 0, 0].set(2)
    at, shown = jnp.zeros((2, 1, 2, 2), jnp.int32), jnp.asarray([[[True, True]], [[False, False]]])
    pull, push = tag_losses(tags, at, shown)
    np.testing.assert_allclose(pull, [0.25, 0])
    np.testing.assert_allclose(push, [0, 0])
    gradient = jax.grad(lambda tags: sum(loss.sum() for loss in tag_losses(tags, at, shown)))(tags)
    assert np.isfinite(gradient).all() and gradient[0].any() and not gradient[1].any()


def test_heatmaps_of_both_scales() -> None:
    """One keypoint at (21, 9.5): pixels (5, 2) and (10, 4). Empty maps cost the Gaussians' squares."""
    points = [[[[21, 9.5, 2], [3, 3, 0]], [[20, 20, 2], [20, 20, 2]], [[50, 9, 2], [-5, 9, 2]]]]
    losses = fixed(empty(), HigherHRNetConfig(num_keypoints=2)).loss(
        jnp.zeros((1, 32, 48, 3)), targets(points, [[True, False, True]])
    )

    def squares(x: int, y: int, width: int, height: int) -> float:
        total = 0.0
        for row in range(max(y - 7, 0), min(y + 8, height)):
            for column in range(max(x - 7, 0), min(x + 8, width)):
                total += math.exp(-((column - x) ** 2 + (row - y) ** 2) / 4)
        return total / (2 * width * height)

    want = squares(5, 2, 12, 8) + squares(10, 4, 24, 16)
    assert float(losses.parts["heatmap_loss"]) == pytest.approx(want, rel=1e-5)
    assert float(losses.parts["pull_loss"]) == float(losses.parts["push_loss"]) == 0
    assert float(losses.total) == pytest.approx(want, rel=1e-5)


def test_a_pixel_costs_2_at_most_and_nothing_where_ignored() -> None:
    maps = empty()._replace(fine=jnp.full((1, 16, 24, 2), 9.0))
    model, images = fixed(maps, HigherHRNetConfig(num_keypoints=2)), jnp.zeros((1, 32, 48, 3))
    nobody = [[[[0, 0, 0], [0, 0, 0]]]]
    assert float(model.loss(images, targets(nobody, [[False]])).total) == 2
    ignore = np.zeros((1, 32, 48), bool)
    ignore[:, :, :12] = True
    assert float(model.loss(images, targets(nobody, [[False]], ignore)).total) == 1.5
    assert float(model.loss(images, targets(nobody, [[False]], np.ones_like(ignore))).total) == 0


def test_detection_is_in_pixels_of_the_input() -> None:
    """A peak on pixel (10, 4) of the fine map, whose centre is (21, 9), and at the same place a coarse one."""
    fine = jnp.zeros((1, 16, 24, 2)).at[0, 4, 10].set(1.0)
    coarse = jnp.zeros((1, 8, 12, 2)).at[0, 2, 5].set(0.5)
    poses = fixed(Maps(coarse, coarse, fine), HigherHRNetConfig(num_keypoints=2, max_people=3)).detect(
        jnp.zeros((1, 32, 48, 3))
    )
    assert poses.keypoints.shape == (1, 3, 2, 3) and poses.scores.shape == (1, 3)
    np.testing.assert_allclose(poses.keypoints[0, 0, :, :2], [[21, 9]] * 2, rtol=0, atol=0.75)
    assert float(poses.scores[0, 0]) > 0.3 and not poses.scores[0, 1:].any()


def test_the_mirror_image_is_looked_at() -> None:
    """The second image of the network's batch is the mirror image; keypoint 1 is the partner of 0."""
    fine = jnp.zeros((2, 16, 24, 2)).at[0, 4, 10, 0].set(1.0).at[1, 4, 13, 1].set(0.5)
    coarse = jnp.zeros((2, 8, 12, 2))
    tags = coarse.at[0, 1, 2, 0].set(3.0).at[1, 1, 9, 1].set(7.0)
    model = fixed(Maps(coarse, tags, fine), HigherHRNetConfig(num_keypoints=2, flip_pairs=((0, 1),)))
    heat, (own, other) = model.heatmaps(jnp.zeros((1, 32, 48, 3)))
    assert float(heat[0, 4, 10, 0]) == (1 / 2 + 0.5 / 2) / 2 and not heat[..., 1].any()
    np.testing.assert_allclose(other[..., 0] / 7, own[..., 0] / 3, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "w33"}, r"unknown variant of HigherHRNet[\s\S]*'w33'[\s\S]*w32"),
        (
            {"num_keypoints": 4, "flip_pairs": ((3, 4),)},
            "flip_pairs: pairs must name each keypoint at most once",
        ),
        ({"max_people": 0}, "nobody is looked for"),
    ],
)
def test_refusals(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HigherHRNetConfig(**options)
