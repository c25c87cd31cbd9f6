"""The errors of operations, worded so that programs recognise Paddle's kind in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jax._src.api_util import InternalFloatingPointError

from framework.core import errors

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor

Deferral: TypeAlias = (
    "Callable[[ValueNeeded, Callable[..., object], Sequence[object], Mapping[str, object]], object]"
)


class ShapeError(errors.ShapeError):
    """An operation does not take an argument. Its text begins with "(InvalidArgument)", as that of Paddle's error of
    this kind, which is a ValueError too."""

    kind = "(InvalidArgument) "


class IntegerError(ShapeError, TypeError):
    """A size, an axis or a count is no integer: some of Paddle's functions raise TypeError, others ValueError."""


class KernelTypeError(ShapeError, RuntimeError):
    """An operation does not compute with this type of values: Paddle has no kernel for it, a RuntimeError."""


class AssertedError(ShapeError, AssertionError):
    """What Paddle asserts of an argument does not hold."""


class LeafError(ShapeError, RuntimeError):
    """A leaf that wants a gradient would lose it by a change in place."""


class UnknownMethodError(ShapeError, NotImplementedError):
    """A way of computing that Paddle has not, either."""


class MissingBackwardError(errors.OarError, OSError):
    """A PyLayer says nothing of its gradient: Paddle finds that when it is asked for one, and calls it an OSError."""


class DivisorError(ShapeError, ZeroDivisionError):
    """A number that is divided by is 0."""


class NonFiniteError(errors.OarError, FloatingPointError, RuntimeError):
    """An operation gave nan or infinity where FLAGS_check_nan_inf asks for numbers; in Paddle a RuntimeError."""

    kind = "(PreconditionNotMet) "


class AxisError(ShapeError, IndexError):
    """An axis is out of range: some of Paddle's functions raise IndexError, others ValueError."""


def require(
    holds: bool, problem: str, where: str, received: object, kind: type[ShapeError] = ShapeError
) -> None:
    """Raise `kind` unless a condition of an argument holds.

    Args:
        problem: What is asked of the argument.
        where: The function, "paddle.diff".
    """
    if not holds:
        raise kind(problem, where=where, received=str(received))


class OperandError(ShapeError, TypeError):
    """An operation cannot compute with what it got: in Paddle a TypeError in static mode, a ValueError in dynamic."""


def none_for_a_tensor(name: str) -> OperandError:
    """The error of a function that met None where it wants data: in Paddle 2.6.2 a ValueError, too."""
    return OperandError(
        "an argument must be a Tensor, not None",
        where=f"paddle.{name}",
        fix="look at what gave it: a function without return, a gradient before backward()",
    )


class ArgumentTypeError(errors.OarError, TypeError):
    """An argument is of a kind that Paddle refuses before an operation runs: a name that is no data type, an axis that
    is no integer."""


class ModeError(errors.OarError, AssertionError):
    """A function of the static mode alone is called in dynamic mode, or the other way round."""


class UnknownSetting(errors.TraceError):
    """A setting is a Tensor of a traced function, whose value is not known."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(
            "a setting that decides shapes is a Tensor whose value is not known when the program is compiled",
            received=f"a Tensor {tensor.dtype} {tensor.shape}",
            allowed="Python numbers and lists",
            fix="compute it with Python numbers (x.shape is a list of them), or keep it out of to_static",
        )
        self.tensor = tensor


class ValueNeeded(errors.TraceError):
    """A function needs the value of a variable of a static program. Functions whose settings may be variables are
    recorded whole then (static/deferred.py)."""

    def __init__(self, variable: Tensor, record: Deferral) -> None:
        super().__init__(
            "a variable of a static program has no values",
            received=f"the values of {variable.name} {list(variable.shape)}",
            fix="name it in fetch_list of Executor.run, or leave static mode by paddle.disable_static()",
        )
        self.variable, self._record = variable, record

    def record(
        self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Any:
        """Record the call that needs the value; returns its variables."""
        return self._record(self, function, args, kwargs)


def in_paddle_words(error: errors.ShapeError) -> ShapeError:
    """The error of a function of the core as that of an operation."""
    if isinstance(error, ShapeError):
        return error
    kind = AxisError if isinstance(error, IndexError) else ShapeError
    return kind(
        error.problem, where=error.where, received=error.received, allowed=error.allowed, fix=error.fix
    )


NOT_FINITE = (
    FloatingPointError,
    InternalFloatingPointError,
)  # what jax raises where FLAGS_check_nan_inf is set


def not_finite(error: Exception, where: str) -> NonFiniteError:
    """One of NOT_FINITE as the error of FLAGS_check_nan_inf."""
    if isinstance(error, NonFiniteError):
        return error
    text = " ".join(map(str, error.args)).partition(". ")[0]
    return NonFiniteError(
        "a result has NaN or infinity, which FLAGS_check_nan_inf refuses", where=where, received=text
    )
