"""paddle.base.wrapped_decorator: decorators whose results keep the names of what they decorate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager as signature_safe_contextmanager
from typing import ParamSpec, TypeVar

from framework.paddle._kernel.modules import complete as _complete

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]
P = ParamSpec("P")
ResultT = TypeVar("ResultT")
Decorator = Callable[[Callable[P, ResultT]], Callable[P, ResultT]]


def wrap_decorator(decorator_func: Decorator[P, ResultT]) -> Decorator[P, ResultT]:
    """The decorator, whose functions have the name and the signature of those that they replace."""

    @functools.wraps(decorator_func)
    def decorate(function: Callable[P, ResultT]) -> Callable[P, ResultT]:
        return functools.wraps(function)(decorator_func(function))

    return decorate


_complete(__name__)
