"""Branches and loops on Tensors whose values are not known while a program is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from framework.core.errors import TraceError
from framework.paddle._kernel.dispatch import Compiled, execute
from framework.paddle._kernel.dtypes import INEXACT, default_numpy
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.random import TracedKeys, default_generator
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tape import Cotangent, Node, attach, edge_of
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.watch import watching
from framework.paddle._kernel.x64 import x64
from framework.paddle.jit.recording import NoGradient, Recording, abstract

if TYPE_CHECKING:
    pass

_NUMBERS = (bool, int, float, complex, np.generic)
_KEY_DATA = jax.ShapeDtypeStruct((2,), np.uint32)


class _Recorded:
    """What takes branches and loops of static programs: framework.paddle.static sets it, which makes such variables."""

    cond: Callable[[Tensor, Callable[[], object], Callable[[], object]], object]
    loop: Callable[[Callable[..., object], Callable[..., object], Sequence[object]], list[object]]


recorded = _Recorded()


class Undefined:
    """The value of a variable that has none yet. Anything but passing it on is an error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _fail(self, *args: object) -> NoReturn:
        raise TraceError(
            f"variable {self.name!r} has a value only if a branch was taken or a loop ran, which depends on a Tensor",
            fix=f"give {self.name!r} a value before the if, while or for",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail
    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __matmul__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = _fail

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._fail()


def is_traced(value: object) -> bool:
    """Whether this is a Tensor whose value is not known yet."""
    if isinstance(value, Tensor):
        return isinstance(value._array, (Tracer, Symbol))
    return isinstance(value, Tracer)


def _is_recorded(value: object) -> TypeGuard[Tensor]:
    """Whether this is a variable of a static program."""
    return isinstance(value, Tensor) and isinstance(value._array, Symbol)


def _leaves(value: object) -> tuple[list[object], Any]:
    return jax.tree_util.tree_flatten(value, is_leaf=lambda v: v is None)


def stopped(compiled: Compiled, args: Sequence[object]) -> object:
    """Run an operation so that jax's gradient stops where the tape's does."""
    return execute(compiled, [_stop(a) if isinstance(a, Tensor) else a for a in args])


def _stop(tensor: Tensor) -> Tensor:
    if not tensor.stop_gradient or tensor._value.dtype not in INEXACT:
        return tensor
    return wrap(lax.stop_gradient(tensor._value))


Finish = Callable[[Sequence[object], Sequence[Tensor]], Sequence[jax.Array]]


class _TracedFunction:
    """A branch or the body of a loop: traced until all Tensors that it reads are known (`captured`).

    Attributes:
        leaves, tree, flags: what it returned, taken apart; whether each leaf wants no gradient.
        written: Tensors of the outside that it changed.
    """

    leaves: list[object]
    tree: Any
    flags: list[bool]
    written: list[Tensor]
    found: list[Tensor]
    keys: TracedKeys
    last: Recording

    def __init__(self, call: Callable[..., object], operands: Sequence[Tensor], what: str) -> None:
        self.call, self.what = call, what
        self.captured: list[Tensor] = []
        self.operands = operands
        while True:
            self.trace(None)
            if not self.found:
                break
            self.captured.extend(self.found)

    def trace(self, finish: Finish | None) -> ClosedJaxpr:
        """The jaxpr of (operands, captured, key) -> what `finish` makes of the results and the changed Tensors."""
        values = [abstract(t._value) for t in self.captured]

        def function(
            operands: Sequence[jax.Array], values: Sequence[jax.Array], root: jax.Array
        ) -> Sequence[jax.Array]:
            recording = Recording({id(t): t for t in self.captured})
            self.keys = TracedKeys(root)
            before, mode.keys = mode.keys, self.keys
            try:
                with watching(recording), recorder_scope(stopped):
                    for tensor, value in zip(self.captured, values, strict=True):
                        recording.snapshot(tensor)
                        tensor._array, tensor._sizes = value, None  # a loop may change it
                    initial = {id(t): v for t, v in zip(self.captured, values, strict=True)}
                    returned = self.call(
                        *[_placeholder(o, given) for o, given in zip(operands, self.operands)]
                    )
                    self.leaves, self.tree = _leaves(returned)
                    for leaf in self.leaves:
                        if isinstance(leaf, Tensor):
                            _ = (
                                leaf._value
                            )  # a Tensor of the outside that is given back as it is is read, too
                    self.written = [
                        t for t in recording.written.values() if t._array is not initial.get(id(t))
                    ]
                    self._check_gradients(recording)
                    self.flags = [not isinstance(x, Tensor) or x.stop_gradient for x in self.leaves]
                    return [] if finish is None else finish(self.leaves, self.written)
            finally:
                self.found = list(recording.found.values())
                mode.keys = before
                recording.restore()
                if finish is not None:
                    self.leaves = []
                    self.last = recording

        with x64():
            jaxpr = jax.make_jaxpr(function)([abstract(o._value) for o in self.operands], values, _KEY_DATA)
        if finish is not None:
            self.last.check_nothing_leaked()
        return jaxpr

    def _check_gradients(self, recording: Recording) -> None:
        for owner in recording.owners.values():
            if owner._gradient is not recording.before(owner, "_gradient"):
                raise TraceError(
                    f"backward() or clear_grad() inside of {self.what} that depends on a Tensor",
                    fix="call it outside of the branch or loop",
                )


def _placeholder(value: jax.Array, like: Tensor) -> Tensor:
    tensor = wrap(value)
    tensor.stop_gradient = like.stop_gradient
    return tensor


def _number_type(value: object) -> np.dtype:
    if isinstance(value, np.generic):
        return value.dtype
    return {bool: np.dtype(bool), int: np.dtype(np.int64), complex: np.dtype(np.complex64)}.get(
        type(value), default_numpy()
    )


class _Joined:
    """What two branches make of one result: an array of this shape and type, or the same Python value."""

    def __init__(self, shape: tuple[int, ...] | None, dtype: np.dtype | None, value: object = None) -> None:
        self.shape, self.dtype, self.value = shape, dtype, value

    def of(self, leaf: object) -> jax.Array:
        value = lax.stop_gradient(leaf._value) if isinstance(leaf, Tensor) and leaf.stop_gradient else leaf
        value = value._value if isinstance(value, Tensor) else value
        assert self.shape is not None
        return jnp.broadcast_to(jnp.asarray(value, self.dtype), self.shape)


def _join(a: object, b: object, name: str) -> _Joined:
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return _Joined(None, None, a if isinstance(a, Undefined) else b)
    tensors = [leaf for leaf in (a, b) if isinstance(leaf, Tensor)]
    if not tensors:
        if a is b or (type(a) is type(b) and a == b):
            return _Joined(None, None, a)
        if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
            return _Joined((), np.promote_types(_number_type(a), _number_type(b)))
    elif len(tensors) == 2:
        one, two = tensors
        if one.shape == two.shape and one.dtype == two.dtype:
            return _Joined(tuple(one._value.shape), one._value.dtype)
    else:
        (tensor,), other = tensors, b if isinstance(a, Tensor) else a
        if isinstance(other, _NUMBERS):
            return _Joined(
                tuple(tensor._value.shape), np.promote_types(tensor._value.dtype, _widened(other, tensor))
            )
    raise TraceError(
        "the branches of an if that depends on a Tensor give different things",
        received=f"{name}: {_described(a)} and {_described(b)}",
        allowed="Tensors of one shape and type, or the same Python value",
        fix="make both branches give the same kind, or decide on a Python value",
    )


def _widened(number: object, tensor: Tensor) -> np.dtype:
    """The type a number needs next to a Tensor: its own only where the Tensor cannot hold it."""
    order = "biufc"
    kind = _number_type(number)
    return kind if order.index(kind.kind) > order.index(tensor._value.dtype.kind) else tensor._value.dtype


def _described(value: object) -> str:
    return (
        f"{value.dtype.name}{value.shape}"
        if isinstance(value, Tensor)
        else f"{type(value).__name__} {value!r}"[:60]
    )


def cond(
    pred: object,
    true_fn: Callable[[], object],
    false_fn: Callable[[], object],
    names: Sequence[str] | None = None,
) -> Any:
    """`true_fn()` where `pred` is true, else `false_fn()`; both are traced, one runs. `names`: of the results."""
    if not is_traced(pred):
        return true_fn() if bool(pred) else false_fn()
    if _is_recorded(pred):
        return recorded.cond(pred, true_fn, false_fn)
    first, second = _TracedFunction(true_fn, (), "an if"), _TracedFunction(false_fn, (), "an if")
    if first.tree != second.tree:
        raise TraceError(
            "the branches of an if that depends on a Tensor return different structures",
            received=f"{first.tree} and {second.tree}",
            fix="return as many Tensors, nested in the same way, from both",
        )
    pairs = enumerate(zip(first.leaves, second.leaves, strict=True))
    with watching(None):  # what the branches made is not of the outside
        joined = [_join(a, b, names[i] if names and i < len(names) else f"result {i}") for i, (a, b) in pairs]
    stops = [a and b for a, b in zip(first.flags, second.flags, strict=True)]
    written = list({id(t): t for t in [*first.written, *second.written]}.values())
    captured = list({id(t): t for t in [*first.captured, *second.captured, *written]}.values())

    def finish(leaves: Sequence[object], changed: Sequence[Tensor]) -> list[jax.Array]:
        results = [spec.of(leaf) for spec, leaf in zip(joined, leaves, strict=True) if spec.shape is not None]
        return [*results, *[t._array for t in written]]

    functions = []
    for body in (first, second):
        body.captured = captured
        functions.append(jaxpr_as_fun(body.trace(finish)))
    flags = [t.stop_gradient for t in written]

    def function(pred: jax.Array, root: jax.Array, *values: jax.Array) -> tuple[jax.Array, ...]:
        chosen = lax.cond(pred.reshape(()).astype(bool), functions[0], functions[1], *values, root)
        return tuple(chosen)

    results = _run("cond", function, [_as_tensor(pred), _key(first, second), *captured])
    kept = [stop for stop, spec in zip(stops, joined, strict=True) if spec.shape is not None]
    return _delivered(results, kept, written, flags, joined, first.tree)


def _run(name: str, function: Callable[..., tuple[jax.Array, ...]], args: Sequence[Tensor]) -> list[Tensor]:
    if not jax.eval_shape(function, *[abstract(a._value) for a in args]):
        return []
    made = execute(Compiled(name, function), args)
    return list(made) if isinstance(made, tuple) else [made]


def _delivered(
    results: Sequence[Tensor],
    stops: Sequence[bool],
    written: Sequence[Tensor],
    flags: Sequence[bool],
    joined: Sequence[_Joined],
    tree: object,
) -> Any:
    """The results in their structure, with what the branches changed set."""
    made = iter([t.detach() if stop else t for t, stop in zip(results, stops, strict=False)])
    leaves = [next(made) if spec.shape is not None else spec.value for spec in joined]
    for tensor, result, stop in zip(written, results[len(stops) :], flags, strict=True):
        tensor._value = result._value
        if not stop and tensor._node is not None:
            tensor._node, tensor._index = result._node, result._index
    return jax.tree_util.tree_unflatten(tree, leaves)


def _as_tensor(value: object) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(jnp.asarray(value))


def _key(*bodies: _TracedFunction) -> Tensor:
    used = any(body.keys.count for body in bodies)
    return wrap(jnp.asarray(default_generator.next_key()) if used else jnp.zeros(2, np.uint32))


class _LoopNode(Node):
    """A loop of unknown length has no gradient in reverse."""

    __slots__ = ()

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        raise NoGradient(
            "a loop that runs as long as a Tensor says has no gradient: its length is not known when it is compiled",
            received="backward() through a while, or a for over range(Tensor)",
            fix="loop over a Python range (of the greatest length, with paddle.where), or put it under no_grad()",
        )


def while_loop(
    test: Callable[..., object],
    body: Callable[..., object],
    loop_vars: Sequence[object],
    names: Sequence[str] | None = None,
) -> list[Any]:
    """`loop_vars = body(*loop_vars)` as long as `test(*loop_vars)` is true. Numbers become Tensors; a variable without
    a value before the loop has that of the last turn after it, zeros where there was none, if it is a Tensor or a
    number, else none; everything else must stay the same."""
    start = list(loop_vars)
    if mode.recorder is not None and any(_is_recorded(v) for v in start):
        return recorded.loop(test, body, start)
    carried = [i for i, v in enumerate(start) if isinstance(v, (Tensor, *_NUMBERS))]
    tensors = [v if isinstance(v, Tensor) else _constant(v) for v in (start[i] for i in carried)]
    for _ in range(5):
        made = _traced_loop(test, body, start, carried, tensors, names)
        if made is not None:
            return made
    raise TraceError("the variables of a loop change their shapes or types again and again")


def _constant(value: object) -> Tensor:
    with x64():
        return wrap(jnp.asarray(value, _number_type(value)))


def _traced_loop(
    test: Callable[..., object],
    body: Callable[..., object],
    start: list[object],
    carried: list[int],
    tensors: list[Tensor],
    names: Sequence[str] | None,
) -> list[object] | None:
    def with_values(call: Callable[..., object]) -> Callable[..., object]:
        def run(*operands: Tensor) -> object:
            given = list(start)
            for index, operand in zip(carried, operands, strict=True):
                given[index] = operand
            return call(*given)

        return run

    def step(*given: object) -> list[object]:
        made = body(*given)
        return list(made) if isinstance(made, list | tuple) else [made]

    again = _TracedFunction(with_values(test), tensors, "the condition of a loop")
    once = _TracedFunction(with_values(step), tensors, "a loop")
    leaves = once.leaves
    unset = [i for i, v in enumerate(start) if isinstance(v, Undefined) and i not in carried]
    unset = [i for i in unset if isinstance(leaves[i], (Tensor, *_NUMBERS))]
    for index in unset:  # the body does not read them before it sets them: it would have failed
        with watching(None), x64():
            zeros = jnp.zeros_like(_value(leaves[index]))
        start[index] = first_value = wrap(zeros)
        carried.append(index)
        tensors.append(first_value)
    if unset:
        return None
    for place, index in enumerate(carried):
        name = names[index] if names else f"loop variable {index}"
        with watching(None):
            settled = _settled(start[index], tensors[place], leaves[index], name)
        if settled is not None:
            tensors[place] = settled()
            return None
    for index, (value, leaf) in enumerate(zip(start, leaves, strict=True)):
        if index not in carried and not isinstance(value, Undefined) and leaf is not value:
            raise TraceError(
                "a loop that depends on a Tensor changes a variable that is no Tensor",
                received=f"{names[index] if names else index}: {_described(value)}, then {_described(leaf)}",
                fix="use Tensors for what changes in the loop",
            )
    written = once.written
    captured = list({id(t): t for t in [*again.captured, *once.captured, *written]}.values())
    changed = [_place(captured, t) for t in written]
    again.captured = once.captured = captured

    def finish(leaves: Sequence[object], changed: Sequence[Tensor]) -> list[jax.Array]:
        values = [_value(leaves[index]) for index in carried]
        values = [value.astype(t._value.dtype) for value, t in zip(values, tensors, strict=True)]
        return [*values, *[t._array for t in written]]

    stepped = jaxpr_as_fun(once.trace(finish))
    tested = jaxpr_as_fun(again.trace(lambda leaves, _: [_value(leaves[0])]))
    count, flags = len(carried), [t.stop_gradient for t in written]

    def function(root: jax.Array, *values: jax.Array) -> tuple[jax.Array, ...]:
        outside = list(values[count:])

        def current(state: Sequence[jax.Array]) -> list[jax.Array]:
            now = list(outside)
            for place, value in zip(changed, state[1 + count :], strict=True):
                now[place] = value
            return now

        def more(state: Sequence[jax.Array]) -> jax.Array:
            return tested(*state[1 : 1 + count], *current(state), root)[0].reshape(()).astype(bool)

        def advance(state: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
            key = jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(root), state[0]))
            return (state[0] + 1, *stepped(*state[1 : 1 + count], *current(state), key))

        first = (jnp.int32(0), *values[:count], *[outside[place] for place in changed])
        return tuple(lax.while_loop(more, advance, first)[1:])

    args = [_key(again, once), *tensors, *captured]
    enabled, mode.grad_enabled = mode.grad_enabled, False
    try:
        results = _run("while_loop", function, args)
    finally:
        mode.grad_enabled = enabled
    wanted = [a for a in args if not a.stop_gradient and a._value.dtype in INEXACT]
    if enabled and wanted:
        node = _LoopNode([edge_of(a) for a in wanted], len(results))
        for place, result in enumerate(results):
            if result._value.dtype in INEXACT and not (place >= count and flags[place - count]):
                attach(result, node, place)
    for tensor, result in zip(written, results[count:], strict=True):
        tensor._value = result._value
    final: list[object] = [Undefined(v.name) if isinstance(v, Undefined) else v for v in start]
    for index, result in zip(carried, results, strict=False):
        final[index] = result
    return final


def _place(tensors: Sequence[Tensor], tensor: Tensor) -> int:
    return next(index for index, other in enumerate(tensors) if other is tensor)


def _value(leaf: object) -> jax.Array:
    return leaf._value if isinstance(leaf, Tensor) else jnp.asarray(leaf, _number_type(leaf))


def _settled(first: object, tensor: Tensor, leaf: object, name: str) -> Callable[[], Tensor] | None:
    """None where a variable keeps its shape and type. A number at the start takes those of what follows: what makes it
    anew."""
    if isinstance(leaf, _NUMBERS):
        if not tensor.shape and np.can_cast(_number_type(leaf), tensor._value.dtype, "same_kind"):
            return None  # a number takes the type of the Tensor whose place it takes
        leaf = _constant(leaf)
    if isinstance(leaf, Tensor):
        if leaf.shape == tensor.shape and leaf.dtype == tensor.dtype:
            return None
        if not isinstance(first, Tensor):
            dtype = np.promote_types(tensor._value.dtype, leaf._value.dtype)
            shape = np.broadcast_shapes(tuple(tensor.shape), tuple(leaf.shape))
            return lambda: wrap(jnp.broadcast_to(jnp.asarray(first, dtype), shape))
    raise TraceError(
        "a variable of a loop that depends on a Tensor changes its shape or type",
        received=f"{name}: {_described(tensor)} before, {_described(leaf)} after the body",
        fix="start with a Tensor of the shape and type that it has later",
    )
