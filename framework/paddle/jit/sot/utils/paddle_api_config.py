"""paddle.jit.sot.utils.paddle_api_config: functions at which a graph ends; none has to be known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from framework.paddle._kernel.modules import complete as _complete

break_graph_set: set[Callable[..., object]] = set()


def add_break_graph_apis(apis: Iterable[Callable[..., object]]) -> None:
    """Note functions at which a graph ends."""
    break_graph_set.update(apis)


_complete(__name__)
