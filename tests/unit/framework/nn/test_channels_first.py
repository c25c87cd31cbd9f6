"""Arrays of Paddle's and torch's layout: the error says so, with both shapes and the transposition to write."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F


@pytest.mark.parametrize(
    ("layer", "shape", "allowed", "axes"),
    [
        (nn.Conv1D(3, 4, 3), (2, 3, 9), r"x \[N, T, 3\]", "0, 2, 1"),
        (nn.Conv2D(3, 4, 3), (2, 3, 8, 9), r"x \[N, H, W, 3\]", "0, 2, 3, 1"),
        (nn.Conv2D(4, 4, 3, groups=2), (2, 4, 8, 9), r"x \[N, H, W, 4\]", "0, 2, 3, 1"),
        (nn.Conv3D(3, 4, 3), (2, 3, 5, 8, 9), r"x \[N, D, H, W, 3\]", "0, 2, 3, 4, 1"),
        (nn.Conv1DTranspose(3, 4, 3), (2, 3, 9), r"x \[N, T, 3\]", "0, 2, 1"),
        (nn.Conv2DTranspose(3, 4, 3), (2, 3, 8, 9), r"x \[N, H, W, 3\]", "0, 2, 3, 1"),
        (nn.BatchNorm2D(3), (2, 3, 8, 9), r"x \[N, ..., 3\]", "0, 2, 3, 1"),
        (nn.BatchNorm1D(3), (2, 3, 9), r"x \[N, ..., 3\]", "0, 2, 1"),
        (nn.GroupNorm(3, 6), (2, 6, 8, 9), r"x \[N, ..., 6\]", "0, 2, 3, 1"),
        (nn.InstanceNorm2D(3), (2, 3, 8, 9), r"x \[N, ..., 3\]", "0, 2, 3, 1"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Layer) else "",
)
def test_channels_first_is_named(layer: nn.Layer, shape: tuple[int, ...], allowed: str, axes: str) -> None:
    x = jnp.ones(shape)
    with pytest.raises(ShapeError) as caught:
        layer(x)
    assert f"received: x {shape}" in str(caught.value)
    assert caught.match(rf"(?s)allowed: {allowed}.*channels-last.*x\.transpose\({axes}\)")
    assert layer(x.transpose(*map(int, axes.split(", ")))).ndim == x.ndim


def test_other_mismatches_have_no_such_hint() -> None:
    for layer, shape in ((nn.Conv2D(3, 4, 3), (2, 8, 9, 4)), (nn.BatchNorm2D(3), (2, 8, 9, 4))):
        with pytest.raises(ShapeError) as caught:
            layer(jnp.ones(shape))
        assert caught.value.fix is None


def test_linear_names_both_shapes() -> None:
    with pytest.raises(
        ShapeError, match=r"received: x \(2, 5\), weight \(3, 4\)\n  allowed: x \[\.\.\., 3\]"
    ):
        nn.Linear(3, 4)(jnp.ones((2, 5)))
    with pytest.raises(ShapeError, match=r"flatten images first: x\.reshape\(len\(x\), -1\)"):
        nn.Linear(12, 4)(jnp.ones((2, 2, 2, 3)))
    with pytest.raises(ShapeError, match="transpose the weight"):
        F.linear(jnp.ones((2, 3)), jnp.ones((4, 3)))
