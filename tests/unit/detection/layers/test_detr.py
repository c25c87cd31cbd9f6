"""The shared parts of RT-DETR and DINO: logits of boxes, attention, anchors, positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.layers.detr import MLP, PackedAttention, logit, to_centers, to_corners
from detection.layers.hybrid_encoder import sincos_positions
from detection.layers.query_transformer import QueryTransformer, anchors, pixel_centres
from detection.models.dino import box_positions, image_positions
from framework.core.errors import ShapeError


def test_logit_inverts_and_is_bounded() -> None:
    x = jnp.asarray([0.2, 0.5, 0.9])
    np.testing.assert_allclose(jax.nn.sigmoid(logit(x)), x, rtol=1e-6)
    np.testing.assert_allclose(
        logit(jnp.asarray([-1.0, 0.0, 1.0])), [np.log(1e-5)] * 2 + [-np.log(1e-5)], rtol=1e-5
    )


def test_boxes_there_and_back() -> None:
    boxes = jnp.asarray([[0.5, 0.4, 0.2, 0.6]])
    np.testing.assert_allclose(to_corners(boxes), [[0.4, 0.1, 0.6, 0.7]], atol=1e-6)
    np.testing.assert_allclose(to_centers(to_corners(boxes)), boxes, atol=1e-6)


def test_hidden_keys_do_not_count() -> None:
    layer = PackedAttention(8, 2)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((1, 3, 8)), jnp.float32)
    mask = jnp.asarray([[True, True, False]] * 3)
    np.testing.assert_allclose(layer(x, x, x, mask), layer(x, x[:, :2], x[:, :2]), atol=1e-6)


def test_zero_mlp_starts_at_zero() -> None:
    np.testing.assert_array_equal(MLP(3, 4, 2, 3, zero=True)(jnp.ones((1, 3))), [[0, 0]])


def test_anchors_by_hand() -> None:
    """Centres at 0.25 and 0.75; 0.05 wide, and twice that a level up."""
    boxes, valid = anchors([(1, 2), (1, 1)])
    np.testing.assert_allclose(
        jax.nn.sigmoid(boxes),
        [[0.25, 0.5, 0.05, 0.05], [0.75, 0.5, 0.05, 0.05], [0.5, 0.5, 0.1, 0.1]],
        atol=1e-6,
    )
    assert valid.all()
    boxes, valid = anchors([(1, 100)])  # the outermost centres are 0.005 and 0.995
    np.testing.assert_array_equal(np.flatnonzero(~valid[:, 0]), [0, 99])
    assert np.isposinf(boxes[0]).all()


def test_pixel_centres_go_row_by_row() -> None:
    np.testing.assert_allclose(pixel_centres(2, 1), [[0.5, 0.25], [0.5, 0.75]])


def test_too_few_places_are_refused() -> None:
    transformer = QueryTransformer(4, 2, 5, 1, MLP(4, 4, 4, 2))
    with pytest.raises(ShapeError, match="4 places for 5 queries"):
        transformer.select(jnp.zeros((1, 4, 4)), [(2, 2)])


def test_positions_by_hand() -> None:
    """Row 1, column 2 of a map three wide; rates 1 and 1/100 of four channels' half."""
    np.testing.assert_allclose(
        sincos_positions(2, 3, 8)[5],
        [np.sin(1), np.sin(0.01), np.cos(1), np.cos(0.01), np.sin(2), np.sin(0.02), np.cos(2), np.cos(0.02)],
        atol=1e-6,
    )
    image = image_positions(2, 3)
    assert image.shape == (6, 256)
    np.testing.assert_allclose(image[0, 0], np.sin(np.pi), atol=1e-4)  # the first row of two
    np.testing.assert_allclose(image[0, 128], np.sin(2 * np.pi / 3), atol=1e-4)  # the first column of three
    box = box_positions(jnp.asarray([[[0.1, 0.2, 0.3, 0.4]]]))[0, 0]
    np.testing.assert_allclose(box[::128], np.sin(2 * np.pi * np.asarray([0.2, 0.1, 0.3, 0.4])), atol=1e-5)
    np.testing.assert_allclose(box[1::128], np.cos(2 * np.pi * np.asarray([0.2, 0.1, 0.3, 0.4])), atol=1e-5)
