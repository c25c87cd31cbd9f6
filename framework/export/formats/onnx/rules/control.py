"""Branches and loops: If, Loop and Scan, whose bodies see the names around them."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxpr_as_fun
from jax.typing import DTypeLike

from framework.export.formats.onnx.convert import Converter, closed
from framework.export.formats.onnx.graph import Atom, Aval, aval_of, avals_of
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.elementwise import convert
from framework.export.formats.onnx.values import Abstract, Value


@primitive("platform_index")
def _platform_index(c: Converter, eqn: JaxprEqn) -> Value:
    """The last form: that for platforms which have none of their own."""
    return c.scalar(len(eqn.params["platforms"]) - 1, np.int32)


@primitive("cond")
def _cond(c: Converter, eqn: JaxprEqn, which: Value, *args: Value) -> list[Value]:
    branches = eqn.params["branches"]
    if which.is_constant:
        branch = branches[int(np.clip(int(which.elements), 0, len(branches) - 1))]
        return c.run(*closed(branch), args)
    names = _branch(c, eqn, c.tensor(which), which.dtype, list(enumerate(branches)), args)
    return [c.value(name, aval_of(var)) for name, var in zip(names, eqn.outvars)]


def _branch(
    c: Converter,
    eqn: JaxprEqn,
    which: str,
    dtype: DTypeLike,
    branches: list[tuple[int, ClosedJaxpr]],
    args: Sequence[Value],
) -> list[str]:
    """One If for two branches, and one in the other for more."""
    (number, first), *others = branches
    if not others:
        values = c.run(*closed(first), args)
        return [c.plain(value, var.aval.shape) for value, var in zip(values, eqn.outvars)]  # type: ignore[attr-defined]
    is_first = c.graph.add("LessOrEqual", which, c.graph.constant(np.asarray(number, dtype)))
    bodies = []
    for block in ([(number, first)], others):
        body = c.body()
        finish(body, _branch(body, eqn, which, dtype, block, args), avals_of(eqn.outvars))
        bodies.append(body.graph)
    return c.graph.add_many("If", len(eqn.outvars), is_first, then_branch=bodies[0], else_branch=bodies[1])


def finish(body: Converter, names: Sequence[str], avals: Sequence[Aval]) -> None:
    """Make tensors the outputs of a body; each gets a node of its own there, whatever it is."""
    for name, aval in zip(names, avals):
        identity = body.graph.add("Identity", name)
        body.graph.outputs.append((identity, np.dtype(aval.dtype), tuple(aval.shape)))


def _carry(body: Converter, variables: Sequence[Atom]) -> list[Value]:
    """New inputs of a body."""
    values = []
    for var in variables:
        name = body.graph.unique("carried")
        aval = aval_of(var)
        body.graph.inputs.append((name, np.dtype(aval.dtype), tuple(aval.shape)))
        values.append(body.value(name, aval))
    return values


def _loop_body(c: Converter) -> Converter:
    """A body with the number of the turn and the condition as its first inputs."""
    body = c.body()
    for stem, dtype in (("turn", np.int64), ("going", np.bool_)):
        body.graph.inputs.append((body.graph.unique(stem), np.dtype(dtype), ()))
    return body


def _outputs(c: Converter, names: Sequence[str], variables: Sequence[Var]) -> list[Value]:
    return [c.value(name, aval_of(var)) for name, var in zip(names, variables)]


@primitive("while")
def _while(c: Converter, eqn: JaxprEqn, *args: Value) -> list[Value]:
    """A condition with axes, as vmap makes it, goes on while any is true and moves those alone that are."""
    p, avals = eqn.params, avals_of(eqn.outvars)
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    of_cond, of_body, start = args[:first], args[first:second], args[second:]
    (cond, cond_constants), (step, step_constants) = closed(p["cond_jaxpr"]), closed(p["body_jaxpr"])

    def going(c: Converter, state: Sequence[Value]) -> Value:
        (predicate,) = c.run(cond, cond_constants, [*of_cond, *state])
        return c.spread(predicate, cond.outvars[0].aval.shape)  # type: ignore[attr-defined]

    begin = [c.plain(value, aval.shape) for value, aval in zip(start, avals)]
    on = going(c, [c.value(name, aval) for name, aval in zip(begin, avals)])
    body = _loop_body(c)
    inside = _carry(body, eqn.outvars)
    moved = body.run(step, step_constants, [*of_body, *inside])
    if on.shape:
        mask = going(body, inside)
        moved = [_select(body, mask, new, old, aval) for new, old, aval in zip(moved, inside, avals)]
    names = [body.plain(value, aval.shape) for value, aval in zip(moved, avals)]
    again = going(body, [body.value(name, aval) for name, aval in zip(names, avals)])
    finish(body, [_any(body, again)], [Abstract((), np.bool_)])
    finish(body, names, avals)
    outputs = c.graph.add_many("Loop", len(begin), "", _any(c, on), *begin, body=body.graph)
    return _outputs(c, outputs, eqn.outvars)


def _select(c: Converter, mask: Value, new: Value, old: Value, aval: Aval) -> Value:
    """`new` where the mask, which has the first axes, is true."""
    mask = c.reshape_value(mask, [*mask.shape, *[1] * (len(aval.shape) - len(mask.shape))])
    return c.where(mask, c.spread(new, aval.shape), old, aval)


def _any(c: Converter, value: Value) -> str:
    """Whether any element is true, as a tensor of no axes."""
    if not value.shape:
        return c.plain(value)
    axes = list(range(len(value.shape)))
    flag = c.reduce("ReduceMax", convert(c, value, np.int32), axes, Abstract((), np.int32))
    return c.plain(convert(c, flag, np.bool_))


def _scan_sizes(eqn: JaxprEqn) -> tuple[int, int]:
    """The number of constants and of carried values. jax 0.11 has the trees of its arguments instead."""
    p = eqn.params
    if "ft_in" not in p:
        return p["num_consts"], p["num_carry"]
    constants, carry, _ = p["ft_in"].unpack()
    return len(constants), len(carry)


@primitive("scan")
def _scan(c: Converter, eqn: JaxprEqn, *args: Value) -> list[Value]:
    p = eqn.params
    constants, carries = _scan_sizes(eqn)
    step, step_constants = closed(p["jaxpr"])
    fixed, start, rows = args[:constants], args[constants : constants + carries], args[constants + carries :]
    if rows and not carries and not _loops(step):
        return _map(c, eqn, args)
    variables = eqn.invars[constants:]
    begin = [c.plain(value, var.aval.shape) for value, var in zip(start, variables)]  # type: ignore[attr-defined]
    tables = [c.plain(v, var.aval.shape) for v, var in zip(rows, variables[carries:])]  # type: ignore[attr-defined]
    if not tables:
        return _count(c, eqn, fixed, begin)
    body = c.body()
    inside = _carry(body, step.invars[constants:])
    for name, _, shape in body.graph.inputs:
        body.graph.define_sizes(name, shape, range(len(shape)))
    moved = body.run(step, step_constants, [*fixed, *inside])
    names = [body.plain(value, var.aval.shape) for value, var in zip(moved, step.outvars)]  # type: ignore[attr-defined]
    finish(body, names, avals_of(step.outvars))
    direction = int(bool(p["reverse"]))
    many = len(eqn.outvars) - carries
    outputs = c.graph.add_many(
        "Scan",
        len(eqn.outvars),
        *begin,
        *tables,
        num_scan_inputs=len(tables),
        body=body.graph,
        scan_input_directions=[direction] * len(tables),
        scan_output_directions=[direction] * many if many else None,
    )
    return _outputs(c, outputs, eqn.outvars)


def _map(c: Converter, eqn: JaxprEqn, args: Sequence[Value]) -> list[Value]:
    """A scan whose turns know nothing of one another, as lax.map makes it: all of them at once. Runtimes neither join
    operators across the border of a body, nor compute what is in it with fewer bits."""
    constants, avals = _scan_sizes(eqn)[0], avals_of(eqn.invars)
    axes = [None if i < constants else 0 for i in range(len(avals))]
    together = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(eqn.params["jaxpr"]), axes))(*avals)
    return c.run(together.jaxpr, together.consts, args)


def _loops(jaxpr: Jaxpr) -> bool:
    """Whether there is a loop or a branch in it, which would go on for all while one of them does."""
    inner = [
        value for eqn in jaxpr.eqns for value in eqn.params.values() if isinstance(value, Jaxpr | ClosedJaxpr)
    ]
    return any(eqn.primitive.name in ("while", "scan", "cond") for eqn in jaxpr.eqns) or any(
        _loops(closed(one)[0]) for one in inner
    )


def _count(c: Converter, eqn: JaxprEqn, fixed: Sequence[Value], begin: list[str]) -> list[Value]:
    """A scan over nothing: a Loop of so many turns; what each turn gives is turned around where it runs backwards."""
    p, (constants, carries) = eqn.params, _scan_sizes(eqn)
    step, step_constants = closed(p["jaxpr"])
    body = _loop_body(c)
    going = body.graph.inputs[1][0]
    inside = _carry(body, step.invars[constants:])
    moved = body.run(step, step_constants, [*fixed, *inside])
    names = [body.plain(value, var.aval.shape) for value, var in zip(moved, step.outvars)]  # type: ignore[attr-defined]
    identity = body.graph.add("Identity", going)
    body.graph.outputs.append((identity, np.dtype(np.bool_), ()))
    finish(body, names, avals_of(step.outvars))
    turns = c.graph.scalar(p["length"])
    outputs = c.graph.add_many("Loop", len(eqn.outvars), turns, "", *begin, body=body.graph)
    if p["reverse"]:
        g = c.graph
        back = (g.integers(-1), g.integers(np.iinfo(np.int64).min), g.integers(0), g.integers(-1))
        outputs = [*outputs[:carries], *(g.add("Slice", name, *back) for name in outputs[carries:])]
    return _outputs(c, outputs, eqn.outvars)
