"""Huge TIFF images, of which only the tiles are decoded that a window needs, so that no image need fit into memory."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from framework.core.errors import InputError, MissingExtraError
from framework.vision.deep_samples import ValueRange, check_value_range, to_8_bits
from framework.vision.image import check_file

if TYPE_CHECKING:
    import tifffile

LARGE = 50_000_000
"""Pixels from which an image is read by windows, where the model looks at windows anyway."""
OVERVIEW = 2048
"""The longer side of the overview of such an image, in pixels."""
_CACHE = 256 << 20  # bytes of decoded tiles: neighbouring windows share them
_LARGEST_SEGMENT = 200_000_000  # samples of one tile or strip, which is decoded whole
_DTYPES = ("uint8", "uint16", "int16", "float32")
_LONGEST, _MOST_BANDS, _PIXELS_A_BYTE = 1_000_000, 1024, 10_000  # beyond these a header is damaged
_HEADS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_MIN_IS_WHITE, _PALETTE = 0, 3  # photometric interpretations of TIFF 6.0


class WindowedImage:
    """The first page of a TIFF as [H, W, 3] uint8 RGB, of which `image[y0:y1, x0:x1]` reads a window.

    Grey is repeated, of more than three bands the first three count. Samples of 16 bits lose their low byte, or are
    brought to 8 bits by `value_range`, which others need. May be read from several threads.

    Attributes:
        shape: (H, W, 3)

    Raises:
        InputError: the file is missing, damaged, or of another kind, or one strip that would have to be decoded whole.
        MissingExtraError: tifffile is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], value_range: ValueRange | None = None) -> None:
        self._path, self._value_range = check_file(path, "image"), value_range
        if value_range is not None:
            check_value_range(value_range, "value_range")
        self._file, self._page = _open(self._path)
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._check_header()
        self.shape = (self._page.imagelength, self._page.imagewidth, 3)
        self._map = self._check()
        self._segments: OrderedDict[int, np.ndarray] = OrderedDict()
        self._bytes = 0

    def _check_header(self) -> None:
        """Raises: InputError, where the header says sizes that cannot be, as of a damaged file."""
        page = self._page
        # of a damaged file each of them may be an array
        is_striped = isinstance(page.tilewidth, int) and page.tilewidth == 0
        tile = (page.rowsperstrip,) if is_striped else (page.tilelength, page.tilewidth)
        sides = (page.imagelength, page.imagewidth, page.samplesperpixel, page.imagedepth, *tile)
        problem = None
        if not all(isinstance(side, int) and side >= 1 for side in sides):
            problem = f"sides {', '.join(map(str, sides))}"
        elif max(page.imagelength, page.imagewidth) > _LONGEST or page.samplesperpixel > _MOST_BANDS:
            problem = f"{page.imagewidth} x {page.imagelength} pixels of {page.samplesperpixel} bands"
        elif page.imagelength * page.imagewidth > _PIXELS_A_BYTE * self._path.stat().st_size:
            problem = f"{page.imagewidth} x {page.imagelength} pixels in {self._path.stat().st_size:,} bytes"
        if problem is not None:
            raise InputError(
                "the sizes in the header of the image cannot be",
                where=self._path,
                received=problem,
                allowed=f"sides up to {_LONGEST:,}, at most {_PIXELS_A_BYTE:,} pixels a byte of the file",
                fix="copy or download the file again",
            )

    def _check(self) -> np.ndarray | None:
        """A memory map, where the samples lie in the file as they are. Raises: InputError."""
        page = self._page
        kind = "" if page.dtype is None else page.dtype.name
        deep = kind in ("int16", "float32")
        if kind not in _DTYPES or (deep and self._value_range is None) or page.imagedepth > 1:
            raise InputError(
                "this kind of TIFF is not read by windows",
                where=self._path,
                received=f"samples of {kind or page.bitspersample}",
                allowed="uint8, uint16; int16 and float32 with a value range",
            )
        if page.is_memmappable and page.planarconfig == 1:
            shape = (*self.shape[:2], page.samplesperpixel)
            order = self._file.byteorder
            dtype = page.dtype.newbyteorder(order) if page.dtype is not None else np.dtype("uint8")
            with contextlib.suppress(ValueError, OSError):  # cut off: its segments say so
                return np.memmap(self._path, dtype, "r", page.dataoffsets[0], shape)
        height, width = (
            (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, self.shape[1])
        )
        if min(height, self.shape[0]) * width * page.samplesperpixel > _LARGEST_SEGMENT:
            raise InputError(
                "the image is compressed in strips that are too large to be read by windows",
                where=self._path,
                received=f"strips of {width} x {height} pixels",
                allowed="tiles, or strips of few rows",
                fix="write it in tiles: gdal_translate -co TILED=YES -co COMPRESS=DEFLATE IN.tif OUT.tif",
            )
        return None

    def __getitem__(self, window: tuple[slice, slice]) -> np.ndarray:
        """[h, w, 3] uint8: the pixels of a window, as an array's. Raises: InputError, where the file is damaged."""
        rows, columns = window
        y0, y1, _ = rows.indices(self.shape[0])
        x0, x1, _ = columns.indices(self.shape[1])
        values = self._values(y0, max(y0, y1), x0, max(x0, x1))
        return self._rgb(values)

    def overview(self, longest: int = OVERVIEW) -> np.ndarray:
        """[h, w, 3] uint8: the image made smaller, its longer side at most `longest`, by the means of its pixels."""
        height, width, _ = self.shape
        factor = max(1, -(-max(height, width) // longest))
        if factor == 1:
            return self[:, :]
        small = np.zeros((-(-height // factor), -(-width // factor), 3), np.uint8)
        rows = max(1, (1 << 24) // max(1, width * factor)) * factor  # some 16 million pixels at a time
        for y0 in range(0, height, rows):
            block = self[y0 : y0 + rows, :]
            size = (small.shape[1], -(-block.shape[0] // factor))
            small[y0 // factor : y0 // factor + size[1]] = cv2.resize(
                block, size, interpolation=cv2.INTER_AREA
            )
        return small

    def _values(self, y0: int, y1: int, x0: int, x1: int) -> np.ndarray:
        """[h, w, C] as stored."""
        if self._map is not None:
            return np.array(self._map[y0:y1, x0:x1])
        page = self._page
        bands, separate = page.samplesperpixel, page.planarconfig == 2
        values = np.zeros((y1 - y0, x1 - x0, bands), page.dtype)
        for index, plane, top, left, height, width in self._segments_of(y0, y1, x0, x1):
            segment = self._decode(index)
            ya, yb = max(y0, top), min(y1, top + height, top + segment.shape[0])
            xa, xb = max(x0, left), min(x1, left + width, left + segment.shape[1])
            if yb <= ya or xb <= xa:
                continue
            content = segment[ya - top : yb - top, xa - left : xb - left]
            into = (slice(ya - y0, yb - y0), slice(xa - x0, xb - x0))
            if separate:
                values[(*into, plane)] = content[..., 0]
            else:
                values[into] = content
        return values

    def _segments_of(
        self, y0: int, y1: int, x0: int, x1: int
    ) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(index, plane, top, left, height, width) of the tiles or strips of a window."""
        page = self._page
        height, width = (
            (page.tilelength, page.tilewidth)
            if page.is_tiled
            else (min(page.rowsperstrip, self.shape[0]), self.shape[1])
        )
        down, across = -(-self.shape[0] // height), -(-self.shape[1] // width)
        planes = page.samplesperpixel if page.planarconfig == 2 else 1
        for plane in range(planes):
            for row in range(y0 // height, -(-y1 // height)):
                for column in range(x0 // width, -(-x1 // width)):
                    index = (plane * down + row) * across + column
                    yield index, plane, row * height, column * width, height, width

    def _decode(self, index: int) -> np.ndarray:
        """[h, w, C]: a tile or strip; zeros where the file leaves it out."""
        with self._lock:
            if (cached := self._segments.get(index)) is not None:
                self._segments.move_to_end(index)
                return cached
            page = self._page
            try:
                offset, size = page.dataoffsets[index], page.databytecounts[index]
                handle = self._file.filehandle
                handle.seek(offset)
                data = handle.read(size)
                if len(data) != size:
                    raise ValueError("the file is cut off")
                decoded, _, shape = page.decode(data, index, jpegtables=page.jpegtables)
            except Exception as error:  # damaged files make the decoders raise anything
                raise InputError(
                    "a tile of the image cannot be read",
                    where=self._path,
                    received=f"tile {index}: {error}",
                    fix="copy or download the file again",
                ) from error
            bands = 1 if page.planarconfig == 2 else page.samplesperpixel
            segment = np.zeros((*shape[1:3], bands), page.dtype) if decoded is None else decoded[0]
            self._segments[index] = segment
            self._bytes += segment.nbytes
            while self._bytes > _CACHE and len(self._segments) > 1:
                self._bytes -= self._segments.popitem(last=False)[1].nbytes
            return segment

    def _rgb(self, values: np.ndarray) -> np.ndarray:
        page = self._page
        if page.photometric == _PALETTE and page.colormap is not None:
            return np.ascontiguousarray(
                (page.colormap[:, values[..., 0]] >> 8).astype(np.uint8).transpose(1, 2, 0)
            )
        values = values[..., :3] if values.shape[2] >= 3 else values[..., :1].repeat(3, axis=2)
        if values.dtype.itemsize > 1:
            values = to_8_bits(values.astype(values.dtype.newbyteorder("=")), self._value_range or (0, 65535))
        return np.ascontiguousarray(255 - values if page.photometric == _MIN_IS_WHITE else values)


def open_windows(
    source: object, value_range: ValueRange | None = None, *, at_least: int = LARGE
) -> WindowedImage | None:
    """The image of a path, if it is a TIFF of `at_least` so many pixels and tifffile is installed; None of all others.

    Raises: InputError, as WindowedImage.
    """
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return None
    with open(source, "rb") as file:
        if file.read(4) not in _HEADS:
            return None
    try:
        import tifffile
    except ImportError:
        return None
    try:
        with tifffile.TiffFile(source) as opened:
            page = opened.pages.first
            pixels = page.imagelength * page.imagewidth
    except Exception:  # whoever reads it whole says what is wrong
        return None
    return WindowedImage(source, value_range) if pixels >= at_least else None


def _open(path: Path) -> tuple[tifffile.TiffFile, tifffile.TiffPage]:
    """An opened file and its first page."""
    try:
        import tifffile
    except ImportError as error:
        raise MissingExtraError("tifffile", "segmentation", "reading huge TIFF files by windows") from error
    try:
        file = tifffile.TiffFile(path)
        try:
            return file, file.pages.first
        except BaseException:
            file.close()
            raise
    except Exception as error:  # damaged files make the reader raise anything
        raise InputError(
            "the image could not be read", where=path, received=error, allowed="a TIFF"
        ) from error
