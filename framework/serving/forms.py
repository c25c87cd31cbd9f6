"""Forms with files: multipart/form-data, whose files may be named in any of the ways that clients name them."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import unquote_to_bytes

from fastapi import Request
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from framework.serving.errors import BadRequestError
from framework.serving.settings import Limits

_FIELDS = 100
_EXTENDED = re.compile(rb";\s*filename\*\s*=\s*\"?([\w!#$%&+^`{}~-]*)'[^']*'([^;\"]*)\"?", re.IGNORECASE)
_FILE_TYPE = re.compile(rb"\s*(?:image/|application/(?:octet-stream|pdf)\b)", re.IGNORECASE)
_PLAIN = re.compile(rb";\s*filename\s*=", re.IGNORECASE)


class _FormParser(MultiPartParser):
    """Takes more for files than parts with a `filename`, which others are texts to the parser below: those with their
    name in `filename*` alone (RFC 5987), as older clients of Python write names that are not ASCII, and those without a
    name whose type is one of files, as Spring sends bytes."""

    def on_headers_finished(self) -> None:
        """The headers of a part have come."""
        field = self._current_part
        if field.content_disposition is not None:
            header = plain_disposition(field.content_disposition)
            kind = dict(field.item_headers).get(b"content-type", b"")
            if _FILE_TYPE.match(kind) and not _PLAIN.search(header):
                header += b'; filename=""'
            field.content_disposition = header
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


async def read_form(request: Request, limits: Limits) -> FormData:
    """The form of a request. The caller closes it. Raises: BadRequestError, where it cannot be read."""
    parser = _FormParser(
        request.headers,
        request.stream(),
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
