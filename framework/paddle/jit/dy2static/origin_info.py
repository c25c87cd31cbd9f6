"""paddle.jit.dy2static.origin_info: functions below their decorators. Converted ones keep the lines of their source."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from framework.paddle._kernel.modules import complete as _complete


def unwrap(func: Callable[..., object]) -> Callable[..., object]:
    """The function as it was written."""
    return inspect.unwrap(func)


_complete(__name__)
