"""Runs of equations that are one operator: softmax, its logarithm, and the mean.

The last equation of a run gives way to the operator; the others stay until nothing reads them (optimize.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jax.extend.core import JaxprEqn, Literal, Var

from framework.export.formats.onnx.graph import Atom, Size, aval_of, is_symbolic

if TYPE_CHECKING:
    from framework.export.formats.onnx.convert import Converter
    from framework.export.formats.onnx.values import Value

_PASSING = ("stop_gradient", "broadcast_in_dim", "convert_element_type", "reshape")


@dataclass(frozen=True)
class Match:
    """What an operator takes, and the function that adds it to the graph."""

    inputs: tuple[Atom, ...]
    emit: Callable[..., Value]


def match(eqns: Sequence[JaxprEqn], last: int) -> Match | None:
    """The operator that the run ending at eqns[last] is."""
    name = eqns[last].primitive.name
    if name not in ("div", "sub"):
        return None
    producers = {var: eqn for eqn in eqns[max(0, last - 12) : last] for var in eqn.outvars}
    return _softmax(eqns[last], producers) or _mean(eqns[last], producers)


def _maker(
    atom: Atom, producers: Mapping[Var, JaxprEqn], passing: Sequence[str] = _PASSING
) -> JaxprEqn | None:
    """The equation behind an atom, through those that only pass values on."""
    eqn = None if isinstance(atom, Literal) else producers.get(atom)
    while eqn is not None and eqn.primitive.name in passing:
        atom = eqn.invars[0]
        eqn = None if isinstance(atom, Literal) else producers.get(atom)
    return eqn


def _is(eqn: JaxprEqn | None, name: str) -> bool:
    return eqn is not None and eqn.primitive.name == name


def _softmax(eqn: JaxprEqn, producers: Mapping[Var, JaxprEqn]) -> Match | None:
    """exp(x - max x) / sum, and x - max x - log(sum)."""
    total = _maker(eqn.invars[1], producers)
    if eqn.primitive.name == "sub":
        if not _is(total, "log"):
            return None
        assert total is not None
        shifted, total = eqn.invars[0], _maker(total.invars[0], producers)
        if not _is(total, "reduce_sum") or not _is(producers.get(total.invars[0]), "exp"):  # type: ignore[union-attr]
            return None
        if producers[total.invars[0]].invars[0] is not shifted:  # type: ignore[union-attr, index]
            return None
        op = "LogSoftmax"
    else:
        exponents = None if isinstance(eqn.invars[0], Literal) else producers.get(eqn.invars[0])
        if not _is(total, "reduce_sum") or not _is(exponents, "exp"):
            return None
        if total.invars[0] is not eqn.invars[0]:  # type: ignore[union-attr]
            return None
        shifted, op = exponents.invars[0], "Softmax"  # type: ignore[union-attr]
    difference = None if isinstance(shifted, Literal) else producers.get(shifted)
    if not _is(difference, "sub") or len(total.params["axes"]) != 1:  # type: ignore[union-attr]
        return None
    assert difference is not None and total is not None
    axis, x = total.params["axes"][0], difference.invars[0]
    most = _maker(difference.invars[1], producers)
    if most is not None and _is(most, "max") and isinstance(most.invars[0], Literal):
        most = _maker(most.invars[1], producers)
    if (
        most is None
        or not _is(most, "reduce_max")
        or most.invars[0] is not x
        or most.params["axes"] != (axis,)
    ):
        return None

    def emit(c: Converter, eqn: JaxprEqn, value: Value) -> Value:
        value = c.spread(value, eqn.outvars[0].aval.shape)  # type: ignore[attr-defined]
        name = c.graph.add(op, c.tensor(value), axis=value.order[axis])
        return c.value(name, aval_of(eqn.outvars[0]), value.order)

    return Match((x,), emit)


def _mean(eqn: JaxprEqn, producers: Mapping[Var, JaxprEqn]) -> Match | None:
    """A sum divided by the number of its terms, behind the broadcast of keepdims."""
    total = _maker(eqn.invars[0], producers, ("broadcast_in_dim", "reshape"))
    if eqn.primitive.name != "div" or total is None or not _is(total, "reduce_sum"):
        return None
    x, axes = total.invars[0], total.params["axes"]
    count = math.prod(x.aval.shape[axis] for axis in axes)  # type: ignore[attr-defined]
    if not _counts(eqn.invars[1], count, producers):
        return None
    shape = eqn.outvars[0].aval.shape  # type: ignore[attr-defined]
    kept_shape = _shape_with_ones(x.aval.shape, axes)  # type: ignore[attr-defined]
    keepdims = len(shape) == len(kept_shape) and all(bool(a == b) for a, b in zip(shape, kept_shape))
    if not keepdims and len(shape) != len(kept_shape) - len(axes):
        return None

    def emit(c: Converter, eqn: JaxprEqn, value: Value) -> Value:
        value = c.spread(value, x.aval.shape)  # type: ignore[attr-defined]
        axis_set = {value.order[axis] for axis in axes}
        if keepdims and len(value.shape) == 4 and axis_set == {2, 3}:
            return c.value(
                c.graph.add("GlobalAveragePool", c.tensor(value)), aval_of(eqn.outvars[0]), value.order
            )
        return c.reduce("ReduceMean", value, axes, aval_of(eqn.outvars[0]), keepdims)

    return Match((x,), emit)


def _shape_with_ones(shape: Sequence[Size], axes: Sequence[int]) -> list[Size]:
    return [1 if i in axes else size for i, size in enumerate(shape)]


def _counts(atom: Atom, count: Size, producers: Mapping[Var, JaxprEqn]) -> bool:
    """Whether an atom is the number `count`."""
    if isinstance(atom, Literal):
        return not is_symbolic(count) and not atom.aval.shape and float(atom.val) == float(count)  # type: ignore[attr-defined]
    eqn = _maker(atom, producers)
    return eqn is not None and eqn.primitive.name == "dim_as_value" and bool(eqn.params["dim"] == count)
