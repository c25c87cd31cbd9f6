"""The content of bodies that clients compress (`Content-Encoding: gzip` or `deflate`), in portions of bounded size."""

from __future__ import annotations

import zlib

from framework.serving.errors import BadRequestError

ENCODINGS = (b"gzip", b"x-gzip", b"deflate")
_PORTION = 1 << 18
_ANY_HEAD = zlib.MAX_WBITS | 32  # of gzip, or of zlib
_GZIP, _MAGIC = zlib.MAX_WBITS | 16, b"\x1f\x8b"


class Inflater:
    """Takes a body as it comes, and gives its content portion by portion: a thousandth may say all of it, so what is
    taken is no measure of what is given."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_ANY_HEAD)
        self._input = b""
        self._is_full = False

    @property
    def pending(self) -> bool:
        """Whether there may be more to read of what was fed."""
        return bool(self._input) or self._is_full

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._input += data

    def read(self) -> bytes:
        """The next portion. Raises: BadRequestError, where the bytes are not compressed, damaged or too many."""
        try:
            portion = self._stream.decompress(self._input, _PORTION)
        except zlib.error as error:
            raise BadRequestError(
                "the compressed body cannot be read", received=str(error), allowed="gzip, or deflate of zlib"
            ) from None
        if rest := self._stream.unused_data:
            if not _MAGIC.startswith(rest[:2]):
                raise BadRequestError(
                    "there are bytes behind the compressed body",
                    received=f"{len(rest):,} bytes or more",
                    allowed="members of gzip, one behind another",
                )
            # Files of gzip may be joined, as bgzip and parallel compressors do. Source: RFC 1952, 2.2.
            self._stream, self._input, self._is_full = zlib.decompressobj(_GZIP), rest, False
            return portion
        self._input, self._is_full = self._stream.unconsumed_tail, len(portion) == _PORTION
        return portion

    def finish(self) -> None:
        """Raises: BadRequestError, where an end is missing."""
        if not self._stream.eof:
            raise BadRequestError("the compressed body breaks off", received="no end of the stream")
