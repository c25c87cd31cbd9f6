"""The operations as methods and operators of Tensor, from tables of names."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp

from framework.paddle._kernel.dispatch import execute, run
from framework.paddle._kernel.errors import LeafError, ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.names import IN_PLACE, METHODS
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tape import Cotangent, Node, edge_of, note_replaced
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.views import Rewriting, leave_storage
from framework.paddle.ops import arithmetic, logic

_OPERATORS: dict[str, Callable[..., Any]] = {
    "__add__": arithmetic.add,
    "__sub__": arithmetic.subtract,
    "__mul__": arithmetic.multiply,
    "__truediv__": arithmetic.true_divide,
    "__div__": arithmetic.true_divide,
    "__floordiv__": arithmetic.floor_divide,
    "__mod__": arithmetic.remainder,
    "__pow__": arithmetic.pow,
    "__matmul__": arithmetic.matmul,
    "__neg__": arithmetic.neg,
    "__lt__": logic.less_than,
    "__le__": logic.less_equal,
    "__gt__": logic.greater_than,
    "__ge__": logic.greater_equal,
    "__and__": logic.bitwise_and,
    "__or__": logic.bitwise_or,
    "__xor__": logic.bitwise_xor,
    "__invert__": logic.bitwise_not,
}
_REFLECTED = {
    "__radd__": arithmetic.add,
    "__rsub__": arithmetic.subtract,
    "__rmul__": arithmetic.multiply,
    "__rtruediv__": arithmetic.true_divide,
    "__rdiv__": arithmetic.true_divide,
    "__rfloordiv__": arithmetic.floor_divide,
    "__rmod__": arithmetic.remainder,
    "__rpow__": arithmetic.pow,
    "__rmatmul__": arithmetic.matmul,
    "__rand__": logic.bitwise_and,
    "__ror__": logic.bitwise_or,
    "__rxor__": logic.bitwise_xor,
}


class ReplacedNode(Node):
    """Numbers that do not hang on the values before them took their place: the gradient of those is 0."""

    __slots__ = ("kind",)

    def __init__(self, tensor: Tensor) -> None:
        super().__init__((edge_of(tensor),), 1)
        self.kind = jax.typeof(tensor._value)

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        return (jnp.zeros(self.kind.shape, self.kind.dtype),)


def replace_value(tensor: Tensor, result: Tensor) -> Tensor:
    """Make `tensor` be `result`: its value and its history. What in-place methods do.

    Raises:
        LeafError: a leaf that wants a gradient would lose it.
    """
    if mode.grad_enabled and not tensor.stop_gradient and tensor._node is None and mode.recorder is None:
        raise LeafError(
            "a leaf that wants a gradient cannot be changed in place",
            received=tensor.name,
            fix="use the result of the operation without _, or change it under paddle.no_grad()",
        )
    node = None
    if result._node is None and mode.grad_enabled and not tensor.stop_gradient and mode.recorder is None:
        node = ReplacedNode(tensor)
    note_replaced(tensor, result._node)
    with Rewriting(tensor):
        tensor._value = result._value
        tensor._version += 1
        if node is not None:
            tensor._node, tensor._index = node, 0
        elif result._node is not None:
            tensor._node, tensor._index, tensor.stop_gradient = result._node, result._index, False
        elif mode.grad_enabled:
            tensor._node, tensor._index = None, 0
    return tensor


def is_variable(x: object, name: str) -> bool:
    """Whether `x` belongs to a static program, where Paddle's in-place functions change nothing; this is said."""
    if not (isinstance(x, Tensor) and isinstance(x._value, Symbol)):
        return False
    text = (
        f"In static graph mode, {name}() is the same as {name[:-1]}() and does not perform inplace operation."
    )
    warnings.warn(text, stacklevel=3)
    return True


# Whose result may be a fraction where the Tensor is none.
_KEEP_TYPE = frozenset(("abs_", "expm1_", "log_", "log10_", "log2_"))
_REORDER = frozenset(("transpose_", "t_"))  # what lies in the memory gets other places
# Whose second operand must not give the first another shape.
_KEEP_SHAPE = frozenset(
    (
        *("add_", "subtract_", "multiply_", "divide_", "floor_divide_", "remainder_", "mod_", "floor_mod_"),
        *("equal_", "not_equal_", "less_than_", "less_equal_", "greater_than_", "greater_equal_", "lerp_"),
        *("logical_and_", "logical_or_", "logical_xor_", "bitwise_and_", "bitwise_or_", "bitwise_xor_"),
        *("gcd_", "lcm_", "hypot_", "ldexp_", "copysign_", "where_"),
    )
)


def in_place(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The form of an operation that replaces its first argument and returns it; in static mode it replaces nothing, as
    in Paddle: a variable stays what it is, and the result is another one."""

    first = next(iter(inspect.signature(function).parameters), "x")

    @functools.wraps(function)
    def change(*args: object, **kwargs: object) -> Tensor:
        result = function(*args, **kwargs)
        x = cast("Tensor", args[0] if args else kwargs[first])
        if is_variable(x, name) or mode.recorder is not None:
            return result
        if name in _KEEP_SHAPE and result._value.shape != x._value.shape:
            raise ShapeError(
                "the result broadcasts to another shape than that of the Tensor that is changed in place",
                where=f"paddle.Tensor.{name}",
                received=f"{list(x.shape)}, which would become {list(result.shape)}",
            )
        if name in _KEEP_TYPE and result._value.dtype != x._value.dtype:
            raise ShapeError(
                "the result is of another type than the Tensor that is changed in place",
                where=f"paddle.Tensor.{name}",
                received=f"{x.dtype}, which would become {result.dtype}",
            )
        if name in _REORDER:
            leave_storage(x)
        return replace_value(x, result)

    change.__name__ = change.__qualname__ = name
    return change


def _reflected(function: Callable[..., object]) -> Callable[..., Any]:
    def call(self: Tensor, other: object) -> Any:
        return function(other, self)

    return call


def install(
    operations: Mapping[str, Callable[..., Any]], methods_only: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Tensor]]:
    """Give Tensor these functions as methods, with their in-place forms; returns the in-place forms of `operations`."""
    made = {
        name: in_place(operations[name[:-1]], name)
        for name in IN_PLACE
        if name not in operations and name[:-1] in operations
    }
    for name in (*METHODS, *IN_PLACE):
        function = operations.get(name) or made.get(name) or methods_only.get(name)
        if function is None and name.endswith("_") and name[:-1] in methods_only:
            function = in_place(methods_only[name[:-1]], name)
        if function is not None and name not in Tensor.__dict__:
            setattr(Tensor, name, function)
    return made


def _operator(function: Callable[..., object]) -> Callable[..., Any]:
    """An operator without the handling of keywords: half a microsecond of ten."""
    operation = getattr(function, "operation", None)  # a plain function of Tensors has none
    if operation is None or operation.signature.quick != 2:
        return function

    def call(self: Tensor, other: object) -> Any:
        compiled = operation.default or operation.quick()
        return run(compiled, (self, other)) if mode.routed else execute(compiled, (self, other))

    return call


def _equality(function: Callable[..., object]) -> Callable[..., Any]:
    """Comparing with None or a string answers as Python does: they are different objects."""
    compare = _operator(function)

    def call(self: Tensor, other: object) -> Any:
        return NotImplemented if other is None or isinstance(other, str) else compare(self, other)

    return call


def install_operators() -> None:
    """Give Tensor its operators."""
    for name, function in _OPERATORS.items():
        setattr(Tensor, name, _operator(function))
    for name, function in _REFLECTED.items():
        setattr(Tensor, name, _reflected(function))
    Tensor.__eq__ = _equality(logic.equal)  # type: ignore[method-assign]
    Tensor.__ne__ = _equality(logic.not_equal)  # type: ignore[method-assign]


install_operators()
