"""The part of the PDF file format that searchable PDFs need: numbered objects, streams, the table that finds them, and
a font that shows nothing: one TrueType glyph without area, and the PDF objects that let any character use it.

Source: ISO 32000-1, 7.3 (objects), 7.5 (file structure), 9.7.4 (CIDFontType2) and 9.10.3 (ToUnicode); OpenType 1.9 (the
tables of the font).
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import BinaryIO

ADVANCE = 500  # width of the glyph in thousandths of the font's size
_NAME = "OarGlyphless"


def number(value: float) -> str:
    """A real number as PDF writes it: no exponent, at most 4 decimals."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class PdfFile:
    """Objects of a PDF 1.5 file, each written as it is added: what is held is where they stand. Numbers count from 1.

    Args:
        out: The file to write to, which is seekable or new; without one the file is held in memory for `to_bytes`.
    """

    def __init__(self, out: BinaryIO | None = None) -> None:
        self._out: BinaryIO = io.BytesIO() if out is None else out
        self._offsets: list[int] = []  # 0: reserved
        self._position = 0
        self._write(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")  # bytes above 127 tell file tools that this is binary

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._position += len(data)

    def reserve(self) -> int:
        """A number for an object that others refer to before it can be written."""
        self._offsets.append(0)
        return len(self._offsets)

    def add(self, body: str | bytes, *, to: int | None = None) -> int:
        """Adds an object, under a reserved number if one is given, and returns its number."""
        index = to or self.reserve()
        self._offsets[index - 1] = self._position
        data = body.encode("ascii") if isinstance(body, str) else body
        self._write(b"%d 0 obj\n%s\nendobj\n" % (index, data))
        return index

    def add_stream(self, entries: str, data: bytes, *, compress: bool = False) -> int:
        """Adds a stream with these dictionary entries; its length, and the filter if compressed, are filled in."""
        if compress:
            data, entries = zlib.compress(data, 9), f"{entries} /Filter /FlateDecode"
        head = f"<< {entries} /Length {len(data)} >>\nstream\n".encode("ascii")
        return self.add(head + data + b"\nendstream")

    def finish(self, root: int, info: int) -> None:
        """Ends the file with the table that finds the objects."""
        if 0 in self._offsets:
            raise RuntimeError(f"object {self._offsets.index(0) + 1} was reserved and never written")
        count, start = len(self._offsets) + 1, self._position
        self._write(b"xref\n0 %d\n0000000000 65535 f \n" % count)
        self._write(b"".join(b"%010d 00000 n \n" % offset for offset in self._offsets))
        trailer = (
            f"trailer\n<< /Size {count} /Root {root} 0 R /Info {info} 0 R >>\nstartxref\n{start}\n%%EOF\n"
        )
        self._write(trailer.encode("ascii"))

    def to_bytes(self, root: int, info: int) -> bytes:
        """The whole file, of one that is held in memory."""
        self.finish(root, info)
        assert isinstance(self._out, io.BytesIO)
        return self._out.getvalue()


def font_file() -> bytes:
    """A TrueType font of 1000 units per em: an empty .notdef, and a glyph that is ADVANCE wide and an em high."""
    # One contour of two points, (0, 0) and (ADVANCE, 1000): it encloses nothing, but viewers take the boxes of
    # characters from it, and drop text whose glyphs have none.
    glyph = struct.pack(">hhhhhHHBBhh", 1, 0, 0, ADVANCE, 1000, 1, 0, 0x31, 0x01, ADVANCE, 1000)
    tables = {
        # format 6: code 0 is glyph 1
        b"cmap": struct.pack(">HHHHIHHHHHH", 0, 1, 0, 3, 12, 6, 12, 0, 0, 1, 1),
        b"glyf": glyph,
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh",
            *(0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 0, 0, ADVANCE, 1000, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(">IhhhHhhhhhhhhhhhH", 0x10000, 1000, -1, 0, ADVANCE, *[0] * 11, 1),
        b"hmtx": struct.pack(">Hhh", ADVANCE, 0, 0),
        b"loca": struct.pack(">HHH", 0, 0, len(glyph) // 2),
        b"maxp": struct.pack(">IHHHHHHHHHHHHHH", 0x10000, 2, *[0] * 4, 1, *[0] * 8),
        b"name": struct.pack(">HHH", 0, 0, 6),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 1, 0, 0, 0, 0),
    }
    count = len(tables)
    selector = count.bit_length() - 1
    search = 16 << selector
    head = struct.pack(">IHHHH", 0x10000, count, search, selector, 16 * count - search)
    offset = len(head) + 16 * count
    directory, body, checksum_at = b"", b"", 0
    for tag, table in tables.items():
        if tag == b"head":
            checksum_at = offset + 8
        directory += struct.pack(">4sIII", tag, _checksum(table), offset, len(table))
        padded = table + bytes(-len(table) % 4)
        body += padded
        offset += len(padded)
    font = bytearray(head + directory + body)
    struct.pack_into(">I", font, checksum_at, (0xB1B0AFBA - _checksum(bytes(font))) & 0xFFFFFFFF)
    return bytes(font)


def _checksum(data: bytes) -> int:
    data += bytes(-len(data) % 4)
    return sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF


def add_font(pdf: PdfFile, codes: Mapping[str, int], *, to: int) -> None:
    """Adds the font as object `to`. `codes` gives each character (or cluster) its two-byte code, from 1."""
    font = font_file()
    file = pdf.add_stream(f"/Length1 {len(font)}", font, compress=True)
    glyphs = pdf.add_stream("", b"\0\1" * (len(codes) + 1), compress=True)  # every code shows glyph 1
    unicode = pdf.add_stream("", _to_unicode(codes), compress=True)
    descriptor = pdf.add(
        f"<< /Type /FontDescriptor /FontName /{_NAME} /Flags 4 /FontBBox [0 0 {ADVANCE} 1000] /ItalicAngle 0 "
        f"/Ascent 1000 /Descent -1 /CapHeight 1000 /StemV 80 /FontFile2 {file} 0 R >>"
    )
    descendant = pdf.add(
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{_NAME} /CIDToGIDMap {glyphs} 0 R /DW {ADVANCE} "
        f"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor {descriptor} 0 R >>"
    )
    pdf.add(
        f"<< /Type /Font /Subtype /Type0 /BaseFont /{_NAME} /Encoding /Identity-H "
        f"/DescendantFonts [{descendant} 0 R] /ToUnicode {unicode} 0 R >>",
        to=to,
    )


def _to_unicode(codes: Mapping[str, int]) -> bytes:
    pairs = [f"<{code:04x}> <{text.encode('utf-16-be').hex()}>" for text, code in codes.items()]
    blocks = [pairs[n : n + 100] for n in range(0, len(pairs), 100)]  # the most that a block may hold
    lines = [
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
        "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
        "1 begincodespacerange <0000> <ffff> endcodespacerange",
        *("\n".join([f"{len(block)} beginbfchar", *block, "endbfchar"]) for block in blocks),
        "endcmap CMapName currentdict /CMap defineresource pop end end",
    ]
    return "\n".join(lines).encode("ascii")
