from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from detection.layers.grid import flatten_maps, make_grid
from detection.layers.pico_head import Integral


def test_cells_are_in_the_order_of_flattened_maps() -> None:
    maps = [jnp.arange(6.0).reshape(1, 2, 3, 1), jnp.full((1, 1, 1, 1), 6.0)]
    grid = make_grid(maps, (8, 16))
    assert flatten_maps(maps)[0, :, 0].tolist() == list(range(7))
    assert grid.points.tolist() == [[4, 4], [12, 4], [20, 4], [4, 12], [12, 12], [20, 12], [8, 8]]
    assert grid.strides[:, 0].tolist() == [8] * 6 + [16]
    assert grid.counts == (6, 1)


def test_offset_and_anchors() -> None:
    grid = make_grid([jnp.zeros((2, 1, 2, 5))], (8,), offset=0.0)
    assert grid.points.tolist() == [[0, 0], [8, 0]]
    assert grid.anchors(5.0).tolist() == [[-20, -20, 20, 20], [-12, -20, 28, 20]]


def test_every_map_has_a_stride() -> None:
    with pytest.raises(ValueError):
        make_grid([jnp.zeros((1, 1, 1, 1))], (8, 16))


def test_integral_is_the_mean_distance() -> None:
    layer = Integral(3)
    logits = jnp.log(jnp.asarray([[1.0, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0]]) + 1e-12).reshape(
        16
    )
    np.testing.assert_allclose(layer(logits), [1.5, 0, 3, 1.5], atol=1e-5)
    assert list(layer.state_dict()) == ["project"]
    assert list(Integral(3, deploy=True).state_dict()) == []
