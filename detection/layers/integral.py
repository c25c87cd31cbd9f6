"""Box sides as distributions over integer distances.

Paper: Li et al. 2020, https://arxiv.org/abs/2006.04388
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.nn.reparam import Arrays


class Integral(nn.Layer):
    """Logits [..., 4 * (reg_max + 1)] -> expected distances [..., 4] to the left, top, right and bottom side.

    The distances 0 to reg_max are a buffer because upstream's checkpoints have them; exported programs do not.
    """

    def __init__(self, reg_max: int, deploy: bool = False) -> None:
        super().__init__()
        self.register_buffer("project", np.arange(reg_max + 1, dtype=np.float32), persistable=not deploy)

    def deploy_state(self) -> Arrays:
        return {}

    def forward(self, logits: jax.Array) -> jax.Array:
        shares = jax.nn.softmax(self.split(logits), axis=-1)
        return (shares * self.project).sum(axis=-1)

    def split(self, logits: jax.Array) -> jax.Array:
        """[..., 4, reg_max + 1] float32."""
        return logits.astype(jnp.float32).reshape(*logits.shape[:-1], 4, self.project.shape[0])
