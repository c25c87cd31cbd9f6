"""TIFF files with any number of bands and pages, as numbers, through tifffile (extra `segmentation`).

Other image libraries read TIFF of 1, 3 or 4 bands, and some drop the others without a word.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import InputError, MissingExtraError
from framework.vision.image import MAX_PIXELS, damage_error

if TYPE_CHECKING:
    import tifffile

_DTYPES = ("uint8", "int8", "uint16", "int16", "float32")
_COMPRESSIONS = (1, 5, 8, 32773, 32946)  # none, LZW, Deflate, PackBits, Deflate by its old number
_MAX_PAGES = 1024


def read_bands(data: bytes, where: str, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """All bands of all pages `[H, W, C]` of a TIFF's bytes; pages that are smaller copies of others are left out.

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
        raise damage_error(data, where, error) from error
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
    if page.dtype is None or page.dtype.name not in _DTYPES or page.compression not in _COMPRESSIONS:
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
