"""paddle.jit.api: the module that paddle.jit is made of, and the switch of its way of conversion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.jit.ast_transform import transformed
from framework.paddle.jit.save_hooks import _clear_save_pre_hooks as _clear_save_pre_hooks
from framework.paddle.jit.save_hooks import _register_save_pre_hook as _register_save_pre_hook
from framework.paddle.jit.save_hooks import _run_save_pre_hooks as _run_save_pre_hooks
from framework.paddle.jit.save_hooks import _save_pre_hooks as _save_pre_hooks
from framework.paddle.jit.to_static import ENV_ENABLE_SOT
from framework.paddle.static.program import in_dynamic_mode
from framework.paddle.utils.environments import EnvironmentVariableGuard

P = ParamSpec("P")


@contextmanager
def sot_mode_guard(value: bool) -> Iterator[None]:
    """Within the block functions that cannot be one program run as Python (True), as where Paddle converts byte code,
    or are errors (False), as where it converts source. Here source is converted in both cases."""
    with EnvironmentVariableGuard(ENV_ENABLE_SOT, value):
        yield


def dygraph_to_static_func(function: Callable[P, object]) -> Callable[P, object]:
    """In static mode: the function with control flow over variables converted. In dynamic mode it runs as it is."""
    converted = functools.cache(lambda: transformed(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> object:
        return (function if in_dynamic_mode() else converted())(*args, **kwargs)

    return call


_complete(__name__)
