"""From a jaxpr to an ONNX graph: equation by equation, functions that are one operator as that operator.

What depends on constants alone is computed here; what nothing reads is dropped later (optimize.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike, DTypeLike

from framework.core.errors import TraceError
from framework.export.formats.onnx import patterns
from framework.export.formats.onnx.graph import Atom, Aval, Graph, Size, avals_of, is_symbolic
from framework.export.formats.onnx.registry import FUNCTIONS, PRIMITIVES
from framework.export.formats.onnx.values import Layout, Value, common_shape, constant, inverse

_FRAMEWORK = Path(__file__).resolve().parents[3]
_JAX = Path(jax.__file__).resolve().parent
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_INLINED = frozenset(
    [
        *("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"),
        *("custom_vjp_call_jaxpr", "checkpoint", "remat", "remat2"),
    ]
)
# A constant that is computed here stands in the file; one that grows by more than this is computed when it runs.
_MOST_GROWTH = 1 << 22


def closed(jaxpr: Jaxpr | ClosedJaxpr) -> tuple[Jaxpr, Sequence[ArrayLike]]:
    """(jaxpr, its constants) of a parameter of an equation."""
    return (jaxpr.jaxpr, jaxpr.consts) if isinstance(jaxpr, ClosedJaxpr) else (jaxpr, ())


class Converter(Layout):
    """Converts jaxprs into nodes of one graph."""

    def body(self) -> Converter:
        """A converter into a new graph that sees the names of this one."""
        return Converter(Graph(self.graph))

    def run(self, jaxpr: Jaxpr, constants: Sequence[ArrayLike], args: Sequence[Value]) -> list[Value]:
        """The values of the outputs of a jaxpr.

        Raises:
            TraceError: an operation has no form in ONNX.
        """
        environment: dict[Var, Value] = {}

        def read(atom: Atom) -> Value:
            if isinstance(atom, Literal):
                return constant(np.asarray(atom.val, atom.aval.dtype))  # type: ignore[attr-defined]
            return environment[atom]

        for var, array in zip(jaxpr.constvars, constants):
            environment[var] = array if isinstance(array, Value) else constant(np.asarray(array))
        environment.update(zip(jaxpr.invars, args))
        for i, eqn in enumerate(jaxpr.eqns):
            whole = patterns.match(jaxpr.eqns, i)
            inputs = [read(atom) for atom in (eqn.invars if whole is None else whole.inputs)]
            outputs = self._convert(eqn, inputs) if whole is None else [whole.emit(self, eqn, *inputs)]
            environment.update(zip(eqn.outvars, outputs))
        return [read(atom) for atom in jaxpr.outvars]

    def elementwise(self, op: str, args: Sequence[Value], aval: Aval, **attributes: object) -> Value:
        """An operator that broadcasts, in the order in which most of its operands lie."""
        order = self.order_of(args, len(aval.shape))
        names = [self.arrange(arg, order) if arg.shape else self.tensor(arg) for arg in args]
        shape = common_shape(arg.shape for arg in args)
        return self.value(self.graph.add(op, *names, **attributes), aval, order, shape)

    def where(self, mask: Value, new: Value, old: Value, aval: Aval) -> Value:
        """`new` where the mask is true; of the types that ONNX Runtime does not choose among as others."""
        if new.dtype == np.bool_:
            mask_value = self.elementwise("And", (mask, new), aval)
            rest = self.elementwise("And", (self.elementwise("Not", [mask], aval), old), aval)
            return self.elementwise("Or", (mask_value, rest), aval)
        if new.dtype.kind == "f" or new.dtype in (np.int32, np.int64, np.uint8):
            return self.elementwise("Where", (mask, new, old), aval)
        wide = [replace(one, name=self.cast(self.tensor(one), np.int64), array=None) for one in (new, old)]
        result = self.elementwise("Where", (mask, *wide), aval)
        return replace(result, name=self.cast(result.name, new.dtype))

    def order_of(self, args: Sequence[Value], rank: int) -> tuple[int, ...]:
        """The order of the largest operand that is no constant."""
        whole = [arg for arg in args if not arg.is_constant and len(arg.shape) == rank]
        if not whole:
            return tuple(range(rank))
        return max(whole, key=lambda arg: sum(not _is_one(size) for size in arg.shape)).order

    def reduce(self, op: str, value: Value, axes: Sequence[int], aval: Aval, keepdims: bool = False) -> Value:
        """A reduction over axes of the program; the value has all of its elements."""
        axis_list = self.graph.integers(*sorted(value.order[axis] for axis in axes))
        name = self.graph.add(op, self.tensor(value), axis_list, keepdims=int(keepdims))
        if keepdims:
            return self.value(name, aval, value.order)
        remaining = [value.order[axis] for axis in range(len(value.shape)) if axis not in axes]
        return self.value(name, aval, inverse(inverse(remaining)))

    def scalar(self, number: float, dtype: DTypeLike) -> Value:
        """A constant of no axes."""
        return constant(np.asarray(number, dtype))

    def cast(self, name: str, dtype: DTypeLike) -> str:
        """A tensor in another type."""
        return self.graph.add("Cast", name, to=np.dtype(dtype))

    def _convert(self, eqn: JaxprEqn, args: list[Value]) -> list[Value]:
        name = eqn.primitive.name
        if name in _INLINED:
            return self._call(eqn, args)
        if (folded := _fold(eqn, args)) is not None:
            return folded
        rule = PRIMITIVES.get(name)
        outputs = None if rule is None else rule(self, eqn, *args)
        if outputs is None:
            raise _unknown(eqn)
        return [outputs] if isinstance(outputs, Value) else list(outputs)

    def _call(self, eqn: JaxprEqn, args: list[Value]) -> list[Value]:
        jaxpr, constants = closed(next(eqn.params[key] for key in _CALLS if key in eqn.params))
        rule = FUNCTIONS.get(str(eqn.params.get("name")))
        if rule is not None and _is_ours(jaxpr) and not all(arg.is_constant for arg in args):
            outputs = rule(self, eqn, *args)
            if outputs is not None:
                return [outputs] if isinstance(outputs, Value) else list(outputs)
        return self.run(jaxpr, constants, args)


def _is_one(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def _is_ours(jaxpr: Jaxpr) -> bool:
    """Whether a jitted function stands in the framework or in jax, so that its name says what it computes."""
    info = jaxpr.debug_info.func_src_info or ""
    path = Path(info.rpartition(" at ")[2].rpartition(":")[0] or ".").resolve()
    return _FRAMEWORK in path.parents or _JAX in path.parents


# -- what depends on constants alone ----------------------------------------------------------------------------------

_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "sqrt": np.sqrt,
    "square": np.square,
    "rsqrt": lambda x: np.asarray(1, x.dtype) / np.sqrt(x),
}


def _fold(eqn: JaxprEqn, args: list[Value]) -> list[Value] | None:
    """The values of an equation of constants, or None."""
    avals = avals_of(eqn.outvars)
    if not all(arg.is_constant for arg in args) or eqn.effects:
        return None
    sizes = [size for aval in avals for size in aval.shape]
    name = eqn.primitive.name
    if any(map(is_symbolic, sizes)) or name in ("dim_as_value", "while", "scan"):
        return None
    if name in ("broadcast_in_dim", "transpose", "iota", "stop_gradient"):
        return None  # whose rules move nothing
    if name in _NUMPY:
        with np.errstate(all="ignore"):
            folded = np.asarray(_NUMPY[name](*(arg.elements for arg in args)), avals[0].dtype)
        return [constant(folded)]
    before = sum(arg.array.nbytes for arg in args if arg.array is not None)
    if sum(int(np.prod(aval.shape)) * 4 for aval in avals) > max(_MOST_GROWTH, 2 * before):
        return None
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        arrays = [
            np.broadcast_to(arg.elements, tuple(var.aval.shape))  # type: ignore[attr-defined]
            for arg, var in zip(args, eqn.invars)
        ]
        folded = eqn.primitive.bind(*(jax.numpy.asarray(array) for array in arrays), **eqn.params)
    return [constant(np.asarray(one)) for one in (folded if eqn.primitive.multiple_results else [folded])]


# -- errors -----------------------------------------------------------------------------------------------------------


def user_line(eqn: JaxprEqn) -> str | None:
    """file:line of the last call outside of jax and of the framework that led to an equation."""
    trace = eqn.source_info.traceback
    frames: Sequence[object] = () if trace is None else trace.frames
    for frame in frames:
        with contextlib.suppress(OSError):
            path = Path(frame.file_name).resolve()
            if _FRAMEWORK not in path.parents and _JAX not in path.parents and path.is_file():
                return f"{frame.file_name}:{frame.line_num} in {frame.function_name}"
    return None


def _unknown(eqn: JaxprEqn) -> TraceError:
    name = eqn.primitive.name
    random = name.startswith(("random", "threefry", "rng"))
    return TraceError(
        "an operation of the program has no form in ONNX",
        where=user_line(eqn),
        received=f"the primitive {name!r} of {', '.join(str(atom.aval) for atom in eqn.invars)}",
        allowed="the operations that docs/onnx.md lists",
        fix="draw random numbers outside of the program and give them as an input"
        if random
        else "write it with other operations of jax.numpy, or compute it before or after the program",
    )
