"""Rotary position embedding: pairs of channels of queries and keys are turned by angles that grow with the position.

Source: Su et al. 2021, https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.nn.functional.lowering import jitted


@jitted("interleaved")
def _apply_rotary(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool) -> jax.Array:
    width = 2 * cos.shape[-1]
    cos, sin = (
        table[..., None, :].astype(wide_type(x.dtype)) for table in (cos, sin)
    )  # [N, T, 1, width / 2]
    rotated = x[..., :width].astype(cos.dtype)
    if interleaved:
        pairs = rotated.reshape(*rotated.shape[:-1], width // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        rotated = jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(rotated.shape)
    else:
        a, b = jnp.split(rotated, 2, axis=-1)
        rotated = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    rotated = rotated.astype(x.dtype)
    return rotated if width == x.shape[-1] else jnp.concatenate([rotated, x[..., width:]], axis=-1)


def apply_rotary(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool = False) -> jax.Array:
    """x [N, T, heads, D] turned by angles whose cosines and sines are [N or 1, T, R / 2], R <= D; in float32, to x's
    type. The last D - R channels stay as they are.

    Channel i is paired with i + R / 2, as in LLaMA and in NeoX; with `interleaved` 2i with 2i + 1, as in the paper,
    GPT-J and ERNIE 4.5.

    Raises:
        ShapeError: the tables differ from each other or have more than D / 2 columns.
    """
    if x.ndim != 4 or cos.ndim != 3 or cos.shape != sin.shape or 2 * cos.shape[-1] > x.shape[-1]:
        raise ShapeError(
            "rotary embedding: an angle for each pair of channels and each token",
            received=f"x {x.shape}, cos {cos.shape}, sin {sin.shape}",
            allowed="x [N, T, heads, D], tables [N or 1, T, at most D / 2]",
        )
    return _apply_rotary(x, cos, sin, interleaved)
