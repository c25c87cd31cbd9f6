"""Clients that come back sooner than they were told to: where they are refused again, they hear of it later."""

from __future__ import annotations

import asyncio

EARLY_BEFORE = "early_before"
"""Where the state of a request has the time of the loop before which its connection was told not to come again."""
HOLD_SECONDS = 0.1
"""How long an answer is held: a tenth of the shortest Retry-After."""


class EarlyReturn:
    """Remembers what the client of a connection was told. Who waits as long as that is answered at once, and so is the
    first request that is refused; what is let in is never held. So clients that ask again at once, as many as there
    are, leave the CPU to those whose requests were let in."""

    loop: asyncio.AbstractEventLoop
    _early_before = 0.0

    def _note_refusal(self, retry_after: int) -> None:
        """A request was refused, and the answer is written."""
        self._early_before = self.loop.time() + retry_after

    @property
    def _is_early(self) -> bool:
        """Whether a request that comes now comes too soon."""
        return self.loop.time() < self._early_before
