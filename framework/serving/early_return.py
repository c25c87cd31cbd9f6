"""Clients that come back sooner than they were told to: their next requests wait, unread, outside of the server."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

_PAUSE = 0.1  # seconds: a tenth of the shortest Retry-After, and less than a server takes connections before its end


class EarlyReturn:
    """Lets nothing be read of a connection for a moment whose client was refused, came back before its Retry-After was
    over, and was refused again. So clients that ask again at once, as many as there are, leave the CPU to those whose
    requests were let in. Who waits as long as was said is answered at once, and so is the first request that was
    refused."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: FlowControl
    _comes_early_before = 0.0
    _pause_timer: asyncio.TimerHandle | None = None

    def _note_refusal(self, retry_after: int) -> None:
        """A request was refused, and the answer is written."""
        now = self.loop.time()
        is_early, self._comes_early_before = now < self._comes_early_before, now + retry_after
        if is_early and self._pause_timer is None and not self.transport.is_closing():
            self.flow.pause_reading()
            self._pause_timer = self.loop.call_later(_PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._pause_timer = None
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def _forget_pause(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None
