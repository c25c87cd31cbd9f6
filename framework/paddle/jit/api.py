"""paddle.jit.api: the module that paddle.jit is made of, and the switch of its way of conversion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.jit.ast_transform import transformed
from framework.paddle.static.program import in_dynamic_mode

P = ParamSpec("P")


@contextmanager
def sot_mode_guard(value: bool) -> Iterator[None]:
    """Within the block `to_static` converts by bytecode (True) or by source (False). Here one way serves for both: by
    source, and function by function where there is none."""
    yield


def dygraph_to_static_func(function: Callable[P, object]) -> Callable[P, object]:
    """In static mode: the function with control flow over variables converted. In dynamic mode it runs as it is."""
    converted = functools.cache(lambda: transformed(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> object:
        return (function if in_dynamic_mode() else converted())(*args, **kwargs)

    return call


_complete(__name__)
