"""paddle.jit.dy2static.utils: source of functions, and the error of a conversion."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable

from framework.core.errors import TraceError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.jit.dy2static.ast_utils import ast_to_func as ast_to_func
from framework.paddle.jit.dy2static.ast_utils import ast_to_source_code as ast_to_source_code
from framework.paddle.jit.dy2static.ast_utils import is_dygraph_api as is_dygraph_api

Dygraph2StaticException = TraceError


def func_to_source_code(function: Callable[..., object], dedent: bool = True) -> str:
    """The source of a function, lines that are comments empty. Raises TypeError: it is no function of Python."""
    if isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise TypeError(
            f"The type of 'function' should be a function or method, but received {type(function).__name__}."
        )
    lines, _ = inspect.getsourcelines(function)
    source = "".join("\n" if line.lstrip().startswith("#") else line for line in lines)
    return textwrap.dedent(source) if dedent else source


def index_in_list(array_list: list[object], item: object) -> int:
    """Where an item stands; -1: nowhere."""
    return array_list.index(item) if item in array_list else -1


def is_paddle_func(func: object, ignore_white_list: bool = True) -> bool:
    """Whether this toolkit has the function, method or layer; `paddle.nn.Sequential` holds layers of its user."""
    if isinstance(func, functools.partial):
        func = func.func
    if inspect.ismethod(func):
        name, func = type(func.__self__).__name__, func.__func__
    else:
        name = type(func).__name__ if not inspect.isroutine(func) else ""
    module = inspect.getmodule(func)
    ours = module is not None and module.__name__.startswith(("framework.paddle", "paddle."))
    return ours and not (ignore_white_list and name in ("Sequential", "LayerList"))


_complete(__name__)
