"""Connections read by httptools, the parser of Node.js in C, where it is installed."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from framework.serving.early_return import EarlyReturn
from framework.serving.header_timer import HEADER_BYTES, HeaderTimer, Refuse


class HttpToolsConnection(HeaderTimer, EarlyReturn, HttpToolsProtocol):
    """Reads requests with httptools, which by itself takes headers of any length. A request whose model takes no
    more is answered where its header ends, and its body is thrown away as it comes."""

    refuse: Refuse = staticmethod(lambda path, headers: None)
    _in_header = False  # between the first byte of a header and its end
    _has_ended = False  # whether the bytes that came last have the end of a header
    _is_refused = False  # while the body of a request that was refused comes
    _retry_after: int | None = None  # of that
    _length = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come."""
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
        self._forget_pause()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        self._in_header = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The header of a request has come. Raises: ValueError, where it is too long: it is answered with 400."""
        self._in_header, self._has_ended, self._length = False, True, 0
        self._forget_header()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES:
            raise ValueError("the header is too long")
        if not self._refuse():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Bytes of a body have come."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A body has come whole."""
        if not self._is_refused:
            super().on_message_complete()
            return
        self._is_refused = False
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
        if parser is None or is_busy or self.expect_100_continue or parser.should_upgrade():
            return False
        if not parser.should_keep_alive() or parser.get_method() != b"POST":
            return False
        refusal = self.refuse(self.url.partition(b"?")[0].decode("latin-1"), self.headers)
        if refusal is None:
            return False
        head = b"".join(b"%b: %b\r\n" % header for header in refusal.headers)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[refusal.status], head, refusal.body))
        self._is_refused, self._retry_after = True, refusal.retry_after
        self._wait_for_header()  # as long as for a header, for the rest of the body
        return True
