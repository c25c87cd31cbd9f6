"""Forms with files: multipart/form-data, whose files may be named in any of the ways that clients name them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import unquote_to_bytes

from fastapi import Request
from python_multipart.decoders import Base64Decoder, QuotedPrintableDecoder
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from framework.serving.errors import BadRequestError
from framework.serving.settings import Limits

_FIELDS = 100
_EXTENDED = re.compile(rb";\s*filename\*\s*=\s*\"?([\w!#$%&+^`{}~-]*)'[^']*'([^;\"]*)\"?", re.IGNORECASE)
_FILE_TYPE = re.compile(rb"\s*(?:image/|application/(?:octet-stream|pdf)\b)", re.IGNORECASE)
_TEXT_TYPE = re.compile(rb"\s*text/", re.IGNORECASE)
_PLAIN = re.compile(rb";\s*filename\s*=", re.IGNORECASE)
_ERROR_BYTES = 80  # bytes of a body, in errors
_BREAKS = b" \t\r\n"  # between the lines of base64


class _FormParser(MultiPartParser):
    """Takes more for files than parts with a `filename`, which others are texts to the parser below: those with their
    name in `filename*` alone (RFC 5987), as older clients of Python write names that are not ASCII, and those without a
    name whose type is one of files, as Spring sends bytes. Decodes parts that are written for mail, in base64 or
    quoted-printable, as `curl -F "file=@a.png;encoder=base64"` does."""

    _decoder: Base64Decoder | QuotedPrintableDecoder | None = None

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """Some of what a part holds has come."""
        if self._decoder is None:
            super().on_part_data(data, start, end)
            return
        content = data[start:end]
        if isinstance(self._decoder, Base64Decoder):
            content = content.translate(None, _BREAKS)
        self._decoder.write(content)

    def write(self, content: bytes) -> None:
        """What a decoder has read of the part."""
        super().on_part_data(content, 0, len(content))

    def on_part_end(self) -> None:
        """The whole part has come."""
        if self._decoder is not None:
            self._decoder.finalize()
        super().on_part_end()

    def on_headers_finished(self) -> None:
        """The headers of a part have come."""
        field = self._current_part
        headers = dict(field.item_headers)
        if field.content_disposition is not None:
            header = plain_disposition(field.content_disposition)
            kind = headers.get(b"content-type", b"")
            if _FILE_TYPE.match(kind) and not _PLAIN.search(header):
                header += b'; filename=""'
            field.content_disposition = header
        super().on_headers_finished()
        encoding = headers.get(b"content-transfer-encoding", b"").strip().lower()
        self._decoder = None
        if encoding == b"quoted-printable":
            self._decoder = QuotedPrintableDecoder(self)
        elif encoding == b"base64" and (
            field.file is not None or _TEXT_TYPE.match(headers.get(b"content-type", b""))
        ):
            # A field that is neither is an image in base64, which is read where its name is known.
            self._decoder = Base64Decoder(self)


def plain_disposition(header: bytes) -> bytes:
    """A Content-Disposition with `filename` in the place of `filename*`, where that stands alone."""
    extended = _EXTENDED.search(header)
    if extended is None or _PLAIN.search(header):
        return header
    name = unquote_to_bytes(extended[2])
    with contextlib.suppress(
        LookupError, UnicodeDecodeError
    ):  # a name that cannot be read makes no file a text
        name = name.decode(extended[1].decode("ascii") or "utf-8").encode()
    quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return header[: extended.start()] + b'; filename="' + quoted + b'"' + header[extended.end() :]


async def _without_preamble(stream: AsyncIterator[bytes], content_type: str) -> AsyncGenerator[bytes, None]:
    """A body from its first boundary on: what libraries for mail write before it is to be ignored (RFC 2046, 5.1.1).

    Raises: BadRequestError, where the boundary of the Content-Type is not in the body.
    """
    _, parameters = parse_options_header(content_type)
    delimiter = b"\n--" + parameters.get(b"boundary", b"")
    beginning, searched = b"", b"\n"  # the first line is one, too
    async for portion in stream:
        beginning = beginning or portion[:_ERROR_BYTES]
        searched += portion
        if (start := searched.find(delimiter)) >= 0:
            yield searched[start + 1 :]
            break
        searched = searched[-len(delimiter) :]
    else:
        if beginning:
            raise BadRequestError(
                "the form has no part: its boundary is not in the body",
                received=f"{beginning!r}…",
                allowed=f"{delimiter[1:].decode('latin-1')[:_ERROR_BYTES]}, as the Content-Type says",
                fix="leave Content-Type to the client's library, which chooses the boundary",
            )
    async for portion in stream:
        yield portion


async def read_form(request: Request, limits: Limits) -> FormData:
    """The form of a request. The caller closes it. Raises: BadRequestError, where it cannot be read."""
    parser = _FormParser(
        request.headers,
        _without_preamble(request.stream(), request.headers["content-type"]),
        max_files=limits.items,
        max_fields=_FIELDS,
        max_part_size=limits.body_bytes,  # an image in base64 is a field, too
    )
    # Bodies have a budget of memory: files of more than 1 MiB need no disk, which a container may not let us write.
    parser.spool_max_size = limits.body_bytes
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise BadRequestError(
            "the form cannot be read",
            received=error.message,
            allowed=f"multipart/form-data; boundary=…, at most {limits.items} files and {_FIELDS} other fields",
        ) from None
