"""A jaxpr as one flat list of operations: calls are inlined, loops and branches keep their bodies."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex

_LOOPS = ("scan", "while", "cond")
_CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
)


@dataclass(frozen=True)
class Array:
    """Shape and bytes of a number of one array of a program."""

    shape: tuple[int, ...]
    itemsize: int

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.numbers * self.itemsize


@dataclass(frozen=True)
class Equation:
    """One primitive: its operands and results are indices of `Trace.arrays`.

    Attributes:
        operands: None for a literal.
        parameters: Those of the primitive.
        bodies: Of a loop or a branch.
    """

    name: str
    operands: tuple[int | None, ...]
    results: tuple[int, ...]
    parameters: Mapping[str, object]
    bodies: tuple[Trace, ...] = ()


@dataclass(eq=False)
class Trace:
    """Operations in the order of a jaxpr. Inputs are the constants of the jaxpr, and then its arguments.

    Attributes:
        recomputed: The operations of each backward pass of a checkpoint, which jax keeps apart by a barrier, so that
            nothing is shared with the forward pass.
    """

    arrays: list[Array] = field(default_factory=list)
    operations: list[Equation] = field(default_factory=list)
    constants: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int | None, ...] = ()
    recomputed: list[range] = field(default_factory=list)

    @functools.cached_property
    def consumers(self) -> list[list[int]]:
        """For each array the indices of the operations that read it."""
        result: list[list[int]] = [[] for _ in self.arrays]
        for index, operation in enumerate(self.operations):
            for operand in dict.fromkeys(operation.operands):
                if operand is not None:
                    result[operand].append(index)
        return result


def split_names(text: str) -> frozenset[str]:
    """The names of primitives in a text."""
    return frozenset(text.split())


def flatten(closed: jex.ClosedJaxpr) -> Trace:
    """The program of a closed jaxpr."""
    program = Trace()
    jaxpr = closed.jaxpr
    names = {}
    for variable in (*jaxpr.constvars, *jaxpr.invars):
        names[variable] = _add(program, variable.aval)
    program.constants = len(jaxpr.constvars)
    program.inputs = tuple(names[variable] for variable in (*jaxpr.constvars, *jaxpr.invars))
    _inline(program, jaxpr, names)
    program.outputs = tuple(_index(program, names, atom) for atom in jaxpr.outvars)
    return program


def _add(program: Trace, aval: object) -> int:
    shape = tuple(int(size) for size in getattr(aval, "shape", ()))
    dtype = getattr(aval, "dtype", np.dtype("float32"))
    extended = jnp.issubdtype(dtype, jax.dtypes.extended)
    program.arrays.append(Array(shape, 8 if extended else np.dtype(dtype).itemsize))
    return len(program.arrays) - 1


def _index(program: Trace, names: Mapping[object, int | None], atom: jex.Var | jex.Literal) -> int | None:
    if isinstance(atom, jex.Literal):
        return _add(program, atom.aval) if getattr(atom.aval, "shape", ()) else None
    return names[atom]


def _inline(program: Trace, jaxpr: jex.Jaxpr, names: dict[object, int | None]) -> None:
    for equation in jaxpr.eqns:
        operands = [_index(program, names, atom) for atom in equation.invars]
        name = equation.primitive.name
        bodies = _bodies(equation.params.values())
        if name in _CALLS:
            begin = len(program.operations)
            _call(program, bodies[0], operands, equation.outvars, names)
            if equation.params.get("differentiated"):
                program.recomputed.append(range(begin, len(program.operations)))
            continue
        results = tuple(_add(program, variable.aval) for variable in equation.outvars)
        names.update(zip(equation.outvars, results))
        programs = tuple(flatten(body) for body in bodies) if name in _LOOPS else ()
        program.operations.append(Equation(name, tuple(operands), results, equation.params, programs))


def _call(
    program: Trace,
    inner: jex.ClosedJaxpr,
    operands: Sequence[int | None],
    results: Sequence[object],
    names: dict[object, int | None],
) -> None:
    """Put the body of a call in its place."""
    scope: dict[object, int | None] = {}
    for variable in inner.jaxpr.constvars:
        scope[variable] = _add(program, variable.aval)
    scope.update(zip(inner.jaxpr.invars, operands))
    _inline(program, inner.jaxpr, scope)
    for variable, atom in zip(results, inner.jaxpr.outvars):
        names[variable] = _index(program, scope, atom)


def _bodies(parameters: Iterable[object]) -> list[jex.ClosedJaxpr]:
    """The jaxprs among the parameters of a primitive, closed."""
    bodies = []
    for value in parameters:
        if isinstance(value, jex.ClosedJaxpr):
            bodies.append(value)
        elif isinstance(value, jex.Jaxpr):
            bodies.append(jex.ClosedJaxpr(value, ()))
        elif isinstance(value, (tuple, list)):
            bodies += [one for one in value if isinstance(one, jex.ClosedJaxpr)]
    return bodies
