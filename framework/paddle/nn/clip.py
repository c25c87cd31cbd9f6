"""Clipping of gradients: ClipGradByValue, ClipGradByNorm and ClipGradByGlobalNorm, over the core's.

An optimizer takes one as `grad_clip`; `arrays` is the part that compiles into its step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from framework.nn.clip import GradClip
from framework.paddle._kernel.dispatch import Array, Arrays, operation
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor

Pair = tuple[Any, Tensor | None]


@operation
def clip_by_norm(x: Array, max_norm: Array | float, name: str | None = None) -> Array:
    """`x`, shortened to the length `max_norm` where it is longer."""
    norm = jnp.sqrt(jnp.square(x).sum())
    limit = jnp.asarray(max_norm).astype(x.dtype)
    return jnp.where(norm > limit, x * (limit / norm), x)


class ClipGradBase:
    """Base: `clip([(parameter, gradient), …])` returns the pairs with clipped gradients. Pairs without a gradient are
    left out, and parameters with `need_clip=False` stay as they are."""

    core: GradClip

    def arrays(self, grads: Sequence[jax.Array], need_clip: Sequence[bool]) -> list[jax.Array]:
        """The clipped gradients of those with `need_clip`, the others as they are; norms are taken in float32."""
        wide = {
            str(i): g.astype(jnp.promote_types(g.dtype, jnp.float32))
            for i, (g, needed) in enumerate(zip(grads, need_clip, strict=True))
            if needed
        }
        clipped = self.core(wide)
        return [clipped[str(i)].astype(g.dtype) if str(i) in clipped else g for i, g in enumerate(grads)]

    def __call__(self, params_grads: Iterable[Pair]) -> list[Pair]:
        pairs = [pair for pair in params_grads if pair[1] is not None]
        present = list(range(len(pairs)))
        if not present:
            return pairs
        # A parameter made by hand may have no such attribute: it is clipped.
        needed = tuple(bool(getattr(pairs[i][0], "need_clip", True)) for i in present)
        results = _clipped([pairs[i][1] for i in present], self, needed)
        for i, result in zip(present, results, strict=True):
            pairs[i] = (pairs[i][0], result)
        return pairs

    def __hash__(self) -> int:
        return hash((type(self), self.core))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.core == self.core  # type: ignore[attr-defined]


@operation(name="clip_grad", differentiable=False)
def _clipped(grads: Arrays, clip: ClipGradBase, need_clip: tuple[bool, ...]) -> tuple[jax.Array, ...]:
    return tuple(clip.arrays(grads, need_clip))


_norm_types = {"pure_fp16": False, "mp_type": False}


def _exchange_norm_type(name: str, args: tuple[bool, ...]) -> bool:
    before = _norm_types[name]
    if args:
        (_norm_types[name],) = args
    return before


def _allow_pure_fp16_global_norm_clip(*args: bool) -> bool:
    """Whether norms of float16 gradients may be taken in float16; with an argument, record it and give what it was.
    They are taken in float32 here all the same."""
    return _exchange_norm_type("pure_fp16", args)


def _clip_by_global_norm_using_mp_type(*args: bool) -> bool:
    """Whether norms are taken in float32, as they are here in any case; with an argument, record it and give what it
    was."""
    return _exchange_norm_type("mp_type", args)


def _squared_l2_norm(x: Tensor) -> Tensor:
    """The sum of squares [1], of 16 bits in float32 where `_clip_by_global_norm_using_mp_type` is on."""
    from framework.paddle._kernel.layer_kernels import squared_l2_norm  # stands above this module

    wide = _norm_types["mp_type"] and x.dtype.name in ("float16", "bfloat16")
    return squared_l2_norm(x.astype("float32") if wide else x)


class ClipGradByValue(ClipGradBase):
    """Limits every element to [min, max]; without `min` to [-max, max]."""

    def __init__(self, max: float, min: float | None = None) -> None:
        if min is None:
            assert max > 0, f"ClipGradByValue: max is positive where there is no min, received {max}"
        self.max, self.min = float(max), -float(max) if min is None else float(min)
        self.core = GradClip(value=(self.min, self.max))

    def __str__(self) -> str:
        return f"Clip Gradient By Value, min = {self.min:f}, max={self.max:f}"


class ClipGradByNorm(ClipGradBase):
    """Scales down every gradient whose own L2 norm is above `clip_norm`."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)
        self.core = GradClip(norm=self.clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"


class ClipGradByGlobalNorm(ClipGradBase):
    """Scales all gradients by one factor when their joint L2 norm is above `clip_norm`.

    `group_name` and `auto_skip_clip` change nothing here: all gradients of an optimizer are one group, and a factor of
    1 costs nothing in a compiled step.
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        self.clip_norm, self.group_name, self.auto_skip_clip = float(clip_norm), group_name, auto_skip_clip
        self.core = GradClip(global_norm=self.clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"


_complete(__name__)
