"""A number of bytes or pixels that requests share, so that many small ones or few large ones are held at a time."""

from __future__ import annotations

import asyncio
import threading
from collections import deque


class Budget:
    """Used in one event loop; only `try_take` is called by other threads, too.

    Args:
        total: What can be taken at a time; who asks for more gets all of it.
    """

    def __init__(self, total: int) -> None:
        self.total = self.left = total
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def try_take(self, amount: int) -> bool:
        """Take it at once, or not at all."""
        amount = min(amount, self.total)
        with self._lock:
            if self._waiting or amount > self.left:
                return False
            self.left -= amount
            return True

    async def take(self, amount: int) -> None:
        """Take it as soon as it is there, in the order in which it was asked for."""
        if self.try_take(amount):
            return
        amount, future = min(amount, self.total), asyncio.get_running_loop().create_future()
        self._waiting.append((amount, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give(amount)
            else:
                self._waiting.remove((amount, future))
                self._hand_out()
            raise

    def give(self, amount: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self.left += min(amount, self.total)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.left:
            with self._lock:  # until it is taken, the one that waits keeps others away
                amount, future = self._waiting.popleft()
                if not future.done():
                    self.left -= amount
                    future.set_result(None)
