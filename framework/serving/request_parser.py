"""httptools' parser of requests, for a server that stays with HTTP/1.1.

Java's HttpClient, and what builds on it, offers HTTP/2 with its first request (`Upgrade: h2c`). A server that does not
take the offer answers in HTTP/1.1, but httptools ends at the header of such a request, and its body is lost
(httptools#124).
"""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING = (b"content-length", b"transfer-encoding")  # what says where a body ends


class RequestParser:
    """Parses what `httptools.HttpRequestParser` does, and the bodies of requests that offer another protocol.

    Args:
        protocol: Is told of what comes. Of a body that comes yet it hears `on_message_complete` too early: while
            `is_between` is true that is none.
    """

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._protocol = protocol
        self._parser = _parse_for(protocol)

    @property
    def is_between(self) -> bool:
        """Whether the header of a request that offers another protocol has come, and nothing behind it."""
        return self._parser.should_upgrade()

    def feed_data(self, data: bytes) -> None:
        """Bytes have come. Raises: httptools.HttpParserError."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = self._plain_header() + data[offer.args[0] :]
                self._parser = _parse_for(_EventsAfterHeader(self._protocol))

    def _plain_header(self) -> bytes:
        """A header that is followed by the same body, without the offer."""
        framing = [b"%b: %b\r\n" % header for header in self._protocol.headers if header[0] in _FRAMING]
        return b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing)

    def should_upgrade(self) -> bool:
        """No offer of another protocol is taken."""
        return False

    def should_keep_alive(self) -> bool:
        """Whether the connection goes on after this request."""
        return self._parser.should_keep_alive()

    def get_method(self) -> bytes:
        """The method of the request whose header came last."""
        return self._parser.get_method()

    def get_http_version(self) -> str:
        """Its version of HTTP, such as 1.1."""
        return self._parser.get_http_version()


class _EventsAfterHeader:
    """Passes on what a parser says, but for the first header."""

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._protocol, self._has_header = protocol, False
        self.on_body, self.on_message_complete = protocol.on_body, protocol.on_message_complete

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._has_header:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Its address, or bytes of that."""
        if self._has_header:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of its header."""
        if self._has_header:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        """The end of its header."""
        if self._has_header:
            self._protocol.on_headers_complete()
        self._has_header = True


def _parse_for(events: HttpToolsProtocol | _EventsAfterHeader) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(events)
    if hasattr(parser, "set_dangerous_leniencies"):  # as uvicorn: what follows a request that is the last one
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
