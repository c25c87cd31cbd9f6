"""Watermarks: lines of a PDF page that lie across its text, told by their slant, paleness, size and repetition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from framework.workflow.files.pdf_content import PageContent, TextStyle
from ocr.results.geometry import Box, line_box
from ocr.results.lines import Line

SLANT = 12.0  # degrees off the page's sides
LARGE = {True: 1.8, False: 2.2}  # to the page's usual type: of slanted lines, of others
PALE = {True: 140, False: 170}  # of 255: how light they are on white
REPEATED = 3
CROSSED = 2  # lines of text that lie on a watermark which is not slanted


def find_watermarks(
    lines: Sequence[tuple[int, Line]], page: PageContent, seen: np.ndarray, sizes: np.ndarray
) -> tuple[list[tuple[int, Line]], list[Line]]:
    """(the other lines, the watermarks)

    Args:
        lines: With where they begin in the page's content.
        seen: [N] which characters they are of.
        sizes: [N] of the type in pixels.
    """
    text = page.text
    slants = [_slant(line) > SLANT for _, line in lines]
    usual = float(np.median(sizes[seen])) if seen.any() else 0.0
    large = [line.style is not None and line.style.size >= LARGE[False] * usual for _, line in lines]
    if not any(slants) and not any(large):
        return list(lines), []
    letters = sum(len(line.text) for _, line in lines)
    if 2 * sum(len(line.text) for (_, line), slanted in zip(lines, slants, strict=True) if slanted) > letters:
        return list(lines), []  # the page itself is slanted
    repeated = Counter(line.text for (_, line), slanted in zip(lines, slants, strict=True) if slanted)
    boxes = [line_box(line) for _, line in lines]
    others: list[tuple[int, Line]] = []
    found: list[Line] = []
    for number, (start, line) in enumerate(lines):
        style = text.styles[text.style[start]]
        light = _lightness(style)
        if slants[number]:
            is_large = line.style is not None and line.style.size >= LARGE[True] * usual
            is_mark = is_large or light >= PALE[True] or repeated[line.text] >= REPEATED
        else:
            is_mark = large[number] and light >= PALE[False] and _crosses(number, boxes) >= CROSSED
        if is_mark:
            found.append(line)
        else:
            others.append((start, line))
    return others, found


def _slant(line: Line) -> float:
    """By how many degrees a line is off the nearest side of the page."""
    (x0, y0), (x1, y1) = line.polygon[0], line.polygon[1]
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0)) % 90
    return min(angle, 90 - angle)


def _lightness(style: TextStyle) -> float:
    """How light it is on white, from 0 of black to 255."""
    red, green, blue, alpha = style.color
    light = 0.3 * red + 0.59 * green + 0.11 * blue
    return 255 - (255 - light) * alpha / 255


def _crosses(number: int, boxes: Sequence[Box]) -> int:
    """How many lines have their middle height in the box of a line, and stand on it."""
    left, top, right, bottom = boxes[number]
    return sum(
        other != number and top < (box[1] + box[3]) / 2 < bottom and box[0] < right and box[2] > left
        for other, box in enumerate(boxes)
    )
