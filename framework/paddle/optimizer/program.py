"""The compiled step: clipping, weight decay and the rules for all parameters, as one program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import jax
import jax.numpy as jnp

from framework.optimizer.base import wide
from framework.optimizer.regularizer import WeightDecay
from framework.optimizer.rules import Rule, State, StateSlot
from framework.paddle._kernel.program import device_options, is_nested

AnyArray = TypeVar("AnyArray", jax.Array, jax.ShapeDtypeStruct)


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

    @functools.cached_property
    def powers(self) -> dict[str, StateSlot]:
        return {name: slot for name, slot in self.slots if slot.power}

    @functools.cached_property
    def others(self) -> dict[str, StateSlot]:
        return {name: slot for name, slot in self.slots if not slot.power}


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


Updated = tuple[list[jax.Array], list[jax.Array | None], list[State], list[jax.Array]]
_EQUAL = 4  # parameters of each shape from which on the emitters are cheaper
Indices = tuple[tuple[int, ...], ...]
"""For each parameter where the powers of its state are among those of all."""


def find_powers(plan: Plan, powers: Sequence[Sequence[AnyArray]]) -> tuple[Indices, list[AnyArray]]:
    """The powers of each parameter's state as indices in a list that has each array but once.

    Parameters that began together share theirs: of the 710 kernels of Adam for MobileNetV3-small 284 computed one of
    two numbers.
    """
    numbers: dict[tuple[int, float], int] = {}
    unique: list[AnyArray] = []
    indices: list[tuple[int, ...]] = []
    for settings, arrays in zip(plan.parts, powers, strict=True):
        row = []
        for slot, array in zip(settings.powers.values(), arrays, strict=True):
            key = id(array), slot.fill  # equal powers of two factors have two values in the next step
            if key not in numbers:
                numbers[key] = len(unique)
                unique.append(array)
            row.append(numbers[key])
        indices.append(tuple(row))
    return tuple(indices), unique


def _update(
    plan: Plan,
    indices: Indices,
    params: Sequence[jax.Array],
    grads: Sequence[jax.Array],
    masters: Sequence[jax.Array | None],
    states: Sequence[State],
    powers: Sequence[jax.Array],
    lr: jax.Array,
    factors: jax.Array | None,
    skip: jax.Array | None,
) -> Updated:
    """New (parameters, float32 copies, states, powers). `states` are without the powers, which `find_powers` gave with
    their `indices`. `lr` is the learning rate [], `factors` [n] multiply it for each parameter, `skip` [] (bool) leaves
    everything as it is."""
    grads = list(grads)
    for clipping in plan.clips:
        clipped = clipping.clip.arrays([grads[i] for i in clipping.places], clipping.needed)
        for place, grad in zip(clipping.places, clipped, strict=True):
            grads[place] = grad
    moved: list[jax.Array] = []
    copies: list[jax.Array | None] = []
    changed: list[State] = []
    raised = list(powers)
    for i, (part, param, master, without) in enumerate(zip(plan.parts, params, masters, states, strict=True)):
        state = {**without, **{name: powers[k] for name, k in zip(part.powers, indices[i], strict=True)}}
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
        changed.append({name: after[name] for name in without})
        for name, k in zip(part.powers, indices[i], strict=True):
            raised[k] = after[name]
    return moved, copies, changed, raised


@functools.cache
def _compiled(varied: bool, in_place: bool) -> jax.stages.Wrapped:
    """`_update` for the device; `in_place`: in the memory of what it replaces, which is gone afterwards."""
    donated = ("params", "masters", "states") if in_place else ()
    options = device_options(whole=False) if varied else None
    return jax.jit(_update, static_argnums=(0, 1), donate_argnames=donated, compiler_options=options)


def _is_varied(params: Sequence[jax.Array]) -> bool:
    """Whether most parameters have a shape of their own. XLA's emitters of fusions take 35 ms for a kernel but compile
    equal ones once, its older ones take 9 ms for each: 6.2 and 3.8 s for the 142 parameters of MobileNetV3-small, .6
    and 2.0 s for 60 of two shapes. Both compute the same."""
    return len(params) < _EQUAL * len({(param.shape, param.dtype) for param in params})


def update(
    plan: Plan, indices: Indices, params: Sequence[jax.Array], *others: object, in_place: bool
) -> Updated:
    """`_update`, compiled; `in_place`: the parameters, copies and states given to it are gone afterwards."""
    varied = _is_varied(params)
    try:
        return _compiled(varied, in_place)(plan, indices, params, *others)
    except ValueError as error:
        if not varied or not is_nested(error):
            raise
        # a part of a program that has its own options
        return _compiled(False, in_place)(plan, indices, params, *others)


@dataclass(frozen=True)
class StepOf:
    """The program `update` in place of a plan, for shapes and types that are known before the arrays are."""

    plan: Plan
    indices: Indices

    def lower(self, *inputs: object) -> jax.stages.Lowered:
        """The program for these inputs, to be compiled."""
        params = cast("Sequence[jax.Array]", inputs[0])
        return _compiled(_is_varied(params), True).lower(self.plan, self.indices, *inputs)
