"""The compiled step: clipping, weight decay and the rules for all parameters, as one program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp

from framework.optimizer.base import wide
from framework.optimizer.regularizer import WeightDecay
from framework.optimizer.rules import Rule, State, StateSlot


class Clip(Protocol):
    """What a plan needs of paddle.nn.ClipGradBy…"""

    def arrays(self, grads: Sequence[jax.Array], need_clip: Sequence[bool]) -> list[jax.Array]: ...


@dataclass(frozen=True)
class Clipping:
    """A clip, the places of the gradients it takes together, and which of them are to be clipped."""

    clip: Clip
    places: tuple[int, ...]
    needed: tuple[bool, ...]


@dataclass(frozen=True)
class Part:
    """What is done to one parameter; `master`: on its float32 copy."""

    rule: Rule
    decay: WeightDecay
    rescale: float
    master: bool

    @functools.cached_property
    def slots(self) -> list[tuple[str, StateSlot]]:
        return list(self.rule.slots().items())


@dataclass(frozen=True)
class Plan:
    """A step: equal plans share their compiled program. `outside`: the user's own clipping or regularizer has prepared
    the gradients."""

    parts: tuple[Part, ...]
    clips: tuple[Clipping, ...]
    outside: bool

    def __hash__(self) -> int:
        return self._hash  # computed once: it is asked for at every step

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.parts, self.clips))


def _update(
    plan: Plan,
    params: Sequence[jax.Array],
    grads: Sequence[jax.Array],
    masters: Sequence[jax.Array | None],
    states: Sequence[State],
    lr: jax.Array,
    factors: jax.Array | None,
    skip: jax.Array | None,
) -> tuple[list[jax.Array], list[jax.Array | None], list[State]]:
    """New (parameters, float32 copies, states). `lr` is the learning rate [], `factors` [n] multiply it for each
    parameter, `skip` [] (bool) leaves everything as it is."""
    grads = list(grads)
    for clipping in plan.clips:
        clipped = clipping.clip.arrays([grads[i] for i in clipping.places], clipping.needed)
        for place, grad in zip(clipping.places, clipped, strict=True):
            grads[place] = grad
    moved: list[jax.Array] = []
    copies: list[jax.Array | None] = []
    changed: list[State] = []
    for i, (part, param, master, state) in enumerate(zip(plan.parts, params, masters, states, strict=True)):
        full = wide(param) if master is None else master
        kind = full.dtype
        grad = WeightDecay(l1=part.decay.l1).add_to(grads[i].astype(kind), full)
        if part.rescale != 1.0:
            grad = grad * part.rescale
        grad = WeightDecay(l2=part.decay.l2).add_to(grad, full)
        rate = lr.astype(kind) if factors is None else (lr * factors[i].astype(lr.dtype)).astype(kind)
        new, after = part.rule.update(full, grad, rate, {n: s.astype(kind) for n, s in state.items()})
        after = {n: after[n].astype(s.dtype) for n, s in state.items()}
        if skip is not None:
            new = jnp.where(skip, full, new)
            after = {n: jnp.where(skip, s, after[n]) for n, s in state.items()}
        moved.append(new.astype(param.dtype))
        copies.append(None if master is None else new)
        changed.append(after)
    return moved, copies, changed


update = jax.jit(_update, static_argnums=0)
update_in_place = jax.jit(_update, static_argnums=0, donate_argnames=("params", "masters", "states"))
"""As `update`, in the memory of what it replaces: the arrays given to it are gone afterwards."""


@dataclass(frozen=True)
class StepOf:
    """The program `update_in_place` of a plan, for shapes and types that are known before the arrays are."""

    plan: Plan

    def lower(self, *inputs: object) -> jax.stages.Lowered:
        """The program for these inputs, to be compiled."""
        return update_in_place.lower(self.plan, *inputs)
