"""Images whose letters are too small at the size at which a detector sees the whole: what to look at again, and how.

A screenshot of 3840 x 2160 pixels is seen at a quarter of its size, where letters of 14 pixels have three or four. What
tells: lines that read badly, and regions that the detector takes for text and not for sure. Of 25 receipts none has
more than one in ten of them, of such images a fifth to all. Or characters that are too narrow where they are seen,
however sure their line is read: one whose first letter was cut off reads as surely as a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

import numpy as np

from framework.vision.contours import quad_sizes
from ocr.results.lines import Line
from ocr.text.reading_order import quad_of
from ocr.text.stages import SHRUNK

READ_WELL = 0.8  # score of a line
_SHARE, _LEAST = 0.15, 3  # of all lines, and how many: so many that are not read well call for another look
_FAR = 0.35  # at this scale and below the edges of a line are off by three pixels and more
_NARROW = 2.8  # pixels of a character from left to right: of lines whose have less one in ten and more is read wrongly
_LOW = 12.5  # pixels of a line where it is seen, with the detector's margin: lower ones are cut badly then
_HEIGHT = 24.0  # pixels that a line has to have where it is looked at again
_TALL = 48.0  # pixels: lines that were seen so high are not looked at again
_CLOSER = (2.0, 4.0)  # times
_SAME = 0.5  # of a line that lies in another one: it is that one


def badly_read(lines: Sequence[Line], detected: int, faint: int) -> int:
    """How many of `detected` lines and `faint` regions are not read well, where these are many; else 0."""
    bad = detected + faint - sum(line.score >= READ_WELL for line in lines)
    return bad if bad >= max(_LEAST, _SHARE * (detected + faint)) else 0


def are_low(quads: np.ndarray, scale: float) -> bool:
    """Whether most lines, quads [N, 4, 2] in pixels of an image seen at `scale`, are lower than is good for them."""
    return scale <= _FAR and len(quads) >= _LEAST and _median_height(quads) * scale < _LOW


def are_narrow(lines: Sequence[Line], scale: float) -> bool:
    """Whether many lines of an image seen at `scale` have characters too narrow for their ends to be found well.

    East Asian characters are two others wide.
    """
    widths = [sum(2 if east_asian_width(char) in "WF" else 1 for char in line.text) for line in lines]
    if scale > _FAR or not any(widths):
        return False
    longest = quad_sizes(np.stack([quad_of(line.polygon) for line in lines])).max(axis=1)
    narrow = int((longest * scale < _NARROW * np.array(widths)).sum())
    return narrow >= max(_LEAST, _SHARE * len(lines))


def closer_scale(quads: np.ndarray, scale: float) -> float | None:
    """The scale at which to look again at an image that was seen at `scale`, at most 1; None where that is no closer.

    Args:
        quads: [N, 4, 2], the lines in pixels of the image.
    """
    if scale > SHRUNK:
        return None
    least, most = _CLOSER
    return min(1.0, scale * min(max(_HEIGHT / max(_median_height(quads) * scale, 1.0), least), most))


def merge_looks(first: np.ndarray, second: np.ndarray, scale: float) -> np.ndarray:
    """Quads of a first look [N, 4, 2] that was taken at `scale`, and of a closer one [M, 4, 2], as one set.

    Of the first look stay tall lines, of which a tile may have seen a part, and what the closer one has not found.
    """
    tall = quad_sizes(first).min(axis=1) * scale >= _TALL if len(first) else np.zeros(0, bool)
    second = second[~are_among(second, first[tall])]
    return np.concatenate([first[tall | ~are_among(first, second)], second])


def are_among(quads: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of quads [N, 4, 2] share more than half of their own or another one's area with one of the others: bool [N]
    for others [M, 4, 2]."""
    if not len(quads) or not len(others):
        return np.zeros(len(quads), bool)
    boxes, around = _boxes(quads), _boxes(others)
    sides = np.minimum(boxes[:, None, 2:], around[None, :, 2:]) - np.maximum(
        boxes[:, None, :2], around[None, :, :2]
    )
    areas, others_areas = ((each[:, 2:] - each[:, :2]).prod(axis=1) for each in (boxes, around))
    return (sides.clip(min=0).prod(axis=2) > _SAME * np.minimum(areas[:, None], others_areas)).any(axis=1)


def _median_height(quads: np.ndarray) -> float:
    return float(np.median(quad_sizes(quads).min(axis=1))) if len(quads) else 0.0


def _boxes(quads: np.ndarray) -> np.ndarray:
    return np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1).astype(np.float64)
