"""paddle.jit.dy2static.convert_call_func: what a converted function calls in place of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.jit.ast_transform import BUILTIN_LIKELY_MODULES as BUILTIN_LIKELY_MODULES
from framework.paddle.jit.ast_transform import CONVERSION_OPTIONS as CONVERSION_OPTIONS
from framework.paddle.jit.ast_transform import ConversionOptions as ConversionOptions
from framework.paddle.jit.ast_transform import transformed
from framework.paddle.jit.dy2static.logging_utils import _TRANSLATOR_LOGGER
from framework.paddle.jit.to_static import StaticFunction

translator_logger = _TRANSLATOR_LOGGER


def convert_call(func: Callable[..., object]) -> Callable[..., object]:
    """The function with its control flow converted; what has none, or is not the user's, as it is."""
    if isinstance(func, functools.partial):
        return functools.partial(convert_call(func.func), *func.args, **func.keywords)
    return func.python_function if isinstance(func, StaticFunction) else transformed(func)


_complete(__name__)
