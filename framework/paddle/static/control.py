"""Branches and loops of static programs: entries that hold the entries of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from framework.core.errors import InputError
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import ArgumentTypeError, ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.jit import control
from framework.paddle.static.program import (
    Op,
    Values,
    Variable,
    default_main_program,
    recorded_apart,
)
from framework.paddle.static.variable import SIZES, new_variable, replay_all, value_of
from framework.paddle.utils import unique_name


class RecordedFunction:
    """A recorded function: its entries, and the leaves of what it returns."""

    def __init__(self, call: Callable[..., object], inputs: Sequence[Variable] = ()) -> None:
        self.inputs = inputs
        with recorded_apart() as self.ops:
            returned = call(*inputs)
        self.leaves, self.tree = jax.tree_util.tree_flatten(returned, is_leaf=lambda v: v is None)

    def reads(self) -> list[Tensor]:
        """What it needs of the outside."""
        own = {id(o) for op in self.ops for o in op.outputs} | {id(v) for v in self.inputs}
        needed = [t for op in self.ops for t in op.reads()]
        needed += [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]
        return [t for t in needed if id(t) not in own]

    def replay(self, values: Values, for_test: bool, given: Sequence[Any] = ()) -> list[Any]:
        inner = Values(values)
        inner.arrays = values.arrays  # what is written to them stays
        inner.update({id(v): g for v, g in zip(self.inputs, given, strict=True)})
        replay_all(self.ops, inner, for_test)
        return [value_of(leaf, inner) for leaf in self.leaves]


def variable_like(leaf: object, name: str) -> Any:
    """A new variable of the shape and type of this one."""
    if leaf is None:
        return None
    if not isinstance(leaf, Tensor):
        leaf = wrap(as_array(leaf))
    value: Any = leaf._value
    other = value.other if isinstance(value, Symbol) else value.shape
    return new_variable(
        value.shape, other, value.dtype, unique_name.generate(f"{name}.tmp"), leaf.stop_gradient
    )


def _kind(tensor: Tensor) -> tuple[tuple[int, ...], np.dtype]:
    return tuple(tensor._value.shape), np.dtype(tensor._value.dtype)


def _joined(first: object, second: object) -> Variable | None:
    """A new variable for the result of two branches; sizes that differ are not known."""
    joined = variable_like(first, "cond")
    other = second._value if isinstance(second, Tensor) else None
    if joined is None or other is None or other.ndim != joined.ndim or other.shape == joined._value.shape:
        return joined
    sizes = [
        [n if a == b else unknown for n, a, b in zip(shape, joined._value.shape, other.shape, strict=True)]
        for shape, unknown in zip((joined._value.shape, joined._value.other), SIZES, strict=True)
    ]
    return new_variable(sizes[0], sizes[1], joined._value.dtype, joined.name, joined.stop_gradient)


class CondOp(Op):
    """One of two parts runs."""

    type = "conditional_block"

    def __init__(self, pred: Tensor, first: RecordedFunction, second: RecordedFunction) -> None:
        self.pred, self.first, self.second = pred, first, second
        pairs = zip(first.leaves, second.leaves, strict=True)
        self.results = [_joined(*pair) for pair in pairs]
        for result, a, b in zip(self.results, first.leaves, second.leaves, strict=True):
            if result is not None and any(isinstance(x, Tensor) and not x.stop_gradient for x in (a, b)):
                result.stop_gradient = False
        self.outputs = [r for r in self.results if r is not None]
        self.inputs = [pred, *first.reads(), *second.reads()]
        # Branches of different shapes or types are no one program: the one that is taken says what there is.
        self.reads_values = any(op.reads_values for op in (*first.ops, *second.ops)) or any(
            isinstance(a, Tensor) and isinstance(b, Tensor) and _kind(a) != _kind(b)
            for a, b in zip(first.leaves, second.leaves, strict=True)
        )
        self.steps_vary = any(op.steps_vary for op in (*first.ops, *second.ops))

    def replay(self, values: Values, for_test: bool) -> None:
        made = control.cond(
            value_of(self.pred, values),
            lambda: self.first.replay(values, for_test),
            lambda: self.second.replay(values, for_test),
        )
        for variable, value in zip(self.results, made, strict=True):
            if variable is not None:
                values[id(variable)] = value if isinstance(value, Tensor) else wrap(as_array(value))


def record_cond(pred: Tensor, true_fn: Callable[[], object], false_fn: Callable[[], object]) -> object:
    """Append a branch; returns variables in the structure that both parts return."""
    first, second = RecordedFunction(true_fn), RecordedFunction(false_fn)
    if first.tree != second.tree:
        raise InputError(
            "the branches of cond return different structures", received=f"{first.tree}, {second.tree}"
        )
    op = CondOp(pred, first, second)
    default_main_program().ops.append(op)
    return jax.tree_util.tree_unflatten(first.tree, op.results)


class LoopOp(Op):
    """A part runs as long as another says."""

    type = "while"

    def __init__(
        self,
        test: RecordedFunction,
        body: RecordedFunction,
        start: Sequence[object],
        results: Sequence[Variable],
    ) -> None:
        self.test, self.body, self.start = test, body, start
        self.outputs = results
        self.inputs = [*[s for s in start if isinstance(s, Tensor)], *test.reads(), *body.reads()]
        # A variable whose shape changes from step to step is none of a compiled loop.
        self.reads_values = any(op.reads_values for op in (*test.ops, *body.ops)) or any(
            isinstance(new, Tensor) and tuple(new._value.shape) != tuple(old._value.shape)
            for old, new in zip(body.inputs, body.leaves, strict=False)
        )
        self.steps_vary = any(not tensor.stop_gradient for tensor in self.reads())

    def replay(self, values: Values, for_test: bool) -> None:
        def more(*now: object) -> object:
            return self.test.replay(values, for_test, now)[0]

        def step(*now: object) -> list[object]:
            return self.body.replay(values, for_test, now)

        made: list[object] = [value_of(s, values) for s in self.start]
        again = None if any(control.is_traced(value) for value in made) else more(*made)
        if again is None or control.is_traced(again):
            made = control.while_loop(more, step, made)
        else:
            while bool(again):
                made = step(*made)
                again = more(*made)
        for variable, value in zip(self.outputs, made, strict=True):
            values[id(variable)] = value if isinstance(value, Tensor) else wrap(as_array(value))


def record_loop(
    test: Callable[..., object], body: Callable[..., object], start: Sequence[object]
) -> list[Any]:
    """Append a loop; returns its variables after it, which may be in lists and dicts."""
    leaves, tree = jax.tree_util.tree_flatten(list(start), is_leaf=lambda v: v is None)
    inputs = [variable_like(leaf, "loop") for leaf in leaves]

    def tests(*values: object) -> object:
        return test(*jax.tree_util.tree_unflatten(tree, values))

    def step(*values: object) -> list[object]:
        results = body(*jax.tree_util.tree_unflatten(tree, values))
        return list(results) if isinstance(results, list | tuple) else [results]

    tested, stepped = RecordedFunction(tests, inputs), RecordedFunction(step, inputs)
    if stepped.tree != tree:
        raise InputError(
            "the body of a loop returns another structure than its variables have",
            where="while_loop",
            received=str(stepped.tree),
            allowed=str(tree),
        )
    results = [variable_like(leaf, "while") for leaf in leaves]
    default_main_program().ops.append(LoopOp(tested, stepped, leaves, results))
    return jax.tree_util.tree_unflatten(tree, results)


control.recorded.cond, control.recorded.loop = record_cond, record_loop


@checked
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """`true_fn()` where `pred` is true, else `false_fn()`; both must return the same structure.

    Raises:
        ArgumentTypeError: `pred` is no Tensor of booleans in static mode, a branch is no function, or `name` no text.
    """
    if mode.recorder is not None and not (isinstance(pred, Tensor) and pred.dtype == "bool"):
        raise _wrong("pred of cond", "a Tensor of bool", pred)
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise _wrong(f"{what} of cond", "a function", function)
    if name is not None and not isinstance(name, str):
        raise _wrong("name of cond", "a text", name)
    return control.cond(pred, true_fn or _nothing, false_fn or _nothing, return_names)


def _nothing() -> None:
    return None


def while_loop(
    cond: Callable[..., object],
    body: Callable[..., object],
    loop_vars: object,
    is_test: bool = False,
    name: str | None = None,
) -> list[Any]:
    """`loop_vars = body(*loop_vars)` as long as `cond(*loop_vars)` is true."""
    if not callable(cond) or not callable(body):
        raise TypeError("while_loop takes two functions, cond and body")
    if not isinstance(loop_vars, list | tuple):
        raise _wrong("loop_vars of while_loop", "a list or tuple", loop_vars)
    if not loop_vars:
        raise ValueError("loop_vars of while_loop is a list with at least one Tensor")
    values = list(loop_vars)
    recorded = any(isinstance(v, Variable) for v in values)
    more = None if recorded else cond(*values)
    if not recorded and not control.is_traced(more):
        while bool(more):
            made = body(*values)
            values = list(made) if isinstance(made, list | tuple) else [made]
            more = cond(*values)
        return values
    return control.while_loop(cond, body, values)


def _wrong(what: str, allowed: str, received: object) -> ArgumentTypeError:
    return ArgumentTypeError(f"{what} is not what it may be", received=f"{received!r:.60}", allowed=allowed)


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], object]]],
    default: Callable[[], object] | None = None,
    name: str | None = None,
) -> Any:
    """The function of the first true predicate, else `default` (the last function)."""
    if not isinstance(pred_fn_pairs, list | tuple):
        raise _wrong("pred_fn_pairs of case", "a list or tuple", pred_fn_pairs)
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise _wrong("an item of pred_fn_pairs of case", "a tuple of a predicate and a function", pair)
        if not isinstance(pair[0], Tensor | bool | np.bool_):
            raise _wrong("a predicate of case", "a Tensor of bool", pair[0])
    if default is not None and not callable(default):
        raise _wrong("the default of case", "a function", default)
    pairs = list(pred_fn_pairs)
    chosen: Callable[[], object] = pairs.pop()[1] if default is None else default
    for pred, function in reversed(pairs):
        chosen = _either(pred, function, chosen)
    return chosen()


def _either(pred: object, first: Callable[[], object], second: Callable[[], object]) -> Callable[[], object]:
    return lambda: control.cond(pred, first, second)


def switch_case(
    branch_index: TensorLike,
    branch_fns: Any,
    default: Callable[[], object] | None = None,
    name: str | None = None,
) -> Any:
    """The function with this number, else `default` (the one of the greatest number)."""
    if not isinstance(branch_index, Tensor):
        raise _wrong("branch_index of switch_case", "a Tensor of integers", branch_index)
    if not isinstance(branch_fns, list | tuple | dict):
        raise _wrong("branch_fns of switch_case", "a list, a tuple or a dict", branch_fns)
    if default is not None and not callable(default):
        raise _wrong("the default of switch_case", "a function", default)
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    else:
        pairs = [p if isinstance(p, tuple) else (number, p) for number, p in enumerate(branch_fns)]
    for pair in pairs:
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not isinstance(pair[0], int)
            or not callable(pair[1])
        ):
            raise _wrong("a branch of switch_case", "a function, or a tuple of a number and a function", pair)
    numbers = [number for number, _ in pairs]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"switch_case: a number of a branch comes twice: {numbers}")
    pairs.sort(key=lambda pair: pair[0])
    if default is None:
        default = pairs[-1][1]
    return case([(branch_index == number, function) for number, function in pairs], default)


class AssertOp(Op):
    """Raises where a condition does not hold."""

    type = "assert"
    reads_values = True

    def __init__(self, condition: Tensor, data: Sequence[Tensor], summarize: int) -> None:
        self.inputs, self.summarize = (condition, *data), summarize

    def replay(self, values: Values, for_test: bool) -> None:
        condition, *data = [value_of(t, values) for t in self.inputs]
        if condition.size != 1:
            raise ShapeError(
                "the condition of Assert is one value", where="Executor.run", received=list(condition.shape)
            )
        if bool(condition.numpy().all()):
            return
        count = None if self.summarize < 0 else self.summarize
        shown = [
            f"{t.name} {list(v.shape)}: {v.numpy().ravel()[:count].tolist()}"
            for t, v in zip(self.inputs[1:], data, strict=True)
        ]
        raise ShapeError(
            "the condition of Assert does not hold",
            where="Executor.run",
            received="; ".join(shown) or "False",
        )


def Assert(
    cond: Tensor, data: Sequence[Tensor] | None = None, summarize: int = 20, name: str | None = None
) -> AssertOp:
    """Raise where `cond` is false when the program runs, with the first `summarize` numbers (-1: all) of `data`.

    Raises:
        ArgumentTypeError: an argument is of another type.
    """
    if not isinstance(cond, Tensor) or cond.dtype != "bool":
        raise _wrong("cond of Assert", "a Tensor of bool", cond)
    if data is not None and not isinstance(data, list | tuple):
        raise _wrong("data of Assert", "a list or tuple of Tensors, None", data)
    if not isinstance(summarize, int):
        raise _wrong("summarize of Assert", "an integer", summarize)
    op = AssertOp(cond, data or (), summarize)
    if mode.recorder is None:
        op.replay(Values(), False)
    else:
        default_main_program().ops.append(op)
    return op
