"""What happens to every request before and behind its route: id, key, size, time, a line in the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from framework.core.errors import OarError
from framework.serving.addresses import plain_path
from framework.serving.admission import RETRY_AFTER, Admission, Headers, Refusal, choose_id
from framework.serving.budget import Budget
from framework.serving.compressed_body import ENCODINGS, Inflater
from framework.serving.early_return import EARLY_BEFORE, HOLD_SECONDS
from framework.serving.errors import (
    EncodingError,
    RetryError,
    SlowClientError,
    TooLargeError,
    status_of,
)
from framework.serving.lost_clients import is_lost, note_task
from framework.serving.metrics import Metrics
from framework.serving.models import ModelStore
from framework.serving.settings import Limits

log = logging.getLogger("oar.serving")
CLOSED = 499
"""What counts as the status of a request whose client goes before an answer, as nginx has it."""
_LEAST_RATE = 8192  # bytes a second, of a body
_DRAIN_BYTES, _DRAIN_SECONDS = 4 << 20, 1.0


class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, store: ModelStore, metrics: Metrics, admission: Admission) -> None:
        self.app, self.store, self.metrics = app, store, metrics
        self.limits = store.settings.limits
        self._admission = admission
        self._bodies = Budget(self.limits.bodies_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        if scope["method"] == "HEAD":
            # Every GET has one: load balancers and monitors look so. RFC 9110, 9.3.2
            state["is_head"], scope, send = True, {**scope, "method": "GET"}, _without_body(send)
        scope["path"] = plain_path(scope["path"], self.store.settings.root_path)
        if (refusal := self._admission.refuse(scope["path"], scope["headers"])) is not None:
            state[RETRY_AFTER] = refusal.retry_after
            if asyncio.get_running_loop().time() < state.get(EARLY_BEFORE, 0.0):
                await asyncio.sleep(HOLD_SECONDS)
            await _send_refusal(refusal, _Body(receive, self.limits, self._bodies, _headers(scope)), send)
            return
        note_task(state)
        try:
            await self._serve(scope, receive, send)
        except asyncio.CancelledError:
            if not is_lost(state):
                raise

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, headers = time.monotonic(), _headers(scope)
        scope["state"]["request_id"] = request_id = choose_id(headers)
        body = _Body(receive, self.limits, self._bodies, headers)
        id_headers = self._admission.id_headers(request_id)
        answer = _Answer(send, body, id_headers, lambda: self.store.draining)
        try:
            self._check(scope, headers)
            await self.app(scope, body.receive, answer.send)
        except ClientDisconnect:  # while its body was read: nobody is there to answer
            pass
        except Exception as error:
            if not isinstance(error, OarError) or status_of(error) == 500:
                log.exception("the request failed", extra={"facts": {"request_id": request_id}})
            if answer.status:
                raise  # what was begun cannot be taken back: the connection breaks off
            await self.send_error(scope, error, answer.send)
        finally:
            body.close()
            self._note(scope, answer, request_id, time.monotonic() - started, body.received)

    async def send_error(self, scope: Scope, error: Exception, send: Send) -> None:
        """Answer with an error."""
        status, headers, body = self._admission.answer(error, scope["path"], scope["state"]["request_id"])
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        self._admission.check_key(scope["method"], scope["path"], headers)
        encoding = _encoding(headers)
        if encoding not in (b"", b"identity", *ENCODINGS):
            raise EncodingError(
                "the body is compressed in a way that is not read",
                received=f"Content-Encoding: {encoding[:50].decode('latin-1')}",
                allowed="gzip, deflate",
                fix="send the file as it is",
            )

    def _note(self, scope: Scope, answer: _Answer, request_id: str, seconds: float, received: int) -> None:
        route = getattr(scope.get("route"), "path", "none")
        name = scope.get("path_params", {}).get("name", "") or scope["state"].get("model", "")
        if answer.status == 405:  # the path has other methods: no route has answered
            route = name = "none"
        model = name if name in self.store.models or name in self.store.generators else ""
        self.metrics.observe_request(route, model, answer.status or CLOSED, seconds)
        facts = {
            "request_id": request_id,
            "method": "HEAD" if "is_head" in scope["state"] else scope["method"],
            "path": scope["path"][:200],
            "status": answer.status or "closed",
            "ms": round(seconds * 1000, 1),
            "model": model,
            "bytes_in": received,
            "bytes_out": answer.sent,
            "client": (scope.get("client") or ("",))[0],
        }
        quiet = route in ("/healthz", "/readyz", "/metrics")
        log.log(logging.DEBUG if quiet else logging.INFO, "request", extra={"facts": facts})


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


async def _send_refusal(refusal: Refusal, body: _Body, send: Send) -> None:
    await body.drain()
    headers = [*refusal.headers] if body.complete else [*refusal.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})


def _encoding(headers: Mapping[bytes, bytes]) -> bytes:
    return headers.get(b"content-encoding", b"").strip().lower()


def _headers(scope: Scope) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in scope["headers"]}


class _Body:
    """The body of a request, or what it holds compressed: never more of it than the limits allow, nor slower."""

    def __init__(
        self, receive: Receive, limits: Limits, bodies: Budget, headers: Mapping[bytes, bytes]
    ) -> None:
        self._receive, self._limits, self._bodies = receive, limits, bodies
        length = headers.get(b"content-length", b"")
        self._length = int(length) if length.isdigit() and len(length) < 20 else None
        self.has_body = bool(self._length) or b"transfer-encoding" in headers
        self.expects_permission = headers.get(b"expect", b"").lower() == b"100-continue"
        self.complete = not self.has_body
        self.began = False
        self.received = self._reserved = self._inflated = 0
        self._started = time.monotonic()
        self._inflater = Inflater() if self.has_body and _encoding(headers) in ENCODINGS else None

    async def receive(self) -> Message:
        """The next message of the client, or of the content of what it sends.

        Raises: as `_receive_sent`; BadRequestError, where a compressed body cannot be read.
        """
        if self._inflater is None:
            return await self._receive_sent()
        while not (self._inflater.pending or self.complete):
            message = await self._receive_sent()
            if message["type"] != "http.request":
                return message
            self._inflater.feed(message.get("body", b""))
        portion = self._inflater.read()
        self._inflated += len(portion)
        if self._inflated > self._limits.body_bytes:
            raise self._too_large(self._inflated)
        self._take(len(portion))
        more = self._inflater.pending or not self.complete
        if not more:
            self._inflater.finish()
            self._inflater = None
        await asyncio.sleep(0)  # others go on between the portions
        return {"type": "http.request", "body": portion, "more_body": more}

    async def _receive_sent(self) -> Message:
        """The next message of the client.

        Raises: TooLargeError, SlowClientError; RetryError, where the bodies of all requests are too large together.
        """
        if self.complete:
            return await self._receive()
        limit = self._limits.body_bytes
        if not self.began:
            self.began = True
            if self._length is not None:
                if self._length > limit:
                    raise self._too_large(self._length)
                self._take(self._length)
        longest = self._limits.read_seconds
        left = self._started + longest + self.received / _LEAST_RATE - time.monotonic()
        try:
            async with asyncio.timeout(max(min(longest, left), 0.001)):
                message = await self._receive()
        except TimeoutError:
            raise SlowClientError(
                "the body comes too slowly",
                received=f"{self.received:,} bytes in {time.monotonic() - self._started:.0f} s",
                allowed=f"{_LEAST_RATE:,} bytes a second, and no pause of {longest:g} s",
            ) from None
        if message["type"] != "http.request":
            self.complete = True
            return message
        size = len(message.get("body", b""))
        self.received += size
        if self.received > limit:
            raise self._too_large(self.received)
        if self._length is None:
            self._take(size)
        self.complete = not message.get("more_body", False)
        return message

    def _take(self, size: int) -> None:
        if not self._bodies.try_take(size):
            raise RetryError("the server reads as many large requests as it can hold")
        self._reserved += size

    def _too_large(self, size: int) -> TooLargeError:
        return TooLargeError(
            "the body is too large",
            received=f"{size:,} bytes or more",
            allowed=f"at most {self._limits.body_bytes:,}",
        )

    async def drain(self) -> None:
        """Read what the client is still sending, for a moment: it may look for the answer behind it alone."""
        if self.complete or (self.expects_permission and not self.began):
            return
        if self._length is not None and self._length > _DRAIN_BYTES:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                read = 0
                while not self.complete and read < _DRAIN_BYTES:
                    message = await self._receive()
                    read += len(message.get("body", b""))
                    self.complete = message["type"] != "http.request" or not message.get("more_body", False)

    def close(self) -> None:
        """The body is not needed any more."""
        self._bodies.give(self._reserved)
        self._reserved = 0


class _Answer:
    """Sends the answer, with the request's id."""

    def __init__(self, send: Send, body: _Body, id_headers: Headers, draining: Callable[[], bool]) -> None:
        self._send, self._body, self._draining = send, body, draining
        self._id_headers = id_headers
        self.status = self.sent = 0

    async def send(self, message: Message) -> None:
        """A message to the client."""
        if message["type"] == "http.response.start":
            await self._body.drain()
            headers = [*message.get("headers", ()), *self._id_headers]
            if self._draining() or not self._body.complete:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.sent += len(message.get("body", b""))
        await self._send(message)
