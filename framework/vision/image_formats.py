"""Which image files are read, told by their first bytes, and the decoder of each.

The plugins of Pillow are opened by themselves, not through Image.open: that keeps its other decoders (and Ghostscript)
out of reach, and Pillow's process-wide pixel limit from standing in for that of `framework.vision.image`.
"""

from __future__ import annotations

import importlib
import io
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, features

from framework.core.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class ImageFormat:
    """A format of image files.

    Attributes:
        name: As users know it.
        magic: Matches the first bytes of its files.
        open: Gives the image of an open file, its pixels not yet decoded.
        suffixes: Of its files' names.
    """

    name: str
    magic: re.Pattern[bytes]
    open: Callable[[io.BytesIO], Image.Image]
    suffixes: tuple[str, ...]


def _plugin(module: str, name: str) -> Callable[[io.BytesIO], Image.Image]:
    def opened(file: io.BytesIO) -> Image.Image:
        return getattr(importlib.import_module(f"PIL.{module}"), name)(file)

    return opened


def _open_jpeg(file: io.BytesIO) -> Image.Image:
    """A JPEG file, or one that holds several images (MPO), as stereo cameras write it."""
    from PIL import JpegImagePlugin, MpoImagePlugin

    opened = JpegImagePlugin.JpegImageFile(file)
    try:
        parts = opened._getmp()
        if parts is not None and parts[_COUNT] > 1:
            return MpoImagePlugin.MpoImageFile.adopt(opened, parts)
    except Exception:  # a damaged table of further images is no reason to refuse the first
        file.seek(0)
        return JpegImagePlugin.JpegImageFile(file)
    return opened


def _open_png(file: io.BytesIO) -> Image.Image:
    """A PNG file. Texts and colour profiles that unpack to more than Pillow takes are left out, not the whole image."""
    from PIL import PngImagePlugin

    data = file.getvalue()
    if any(name in data for name in _PACKED):
        file = io.BytesIO(_leave_out_large_texts(data, PngImagePlugin.MAX_TEXT_CHUNK))
    return PngImagePlugin.PngImageFile(file)


def _leave_out_large_texts(data: bytes, limit: int) -> bytes:
    chunks, offset = [data[:8]], 8
    while offset + 12 <= len(data):
        length, name = int.from_bytes(data[offset : offset + 4], "big"), data[offset + 4 : offset + 8]
        chunk = data[offset : offset + 12 + length]
        if name not in _PACKED or _unpacked_size(name, chunk[8:-4], limit) <= limit:
            chunks.append(chunk)
        offset += 12 + length
    return b"".join(chunks) + data[offset:]


def _unpacked_size(name: bytes, content: bytes, limit: int) -> int:
    """Of what a chunk holds packed, at most one byte more than the limit; 0 where it holds nothing packed."""
    after = content.partition(b"\0")[2]
    packed = after[1:]  # behind a name and the method
    if name == b"iTXt":  # a name, whether it is packed, the method, a language and the name in that
        packed = after[2:].split(b"\0", 2)[-1] if after[:1] == b"\1" else b""
    try:
        return len(zlib.decompressobj().decompress(packed, limit + 1))
    except zlib.error:
        return 0


def _open_avif(file: io.BytesIO) -> Image.Image:
    if features.check("avif"):
        return _plugin("AvifImagePlugin", "AvifImageFile")(file)
    try:
        plugin = importlib.import_module("pillow_avif.AvifImagePlugin")
    except ImportError as error:
        raise InputError(
            "this Pillow reads no AVIF files",
            where="AVIF",
            received=f"Pillow {Image.__version__}",
            fix='pip install -U "pillow>=11.3", or pip install pillow-avif-plugin',
        ) from error
    return plugin.AvifImageFile(file)


def _open_heif(file: io.BytesIO) -> Image.Image:
    try:
        plugin = importlib.import_module("pillow_heif")
    except ImportError as error:
        raise MissingExtraError("pillow-heif", "heif", "HEIC and HEIF images") from error
    return plugin.HeifImageFile(file)


def _open_jpeg2000(file: io.BytesIO) -> Image.Image:
    if not features.check("jpg_2000"):
        raise InputError(
            "this Pillow reads no JPEG 2000 files",
            where="JPEG 2000",
            received=f"Pillow {Image.__version__} without OpenJPEG",
            fix="pip install --force-reinstall --only-binary :all: pillow",
        )
    return _plugin("Jpeg2KImagePlugin", "Jpeg2KImageFile")(file)


_PACKED = (b"zTXt", b"iTXt", b"iCCP")  # chunks that hold a stream of zlib
_COUNT = 0xB001  # of the images of an MPO file, CIPA DC-007
_FORMATS = (
    ImageFormat("JPEG", re.compile(rb"\xff\xd8\xff"), _open_jpeg, (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo")),
    ImageFormat("PNG", re.compile(rb"\x89PNG\r\n\x1a\n"), _open_png, (".png", ".apng")),
    ImageFormat("BMP", re.compile(rb"BM"), _plugin("BmpImagePlugin", "BmpImageFile"), (".bmp", ".dib")),
    ImageFormat(
        "TIFF",
        re.compile(rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+"),
        _plugin("TiffImagePlugin", "TiffImageFile"),
        (".tif", ".tiff"),
    ),
    ImageFormat(
        "WebP",
        re.compile(rb"RIFF....WEBP", re.DOTALL),
        _plugin("WebPImagePlugin", "WebPImageFile"),
        (".webp",),
    ),
    ImageFormat("GIF", re.compile(rb"GIF8[79]a"), _plugin("GifImagePlugin", "GifImageFile"), (".gif",)),
    ImageFormat(
        "PPM",
        re.compile(rb"P[1-6][\s#]"),
        _plugin("PpmImagePlugin", "PpmImageFile"),
        (".ppm", ".pgm", ".pbm", ".pnm"),
    ),
    ImageFormat(
        "JPEG 2000",
        re.compile(rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
        _open_jpeg2000,
        (".jp2", ".j2k", ".jpx", ".j2c", ".jpf"),
    ),
    ImageFormat("AVIF", re.compile(rb"....ftypavi[fs]", re.DOTALL), _open_avif, (".avif",)),
    ImageFormat(
        "HEIC",
        re.compile(rb"....ftyp(hei[cxms]|hev[cx]|mif1|msf1)", re.DOTALL),
        _open_heif,
        (".heic", ".heif"),
    ),
)
SUFFIXES = tuple(suffix for known in _FORMATS for suffix in known.suffixes)
"""Of the names of image files, in small letters."""
FORMAT_NAMES = f"{', '.join(known.name for known in _FORMATS[:-1])} or {_FORMATS[-1].name}"


def find_format(data: bytes) -> ImageFormat | None:
    """The format of a file's bytes; None where it is none that is read."""
    known = next((one for one in _FORMATS if one.magic.match(data)), None)
    # The brand of the container may be that of all HEIF files; those of AVIF name theirs further on.
    if (
        known is not None
        and known.name == "HEIC"
        and b"avif" in data[8 : int.from_bytes(data[:4], "big")][:64]
    ):
        return next(one for one in _FORMATS if one.name == "AVIF")
    return known
