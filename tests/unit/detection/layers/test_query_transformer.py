"""detection.layers.query_transformer: what sizes it takes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import export

from detection.layers.query_transformer import flatten_levels, pixel_centres
from framework.core.errors import ShapeError


def test_pixels_of_all_maps_side_by_side() -> None:
    first, second = np.arange(12.0).reshape(1, 2, 3, 2), np.full((1, 1, 1, 2), 9.0)
    pixels, shapes = flatten_levels([first, second])  # type: ignore[list-item]
    assert shapes == ((2, 3), (1, 1))
    assert np.array_equal(pixels[0], [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [9, 9]])
    assert pixel_centres(1, 2).tolist() == [[0.25, 0.5], [0.75, 0.5]]


def test_the_batch_may_be_symbolic_but_not_the_size() -> None:
    (n,) = export.symbolic_shape("n")
    found = jax.eval_shape(lambda x: flatten_levels([x])[0], jax.ShapeDtypeStruct((n, 4, 5, 2), np.float32))
    assert found.shape == (n, 20, 2)
    h, w = export.symbolic_shape("4*h, w")
    with pytest.raises(ShapeError, match="one input size in a program") as caught:
        jax.eval_shape(lambda x: flatten_levels([x])[0], jax.ShapeDtypeStruct((1, h, w, 2), np.float32))
    assert "4*h x w" in str(caught.value) and "export.inputs" in str(caught.value)
