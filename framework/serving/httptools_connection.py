"""Connections read by httptools, the parser of Node.js in C, where it is installed."""

from __future__ import annotations

import asyncio

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from framework.serving.early_return import HOLD_SECONDS, EarlyReturn
from framework.serving.header_timer import HEADER_BYTES, HeaderTimer, Refuse
from framework.serving.lost_clients import drop
from framework.serving.request_parser import RequestParser


def _send_without_chunks(cycle: RequestResponseCycle) -> None:
    """Prepare the answer to a client of HTTP/1.0, which would take the sizes of chunks for content: one whose length is
    not known ends with its connection. Source: RFC 9112, 6.1 and 6.3."""
    send, is_open = cycle.send, False

    async def send_plain(message: ASGISendEvent) -> None:
        nonlocal is_open
        if message["type"] == "http.response.start":
            is_open = not any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
            if is_open:
                cycle.chunked_encoding = cycle.keep_alive = False
        elif message["type"] == "http.response.body" and is_open:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    cycle.send = send_plain


class HttpToolsConnection(HeaderTimer, EarlyReturn, HttpToolsProtocol):
    """Reads requests with httptools, which by itself takes headers of any length. A request whose model takes no
    more is answered where its header ends, and its body is thrown away as it comes."""

    refuse: Refuse = staticmethod(lambda path, headers: None)
    parser: RequestParser | None
    _in_header = False  # between the first byte of a header and its end
    _has_ended = False  # whether the bytes that came last have the end of a header
    _is_refused = False  # while the body of a request that was refused comes
    _retry_after: int | None = None  # of that
    _held: bytes | None = None  # its answer, while that is held
    _hold_timer: asyncio.TimerHandle | None = None
    _has_body = False  # whether its body has come whole
    _length = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come."""
        self.parser = RequestParser(self)
        super().connection_made(transport)
        self._wait_for_header()

    def data_received(self, data: bytes) -> None:
        """Bytes of a header or a body have come."""
        self._has_ended = False
        in_body = self._is_refused or (
            self.cycle is not None and self.cycle.more_body and not self._in_header
        )
        super().data_received(data)
        if self.transport.is_closing():
            self._forget_header()
        elif self._in_header or not (self._has_ended or in_body):  # or of nothing but ends of lines
            self._length += len(data)
            if self._length > HEADER_BYTES:
                self.send_400_response("The header is too long.")
            self._wait_for_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._forget_header()
        self._held = None
        if self._hold_timer is not None:
            self._hold_timer.cancel()
        super().connection_lost(exc)
        drop(self.cycle)

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        self._release()  # answers come in the order of requests
        self._in_header = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The header of a request has come. Raises: ValueError, where it is too long, or not of HTTP/1.1: it is
        answered with 400."""
        self._in_header, self._has_ended, self._length = False, True, 0
        self._forget_header()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES:
            raise ValueError("the header is too long")
        self._check_version_and_host()
        if not self._refuse():
            super().on_headers_complete()
            if self.cycle is not None and self.scope["http_version"] == "1.0":
                _send_without_chunks(self.cycle)

    def _check_version_and_host(self) -> None:
        """Raises: ValueError. httptools also takes HTTP/0.9 and 2.0, and any number of hosts, which a proxy before this
        server may read otherwise. Source: RFC 9112, 3.2."""
        version = "1.1" if self.parser is None else self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if version not in ("1.0", "1.1") or hosts > 1 or (version == "1.1" and not hosts):
            raise ValueError("a request of HTTP/1.1 has one Host")

    def on_body(self, body: bytes) -> None:
        """Bytes of a body have come."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A body has come whole."""
        if self.parser is not None and self.parser.is_between:
            return
        if not self._is_refused:
            super().on_message_complete()
            return
        self._has_body = True
        if self._held is None:
            self._end_refusal()

    def shutdown(self) -> None:
        """The server ends."""
        self._release()
        super().shutdown()

    def _release(self) -> None:
        """Send the answer that is held."""
        if self._held is None:
            return
        if self._hold_timer is not None:
            self._hold_timer.cancel()
        answer, self._held, self._hold_timer = self._held, None, None
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.flow.resume_reading()
        if self._has_body:
            self._end_refusal()

    def _end_refusal(self) -> None:
        """The request that was refused has its answer, and has come whole."""
        self._is_refused = self._has_body = False
        self._forget_header()
        self.on_response_complete()
        if self._retry_after is not None:
            self._note_refusal(self._retry_after)

    def _refuse(self) -> bool:
        """Answer at once where the model takes no more; whether that was done.

        Requests behind one that has no answer yet, and those that ask before they send a body, go the long way.
        """
        parser = self.parser
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if parser is None or is_busy or self.expect_100_continue:
            return False
        if not parser.should_keep_alive() or parser.get_method() != b"POST":
            return False
        refusal = self.refuse(self.url.partition(b"?")[0].decode("latin-1"), self.headers)
        if refusal is None:
            return False
        head = b"".join(b"%b: %b\r\n" % header for header in refusal.headers)
        answer = b"%b%b\r\n%b" % (STATUS_LINE[refusal.status], head, refusal.body)
        if refusal.retry_after is not None and self._is_early:
            self._held, self._hold_timer = answer, self.loop.call_later(HOLD_SECONDS, self._release)
            self.flow.pause_reading()
        else:
            self.transport.write(answer)
        self._is_refused, self._retry_after = True, refusal.retry_after
        self._wait_for_header()  # as long as for a header, for the rest of the body
        return True
