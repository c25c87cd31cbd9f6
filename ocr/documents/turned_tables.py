"""Tables that lie on their side on a page whose other text stands upright."""

from __future__ import annotations

from dataclasses import replace

from ocr.documents.page_content import PageContent
from ocr.pages.sideways import MOST, Rotation
from ocr.results.blocks import Block
from ocr.results.geometry import centre, line_box
from ocr.results.lines import Line
from ocr.tables.ruled_tables import find_ruled_tables
from ocr.tables.text_tables import find_text_tables

LEAST_LINES = 4  # that are turned the same way


def add_turned_tables(page: PageContent) -> PageContent:
    """Tables of lines that run up or down the page, by ruling lines and by the positions of words.

    A table that stands upright may have heads that are sideways: it is one of upright lines.
    """
    if page.ruling is None:
        return page
    for angle in (90, 270):
        sideways = [line for line in page.lines if line.orientation == angle and not line.vertical]
        if len(sideways) >= LEAST_LINES:
            page = _add_tables(page, sideways, Rotation(angle, page.width, page.height))
    return page


def _add_tables(page: PageContent, sideways: list[Line], rotation: Rotation) -> PageContent:
    assert page.ruling is not None
    upright = tuple(map(rotation.line, sideways))
    sources = dict(zip(upright, sideways, strict=True))
    ruling, inverse = rotation.ruling(page.ruling), rotation.inverse

    def back(line: Line) -> Line:
        return sources.get(line) or inverse.line(line)

    ruled, lines = find_ruled_tables(ruling, upright)
    others = tuple(rotation.block(block, rotation.line) for block in page.unordered)
    plain, lines = find_text_tables(lines, ruling, (*others, *ruled))
    tables = [inverse.block(block, back) for block in (*ruled, *plain)]
    used = set(map(id, sideways))
    level = [line for line in page.lines if id(line) not in used]
    turned_tables = [block for block in tables if _is_turned(block, level)]
    if not turned_tables:
        return page
    refused = [line for block in tables if block not in turned_tables for line in block.lines]
    rest = (*level, *map(back, lines), *refused)
    return replace(page, tables=(*page.tables, *turned_tables), lines=rest)


def _is_turned(block: Block, others: list[Line]) -> bool:
    """Whether most of the characters in a table's box are those of its own lines."""
    left, top, right, bottom = block.bbox
    chars = sum(len(line.text) for line in block.lines)
    others_inside = 0
    for line in others:
        x, y = centre(line_box(line))
        if left <= x <= right and top <= y <= bottom:
            others_inside += len(line.text)
    return chars >= MOST * (chars + others_inside)
