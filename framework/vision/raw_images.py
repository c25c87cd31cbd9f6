"""The raw values of image files: the values of masks and of images with other channels than red, green and blue.

`image.read` shows any file as 8-bit RGB; here nothing is scaled, blended or turned into colours.
"""

from __future__ import annotations

import io
import math
import os
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.lib import format as npy_format

from framework.core.errors import InputError, MissingExtraError
from framework.vision import image
from framework.vision.image import MAX_PIXELS

if TYPE_CHECKING:
    import tifffile

_NPY = b"\x93NUMPY"
_TIFF = (b"II", b"MM")
_TIFF_DTYPES = ("uint8", "int8", "uint16", "int16", "float32")
_TIFF_COMPRESSIONS = (1, 5, 8, 32773, 32946)  # none, LZW, Deflate, PackBits, Deflate by its old number
_MAX_PAGES = 1024


def read_labels(source: str | os.PathLike[str] | bytes, *, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """A mask: `[H, W]` uint8, uint16 or int32 of whole numbers, or `[H, W, 3]` uint8 RGB where colours are stored.

    Of an image with a palette the indices, of grey with alpha the grey; opacity is ignored. Also .npy files of
    whole numbers `[H, W]`.

    Raises:
        InputError: the file is missing, damaged, of another format, larger than `max_pixels`, or holds no such values.
    """
    data, where = image.read_bytes(source, "mask")
    if data.startswith(_NPY):
        return _whole_numbers(read_npy(data, where), where)
    opened = image.open_header(data, where, max_pixels)
    mode = opened.mode
    try:
        opened.load()
        if mode in ("RGB", "RGBA", "RGBX", "CMYK", "YCbCr"):
            return np.asarray(opened.convert("RGB"))
        values = np.asarray(opened.getchannel(0) if mode in ("LA", "PA") else opened)
    except Exception as error:  # damaged files make the decoders raise anything
        raise image.damage_error(data, where, error) from error
    if mode == "L" and opened.format == "PNG" and data[24] in (2, 4):
        values = values // (255 // (2 ** data[24] - 1))  # Pillow spreads 2 and 4 bits over 0 to 255
    return _whole_numbers(values, where)


def read_channels(source: str | os.PathLike[str] | bytes, *, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """An image `[H, W, C]` of any number of channels, uint8 and uint16 as stored, all other numbers as float32.

    .npy files `[H, W]` or `[H, W, C]`; TIFF with several bands, whose pages of one size follow one another as channels;
    PNG and others as they are: grey, RGB, or with alpha as the last channel.

    Raises:
        InputError: the file is missing, damaged, of another format, or larger than `max_pixels`.
    """
    data, where = image.read_bytes(source, "image")
    if data.startswith(_NPY):
        return _channels(read_npy(data, where), where)
    if data[:2] in _TIFF:
        return _channels(read_bands(data, where, max_pixels), where)
    opened = image.open_header(data, where, max_pixels)
    if opened.mode in ("L", "LA", "RGBA") and not (opened.format == "PNG" and data[24] == 16):
        try:
            return _channels(np.asarray(opened), where)
        except Exception as error:
            raise image.damage_error(data, where, error) from error
    if opened.format == "PNG" and data[24] == 16:
        try:
            opened.load()  # OpenCV is silent about damage
        except Exception as error:
            raise image.damage_error(data, where, error) from error
        values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        if values is None:
            raise image.damage_error(data, where, "OpenCV cannot read it")
        order = {3: cv2.COLOR_BGR2RGB, 4: cv2.COLOR_BGRA2RGBA}.get(values.shape[2] if values.ndim == 3 else 1)
        return _channels(values if order is None else cv2.cvtColor(values, order), where)
    return image.read(data, max_pixels=max_pixels)


def read_npy(data: bytes, where: str) -> np.ndarray:
    """The array of a .npy file's bytes; its size is compared with them before anything is made.

    Raises:
        InputError: the header is damaged, the array is cut off, or holds objects.
    """
    try:
        file = io.BytesIO(data)
        version = npy_format.read_magic(file)
        read_header = {1: npy_format.read_array_header_1_0, 2: npy_format.read_array_header_2_0}[version[0]]
        shape, _, dtype = read_header(file)
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
            raise ValueError(f"{dtype} {list(shape)} in {len(data) - file.tell():,} bytes")
        return np.load(io.BytesIO(data))  # which takes no pickled objects
    except Exception as error:  # numpy evaluates the header as Python's literals, which raise anything
        raise InputError(
            "the array could not be read",
            where=where,
            received=error,
            allowed="one array of numbers, as numpy.save writes it",
        ) from error


def _whole_numbers(values: np.ndarray, where: str) -> np.ndarray:
    if values.dtype.kind not in "biu" or values.ndim != 2 or values.size == 0:
        raise InputError(
            "a mask must be whole numbers [H, W]",
            where=where,
            received=f"{values.dtype} {list(values.shape)}",
            allowed="whole numbers [H, W], not empty",
        )
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        return values.astype(values.dtype.newbyteorder("="))
    # Values beyond int32 are no classes: any others that are none either stand for them.
    return np.clip(values, -(2**31), 2**31 - 1).astype(np.int32)


def _channels(values: np.ndarray, where: str) -> np.ndarray:
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.size == 0 or values.dtype.kind not in "biuf":
        raise InputError(
            "an image must be numbers [H, W] or [H, W, C]",
            where=where,
            received=f"{values.dtype} {list(values.shape)}",
            allowed="numbers [H, W] or [H, W, C], not empty",
        )
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    kept = values.dtype.kind == "u" and values.dtype.itemsize <= 2
    return np.ascontiguousarray(values, values.dtype.newbyteorder("=") if kept else np.float32)


# -- TIFF ------------------------------------------------------------------------------------------------------------


def read_bands(data: bytes, where: str, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """All bands of all pages `[H, W, C]` of a TIFF's bytes; pages that are smaller copies of others are left out.

    Through tifffile: other libraries read TIFF of 1, 3 or 4 bands, and some drop the others without a word.

    Raises:
        InputError: the file is damaged or larger than `max_pixels`, its pages differ in size or type, or its values
            are of another type or compression than those that are read here.
        MissingExtraError: tifffile is not installed.
    """
    try:
        import tifffile
    except ImportError as error:
        raise MissingExtraError("tifffile", "segmentation", "reading TIFF files of several bands") from error
    try:
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            if len(file.pages) > _MAX_PAGES:
                raise ValueError(f"more than {_MAX_PAGES} pages")
            end = file.pages.next_page_offset
            if end is None or any(data[end : end + file.tiff.offsetsize]):  # tifffile only logs it
                raise ValueError("the chain of pages does not end")
            found = [page for page in file.pages if isinstance(page, tifffile.TiffPage)]
            pages = [_read_page(page, data, where, max_pixels) for page in found if not page.is_reduced]
    except InputError:
        raise
    except Exception as error:  # damaged files make the decoders raise anything
        raise image.damage_error(data, where, error) from error
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


def _read_page(page: tifffile.TiffPage, data: bytes, where: str, max_pixels: int) -> np.ndarray:
    """One page [H, W, C]; its size is checked before anything is decoded."""
    height, width, bands = page.imagelength, page.imagewidth, page.samplesperpixel
    if (
        page.dtype is None
        or page.dtype.name not in _TIFF_DTYPES
        or page.compression not in _TIFF_COMPRESSIONS
    ):
        raise InputError(
            "this kind of TIFF is not read",
            where=where,
            received=f"values of {page.bitspersample} bits ({page.dtype}), compression {page.compression}",
            allowed="8 or 16 bits whole, or 32 bits real, uncompressed or with LZW, Deflate or PackBits",
            fix="save the image as .npy: numpy.save(path, array), array [H, W, C]",
        )
    if page.imagedepth * height * width * bands > max_pixels:
        raise InputError(
            "the image has too many values",
            where=where,
            received=f"{width}x{height} with {bands} bands",
            allowed=f"at most {max_pixels:,}",
        )
    # Of segments that are missing tifffile makes zeros.
    if any(
        start + size > len(data) for start, size in zip(page.dataoffsets, page.databytecounts, strict=True)
    ):
        raise ValueError("the file is cut off")
    values = page.asarray(maxworkers=1).astype(page.dtype.newbyteorder("="), copy=False)
    if page.planarconfig == 2 and bands > 1:
        values = np.moveaxis(values, 0, -1)
    return values.reshape(height, width, bands)
