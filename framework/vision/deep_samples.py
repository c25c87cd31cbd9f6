"""Images of more than 8 bits a sample, as cameras and microscopes write them, brought to 8 bits by their range."""

from __future__ import annotations

import contextlib
import functools
import io
import logging

import cv2
import numpy as np
from PIL import Image

from framework.core.errors import InputError

_log = logging.getLogger("oar")
ValueRange = tuple[float, float]
"""(black, white): the samples that become 0 and 255."""
_BITS_A_SAMPLE = 258  # TIFF 6.0
_DEEPEST = 16
_NARROW = 4  # bits that no sample of a file uses, from which the file is taken for one of fewer bits


def check_value_range(value_range: ValueRange, where: object) -> None:
    """Raises: InputError, where black is not below white."""
    black, white = value_range
    if not black < white:
        raise InputError(
            "black must lie below white",
            where=where,
            received=f"value_range {black:g} {white:g}",
            allowed="two numbers, the first one smaller: 0 4095",
        )


def to_8_bits(values: np.ndarray, value_range: ValueRange) -> np.ndarray:
    """uint8: black of the range is 0, white 255, what lies outside is cut off. A full range of 16 bits is shifted."""
    black, white = value_range
    if values.dtype == np.uint16 and (black, white) == (0, 2**_DEEPEST - 1):
        return (values >> 8).astype(np.uint8)
    scaled = (values.astype(np.float32) - np.float32(black)) * np.float32(255 / (white - black))
    return np.clip(np.nan_to_num(np.rint(scaled)), 0, 255).astype(np.uint8)


def deep_samples(image: Image.Image, data: bytes, *, with_floats: bool) -> np.ndarray | None:
    """The samples [H, W] or [H, W, 3] of an opened file that has more than 8 bits each; None where it has 8, or a layer
    of opacity.

    Args:
        with_floats: Whether those of 32 bits are read, which say no range.

    Raises:
        Exception: whatever the decoders raise of damaged files.
    """
    if image.mode.startswith("I;16"):
        values = np.asarray(image)
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    if image.mode == "I" and image.format in ("PNG", "PPM"):  # Pillow spreads those of PPM over 16 bits
        return np.clip(np.asarray(image), 0, 2**_DEEPEST - 1).astype(np.uint16)
    if image.mode in ("I", "F"):
        return np.asarray(image).astype(np.float32) if with_floats else None
    if image.mode != "RGB":
        return None
    if image.format == "PNG" and data[24] == _DEEPEST:
        image.load()  # OpenCV is silent about damage
        flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
        values = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        return values if values is not None and values.dtype == np.uint16 else None
    if image.format == "TIFF" and _bits(image) == _DEEPEST:
        return _tiff_samples(data, (image.height, image.width, 3))
    return None


def _tiff_samples(data: bytes, shape: tuple[int, int, int]) -> np.ndarray | None:
    """None where tifffile is not installed, or does not read this file."""
    with contextlib.suppress(Exception):  # Pillow then reads it, and says what is wrong
        import tifffile

        with tifffile.TiffFile(io.BytesIO(data)) as file:
            page = file.pages[0]
            values = page.asarray(maxworkers=1)
            if values.shape == (3, *shape[:2]):
                values = np.moveaxis(values, 0, -1)
            if values.shape == shape and values.dtype == np.uint16:
                return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    return None


def _bits(image: Image.Image) -> int:
    """Of a sample of a TIFF, as its header says."""
    stated = getattr(image, "tag_v2", {}).get(_BITS_A_SAMPLE, 8)
    return max(stated) if isinstance(stated, tuple) else int(stated)


def stated_range(image: Image.Image, values: np.ndarray, where: str) -> ValueRange:
    """What the file says: all values of as many bits as a sample has. Where they use far fewer, the log says so."""
    bits = _bits(image) if image.format == "TIFF" else _DEEPEST
    if 8 < bits < _DEEPEST:
        return 0.0, float(2**bits - 1)
    note_narrow_range(values, where)
    return 0.0, float(2**_DEEPEST - 1)


def note_narrow_range(values: np.ndarray, where: str) -> None:
    """Put a line into the log, once for each number of bits, where 16-bit samples use 12 bits or fewer."""
    highest = int(values.max(initial=0))
    bits = max(8, highest.bit_length())
    if highest and bits <= _DEEPEST - _NARROW:
        _note_once(bits, where, highest)


@functools.cache
def _note_once_for(bits: int) -> list[str]:
    return []


def _note_once(bits: int, where: str, highest: int) -> None:
    noted = _note_once_for(bits)
    if noted:
        return
    noted.append(where)
    _log.warning(
        "%s: its 16-bit samples reach %d of 65535, so it is seen almost black (said once); for samples of %d bits: "
        "--value_range 0 %d, or value_range: [0, %d] of the data set",
        *(where, highest, max(10, bits), 2 ** max(10, bits) - 1, 2 ** max(10, bits) - 1),
    )
