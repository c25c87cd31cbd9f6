"""Masks: run lengths in COCO's two forms, bounding boxes, colours, files of classes."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Sequence
from typing import TypedDict

import cv2
import numpy as np
from PIL import Image

from framework.core.disk import whole_file
from framework.core.errors import FormatError, ShapeError
from framework.core.types import JSON
from framework.vision.image import MAX_PIXELS


def encode_rle(mask: np.ndarray, *, compressed: bool = False) -> dict[str, JSON]:
    """`mask [H, W]` (anything but 0 is inside) as `{"size": [H, W], "counts": ...}`.

    Counts are the lengths of alternating runs, the first outside, down the columns: a list of ints, or with
    `compressed` COCO's ASCII string.
    """
    _check_mask(mask, "masks.encode_rle")
    flat = (mask != 0).ravel(order="F")
    ends = np.concatenate([np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    counts = np.diff(ends, prepend=0).tolist()
    if flat.size and flat[0]:
        counts.insert(0, 0)
    return {"size": [int(side) for side in mask.shape], "counts": _pack(counts) if compressed else counts}


class RunLengths(TypedDict):
    """COCO's mask: [height, width], and runs as numbers or packed as text."""

    size: Sequence[int]
    counts: str | bytes | Sequence[int]


def decode_rle(rle: RunLengths, *, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The bool mask `[H, W]` of an `encode_rle` dict; counts may be a list, a string or bytes.

    Raises:
        FormatError: as of `read_counts`. ValueError: the string is not Unicode.
    """
    height, width = (int(side) for side in rle["size"])
    counts = read_counts(rle, max_pixels=max_pixels)
    inside = (np.arange(counts.size) % 2).astype(np.bool_)
    return np.ascontiguousarray(np.repeat(inside, counts).reshape(width, height).T)


def read_counts(rle: RunLengths, *, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """[N] int64: the lengths of the runs of a mask, outside first, which cover its size: that it can be decoded.

    Raises:
        FormatError: the runs do not cover the size exactly, the string is damaged, or H * W exceeds `max_pixels`.
        ValueError: the string is not Unicode.
    """
    height, width = (int(side) for side in rle["size"])
    if height < 0 or width < 0 or height * width > max_pixels:
        raise FormatError(
            "the mask's size is out of range",
            where="masks.decode_rle",
            received=[height, width],
            allowed=f"up to {max_pixels:,} pixels",
        )
    packed = rle["counts"]
    if isinstance(packed, str | bytes):
        counts = _unpack(packed.encode() if isinstance(packed, str) else packed)
    else:
        counts = np.asarray(packed)
    # each run on its own first: the sum of many that are too long can wrap around to the right one
    if counts.ndim != 1 or ((counts < 0) | (counts > height * width)).any() or counts.sum() != height * width:
        raise FormatError(
            "the runs do not cover the mask",
            where="masks.decode_rle",
            received=f"{counts.size} runs of {int(counts.sum())} pixels together, shortest {counts.min(initial=0)}",
            allowed=f"runs >= 0 of {height * width} pixels together, for the size {[height, width]}",
        )
    return counts.astype(np.int64)


def _pack(counts: list[int]) -> str:
    # Source: COCO API, the format of maskApi: from the fourth run on the difference to the run before last; five bits
    # a character from the lowest up, 32 = more follow, the highest bit of the last is the sign; 48 is added.
    packed = bytearray()
    for index, count in enumerate(counts):
        value = count - counts[index - 2] if index > 2 else count
        more = True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            packed.append(48 + bits + 32 * more)
    return packed.decode("ascii")


_LONGEST_RUN = 7  # characters: 35 bits, more than any image has pixels


def _unpack(packed: bytes) -> np.ndarray:
    bits = np.frombuffer(packed, np.uint8).astype(np.int64) - 48
    last = np.flatnonzero((bits & 32) == 0)
    starts = np.concatenate([[0], last[:-1] + 1])[: last.size]
    lengths = last - starts + 1
    wrong = (bits < 0) | (bits >= 64)
    if wrong.any() or (lengths > _LONGEST_RUN).any():
        at = int(np.argmax(wrong)) if wrong.any() else int(starts[lengths > _LONGEST_RUN][0])
        raise FormatError(
            "the run-length string is damaged",
            where="masks.decode_rle",
            received=f"character {chr(packed[at])!r} in run {np.searchsorted(last, at)}",
            allowed=f"characters '0' to 'o', at most {_LONGEST_RUN} a run",
        )
    if bits.size and (not last.size or last[-1] + 1 < bits.size):
        raise FormatError(
            "the run-length string is cut off",
            where="masks.decode_rle",
            received=f"{len(packed)} characters, the last of them with a continuation mark",
        )
    if not last.size:
        return np.zeros(0, np.int64)
    position = np.arange(bits.size) - np.repeat(starts, lengths)
    counts = np.add.reduceat((bits & 31) << 5 * position, starts)
    counts -= np.where(bits[last] & 16, 1 << 5 * lengths, 0)
    counts[1::2], counts[2::2] = np.cumsum(counts[1::2]), np.cumsum(counts[2::2])
    return counts


def find_boundary(mask: np.ndarray, width: int) -> np.ndarray:
    """The pixels of `mask [H, W]` (bool) that are at most `width` steps, diagonal ones too, from a pixel outside of it
    or from beyond the edge of the image.

    Raises:
        ShapeError: the mask is not `[H, W]`.
    """
    _check_mask(mask, "masks.find_boundary")
    inside = np.ascontiguousarray(mask != 0).view(np.uint8)
    core = cv2.erode(
        inside, np.ones((3, 3), np.uint8), iterations=width, borderType=cv2.BORDER_CONSTANT, borderValue=0
    )
    return (inside > core) if inside.size else inside.view(np.bool_)


def to_boxes(masks: np.ndarray) -> np.ndarray:
    """The bounds `[K, 4]` float64 xyxy of `masks [K, H, W]`; zeros for an empty mask."""
    if masks.ndim != 3:
        raise ShapeError(
            "masks must be an array [K, H, W]",
            where="masks.to_boxes",
            received=list(masks.shape),
            allowed="[K, H, W]",
        )
    return np.array([_bounds(mask) or (0, 0, 0, 0) for mask in masks], np.float64).reshape(-1, 4)


def _bounds(mask: np.ndarray) -> tuple[int, int, int, int] | None:
    rows = np.flatnonzero(mask.any(axis=1))
    if rows.size == 0:
        return None
    columns = np.flatnonzero(mask[rows[0] : rows[-1] + 1].any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def color(index: int) -> tuple[int, int, int]:
    """The RGB colour of a class or a track: always the same for an index, far from those of the indices near it."""
    hue = (index * 0.61803398875 + 0.33) % 1.0  # the golden ratio keeps any run of consecutive hues apart
    saturation, value = ((0.85, 0.95), (0.6, 0.98), (0.9, 0.72))[index // 8 % 3]
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return round(255 * red), round(255 * green), round(255 * blue)


def palette(count: int) -> np.ndarray:
    """The colours of indices 0 to count - 1 as `[count, 3]` uint8 RGB."""
    return np.array([color(index) for index in range(count)], np.uint8).reshape(-1, 3)


def write_classes(path: str | os.PathLike[str], class_map: np.ndarray, colors: np.ndarray) -> None:
    """Writes a map `[H, W]` of class indices as a PNG whose pixels are the indices, shown in `colors [K, 3]` uint8 RGB.

    uint16 maps have no palette: they become 16-bit grey. The file appears whole or not at all; its folder is made.

    Raises:
        ShapeError: the map is not `[H, W]` of uint8 or uint16.
    """
    _check_mask(class_map, "masks.write_classes")
    if class_map.dtype not in (np.uint8, np.uint16):
        raise ShapeError(
            "class indices of this dtype fit no PNG",
            where="masks.write_classes",
            received=class_map.dtype,
            allowed="uint8, uint16",
        )
    image = Image.fromarray(np.ascontiguousarray(class_map))
    if class_map.dtype == np.uint8:
        image.putpalette(np.ascontiguousarray(colors[:256], np.uint8).tobytes())
    with whole_file(path) as temporary:
        image.save(temporary, format="PNG")


def _check_mask(mask: np.ndarray, where: str) -> None:
    if mask.ndim != 2:
        raise ShapeError(
            "a mask must be an array [H, W]", where=where, received=list(mask.shape), allowed="[H, W]"
        )
