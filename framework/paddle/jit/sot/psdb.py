"""paddle.jit.sot.psdb: what programs call to see how byte code is compiled; Python runs it here."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def assert_true(input: bool) -> None:
    """Raises: AssertionError: the value is not true."""
    assert input


def print(*args: object, sep: str = " ", end: str = "\n") -> None:
    """`print` with the mark of dynamic mode before the values."""
    builtins.print("[Dygraph]", *args, sep=sep, end=end)


def check_no_breakgraph(fn: Callable[P, R]) -> Callable[P, R]:
    """The function: nothing is recorded that could break."""
    return fn


def check_no_fallback(fn: Callable[P, R]) -> Callable[P, R]:
    """The function, as `check_no_breakgraph`."""
    return fn


def breakgraph() -> None:
    """Nothing: there is no graph to end here."""


def fallback() -> None:
    """Nothing: Python runs the function already."""


def in_sot() -> bool:
    """False: Python runs the function."""
    return False
