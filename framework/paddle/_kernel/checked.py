"""Functions that are no operations, whose arguments are checked in static mode as those of operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from framework.paddle._kernel.mode import mode

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


def checked(function: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """Let `mode.check` look at the calls of a function that framework/paddle/static/argument_kinds.txt lists."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        if mode.check is not None and mode.routed:
            mode.check(call, args, kwargs)
        return function(*args, **kwargs)

    return call
