"""Connections of clients: uvicorn's, with an end to headers that do not come, or that do not end.

httptools (the parser of Node.js, in C) reads requests where it is installed, else h11, which is Python: a request costs
about a third of a millisecond more with it.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from framework.serving.admission import RETRY_AFTER
from framework.serving.early_return import EARLY_BEFORE, EarlyReturn
from framework.serving.header_timer import HeaderTimer, Refuse
from framework.serving.lost_clients import drop


class H11Connection(HeaderTimer, EarlyReturn, H11Protocol):
    """Reads requests with h11."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come."""
        super().connection_made(transport)
        self._wait_for_header()

    def data_received(self, data: bytes) -> None:
        """Bytes of a header or a body have come."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._forget_header()  # it is whole
        elif data:
            self._wait_for_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._forget_header()
        super().connection_lost(exc)
        drop(self.cycle)

    def on_response_complete(self) -> None:
        """An answer was sent whole."""
        retry_after = self.cycle.scope.get("state", {}).get(RETRY_AFTER)
        super().on_response_complete()
        if isinstance(retry_after, int):
            self._note_refusal(retry_after)
            self.app_state = {**self.app_state, EARLY_BEFORE: self._early_before}


def connection_class(header_seconds: float, refuse: Refuse) -> type[asyncio.Protocol]:
    """The class of connections that wait so long for a header.

    Args:
        refuse: The answer to a request of a path and headers whose model takes no more, or None.
    """
    facts: dict[str, object] = {"header_seconds": header_seconds}
    try:
        from framework.serving.httptools_connection import HttpToolsConnection
    except ImportError:  # it is an option of uvicorn
        return type("Connection", (H11Connection,), facts)
    return type("Connection", (HttpToolsConnection,), facts | {"refuse": staticmethod(refuse)})
