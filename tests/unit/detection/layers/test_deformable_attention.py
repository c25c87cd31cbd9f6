"""Sampling of levels against hand-computed numbers and a loop over pixels, and the attention's first offsets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.layers.deformable_attention import MSDeformableAttention, sample_levels
from framework import nn
from framework.core.errors import ShapeError


def test_bilinear_samples_by_hand() -> None:
    """One level of 1, 2 / 3, 4: its middle is the mean, a pixel's middle is the pixel, outside fades to 0."""
    value = jnp.asarray([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1)
    places = [(0.5, 0.5), (0.25, 0.25), (0.75, 0.25), (0.0, 0.25), (-0.25, 0.25), (9.0, 0.5), (1.0, 1.0)]
    locations = jnp.asarray(places).reshape(1, len(places), 1, 1, 1, 2)
    out = sample_levels(value, [(2, 2)], locations, jnp.ones(locations.shape[:-1]))
    np.testing.assert_allclose(out[0, :, 0], [2.5, 1, 2, 0.5, 0, 0, 1], atol=1e-6)


def test_one_pixel_and_weights() -> None:
    value = jnp.full((1, 1, 1, 1), 8.0)
    locations = jnp.asarray([[0.5, 0.5], [0.0, 0.5]]).reshape(1, 1, 1, 1, 2, 2)
    out = sample_levels(value, [(1, 1)], locations, jnp.asarray([0.25, 0.5]).reshape(1, 1, 1, 1, 2))
    np.testing.assert_allclose(out, [[[0.25 * 8 + 0.5 * 4]]])


def _sampled(image: np.ndarray, x: float, y: float) -> np.ndarray:
    """image [H, W, D] at pixel coordinates, as a sum over all pixels."""
    rows, columns = np.arange(image.shape[0]), np.arange(image.shape[1])
    tent = np.maximum(1 - np.abs(rows - y), 0)[:, None] * np.maximum(1 - np.abs(columns - x), 0)
    return (tent[..., None] * image).sum(axis=(0, 1))


def test_levels_heads_and_images_keep_apart() -> None:
    rng = np.random.default_rng(3)
    shapes, batch, heads, channels, queries, points = [(3, 5), (2, 2)], 2, 2, 3, 4, 2
    value = rng.standard_normal((batch, 19, heads, channels)).astype(np.float32)
    locations = rng.uniform(-0.3, 1.3, (batch, queries, heads, 2, points, 2)).astype(np.float32)
    weights = rng.uniform(0, 1, (batch, queries, heads, 2, points)).astype(np.float32)
    want = np.zeros((batch, queries, heads, channels))
    for n, q, h, level, p in np.ndindex(*weights.shape):
        start, (height, width) = (0, 15)[level], shapes[level]
        image = value[n, start : start + height * width, h].reshape(height, width, channels)
        x, y = locations[n, q, h, level, p] * [width, height] - 0.5
        want[n, q, h] += weights[n, q, h, level, p] * _sampled(image, x, y)
    out = jax.jit(lambda *arrays: sample_levels(arrays[0], shapes, *arrays[1:]))(value, locations, weights)
    np.testing.assert_allclose(out, want.reshape(batch, queries, -1), atol=1e-5)


def test_gradient_of_a_place_is_the_slope() -> None:
    """Between pixels 1 and 4 of a row two wide, 0.5 of the width apart, the slope is 3 / 0.5."""
    value = jnp.asarray([1.0, 4.0]).reshape(1, 2, 1, 1)

    def at(x: jax.Array) -> jax.Array:
        locations = jnp.stack([x, jnp.asarray(0.5)]).reshape(1, 1, 1, 1, 1, 2)
        return sample_levels(value, [(1, 2)], locations, jnp.ones((1, 1, 1, 1, 1))).sum()

    np.testing.assert_allclose(jax.grad(at)(jnp.asarray(0.4)), 6, rtol=1e-5)


def test_other_levels_are_refused() -> None:
    zeros = jnp.zeros((1, 1, 1, 1, 1))
    with pytest.raises(ShapeError, match="5 pixels"):
        sample_levels(jnp.zeros((1, 5, 1, 1)), [(2, 2)], jnp.zeros((1, 1, 1, 1, 1, 2)), zeros)


@pytest.mark.parametrize("box", [False, True])
def test_attention_starts_with_a_star_of_equal_weights(box: bool) -> None:
    """With values and output passed through, the first head looks right: 1 pixel, or half of half a box, from 2."""
    layer = MSDeformableAttention(4, 4, 1, 1)
    layer.value_proj.weight = layer.output_proj.weight = jnp.eye(4)
    ramp = jnp.broadcast_to(jnp.arange(8.0)[None, :, None], (1, 8, 4))  # one row of 8 pixels
    size = [0.5, 0.0] if box else []
    reference = jnp.asarray([2.5 / 8, 0.5, *size]).reshape(1, 1, 1, -1)
    out = layer(jnp.zeros((1, 1, 4)), reference, ramp, [(1, 8)])
    step = 2.0 if box else 1.0  # half of a box 4 pixels wide
    want = [2 + step, 2.0 if box else 0.0, 2 - step, 2.0 if box else 0.0]
    # The heads that look up and down leave the image, unless the box has no height.
    np.testing.assert_allclose(out[0, 0], want, atol=1e-5)
    assert layer.state_shapes()["sampling_offsets.weight"] == (4, 8)
    assert isinstance(layer, nn.Layer)
