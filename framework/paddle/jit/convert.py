"""What converted functions call instead of Python's `if`, `while`, `for`, `and`, `or`, `not`: the same for Python
values, branches and loops of the compiled program for Tensors whose values are not known."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit import control
from framework.paddle.jit.containers import Containers, Read
from framework.paddle.jit.control import Undefined as Undefined

Get = Callable[[], tuple[object, ...]]
Set = Callable[[tuple[object, ...]], None]


def if_(
    test: object,
    true_fn: Callable[[], None],
    false_fn: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    *reads: Read,
) -> None:
    """`if test`: the branches change variables, which `get` and `set_` hand over, and lists and dicts that `reads`
    give."""
    if not control.is_traced(test):
        (true_fn if test else false_fn)()
        return
    before, containers = get(), Containers(reads)

    def branch(function: Callable[[], None]) -> Callable[[], tuple[object, ...]]:
        def run() -> tuple[object, ...]:
            set_(before)
            try:
                function()
                return (*get(), *containers.contents())
            finally:
                set_(before)
                containers.restore()

        return run

    results = tuple(control.cond(test, branch(true_fn), branch(false_fn), _spread(names, before)))
    set_(results[: len(before)])
    containers.fill(results[len(before) :])


def _spread(names: Sequence[str], values: Sequence[object]) -> list[str] | None:
    """The names of the leaves of these variables, where each is one leaf."""
    return None if any(isinstance(v, list | tuple | dict) for v in values) else list(names)


def while_(
    test: Callable[[], object],
    body: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    *reads: Read,
) -> None:
    """`while test(): body()`; a loop of the program from the first test that depends on a Tensor. `reads` give lists
    and dicts that it changes."""
    while True:
        result = test()
        if control.is_traced(result):
            break
        if not result:
            return
        body()
    before, containers = get(), Containers(reads)
    count, held = len(before), containers.contents()

    def enter(values: Sequence[object]) -> None:
        set_(tuple(values[:count]))
        containers.fill_leaves(values[count:], held)

    def leave() -> None:
        set_(before)
        containers.restore()

    def tested(*values: object) -> object:
        enter(values)
        try:
            return test()
        finally:
            leave()

    def advanced(*values: object) -> list[object]:
        enter(values)
        try:
            body()
            containers.check_sizes(held)
            return [*get(), *containers.leaves()]
        finally:
            leave()

    start = [*before, *containers.leaves()]
    items = [f"item {index} of a list or dict" for index in range(len(start) - count)]
    enter(control.while_loop(tested, advanced, start, [*names, *items]))


class _Hooks:
    """How functions that are called are converted: framework.paddle.jit.ast_transform sets it."""

    transform: Callable[[Any], object]


hooks = _Hooks()


class TracedRange:
    """A range whose ends are Tensors."""

    def __init__(self, *ends: int | Tensor) -> None:
        self.start, self.stop = (0, ends[0]) if len(ends) == 1 else ends[:2]
        self.step = ends[2] if len(ends) > 2 else 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.stop, self.step))


def range_(*ends: int | Tensor) -> Iterable[int]:
    """`range(...)`, also of Tensors."""
    return TracedRange(*ends) if any(control.is_traced(end) for end in ends) else builtins.range(*ends)


def for_(
    values: Iterable[object],
    body: Callable[[Any], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    stopped: Callable[[], object] | None,
    *reads: Read,
) -> None:
    """`for value in values: body(value)`; `stopped` tells whether a `break` was met."""
    if not isinstance(values, TracedRange):
        for value in values:
            done = False if stopped is None else stopped()
            if control.is_traced(done):
                if_(not_(done), lambda value=value: body(value), lambda: None, get, set_, names, *reads)
                continue
            if done:
                return
            body(value)
        return
    start, stop, step = values.start, values.stop, values.step
    state, ended = [start], stopped or (lambda: False)

    def test() -> object:
        below = state[0] < stop
        more = below if _positive(step) is True else _either(step, state[0], stop, below)
        return and_(lambda: more, lambda: not_(ended()))

    def step_body() -> None:
        body(state[0])
        state[0] = state[0] + step

    def get_all() -> tuple[object, ...]:
        return (state[0], *get())

    def set_all(given: tuple[Any, ...]) -> None:
        state[0] = given[0]
        set_(tuple(given[1:]))

    while_(test, step_body, get_all, set_all, ("the counter", *names), *reads)


def _positive(step: int | Tensor) -> bool | None:
    return None if control.is_traced(step) else bool(step > 0)


def _either(step: int | Tensor, counter: int | Tensor, stop: int | Tensor, below: bool | Tensor) -> object:
    above = counter > stop
    if _positive(step) is False:
        return above
    return or_(lambda: and_(lambda: step > 0, lambda: below), lambda: and_(lambda: step < 0, lambda: above))


def and_(*parts: Callable[[], object]) -> object:
    """`a and b and …`; what comes after a false Python value is not looked at."""
    value, rest = parts[0](), parts[1:]
    if not rest:
        return value
    if control.is_traced(value):
        return _logical("logical_and", value, and_(*rest))
    return and_(*rest) if value else value


def or_(*parts: Callable[[], object]) -> object:
    """`a or b or …`; what comes after a true Python value is not looked at."""
    value, rest = parts[0](), parts[1:]
    if not rest:
        return value
    if control.is_traced(value):
        return _logical("logical_or", value, or_(*rest))
    return value if value else or_(*rest)


def not_(value: object) -> bool | Tensor:
    """`not a`."""
    from framework import paddle

    return paddle.logical_not(value) if control.is_traced(value) else not value


def _logical(name: str, a: object, b: object) -> Tensor:
    from framework import paddle

    other = b if isinstance(b, Tensor) else paddle.to_tensor(bool(b))
    return getattr(paddle, name)(a, other)


def choose(test: object, first: Callable[[], object], second: Callable[[], object]) -> object:
    """`a if test else b`."""
    if control.is_traced(test):
        return control.cond(test, first, second)
    return first() if test else second()


def assert_(test: Callable[[], object], message: Callable[[], object]) -> None:
    """`assert`; what depends on a Tensor is not checked in a compiled program."""
    value = test()
    if not control.is_traced(value) and not value:
        raise AssertionError(message())


def int_(value: Any = 0, *args: Any) -> int | Tensor:
    """`int(x)`: of a Tensor whose value is not known, the Tensor as int64."""
    return value.astype("int64") if control.is_traced(value) else builtins.int(value, *args)


def float_(value: Any = 0.0) -> float | Tensor:
    """`float(x)`: of a Tensor whose value is not known, the Tensor as a floating-point one."""
    return value.astype(mode.default_dtype) if control.is_traced(value) else builtins.float(value)


def bool_(value: Any = False) -> bool | Tensor:
    """`bool(x)`: of a Tensor whose value is not known, the Tensor as bool."""
    return value.astype("bool") if control.is_traced(value) else builtins.bool(value)


def call(function: object) -> object:
    """What is called in place of `function`: functions of the user are converted too."""
    kind = function.__class__
    if isinstance(function, types.MethodType) and control.is_traced(function.__self__):
        reading = _READINGS.get(function.__func__)
        if reading is not None:
            return functools.partial(reading, function.__self__)
    if kind is types.FunctionType or kind is types.MethodType:
        return hooks.transform(function)
    replaced = _BUILTINS.get(function) if kind is type or kind is types.BuiltinFunctionType else None
    return function if replaced is None else replaced


def numpy_(tensor: Tensor, *args: object) -> Tensor:
    """`x.numpy()` of a Tensor whose value is not known: the Tensor, which takes indices, `sum` and the like as well."""
    return tensor


def item_(tensor: Tensor, *index: int) -> Tensor:
    """`x.item()` of a Tensor whose value is not known: the Tensor of that one element."""
    flat = tensor.flatten()
    return tensor[index] if len(index) > 1 else flat[index[0]] if index else flat.reshape([])


def print_(*values: object, **options: Any) -> None:
    """`print`; Tensors whose values are not known are printed when the program runs."""
    if any(control.is_traced(value) for value in values):
        text = " ".join(["{}"] * len(values))
        jax.debug.print(text, *[v._value if isinstance(v, Tensor) else v for v in values])
    else:
        builtins.print(*values, **options)


_BUILTINS: dict[object, object] = {int: int_, float: float_, bool: bool_, range: range_, print: print_}
# Methods that look at values: programs of Paddle call them in functions for to_static, where they give Tensors.
_READINGS: dict[object, Callable[..., Tensor]] = {Tensor.numpy: numpy_, Tensor.item: item_}
