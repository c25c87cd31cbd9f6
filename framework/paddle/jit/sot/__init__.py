"""paddle.jit.sot: Paddle's compiler of byte code, as its callers see it: the same results, from Python itself.

Where Paddle records the operations between two lines that it cannot record and runs the rest as Python, all runs as
Python here: each operation is a compiled program already. `paddle.jit.to_static` compiles a function as one program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.jit.sot import psdb as psdb
from framework.paddle.jit.sot import utils as utils

P = ParamSpec("P")
R = TypeVar("R")


def symbolic_translate(fn: Callable[P, R], **kwargs: object) -> Callable[P, R]:
    """A function with the results and effects of `fn`, whose operations run one by one.

    Args:
        fn: A function of Python.
        kwargs: Accepted (`training`, `build_strategy`); they say nothing of results.
    """

    @functools.wraps(fn)
    def call(*args: P.args, **named: P.kwargs) -> R:
        assert hasattr(fn, "__code__"), "Target function doesn't have code for simulating."
        return fn(*args, **named)

    return call


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
