"""In Ray's proxy: a request whose replica dies is asked of another replica, as long as nothing of an answer was sent.

Ray's own router does that only until a replica has accepted the request; what a replica had accepted is answered with a
500 by its server, since the application of the proxy then returns without an answer. Requests of ours may run twice:
they change nothing that outlives a replica.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from framework.serving.budget import Budget
from framework.serving.settings import Limits

log = logging.getLogger("oar.serving")
CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
"""The variable of the environment by which Ray's proxy is told of a function that returns middleware."""
IMPORT_PATH = f"{__name__}.middlewares"
_TRIES = 2  # a request at which two replicas die may be what they die of
_PAUSE = 0.2  # seconds, in which the router hears of a death


def middlewares() -> list[Middleware]:
    """What Ray's proxy wraps its application in."""
    limits = Limits()  # the proxy serves before it hears of settings, and those of several servers may differ
    return [Middleware(Repeater, body_bytes=limits.body_bytes, bodies=Budget(limits.bodies_bytes))]


class Repeater:
    """The application of a proxy, which is asked again where it returns without an answer.

    Args:
        app: The proxy's.
        body_bytes: Of a body that is held until its answer begins; requests with larger ones are asked once.
        bodies: Bytes of all bodies that are held at a time; where they are used up, requests are asked once.
    """

    def __init__(self, app: ASGIApp, body_bytes: int, bodies: Budget) -> None:
        self._app, self._body_bytes, self._bodies = app, body_bytes, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held = _HeldRequest(receive, self._body_bytes, self._bodies)
        try:
            for left in range(_TRIES - 1, -1, -1):
                answer = _DelayedStart(send, held)
                await self._app(dict(scope), held.begin(), answer.send)
                if answer.began or not left or not held.repeatable:
                    return
                log.warning("a replica died with a request, which another one is asked")
                await asyncio.sleep(_PAUSE)
        finally:
            held.release()


class _HeldRequest:
    """The messages of a client, which can be received from the first on again."""

    def __init__(self, receive: Receive, body_bytes: int, bodies: Budget) -> None:
        self._receive, self._body_bytes, self._bodies = receive, body_bytes, bodies
        self._messages: list[Message] = []
        self._size = self._reserved = 0
        self.repeatable = True

    def begin(self) -> Receive:
        """A `receive` that begins with the first message."""
        messages = iter(tuple(self._messages))

        async def receive() -> Message:
            for message in messages:
                return message
            message = await self._receive()
            self._hold(message)
            return message

        return receive

    def _hold(self, message: Message) -> None:
        if message["type"] != "http.request":  # the client has gone
            self.release()
        if not self.repeatable:
            return
        size = len(message.get("body", b""))
        self._size += size
        if self._size > self._body_bytes or not self._bodies.try_take(size):
            self.release()
            return
        self._reserved += size
        self._messages.append(message)

    def release(self) -> None:
        """It is not asked again."""
        self.repeatable = False
        self._messages.clear()
        self._bodies.give(self._reserved)
        self._reserved = 0


class _DelayedStart:
    """Sends an answer, its head with the first of its body: between the two a replica may die as before them."""

    def __init__(self, send: Send, held: _HeldRequest) -> None:
        self._send, self._held = send, held
        self._start: Message | None = None
        self.began = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self.began = True
        if self._start is not None:
            start, self._start = self._start, None
            self._held.release()
            await self._send(start)
        await self._send(message)
