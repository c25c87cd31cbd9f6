"""Requests whose clients have gone: what they began is dropped, so that clients that are there do not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Protocol, cast

_TASK, _IS_LOST = "task", "is_lost"


class _Cycle(Protocol):
    """A request and its answer, as uvicorn has them."""

    response_complete: bool

    @property
    def scope(self) -> Mapping[str, object]:
        """Of the request."""
        ...


def note_task(state: MutableMapping[str, object]) -> None:
    """Let the connection know which task answers a request."""
    state[_TASK] = asyncio.current_task()


def is_lost(state: MutableMapping[str, object]) -> bool:
    """Whether the task of a request was cancelled since its client has gone."""
    return bool(state.get(_IS_LOST))


def drop(cycle: _Cycle | None) -> None:
    """Cancel what answers a request whose connection was lost before the answer was whole."""
    if cycle is None or cycle.response_complete:
        return
    state = cast("MutableMapping[str, object]", cycle.scope.get("state", {}))
    if isinstance(task := state.get(_TASK), asyncio.Task):
        state[_IS_LOST] = True
        task.cancel()
