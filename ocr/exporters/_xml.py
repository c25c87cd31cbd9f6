"""What hOCR and ALTO share: text that XML can hold, and boxes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ocr.text.reading_order import bounds_of, reading_regions

if TYPE_CHECKING:
    from ocr.results.lines import Line, Polygon
    from ocr.results.pages import Page

# Everything outside the Char production of XML 1.0 (section 2.2). Not even a character reference may name these.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """`text` with the characters that XML 1.0 cannot hold replaced by U+FFFD. Markup is escaped by ElementTree."""
    return _ILLEGAL.sub("\ufffd", text)


def serialise(root: ElementTree.Element, doctype: str = "") -> str:
    """The document as text, with an XML declaration that says UTF-8."""
    body = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}{body}\n'


def pixel_box(polygons: Iterable[Polygon], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The smallest box of whole pixels around polygons, within the page: left, top, right and bottom exclusive."""
    bounds = [bounds_of(polygon) for polygon in polygons]
    lows = [math.floor(min(box[axis] for box in bounds)) for axis in (0, 1)]
    highs = [math.ceil(max(box[axis] for box in bounds)) for axis in (2, 3)]
    left, top = (min(max(low, 0), limit) for low, limit in zip(lows, size))
    right, bottom = (min(max(high, low), limit) for high, low, limit in zip(highs, (left, top), size))
    return left, top, right, bottom


def blocks_of(page: Page) -> list[list[Line]]:
    """The lines that have text, in the page's order, grouped by the layout's regions."""
    lines = [line for line in page.lines if line.text]
    regions = reading_regions([line.polygon for line in lines])
    region_of = {index: number for number, region in enumerate(regions) for row in region for index in row}
    groups = groupby(range(len(lines)), key=lambda index: region_of[index])
    return [[lines[index] for index in group] for _, group in groups]
