"""Rotary positions, RMSNorm and attention whose queries share keys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F


def _tables(positions: list[int], width: int) -> tuple[jax.Array, jax.Array]:
    angles = np.asarray(positions)[None, :, None] * 100.0 ** -(np.arange(0, width, 2) / width)
    return jnp.asarray(np.cos(angles), jnp.float32), jnp.asarray(np.sin(angles), jnp.float32)


@pytest.mark.parametrize("interleaved", [False, True])
def test_pairs_turn_as_complex_numbers(interleaved: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 2, 8)).astype(np.float32)
    cos, sin = _tables([0, 5, 9], 8)
    pairs = x.reshape(2, 3, 2, 4, 2) if interleaved else np.stack([x[..., :4], x[..., 4:]], -1)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * (np.asarray(cos) + 1j * np.asarray(sin))[:, :, None]
    expected = np.stack([turned.real, turned.imag], -1)
    expected = expected.reshape(x.shape) if interleaved else np.concatenate([turned.real, turned.imag], -1)
    np.testing.assert_allclose(F.apply_rotary(jnp.asarray(x), cos, sin, interleaved), expected, atol=1e-6)


def test_channels_beyond_the_tables_stay() -> None:
    x = jnp.ones((1, 2, 1, 6))
    cos, sin = _tables([3, 4], 4)
    y = F.apply_rotary(x, cos, sin)
    assert (y[..., 4:] == 1).all() and not (y[..., :4] == 1).any()


def test_scores_depend_on_the_distance_alone() -> None:
    rng = np.random.default_rng(1)
    q, k = (jnp.asarray(rng.standard_normal((1, 1, 1, 16)), jnp.float32) for _ in range(2))
    scores = []
    for start in (0, 7, 100):
        rotated = [F.apply_rotary(one, *_tables([start + at], 16)) for one, at in ((q, 4), (k, 1))]
        scores.append(float((rotated[0] * rotated[1]).sum()))
    np.testing.assert_allclose(scores, scores[0], rtol=1e-4)


def test_a_wrong_table_is_told() -> None:
    cos, sin = _tables([0, 1], 8)
    with pytest.raises(ShapeError, match="an angle for each pair of channels"):
        F.apply_rotary(jnp.ones((1, 2, 1, 6)), cos, sin)


def test_rms_norm_layer_and_its_offset() -> None:
    x = jnp.asarray([[3.0, 4.0]])
    root = np.sqrt(12.5 + 1e-6)
    np.testing.assert_allclose(nn.RMSNorm(2)(x), [[3 / root, 4 / root]], rtol=1e-6)
    layer = nn.RMSNorm(2, unit_offset=True)
    assert (layer.weight == 0).all()
    layer.set_state_dict({"weight": np.asarray([1.0, -1.0], np.float32)})
    np.testing.assert_allclose(layer(x), [[6 / root, 0]], rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"scale": 1.0, "softcap": 5.0}])
def test_grouped_queries_are_those_of_repeated_keys(options: dict[str, float]) -> None:
    rng = np.random.default_rng(2)
    q, k, v = (jnp.asarray(rng.standard_normal((2, 5, h, 4)), jnp.float32) for h in (6, 2, 2))
    mask = jnp.tril(jnp.ones((5, 5), bool))[None, None]
    found = F.scaled_dot_product_attention(q, k, v, mask, training=False, **options)
    repeated = [jnp.repeat(one, 3, axis=2) for one in (k, v)]
    np.testing.assert_allclose(
        found, F.scaled_dot_product_attention(q, *repeated, mask, training=False, **options), atol=1e-6
    )
    scores = np.einsum("nqhd,nkhd->nhqk", q, repeated[0]) * options.get("scale", 0.5)
    if cap := options.get("softcap"):
        scores = cap * np.tanh(scores / cap)
    scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.einsum("nhqk,nkhd->nqhd", weights, repeated[1]), atol=1e-5)


def test_keys_that_do_not_divide_are_told() -> None:
    q, k = jnp.ones((1, 2, 4, 8)), jnp.ones((1, 2, 3, 8))
    with pytest.raises(ShapeError, match="heads of keys that divide"):
        F.scaled_dot_product_attention(q, k, k)
