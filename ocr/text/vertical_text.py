"""Pages of vertical text (Chinese, Japanese) in the frame in which their columns are rows.

Columns follow one another from right to left and are read downwards. Where the page is turned a quarter anticlockwise,
they are rows from top to bottom that run to the right: what holds for paragraphs and the order of level text holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ocr.results.geometry import Box
from ocr.results.lines import Line, Polygon


def is_vertical_text(lines: Sequence[Line]) -> bool:
    """Whether most of what lines say stands in vertical ones."""
    return 2 * sum(len(line.text) for line in lines if line.vertical) > sum(len(line.text) for line in lines)


def level_line(line: Line, edge: float) -> Line:
    """A vertical line as a level one of the turned page, whose upper edge is the page's right `edge`."""
    words = tuple(replace(word, polygon=_rotated(word.polygon, edge), chars=()) for word in line.words)
    return replace(line, polygon=_rotated(line.polygon, edge), words=words, orientation=0, vertical=False)


def level_box(box: Box, edge: float) -> Box:
    """A box of the page on the turned page."""
    left, top, right, bottom = box
    return top, edge - right, bottom, edge - left


def column_box(box: Box, edge: float) -> Box:
    """A box of the turned page on the page: what `level_box` took."""
    left, top, right, bottom = box
    return edge - bottom, left, edge - top, right


def _rotated(polygon: Polygon, edge: float) -> Polygon:
    """Clockwise from the upper left corner, as before: that is the upper right one of the page."""
    first = len(polygon) // 2 - 1
    return tuple((y, edge - x) for x, y in (*polygon[first:], *polygon[:first]))
