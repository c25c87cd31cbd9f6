"""TIFF files with any number of bands and pages, as numbers.

Image libraries read TIFF of 1, 3 or 4 bands, and some drop the others without a word. Here each band, or all of them
interleaved as one that is so many times as wide, is shown to OpenCV as a grey image, by a directory written anew
behind the file's own data: so all compressions it knows are read, and nothing is decoded here.

Source: TIFF 6.0, https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import cv2
import numpy as np

from framework.core.errors import InputError
from framework.vision.image import MAX_PIXELS, damaged

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIPS, _SAMPLES, _ROWS, _STRIP_BYTES, _PLANAR, _PREDICTOR = 273, 277, 278, 279, 284, 317
_TILE_WIDTH, _TILE_HEIGHT, _TILES, _TILE_BYTES, _FORMAT, _SUBFILE = 322, 323, 324, 325, 339, 254
_KINDS = {1: "B", 3: "H", 4: "I"}  # how whole numbers are stored
_READABLE = {(8, 1): "u1", (16, 1): "u2", (8, 2): "i1", (16, 2): "i2", (32, 3): "f4"}  # by bits and format
_MAX_PAGES = 1024

_Tags = dict[int, tuple[int, ...]]


class _Layout(NamedTuple):
    """What a page says of its bands."""

    height: int
    width: int
    bands: int
    dtype: np.dtype
    separate: bool
    """Each band for itself, and not interleaved."""
    differences: bool
    """Each value but the first of a row, in its strip or tile, is the difference from the one before."""


def read_bands(data: bytes, where: str, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """All bands of all pages `[H, W, C]` of a TIFF's bytes; pages that are smaller copies of others are left out.

    Raises:
        InputError: the file is damaged or larger than `max_pixels`, its pages differ in size or type, or it stores its
            values in a way that is not read here: as JPEG, complex numbers, in more than 4 GB.
    """
    order = "<" if data[:2] == b"II" else ">"
    if data[2:4] != struct.pack(order + "H", 42):
        raise _unread(where, "BigTIFF or no TIFF at all")
    try:
        pages = [_decode(data, order, tags, where, max_pixels) for tags in _pages(data, order)]
    except (struct.error, KeyError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise damaged(data, where, error) from error
    if not pages or any(
        page.shape[:2] != pages[0].shape[:2] or page.dtype != pages[0].dtype for page in pages
    ):
        raise InputError(
            "the pages cannot be the channels of one image",
            where=where,
            received=", ".join(f"{page.dtype} {list(page.shape)}" for page in pages[:5]) or "no page",
            allowed="pages of one size and type",
        )
    return np.concatenate(pages, axis=-1)


def _pages(data: bytes, order: str) -> list[_Tags]:
    pages: list[_Tags] = []
    (place,) = struct.unpack_from(order + "I", data, 4)
    while place:
        if len(pages) == _MAX_PAGES:
            raise ValueError(f"more than {_MAX_PAGES} pages, or a chain of pages that has no end")
        (count,) = struct.unpack_from(order + "H", data, place)
        tags: _Tags = {}
        for entry in range(place + 2, place + 2 + 12 * count, 12):
            tag, kind, length = struct.unpack_from(order + "HHI", data, entry)
            if kind not in _KINDS:
                continue
            form = f"{order}{length}{_KINDS[kind]}"
            inside = struct.calcsize(form) <= 4
            start = entry + 8 if inside else struct.unpack_from(order + "I", data, entry + 8)[0]
            tags[tag] = struct.unpack_from(form, data, start)
        if not tags.get(_SUBFILE, (0,))[0] & 1:
            pages.append(tags)
        (place,) = struct.unpack_from(order + "I", data, place + 2 + 12 * count)
    return pages


def _layout(tags: _Tags, where: str, max_pixels: int) -> _Layout:
    bands = tags.get(_SAMPLES, (1,))[0]
    bits, formats = set(tags.get(_BITS, (1,))), set(tags.get(_FORMAT, (1,)))
    dtype = _READABLE.get((max(bits), max(formats)))
    predictor = tags.get(_PREDICTOR, (1,))[0]
    if len(bits) > 1 or len(formats) > 1 or dtype is None:
        raise _unread(where, f"values of {sorted(bits)} bits, format {sorted(formats)}")
    if tags.get(_COMPRESSION, (1,))[0] in (6, 7) or predictor not in (1, 2):
        raise _unread(where, "JPEG inside a TIFF" if predictor in (1, 2) else f"predictor {predictor}")
    height, width = tags[_HEIGHT][0], tags[_WIDTH][0]
    if height * width * bands > max_pixels:
        raise InputError(
            "the image has too many values",
            where=where,
            received=f"{width}x{height} with {bands} bands",
            allowed=f"at most {max_pixels:,}",
        )
    return _Layout(height, width, bands, np.dtype(dtype), tags.get(_PLANAR, (1,))[0] == 2, predictor == 2)


def _decode(data: bytes, order: str, tags: _Tags, where: str, max_pixels: int) -> np.ndarray:
    """One page [H, W, C]."""
    layout = _layout(tags, where, max_pixels)
    tiled = _TILES in tags
    places, sizes = (tags[_TILES], tags[_TILE_BYTES]) if tiled else (tags[_STRIPS], tags[_STRIP_BYTES])
    if any(place + size > len(data) for place, size in zip(places, sizes, strict=True)):
        raise ValueError("the file is cut off")
    wider, groups = (1, layout.bands) if layout.separate else (layout.bands, 1)
    each = len(places) // groups
    planes = []
    for first in range(0, groups * each, each):
        new: _Tags = {
            _WIDTH: (layout.width * wider,),
            _HEIGHT: (layout.height,),
            _BITS: (8 * layout.dtype.itemsize,),
            _COMPRESSION: tags.get(_COMPRESSION, (1,)),
            _PHOTOMETRIC: (1,),
            _SAMPLES: (1,),
            # OpenCV knows no 8-bit numbers with a sign: they are shown without, which changes no bit.
            _FORMAT: (3,) if layout.dtype.kind == "f" else (1,),
            (_TILES if tiled else _STRIPS): places[first : first + each],
            (_TILE_BYTES if tiled else _STRIP_BYTES): sizes[first : first + each],
        }
        if tiled:
            new |= {_TILE_WIDTH: (tags[_TILE_WIDTH][0] * wider,), _TILE_HEIGHT: tags[_TILE_HEIGHT]}
        else:
            new[_ROWS] = (min(tags.get(_ROWS, (layout.height,))[0], layout.height),)
        shown = cv2.imdecode(np.frombuffer(_directed(data, order, new), np.uint8), cv2.IMREAD_UNCHANGED)
        if shown is None or shown.shape != (layout.height, layout.width * wider):
            raise _unread(where, f"compression {new[_COMPRESSION][0]}")
        planes.append(shown.view(layout.dtype).reshape(layout.height, layout.width, wider))
    values = np.concatenate(planes, axis=-1)
    if layout.differences:
        block = tags[_TILE_WIDTH][0] if tiled else layout.width
        for left in range(0, layout.width, block):
            part = values[:, left : left + block]
            np.cumsum(part, axis=1, dtype=values.dtype, out=part)
    return values


def _directed(data: bytes, order: str, tags: _Tags) -> bytes:
    """`data` with its first directory replaced by one of `tags`, which stands at the end."""
    place = len(data) + len(data) % 2
    entries, further = b"", b""
    after = place + 2 + 12 * len(tags) + 4
    for tag, values in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(values)}I", *values)
        if len(packed) > 4:
            packed, further = struct.pack(order + "I", after + len(further)), further + packed
        entries += struct.pack(order + "HHI", tag, 4, len(values)) + packed
    directory = struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", 0) + further
    return b"".join((data[:4], struct.pack(order + "I", place), data[8:], b"\0" * (len(data) % 2), directory))


def _unread(where: str, received: str) -> InputError:
    return InputError(
        "this kind of TIFF is not read",
        where=where,
        received=received,
        allowed="8 or 16 bits whole, or 32 bits real, uncompressed or with LZW, Deflate or PackBits",
        fix="save the image as .npy: numpy.save(path, array), array [H, W, C]",
    )
