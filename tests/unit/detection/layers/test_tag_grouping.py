from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Poses
from detection.layers.tag_grouping import group_by_tags

H, W, J = 14, 20, 3


def maps(*peaks: tuple[int, int, int, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Heatmaps and tags [1, H, W, J] with a height and a tag at (keypoint, y, x); the tags elsewhere are -9."""
    heat, tags = np.zeros((1, H, W, J), np.float32), np.full((1, H, W, J), -9, np.float32)
    for keypoint, y, x, height, tag in peaks:
        heat[0, y, x, keypoint], tags[0, y, x, keypoint] = height, tag
    return heat, tags


@functools.partial(jax.jit, static_argnums=2)
def group(heat: np.ndarray, tags: np.ndarray, max_people: int = 4) -> Poses:
    return group_by_tags(jnp.asarray(heat), [jnp.asarray(tags)], max_people)


def test_two_people_by_their_tags() -> None:
    """Each keypoint's higher peak is another person's, so heights alone would mix them."""
    poses = group(
        *maps(
            (0, 3, 4, 0.9, 1.0),
            (0, 3, 14, 0.8, 3.0),
            (1, 8, 4, 0.5, 1.2),
            (1, 8, 14, 0.7, 2.9),
            (2, 12, 4, 0.6, 0.9),
            (2, 12, 14, 0.9, 3.3),
        )
    )
    # Equal neighbours: a quarter of a pixel to the left and upwards of the pixel's centre.
    want = [
        [[14.25, 3.25, 0.8], [14.25, 8.25, 0.7], [14.25, 12.25, 0.9]],
        [[4.25, 3.25, 0.9], [4.25, 8.25, 0.5], [4.25, 12.25, 0.6]],
    ]
    np.testing.assert_allclose(poses.keypoints[0, :2], want, rtol=1e-6)
    np.testing.assert_allclose(poses.scores[0], [0.8, 2 / 3, 0, 0], rtol=1e-6)
    assert not poses.keypoints[0, 2:].any()


def test_a_place_leans_towards_the_higher_neighbour() -> None:
    """At the border the pixel itself stands in for the neighbour that is not there."""
    heat, tags = maps((0, 3, 4, 0.9, 1.0), (0, 3, 5, 0.4, 1.0), (0, 4, 4, 0.4, 1.0), (1, 0, W - 1, 0.5, 1.0))
    poses = group(heat, tags)
    np.testing.assert_allclose(
        poses.keypoints[0, 0, :2], [[4.75, 3.75, 0.9], [W - 0.25, 0.25, 0.5]], rtol=1e-6
    )


def test_a_faint_keypoint_is_found_by_its_tag() -> None:
    """Two faint places: the one of the person's tag counts, though the other is higher."""
    poses = group(*maps((0, 3, 4, 0.9, 1.0), (1, 8, 4, 0.06, 1.3), (1, 8, 14, 0.09, 2.0)))
    np.testing.assert_allclose(poses.keypoints[0, 0, 1], [4.25, 8.25, 0.06], rtol=1e-6)
    np.testing.assert_array_equal(poses.keypoints[0, 0, 2], [0, 0, 0])  # nowhere
    assert float(poses.scores[0, 0]) == pytest.approx(0.3)  # what was searched does not count


def test_a_peak_of_another_tag_is_somebody_else() -> None:
    poses = group(*maps((0, 3, 4, 0.9, 1.0), (1, 8, 4, 0.6, 2.0)))
    np.testing.assert_allclose(poses.scores[0], [0.3, 0.2, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(poses.keypoints[0, :2, :2, 2], [[0.9, 0], [0, 0.6]], rtol=1e-6)


def test_no_more_people_than_asked_for() -> None:
    peaks = [(0, 3, 3 * i, 0.9 - i / 10, float(i)) for i in range(5)] + [
        (1, 9, 0, 0.8, 40.0),
        (1, 9, 9, 0.5, 0.0),
    ]
    poses = group(*maps(*peaks), 3)
    np.testing.assert_allclose(poses.scores[0], [1.4 / 3, 0.8 / 3, 0.7 / 3], rtol=1e-6)
    np.testing.assert_allclose(poses.keypoints[0, :, 1, 2], [0.5, 0, 0], rtol=1e-6)


def test_a_batch_with_an_image_of_nobody() -> None:
    heat, tags = maps((0, 3, 4, 0.9, 1.0), (1, 8, 4, 0.6, 1.0))
    alone = group(heat, tags)
    both = group(np.concatenate([0.1 * heat, heat]), np.concatenate([tags, tags]))
    assert not both.scores[0].any() and not both.keypoints[0].any()
    np.testing.assert_array_equal(both.keypoints[1], alone.keypoints[0])


def test_tags_of_the_mirror_image_count_too() -> None:
    """By the first tags both keypoints are one person's; by the second they are not."""
    heat, tags = maps((0, 3, 4, 0.9, 1.0), (1, 8, 4, 0.6, 1.0))
    other = tags.copy()
    other[0, 8, 4, 1] = 5
    poses = group_by_tags(jnp.asarray(heat), [jnp.asarray(tags), jnp.asarray(other)], 4)
    assert int((poses.scores > 0).sum()) == 2


def test_tags_that_are_no_numbers_end() -> None:
    heat, tags = maps((0, 3, 4, 0.9, 1.0), (1, 8, 4, 0.6, 1.0))
    poses = group(heat, np.full_like(tags, np.nan))
    np.testing.assert_allclose(poses.scores[0], [0.3, 0.2, 0, 0], rtol=1e-6)
