"""Clipping of gradients: Paddle's `ClipGradByValue`, `ClipGradByNorm` and `ClipGradByGlobalNorm` as one value.

An optimizer takes it as `grad_clip`. As in Paddle the names are those of `nn`; `framework.optimizer` has them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework.core.errors import ConfigError
from framework.core.types import PyTree

Grads = dict[str, jax.Array]
_SMALL = 1 << 16  # elements of an array that is joined with others for a sum


@dataclass(frozen=True)
class GradClip:
    """One of three ways to keep gradients small; in YAML `grad_clip: {global_norm: 1.0}`.

    Attributes:
        value: Every element is limited to [-value, value], or to [low, high] when two numbers are given.
        norm: Every gradient whose own L2 norm is larger is scaled down to it.
        global_norm: All gradients are scaled by one factor when their joint L2 norm is larger.
    """

    value: float | tuple[float, float] | None = None
    norm: float | None = None
    global_norm: float | None = None

    def __post_init__(self) -> None:
        given = [f"{n} {v}" for n in ("value", "norm", "global_norm") if (v := getattr(self, n)) is not None]
        low, high = self.limits
        positive = [v for v in (self.value, self.norm, self.global_norm) if isinstance(v, float | int)]
        good = low <= high and all(v > 0 for v in positive)
        if len(given) != 1 or not good:
            raise ConfigError(
                "gradients are clipped in one way",
                received=", ".join(given) or "nothing",
                allowed="one of value (a positive number, or low and high), norm and global_norm (positive)",
            )

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest element; infinite unless elements are clipped."""
        if self.value is None:
            return -jnp.inf, jnp.inf
        return self.value if isinstance(self.value, tuple) else (-self.value, self.value)

    def __call__(self, grads: Mapping[str, jax.Array]) -> Grads:
        """The clipped gradients. Those of `ParamAttr(need_clip=False)` are not to be among them."""
        if self.value is not None:
            return {name: jnp.clip(grad, *self.limits) for name, grad in grads.items()}
        if self.norm is not None:
            return {name: _scale(grad, global_norm(grad), self.norm) for name, grad in grads.items()}
        assert self.global_norm is not None
        total = global_norm(dict(grads))
        return {name: _scale(grad, total, self.global_norm) for name, grad in grads.items()}


def global_norm(arrays: PyTree) -> jax.Array:
    """The L2 norm of all numbers of a pytree of arrays together, []."""
    squares = [jnp.square(leaf).sum() for leaf in _concat_small(jax.tree.leaves(arrays))]
    return jnp.sqrt(sum(squares[1:], squares[0])) if squares else jnp.zeros(())


def _concat_small(arrays: Sequence[jax.Array]) -> list[jax.Array]:
    """The arrays, small ones of a type joined: a sum for each of 170 parameters is a fifth of the time that XLA takes
    to compile a training step."""
    large = [x for x in arrays if x.size > _SMALL]
    small: dict[jnp.dtype, list[jax.Array]] = {}
    for x in arrays:
        if x.size <= _SMALL:
            small.setdefault(x.dtype, []).append(x.ravel())
    return [*large, *[jnp.concatenate(flat) if len(flat) > 1 else flat[0] for flat in small.values()]]


def _scale(grad: jax.Array, norm: jax.Array, limit: float) -> jax.Array:
    return grad * (limit / jnp.maximum(norm, limit))


def ClipGradByValue(max: float, min: float | None = None) -> GradClip:
    """Limits every element to [min, max]; without `min` to [-max, max]."""
    return GradClip(value=max if min is None else (min, max))


def ClipGradByNorm(clip_norm: float) -> GradClip:
    """Scales down every gradient whose own L2 norm is above `clip_norm`."""
    return GradClip(norm=clip_norm)


def ClipGradByGlobalNorm(clip_norm: float) -> GradClip:
    """Scales all gradients by one factor when their joint L2 norm is above `clip_norm`."""
    return GradClip(global_norm=clip_norm)
