"""Operations: pure functions of arrays, each compiled once for its settings, called with Tensors.

    @operation
    def scale_to(x: Array, size: int = 1, name: str | None = None) -> Array:
        ...

makes a function that takes Tensors (numbers, arrays, lists) for what is annotated `Array`, compiles the body, and
records a node where an input wants a gradient. Annotations say what a parameter is:

    Array, Array | None                   data: handed to the compiled program
    Arrays                                a list of data
    Key                                   a random key (jax.random.key); no part of the signature
    everything else                       a setting: one compiled program for each value; `name` is ignored

The body runs under jax's trace with 64-bit types on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, cast, overload

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.compilation import enable_compilation_cache
from framework.core.errors import OarError
from framework.core.errors import ShapeError as CoreShapeError
from framework.nn.functional import lowering
from framework.paddle._kernel.ahead import compile_later, wait_for
from framework.paddle._kernel.compile_notice import announce_compiling
from framework.paddle._kernel.compiled import Compiled
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import (
    NOT_FINITE,
    OperandError,
    ShapeError,
    ValueNeeded,
    in_paddle_words,
    none_for_a_tensor,
    not_finite,
)
from framework.paddle._kernel.known_sizes import carry_sizes
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.program import is_nested
from framework.paddle._kernel.program_store import describe
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.residual import Residual
from framework.paddle._kernel.settings import freeze, name_results, thaw
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tape import Cotangent, Edge, Node, check_replaced, edge_of
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle._kernel.x64 import enter_x64, leave_x64, x64

Array: TypeAlias = jax.Array
Arrays: TypeAlias = Sequence[jax.Array]
Key: TypeAlias = jax.Array
P = ParamSpec("P")

KEY = object()  # stands for a random key among the inputs until the operation runs
_new = object.__new__
# Operations whose gradients Paddle computes from their inputs.
_NEED_INPUTS = frozenset(
    (
        *(
            "pow",
            "multiply",
            "divide",
            "matmul",
            "square",
            "abs",
            "log",
            "log1p",
            "log2",
            "log10",
            "sin",
            "cos",
        ),
        *("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "gelu", "silu", "mish"),
        *("maximum", "minimum", "fmax", "fmin", "atan2", "conv2d", "bmm", "dot", "cross", "prod", "norm"),
    )
)
# What a body raises while it is traced; of a None where data is wanted, the attribute that None has not.
_REFUSALS = (TypeError, ValueError, AttributeError, *NOT_FINITE)
_PLAIN = frozenset((float, int, bool, complex))
_numbers: dict[float, jax.Array] = {}
_NUMBERS = 256  # kept at a time


class OperationNode(Node):
    """The node of an operation: it holds the inputs, and runs the operation's pullback on them."""

    __slots__ = ("compiled", "mask", "outs", "residual", "values")

    def __init__(
        self,
        compiled: Compiled,
        values: Sequence[object],
        mask: tuple[bool, ...],
        edges: Sequence[Edge],
        outs: Sequence[jax.Array],
        residual: Residual | None = None,
    ) -> None:
        super().__init__(edges, len(outs))
        self.compiled, self.mask, self.residual = compiled, mask, residual
        self.values: Sequence[object] | None = values
        self.outs = tuple(jax.typeof(o) for o in outs) if residual is not None else None

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        values = self.values
        assert values is not None
        if self.compiled.name in _NEED_INPUTS:
            check_replaced(values, self)
        if self.residual is not None and not create_graph:
            pullback, inputs = self._backward(self.residual, cotangents)
            if pullback.pending:
                wait_for(pullback.pending, inputs)
            return pullback.program(*inputs)
        present = tuple(c is not None for c in cotangents)
        given = cotangents if all(present) else [c for c in cotangents if c is not None]
        program = self.compiled.pullback(self.mask, present)
        if create_graph:
            result = run(program, (*self._tensors(values), *given))
            return result if isinstance(result, tuple) else (result,)
        inputs = (*values, *given)  # once: values may go through hooks
        if program.pending:
            wait_for(program.pending, inputs)
        return program.program(*inputs)

    def compile_pullback(self) -> None:
        """Let a thread compile what the gradients of the outputs will need beside what the forward run computed."""
        assert self.outs is not None and self.residual is not None
        pullback, inputs = self._backward(self.residual, [None] * len(self.outs))
        compile_later(pullback.program.lowerable, pullback.pending, inputs)

    def _backward(
        self, residual: Residual, cotangents: Sequence[object]
    ) -> tuple[Compiled, tuple[list[jax.Array], tuple[np.ndarray | jax.Array, ...]]]:
        """The pullback that takes what the forward run kept, and its inputs."""
        assert self.values is not None
        program = self.compiled.with_residuals(self.mask).backward(residual.tree, self.values)
        return program, (residual.arrays, self._filled(cotangents))

    def _filled(self, cotangents: Sequence[Any]) -> tuple[np.ndarray | jax.Array, ...]:
        assert self.outs is not None
        filled = []
        for cotangent, out in zip(cotangents, self.outs, strict=True):
            if out.dtype not in INEXACT:
                filled.append(np.zeros(out.shape, jax.dtypes.float0))
            else:
                filled.append(
                    np.zeros(out.shape, out.dtype) if cotangent is None else cotangent.astype(out.dtype)
                )
        return tuple(filled)

    def _tensors(self, values: Sequence[Any]) -> list[Any]:
        """The inputs as they were, Tensors with their histories where they want a gradient."""
        edges = iter(self.edges)
        tensors = list(values)
        for index, wanted in enumerate(self.mask):
            if not wanted:
                continue
            edge = next(edges)
            tensor = wrap(tensors[index])
            tensor.stop_gradient = False
            if isinstance(edge, tuple):
                tensor._node, tensor._index = edge
            elif edge._value is tensors[index]:
                tensor = edge
            else:  # the leaf has another value by now; its gradient still goes there
                tensor._node, tensor._index = LeafNode(edge), 0
            tensors[index] = tensor
        return tensors

    def release(self) -> None:
        self.values = self.residual = None

    @property
    def released(self) -> bool:
        return self.values is None


class IntegerNode(OperationNode):
    """The node of an operation whose inputs that want a gradient are integers: as in Paddle the gradients are integers
    too. They are computed as those of fractions, and not differentiated again."""

    __slots__ = ()

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        assert self.values is not None
        present = tuple(c is not None for c in cotangents)
        starts = [c._value if isinstance(c, Tensor) else c for c in cotangents if c is not None]
        inputs = cast("Sequence[jax.Array]", self.values)
        values = [v.astype(np.float64) if m else v for v, m in zip(inputs, self.mask, strict=True)]
        gradients = self.compiled.pullback(self.mask, present).program(*values, *starts)
        types = [v.dtype for v, m in zip(inputs, self.mask, strict=True) if m]
        return [gradient.astype(kind) for gradient, kind in zip(gradients, types, strict=True)]


class LeafNode(Node):
    """Passes a gradient on to a leaf whose value has changed since it was used."""

    __slots__ = ()

    def __init__(self, leaf: Tensor) -> None:
        super().__init__((leaf,), 1)

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        return cotangents


def run(compiled: Compiled, args: Sequence[object]) -> Any:
    """Run an operation on Tensors, arrays and numbers: one Tensor, or a tuple of them."""
    if mode.routed:
        if mode.amp is not None:
            args = mode.amp(compiled, args)
        if mode.recorder is not None:
            return mode.recorder(compiled, args)
    return execute(compiled, args)


def execute(compiled: Compiled, args: Sequence[object]) -> Any:
    """`run` without AMP and recording."""
    values = []
    wanted = False
    unwatched = mode.watcher is None
    for arg in args:
        if isinstance(arg, Tensor):
            values.append(arg._array if unwatched else arg._value)
            if not arg.stop_gradient:
                wanted = True
        elif arg.__class__ is float and unwatched:
            values.append(_number(arg))  # type: ignore[arg-type]
        elif arg.__class__ in _PLAIN or arg is None:
            values.append(arg)
        elif _first(arg) is not arg:
            return execute(compiled, [_first(arg) for arg in args])
        else:
            values.append(default_generator.next_key() if arg is KEY else _converted(arg))
    if wanted and compiled.differentiable and mode.grad_enabled:
        return _recorded(compiled, args, values)
    before = enter_x64(True)
    try:
        out = compiled.forward(*values)
    except _REFUSALS as error:
        out = _called_again(compiled, args, values, error)
    finally:
        leave_x64(before)
    if out.__class__ is tuple or out.__class__ is list:
        return tuple([wrap(o) for o in out])
    tensor = _new(Tensor)  # wrap, without the call: this is the path of every operation without gradients
    if unwatched:
        tensor._array = out
    else:
        tensor._value = out
        carry_sizes(compiled, args, tensor)
    return tensor


def _number(number: float) -> jax.Array | float:
    """A number as an array of weak type, kept for the next call: handing over a Python number costs 5 microseconds.

    Integers are handed over: positions in a loop change with every call.
    """
    found = _numbers.get(number)
    if found is not None:
        return found
    if number == 0 or number != number:  # 0.0 equals -0.0, and nan not even itself
        return number
    if len(_numbers) >= _NUMBERS:
        _numbers.clear()
    with x64(), jax.ensure_compile_time_eval():
        _numbers[number] = jnp.asarray(number)
    return _numbers[number]


def _recorded(compiled: Compiled, args: Sequence[object], values: list[object]) -> Any:
    mask = tuple([isinstance(a, Tensor) and not a.stop_gradient and a._value.dtype in INEXACT for a in args])
    residual = None
    before = enter_x64(True)
    try:
        if compiled.residual and True in mask:
            out, residual = compiled.with_residuals(mask).forward(*values)
            out = out if len(out) > 1 else out[0]
        else:
            out = compiled.program(*values)
    except _REFUSALS as error:
        raise explained(compiled, args, error) from error
    finally:
        leave_x64(before)
    multiple = out.__class__ is tuple or out.__class__ is list
    outs = out if multiple else (out,)
    if True not in mask:
        tensors = _recorded_integers(compiled, args, values, outs)
        return tensors if multiple else tensors[0]
    edges = [edge_of(a) for a, m in zip(args, mask, strict=True) if m]  # type: ignore[arg-type]
    node = OperationNode(compiled, values, mask, edges, outs, residual)
    program = compiled.program if residual is None else compiled.with_residuals(mask).forward
    if program.forms() != program.count:
        program.count = program.forms()
        if residual is None:
            compiled.compile_pullback(mask, values, outs)
        else:
            node.compile_pullback()
    tensors = []
    live = any([value.dtype in INEXACT for value in outs])  # positions beside values have a history too
    for index, value in enumerate(outs):
        tensor = wrap(value)
        if live:
            tensor._node, tensor._index, tensor.stop_gradient = node, index, False
        tensors.append(tensor)
    return tuple(tensors) if multiple else tensors[0]


def _recorded_integers(
    compiled: Compiled, args: Sequence[object], values: Sequence[object], outs: Sequence[jax.Array]
) -> tuple[Tensor, ...]:
    """The results of an operation none of whose inputs that want a gradient are fractions."""
    tensors = tuple([wrap(out) for out in outs])
    mask = tuple(
        [isinstance(a, Tensor) and not a.stop_gradient and a._value.dtype.kind in "iu" for a in args]
    )
    if True in mask:
        edges = [edge_of(a) for a, m in zip(args, mask, strict=True) if m]  # type: ignore[arg-type]
        node = IntegerNode(compiled, values, mask, edges, outs)
        for index, tensor in enumerate(tensors):
            if tensor._value.dtype != np.bool_:
                tensor._node, tensor._index, tensor.stop_gradient = node, index, False
    return tensors


def _called_again(
    compiled: Compiled, args: Sequence[object], values: Sequence[object], error: Exception
) -> Any:
    """The result under a trace of another program; else the error in the user's terms."""
    if not is_nested(error):
        raise explained(compiled, args, error) from error
    try:
        return compiled.program.inner(*values)
    except _REFUSALS as inner:
        raise explained(compiled, args, inner) from inner


def _first(arg: object) -> object:
    """Of a tuple of Tensors its first, which Paddle takes where one is asked for: layers return (result, state)."""
    return arg[0] if isinstance(arg, tuple) and arg and isinstance(arg[0], Tensor) else arg


def _converted(arg: object) -> jax.Array | float:
    """What is no Tensor as an input: numpy's floating numbers count as Python's, as in Paddle."""
    if isinstance(arg, jax.Array):
        return arg
    if isinstance(arg, float | int) or (isinstance(arg, np.generic) and arg.dtype.kind in "iub"):
        return arg.item() if isinstance(arg, np.generic) else arg
    return as_array(arg)


def explained(compiled: Compiled, args: Sequence[object], error: Exception) -> Exception:
    """The error of an operation in the user's terms."""
    if isinstance(error, CoreShapeError):
        return in_paddle_words(error)
    if isinstance(
        error, OarError | jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError
    ):
        return error
    if isinstance(error, NOT_FINITE):
        return not_finite(error, f"paddle.{compiled.name}")
    if isinstance(error, AttributeError):
        if not any(a is None for a in args):
            return error
        return none_for_a_tensor(compiled.name)
    inputs = ", ".join(
        f"{a.dtype.name}{a.shape}" if isinstance(a, Tensor) else "a key" if a is KEY else repr(a)[:40]
        for a in args
    )
    settings = "".join(f", {name}={value!r:.60}" for name, value in compiled.settings.items())
    if any(isinstance(a, Tensor) and isinstance(a._array, Symbol) for a in args) and not mode.recorder:
        return OperandError(
            "a variable of a static program has no values in dynamic mode",
            where=f"paddle.{compiled.name}",
            received=inputs,
            fix="call paddle.enable_static() before the program is recorded",
        )
    kind = OperandError if isinstance(error, TypeError) else ShapeError
    return kind(
        str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__,
        where=f"paddle.{compiled.name}",
        received=inputs + settings,
    )


class _Signature:
    """How a call's arguments become inputs and settings."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self.name = name
        parameters = list(inspect.signature(function).parameters.values())
        kinds = [str(p.annotation) for p in parameters]
        self.keys = [i for i, kind in enumerate(kinds) if kind == "Key"]
        self.lists = {i for i, kind in enumerate(kinds) if kind.startswith("Arrays")}
        self.data = [i for i, kind in enumerate(kinds) if kind.startswith("Array") or kind == "Key"]
        self.settings = [i for i, p in enumerate(parameters) if i not in self.data and p.name != "name"]
        self.names = [p.name for p in parameters]
        self.public = [i for i in range(len(parameters)) if i not in self.keys]
        self.position = {parameters[i].name: i for i in self.public}
        self.defaults = [KEY if i in self.keys else p.default for i, p in enumerate(parameters)]
        self.signature = inspect.Signature([parameters[i] for i in self.public])
        # A call with exactly the leading data and nothing else needs no binding.
        leading = [i for i in self.data if i not in self.lists and i not in self.keys]
        plain = leading == list(range(len(leading))) and len(leading) == len(self.data)
        required = [i for i in self.settings if self.defaults[i] is inspect.Parameter.empty]
        self.quick = len(leading) if plain and not required and leading else -1

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Any]:
        """The values of all parameters, in order.

        Raises:
            TypeError: a parameter is missing, unknown or given twice.
        """
        if len(args) > len(self.public):
            raise TypeError(
                f"{self.name}() takes {len(self.public)} arguments but {len(args)} were given: "
                f"{self.name}{self.signature}"
            )
        values = list(self.defaults)
        for index, arg in zip(self.public, args, strict=False):
            values[index] = arg
        for name, arg in kwargs.items():
            index = self.position.get(name, -1)
            if index < 0:
                raise TypeError(f"{self.name}() has no argument {name!r}: {self.name}{self.signature}")
            if index in self.public[: len(args)]:
                raise TypeError(f"{self.name}() got {name!r} twice: {self.name}{self.signature}")
            values[index] = arg
        for index in self.public:
            if values[index] is inspect.Parameter.empty:
                raise TypeError(f"{self.name}() misses {self.names[index]!r}: {self.name}{self.signature}")
        return values


class Operation:
    """A function of arrays and its compiled forms, one for each set of settings."""

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        differentiable: bool,
        residual: bool | lowering.Platform,
    ) -> None:
        self.function, self.name = function, name
        self.differentiable, self.residual = differentiable, residual
        self.signature = _Signature(function, name)
        self._compiled: dict[object, Compiled] = {}
        self.default: Compiled | None = None

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Compiled, list[object]]:
        """The compiled form for these arguments, and its inputs."""
        signature = self.signature
        values = signature.bind(args, kwargs)
        inputs: list[object] = []
        lengths: list[int] = []
        for index in signature.data:
            if index in signature.lists and values[index] is not None:
                parts = values[index]
                if not isinstance(parts, list | tuple):  # the rows of a Tensor are no list of Tensors
                    raise OperandError(
                        f"argument {signature.names[index]!r} must be list of Tensors",
                        where=f"paddle.{self.name}",
                        received=type(parts).__name__,
                    )
                lengths.append(len(parts))
                inputs.extend(parts)
            else:
                lengths.append(-1)
                inputs.append(values[index])
        settings = [freeze(values[index]) for index in signature.settings]
        key = (*lengths, *settings, *[s.__class__ for s in settings])
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(lengths, settings)
        return found, inputs

    def quick(self) -> Compiled:
        """The compiled form with default settings."""
        signature = self.signature
        settings = [freeze(signature.defaults[index]) for index in signature.settings]
        self.default = self._compile([-1] * len(signature.data), settings)
        return self.default

    def _compile(self, lengths: list[int], settings: list[object]) -> Compiled:
        enable_compilation_cache()
        announce_compiling()
        signature, function = self.signature, self.function
        named = {signature.names[i]: thaw(s) for i, s in zip(signature.settings, settings, strict=True)}

        def call(*flat: object) -> object:
            remaining = iter(flat)
            data = {}
            for index, length in zip(signature.data, lengths, strict=True):
                if length >= 0:
                    value: Any = [next(remaining) for _ in range(length)]
                else:
                    value = next(remaining)
                    if index in signature.keys:
                        value = jax.random.wrap_key_data(value)
                data[signature.names[index]] = value
            return function(**data, **named)

        call.__name__ = call.__qualname__ = self.name
        residual = self.residual is True or self.residual == lowering.platform()
        identity = describe([self.name, function, lengths, settings]) or ""
        return Compiled(
            self.name,
            call,
            differentiable=self.differentiable,
            residual=residual,
            settings=named,
            identity=identity,
        )


@overload
def operation(function: Callable[..., object], /) -> Callable[..., Any]: ...
@overload
def operation(
    *, name: str | None = None, differentiable: bool = True, residual: bool | lowering.Platform = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def operation(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    differentiable: bool = True,
    residual: bool | lowering.Platform = False,
) -> Callable[..., Any]:
    """Make an operation of a function of arrays; see the module. Arguments: `name` for messages and AMP (the
    function's), `differentiable=False` where there is no gradient, `residual=True` where computing the forward run
    again for the backward run would cost much (recurrent layers, whole models), or the platform where it does."""
    if function is None:
        return functools.partial(_operation, name=name, differentiable=differentiable, residual=residual)
    return _operation(function, name, differentiable, residual)


def _operation(
    function: Callable[..., object],
    name: str | None = None,
    differentiable: bool = True,
    residual: bool | lowering.Platform = False,
) -> Callable[..., Any]:
    op = Operation(function, name or function.__name__.strip("_"), differentiable, residual)
    quick = op.signature.quick

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        routed = mode.routed
        if routed and mode.check is not None:
            mode.check(call, args, kwargs)
        if kwargs or len(args) != quick:
            try:
                compiled, inputs = op.bind(args, kwargs)
            except ValueNeeded as error:
                return error.record(call, args, kwargs)
            result = run(compiled, inputs)
            if routed and kwargs.get("name") and mode.recorder is not None:
                name_results(result, str(kwargs["name"]))
            return result
        return (run if routed else execute)(op.default or op.quick(), args)

    call.__signature__ = op.signature.signature  # type: ignore[attr-defined]
    call.operation = op  # type: ignore[attr-defined]
    return call
