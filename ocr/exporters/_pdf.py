"""The part of the PDF file format that searchable PDFs need: numbered objects, streams, the table that finds them.

Source: ISO 32000-1, 7.3 (objects) and 7.5 (file structure).
"""

from __future__ import annotations

import zlib


def number(value: float) -> str:
    """A real number as PDF writes it: no exponent, at most 4 decimals."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class PdfFile:
    """Objects of a PDF 1.5 file, gathered in memory. Object numbers count from 1."""

    def __init__(self) -> None:
        self._objects: list[bytes | None] = []

    def reserve(self) -> int:
        """A number for an object that others refer to before it can be written."""
        self._objects.append(None)
        return len(self._objects)

    def add(self, body: str | bytes, *, to: int | None = None) -> int:
        """Adds an object, under a reserved number if one is given, and returns its number."""
        index = to or self.reserve()
        self._objects[index - 1] = body.encode("ascii") if isinstance(body, str) else body
        return index

    def add_stream(self, entries: str, data: bytes, *, compress: bool = False) -> int:
        """Adds a stream with these dictionary entries; its length, and the filter if compressed, are filled in."""
        if compress:
            data, entries = zlib.compress(data, 9), f"{entries} /Filter /FlateDecode"
        head = f"<< {entries} /Length {len(data)} >>\nstream\n".encode("ascii")
        return self.add(head + data + b"\nendstream")

    def to_bytes(self, root: int, info: int) -> bytes:
        """The whole file."""
        parts = [b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"]  # bytes above 127 tell file tools that this is binary
        position, offsets = len(parts[0]), []
        for index, body in enumerate(self._objects, 1):
            if body is None:
                raise RuntimeError(f"object {index} was reserved and never written")
            offsets.append(position)
            parts.append(b"%d 0 obj\n%s\nendobj\n" % (index, body))
            position += len(parts[-1])
        count = len(offsets) + 1
        parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % count)
        parts += [b"%010d 00000 n \n" % offset for offset in offsets]
        trailer = (
            f"trailer\n<< /Size {count} /Root {root} 0 R /Info {info} 0 R >>\nstartxref\n{position}\n%%EOF\n"
        )
        return b"".join([*parts, trailer.encode("ascii")])
