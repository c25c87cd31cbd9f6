"""What connections of both readers share: how long a header may be, and how long it may take."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from framework.serving.admission import Headers, Refusal

Refuse = Callable[[str, Headers], Refusal | None]
log = logging.getLogger("oar.serving")
HEADER_BYTES = 64 << 10
"""Of a request's first line and headers."""


class HeaderTimer:
    """Ends a connection that begins a request and goes on byte by byte, or that sends nothing at all."""

    header_seconds = 20.0
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _header_timer: asyncio.TimerHandle | None = None

    def _wait_for_header(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_seconds, self._end)

    def _forget_header(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _end(self) -> None:
        if not self.transport.is_closing():
            log.info("a connection is closed whose header did not come in time")
            self.transport.abort()
