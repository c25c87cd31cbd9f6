"""Groups, noise and visibility of the denoising queries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from detection.layers.denoising import Noise, denoising_queries, draw_noise
from detection.layers.detr import logit

BOXES = jnp.asarray([[[0.5, 0.5, 0.2, 0.4], [0.9, 0.1, 0.3, 0.3], [0.3, 0.3, 0.2, 0.2]]] * 2)
LABELS = jnp.asarray([[4, 0, 7], [1, 2, 3]], jnp.int32)
VALID = jnp.asarray([[True, False, True], [False, False, True]])


def still(count: int, chance: float = 1.0, share: float = 0.0) -> Noise:
    shape = (2, count)
    return Noise(
        jnp.full(shape, chance),
        jnp.full(shape, 9, jnp.int32),
        jnp.ones((*shape, 4)),
        jnp.full((*shape, 4), share),
    )


def test_layout_of_groups() -> None:
    """At most 2 objects and 5 // 2 groups: 8 of 10 queries, each group 2 positive and 2 negative."""
    found = denoising_queries(BOXES, LABELS, VALID, still(10), 5, 10)
    assert int(found.groups) == 2
    np.testing.assert_array_equal(found.live, [True] * 8 + [False] * 2)
    np.testing.assert_array_equal(found.labels[0], [4, 7, 4, 7, 4, 7, 4, 7, 10, 10])
    np.testing.assert_array_equal(found.labels[1], [3, 10, 3, 10, 3, 10, 3, 10, 10, 10])
    np.testing.assert_array_equal(found.index[0, :4], [0, 2, 0, 2])
    np.testing.assert_array_equal(found.positive[0], [True, True, False, False] * 2 + [False] * 2)
    np.testing.assert_array_equal(found.positive[1], [True, False, False, False] * 2 + [False] * 2)
    block = np.arange(10) // 4
    np.testing.assert_array_equal(found.visible, block[:, None] == block)


def test_noise_moves_corners() -> None:
    """A share of 0.5 moves the corners of a positive by half of half its size, those of a negative by 1.5 of it."""
    found = denoising_queries(BOXES, LABELS, VALID, still(10, share=0.5), 5, 10)
    boxes = jax.nn.sigmoid(found.box_logits)
    np.testing.assert_allclose(boxes[0, 0], [0.55, 0.6, 0.2, 0.4], atol=1e-5)
    np.testing.assert_allclose(boxes[0, 2], [0.65, 0.8 - 0.5 * (1.0 - 1.0), 0.2, 0.4], atol=1e-5)
    np.testing.assert_allclose(found.box_logits[1, 1], logit(jnp.zeros(4)), atol=1e-5)  # nothing there


def test_low_chance_replaces_labels_of_objects_only() -> None:
    found = denoising_queries(BOXES, LABELS, VALID, still(10, chance=0.2), 5, 10)
    np.testing.assert_array_equal(found.labels[1], [9, 10] * 4 + [10, 10])


def test_no_object_at_all() -> None:
    found = denoising_queries(BOXES, LABELS, jnp.zeros((2, 3), bool), still(10), 5, 10)
    assert int(found.groups) == 0 and not found.live.any() and not found.positive.any()
    assert np.isfinite(found.box_logits).all()


def test_more_objects_than_queries_make_one_group() -> None:
    found = denoising_queries(BOXES, LABELS, jnp.ones((2, 3), bool), still(6), 2, 10)
    assert int(found.groups) == 1 and found.live.all()


def test_drawn_noise_is_in_range() -> None:
    noise = draw_noise(jax.random.key(0), 3, 50, 7)
    assert noise.labels.min() == 0 and noise.labels.max() == 6
    assert set(np.unique(noise.signs)) == {-1.0, 1.0}
    assert noise.shares.shape == (3, 50, 4) and noise.shares.min() >= 0 and noise.shares.max() < 1
