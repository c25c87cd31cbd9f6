"""Forms with files: multipart/form-data, whose files may be named in any of the ways that clients name them."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import unquote_to_bytes

from fastapi import Request
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from framework.serving.errors import BadRequestError

_FIELD_BYTES = 1 << 20
_EXTENDED = re.compile(rb";\s*filename\*\s*=\s*\"?([\w!#$%&+^`{}~-]*)'[^']*'([^;\"]*)\"?", re.IGNORECASE)
_PLAIN = re.compile(rb";\s*filename\s*=", re.IGNORECASE)


class _FormParser(MultiPartParser):
    """Takes a file that has its name in `filename*` alone (RFC 5987), as older clients of Python write names that are
    not ASCII, for a file. The parser below knows no such name, and a part without a name is a text to it."""

    def on_headers_finished(self) -> None:
        """The headers of a part have come."""
        part = self._current_part
        if part.content_disposition is not None:
            part.content_disposition = plain_disposition(part.content_disposition)
        super().on_headers_finished()


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


async def read_form(request: Request, most_files: int) -> FormData:
    """The form of a request. The caller closes it. Raises: BadRequestError, where it cannot be read."""
    parser = _FormParser(
        request.headers, request.stream(), max_files=most_files, max_fields=100, max_part_size=_FIELD_BYTES
    )
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise BadRequestError(
            "the form cannot be read",
            received=error.message,
            allowed=f"multipart/form-data; boundary=…, at most {most_files} files and 100 other fields",
        ) from None
