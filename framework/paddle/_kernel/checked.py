"""Functions that are no operations, whose arguments are checked as those of operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from framework.paddle._kernel.errors import ArgumentTypeError, OperandError, none_for_a_tensor
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor

_Checked = TypeVar("_Checked", bound=Callable[..., object])
P = ParamSpec("P")
ResultT = TypeVar("ResultT")


def checked(function: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """Let `mode.check` look at the calls of a function that framework/paddle/static/argument_kinds.txt lists, and
    say that the first argument must be a Tensor where it is None."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        if mode.check is not None and mode.routed:
            mode.check(call, args, kwargs)
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            first = next(iter((*args, *kwargs.values())), call)
            if first is None and "'NoneType'" in str(error):
                raise none_for_a_tensor(function.__name__) from error
            raise

    return call


def tensors_only(
    *names: str, kind: type[ArgumentTypeError | OperandError] = ArgumentTypeError
) -> Callable[[_Checked], _Checked]:
    """Let a function refuse other things than Tensors as these leading arguments, by a TypeError as Paddle does.

    Args:
        kind: The error; some of Paddle's functions raise a ValueError, and `OperandError` is both.
    """

    def decorate(function: _Checked) -> _Checked:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            for index, name in enumerate(names):
                value = args[index] if index < len(args) else kwargs.get(name)
                if not isinstance(value, Tensor):
                    raise kind(
                        f"{name} is a Tensor",
                        where=f"paddle.{function.__name__}",
                        received=type(value).__name__,
                    )
            return function(*args, **kwargs)

        return cast("_Checked", call)

    return decorate
