"""Fetch the address that a request names: bounded, and of no machine that the client could not reach itself."""

from __future__ import annotations

import functools
import http.client
import ipaddress
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable

from framework.core.errors import OarError
from framework.hub.transfer import open_url
from framework.serving.errors import BadRequestError, ForbiddenError, TooLargeError

_TIMEOUT, _LONGEST = 10.0, 30.0  # seconds without a byte, and in all
_BLOCK = 1 << 16


def check_address(text: str) -> None:
    """Raises: ForbiddenError, where an IP address is not one of the public internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    for inner in (
        getattr(address, "ipv4_mapped", None),
        getattr(address, "sixtofour", None),
        _nat64(address),
    ):
        address = inner or address
    if not address.is_global or address.is_multicast:
        raise ForbiddenError("the address is not of the public internet", received=text)


def _nat64(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv6Address) and address in ipaddress.ip_network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def resolve(host: str, port: int, allow_private: bool) -> list[str]:
    """The IP addresses of a host, all of which may be fetched. Raises: ForbiddenError; OSError, where it has none."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in answers))
    for address in () if allow_private else addresses:
        check_address(address)
    return addresses


def _connect(
    allow_private: bool, address: tuple[str, int], timeout: float, source: object = None
) -> socket.socket:
    """A connection to an address that was looked at, and not to what its name stands for a moment later."""
    failure: OSError = OSError("the name has no address")
    for ip in resolve(*address, allow_private):
        try:
            return socket.create_connection((ip, address[1]), timeout)
        except OSError as error:
            failure = error
    raise failure


class _Plain(http.client.HTTPConnection):
    allow_private = False

    def connect(self) -> None:
        self._create_connection = functools.partial(_connect, self.allow_private)
        super().connect()


class _Encrypted(http.client.HTTPSConnection):
    allow_private = False

    def connect(self) -> None:
        self._create_connection = functools.partial(_connect, self.allow_private)
        super().connect()


class _Private(_Plain):
    allow_private = True


class _EncryptedPrivate(_Encrypted):
    allow_private = True


class _PlainHandler(urllib.request.HTTPHandler):
    def __init__(self, kind: type[_Plain]) -> None:
        super().__init__()
        self.kind = kind

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self.kind, req)


class _EncryptedHandler(urllib.request.HTTPSHandler):
    def __init__(self, kind: type[_Encrypted]) -> None:
        super().__init__()
        self.kind = kind

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self.kind, req)


def check_url(url: str) -> None:
    """Raises: BadRequestError, where it is no address of http or https, or names a user."""
    try:
        split = urllib.parse.urlsplit(url)
        port = split.port
    except ValueError as error:
        raise BadRequestError("the address cannot be read", received=f"{url[:200]}: {error}") from None
    if split.scheme not in ("http", "https") or not split.hostname or split.username is not None or port == 0:
        raise BadRequestError(
            "the address cannot be fetched", received=url[:200], allowed="http:// or https://"
        )


def fetch(url: str, limit: int, allow_private: bool = False) -> bytes:
    """What an address gives, of at most `limit` bytes. Redirects are followed, each looked at as the first address is;
    no proxy is asked, which would look up names itself.

    Raises: BadRequestError: it cannot be fetched. ForbiddenError: it is not of the public internet. TooLargeError.
    """
    check_url(url)
    kinds = (_Private, _EncryptedPrivate) if allow_private else (_Plain, _Encrypted)
    handlers = (
        urllib.request.ProxyHandler({}),
        _PlainHandler(kinds[0]),
        _EncryptedHandler(kinds[1]),
    )
    ends = time.monotonic() + _LONGEST
    try:
        with open_url(url, {"User-Agent": "oar"}, check_url, _TIMEOUT, handlers) as answer:
            return _read(answer.read1, limit, ends)
    except OarError:
        raise
    except urllib.error.URLError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        if isinstance(error.reason, OarError):
            raise error.reason from None
        raise BadRequestError(
            "the address cannot be fetched", received=f"{url[:200]}: {error}"[:300]
        ) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise BadRequestError(
            "the address cannot be fetched", received=f"{url[:200]}: {error}"[:300]
        ) from None


def _read(read: Callable[[int], bytes], limit: int, ends: float) -> bytes:
    blocks, size = [], 0
    while block := read(_BLOCK):
        size += len(block)
        if size > limit:
            raise TooLargeError("what the address gives is too large", allowed=f"at most {limit:,} bytes")
        if time.monotonic() > ends:
            raise BadRequestError("the address answers too slowly", allowed=f"{_LONGEST:g} s")
        blocks.append(block)
    return b"".join(blocks)
