"""Recomputation: keep the inputs of a block instead of its activations, and run it again in the backward pass.

It costs one more forward pass of the block and saves the memory of what stands between its layers. The numbers are the
same to the last bit: the second run is the same program, with the same random keys. Source: Chen et al. 2016.
"""

from __future__ import annotations

import contextvars
import functools
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.core import AbstractValue, Tracer
from jax.extend.core import Primitive

from framework.core.errors import ShapeError, WeightError
from framework.core.rng import is_tracing
from framework.core.types import PyTree

if TYPE_CHECKING:
    from framework.nn.layer import Layer, Parameter

P = ParamSpec("P")
T = TypeVar("T")  # a pytree of arrays

# (layer, name) -> the buffer before the block wrote it; a block that is traced apart must not leave its placeholders.
_Journal = dict[tuple[int, str], "tuple[Layer, str, jax.Array | None]"]
_journal: contextvars.ContextVar[_Journal | None] = contextvars.ContextVar("oar_recompute", default=None)


def record(layer: Layer, name: str) -> None:
    """Called by a layer before one of its buffers changes."""
    journal = _journal.get()
    if journal is not None:
        journal.setdefault((id(layer), name), (layer, name, layer._buffers.get(name)))


def is_recomputed() -> bool:
    """Whether a block is traced here whose activations will be computed again."""
    return _journal.get() is not None


# What turns a parameter into the form that a product takes: a gather that is not kept would save nothing, if such a
# copy of it were.
_FORMS = frozenset({"convert_element_type", "transpose", "reshape", "copy"})


def has_divided(layer: Layer) -> bool:
    """Whether the layer has divided parameters and no layers below it, and stands in no block that is computed again as
    a whole."""
    if layer._sub_layers or is_recomputed():
        return False
    return any(one.gathered is not None for one in layer._parameters.values())


def gather_again(layer: Layer, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> PyTree:
    """`layer.forward`; the backward pass gathers the layer's divided parameters again and computes nothing else twice.

    Left alone, differentiation keeps what the forward pass gathered until the backward pass has used it, so that in the
    middle of a step every device has the whole model after all. Source: FSDP and ZeRO-3 gather twice for this reason.
    """
    shapes = {one.shape for one in layer._parameters.values() if one.gathered is not None}

    def keep(primitive: Primitive, *avals: AbstractValue, **_: object) -> bool:
        if primitive.name == "sharding_constraint":
            return False
        return not (primitive.name in _FORMS and getattr(avals[0], "shape", None) in shapes)

    return _run_again(keep, layer.forward, *args, **kwargs)


def recompute(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`function(*args, **kwargs)`, whose activations are computed again in the backward pass.

    `function` is a layer or any function that calls layers; it returns arrays. Arrays that it reads from outside
    (parameters) get their gradients, buffers that it changes (BatchNorm's statistics) change once, and random keys
    come from the surrounding scope as without recomputation. Outside of a trace it is a plain call.
    Source: paddle.distributed.fleet.utils.recompute.
    """
    if not is_tracing() and not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, kwargs))):
        return function(*args, **kwargs)
    parameters = _parameters_of(function)
    values = [one._value for one in parameters]
    try:
        args, tied = _end_together((args, values))
        for parameter, value in zip(parameters, tied):
            parameter._value = value
        return _run_again(None, function, *args, **kwargs)
    finally:
        for parameter, value in zip(parameters, values):
            parameter._value = value


def _parameters_of(function: Callable[..., object]) -> list[Parameter]:
    """Those of the layer whose method it is, each once."""
    named = getattr(getattr(function, "__self__", function), "named_parameters", None)
    return [] if named is None else list({id(one): one for _, one in named()}.values())


def _end_together(values: T) -> T:
    """`values`, whose gradients are all there before one of them is used.

    Nothing waits for the gradients of a block's parameters but the optimizer, so that a compiler may put them off until
    the end of the backward pass, and holds what they are computed from, of many blocks at once.
    """
    leaves, form = jax.tree.flatten(values)
    floats = [
        number for number, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
    ]
    for number, leaf in zip(floats, _tie(*(leaves[number] for number in floats))):
        leaves[number] = leaf
    return jax.tree.unflatten(form, leaves)


@jax.custom_vjp
def _tie(*values: jax.Array) -> tuple[jax.Array, ...]:
    return values


_tie.defvjp(
    lambda *values: (values, None), lambda _, gradients: tuple(jax.lax.optimization_barrier(gradients))
)


def _run_again(
    policy: Callable[..., bool] | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """`function`, of whose values the backward pass computes those again that `policy` does not let it keep."""
    changed: list[tuple[Layer, str]] = []

    def run() -> tuple[T, list[jax.Array]]:
        journal: _Journal = {}
        token = _journal.set(journal)
        try:
            out = function(*args, **kwargs)
            changed[:] = [(layer, name) for layer, name, _ in journal.values()]
            return out, [layer._buffers[name] for layer, name in changed]
        finally:
            _journal.reset(token)
            for layer, name, before in journal.values():
                if before is None:
                    del layer._buffers[name]
                else:
                    layer._buffers[name] = before

    out, buffers = jax.checkpoint(run, policy=policy)()
    for (layer, name), value in zip(changed, buffers):
        setattr(layer, name, value)
    return out


def recompute_sequential(segments: int, layers: Iterable[Callable[..., PyTree]], *args: PyTree) -> PyTree:
    """Run a Sequential (or any sequence of layers) in `segments` parts of which all but the last are recomputed.

    The last part keeps its activations: its backward pass comes first. Each layer after the first takes one argument.

    Raises:
        ShapeError: more segments than layers, or none.
    """
    steps = list(layers)
    if not 1 <= segments <= len(steps):
        raise ShapeError(
            "recompute_sequential: wrong number of segments",
            received=segments,
            allowed=f"1 to {len(steps)}, the number of layers",
        )

    def chain(part: list[Callable[..., PyTree]], *inputs: PyTree) -> PyTree:
        first, *others = part
        return functools.reduce(lambda x, step: step(x), others, first(*inputs))

    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        args = (recompute(functools.partial(chain, steps[start : start + size]), *args),)
    return chain(steps[size * (segments - 1) :], *args)


def set_recompute(layer: Layer, pattern: str | None) -> list[str]:
    """Recompute the sublayers whose dotted name contains the regular expression, in training; returns their names.

    A sublayer below a marked one is part of it and is not marked again. The call replaces earlier marks; None takes
    them away. The marks are part of the structure that `nn.split` returns: set them before it.

    Raises:
        WeightError: no sublayer with a forward of its own has such a name.
    """
    for sublayer in layer.sublayers(include_self=True):
        sublayer.__dict__.pop("_recompute", None)
    if pattern is None:
        return []
    callable_ones = [(name, sub) for name, sub in layer.named_sublayers() if sub.has_forward()]
    marked: list[str] = []
    for name, sublayer in callable_ones:
        inside = any(name.startswith(f"{outer}.") for outer in marked)
        if not inside and re.search(pattern, name):
            sublayer.__dict__["_recompute"] = True
            marked.append(name)
    if not marked:
        names = [name for name, _ in callable_ones]
        raise WeightError(
            "no sublayer to recompute",
            where=type(layer).__name__,
            received=f"the pattern {pattern!r}",
            allowed=f"a regular expression found in one of {len(names)} names such as {names[:5]}",
        )
    return marked
