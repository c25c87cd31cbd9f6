"""The first thing that every image network does to an image; part of the program, not of the host's transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.core.lazy import LazyModule

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax = LazyModule("jax")
    jnp = LazyModule("jax.numpy")


@dataclass(frozen=True)
class Normalize:
    """(x / scale - mean) / std of R, G, B; `bgr` feeds the channels in the other order. The defaults are ImageNet's.

    Images of other channels have a number for each in `mean` and `std`; `scale` is 65535 where they have 16 bits.
    """

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    bgr: bool = False
    scale: float = 255.0

    def __call__(self, images: jax.Array) -> jax.Array:
        """[N, H, W, C] uint8, or another dtype, to float32."""
        x = images[..., ::-1] if self.bgr else images
        mean, std = jnp.asarray(self.mean, jnp.float32), jnp.asarray(self.std, jnp.float32)
        return x.astype(jnp.float32) * (1 / (self.scale * std)) - mean / std
