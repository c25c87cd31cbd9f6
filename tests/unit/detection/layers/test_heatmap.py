from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.layers.heatmap import draw_gaussians, flip_permutation, mirror_maps, refine_peaks
from framework.core.errors import ConfigError


def test_gaussians() -> None:
    """Two people of one image with one keypoint: the higher value counts, and a Gaussian ends at its radius."""
    centers = jnp.asarray([[[[1, 2]], [[4, 2]], [[3, 3]]]], jnp.int32)
    shown = jnp.asarray([[[True], [True], [False]]])
    maps = draw_gaussians(centers, shown, (4, 9), sigma=1, radius=2)
    assert maps.shape == (1, 4, 9, 1)
    row = [math.exp(-(d**2) / 2) for d in (1, 0, 1, 1, 0, 1, 2)] + [0, 0]
    np.testing.assert_allclose(maps[0, 2, :, 0], row, rtol=1e-6)
    np.testing.assert_allclose(maps[0, 3, 0, 0], math.exp(-1), rtol=1e-6)
    np.testing.assert_allclose(maps[0, 0, 4, 0], math.exp(-2), rtol=1e-6)


def test_a_gaussian_reaches_in_from_outside() -> None:
    maps = draw_gaussians(jnp.asarray([[[[-1, 0]]]]), jnp.ones((1, 1, 1), bool), (1, 3), 2, 2)
    np.testing.assert_allclose(maps[0, 0, :, 0], [math.exp(-1 / 8), math.exp(-1 / 2), 0], rtol=1e-6)


def test_nobody_gives_empty_maps() -> None:
    maps = draw_gaussians(jnp.zeros((2, 0, 3, 2), jnp.int32), jnp.zeros((2, 0, 3), bool), (4, 5), 2, 6)
    assert maps.shape == (2, 4, 5, 3) and not maps.any()


def test_a_mirrored_map_is_the_keypoint_s_partner() -> None:
    order = flip_permutation(3, [(1, 2)])
    assert order == (0, 2, 1)
    maps = jnp.arange(6, dtype=jnp.float32).reshape(1, 1, 2, 3)
    np.testing.assert_array_equal(mirror_maps(maps, order), [[[[3, 5, 4], [0, 2, 1]]]])
    assert flip_permutation(2, ()) == (0, 1)


@pytest.mark.parametrize("pairs", [[(0, 3)], [(-1, 0)], [(0, 1), (1, 2)], [(1, 1)]])
def test_wrong_pairs_are_refused(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(
        ConfigError, match=r"flip_pairs: pairs must name each keypoint at most once[\s\S]*0 to 2 at most once"
    ):
        flip_permutation(3, pairs)


def test_peaks() -> None:
    """A Gaussian is found where it is; near the border the pixel is taken, and where nothing is above 0, the origin."""
    rows, columns = np.mgrid[:12, :10]
    inside = 0.5 * np.exp(-((columns - 4.3) ** 2 + (rows - 6.8) ** 2) / 8)
    corner = np.exp(-((columns - 1.2) ** 2 + (rows - 10.4) ** 2) / 8)
    maps = np.stack([inside, corner, -inside, 0 * inside], axis=-1)[None].astype(np.float32)
    xy, heights = jax.jit(refine_peaks)(jnp.asarray(maps))
    np.testing.assert_allclose(xy[0], [[4.3, 6.8], [1, 10], [0, 0], [0, 0]], rtol=0, atol=0.03)
    np.testing.assert_allclose(heights[0], maps.max(axis=(0, 1, 2)), rtol=1e-6)


def test_a_map_of_one_pixel() -> None:
    xy, heights = refine_peaks(jnp.full((1, 1, 1, 1), 0.7))
    np.testing.assert_allclose(np.append(xy, heights), [0, 0, 0.7], rtol=1e-6)
