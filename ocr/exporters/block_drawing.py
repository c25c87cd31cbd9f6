"""Images of pages with blocks: each kind in its colour with its place in the order, cells, and what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from framework.vision import draw
from framework.vision.image import resize
from ocr.exporters.drawing import write_lines
from ocr.results.blocks import BLOCK_LABELS, Block, Box, Table

if TYPE_CHECKING:
    from ocr.results.pages import Page

LARGEST_SIDE = 2400  # pages are drawn no larger: a label stays readable, a file small
SMALLEST_SIDE = 1200
_CELL, _CAPTION = 1.0, 0.6  # the outlines' widths


def draw_blocks(page: Page, *, side_by_side: bool = True) -> np.ndarray:
    """The page's blocks as [H, W, 3] uint8 RGB.

    Each block has an outline of its kind's colour and a label such as "3 table .90": its place in the reading order
    (none where it is not read along), its kind, its score where that is below 1, ">" where it goes on from the block
    before. Cells of tables are outlined, spans as one, and captions joined with what they belong to by a line. With
    `side_by_side` a second image of the same size has the text of the lines at their places. A page without image is
    drawn on white; one of 2,400 pixels or less keeps its size or is enlarged.
    """
    width, height = max(1, page.width), max(1, page.height)
    longest = max(width, height)
    zoom = min(LARGEST_SIDE / longest, max(1.0, SMALLEST_SIDE / longest)) if side_by_side else 1.0
    size_hw = (max(1, round(height * zoom)), max(1, round(width * zoom)))
    canvas = np.full((*size_hw, 3), 255, np.uint8)
    image = canvas if page.image is None else resize(page.image, size_hw, "area" if zoom < 1 else "cubic")
    image = _draw(image, page, zoom)
    if not side_by_side:
        return image
    reading = _draw_outlines(canvas, page, zoom)
    write_lines(reading, page.lines, zoom)
    divider = np.full((size_hw[0], draw.line_width(size_hw), 3), 128, np.uint8)
    return np.concatenate([image, divider, reading], axis=1)


def _draw(image: np.ndarray, page: Page, zoom: float) -> np.ndarray:
    image = _draw_outlines(image, page, zoom)
    links, kinds = [], []
    for block in page.blocks:
        for child in block.children:
            links.append(_link(block.bbox, child.bbox) * zoom)
            kinds.append(BLOCK_LABELS.index(block.label))
    image = draw.polygons(image, links, ids=kinds, closed=False, scale=_CAPTION)
    parts = [part for block in page.blocks for part in block.walk()]
    return draw.boxes(
        image,
        np.array([part.bbox for part in parts]).reshape(-1, 4) * zoom,
        labels=[_label(part) for part in parts],
        ids=[BLOCK_LABELS.index(part.label) for part in parts],
        scale=_CAPTION,
    )


def _draw_outlines(image: np.ndarray, page: Page, zoom: float) -> np.ndarray:
    parts = [part for block in page.blocks for part in block.walk()]
    outlines = [
        np.array(part.polygon if part.polygon is not None else _corners(part.bbox)) * zoom for part in parts
    ]
    image = draw.polygons(
        image, outlines, ids=[BLOCK_LABELS.index(part.label) for part in parts], opacity=0.12, scale=_CAPTION
    )
    cells = [
        (cell.bbox, BLOCK_LABELS.index(part.label))
        for part in parts
        if isinstance(part.content, Table)
        for cell in part.content.cells
        if cell.bbox is not None
    ]
    return draw.polygons(
        image,
        [np.array(_corners(box)) * zoom for box, _ in cells],
        ids=[kind for _, kind in cells],
        opacity=0.06,
        scale=_CELL / 2,
    )


def _label(block: Block) -> str:
    parts = ["" if block.order is None else str(block.order + 1), block.label]
    if block.level:
        parts.append(f"h{block.level}" if block.label != "list_item" else "")
    if block.score < 0.995:
        parts.append(f"{block.score:.2f}".removeprefix("0"))
    return " ".join([*filter(None, parts)]) + (" >" if block.continued else "")


def _link(first: Box, second: Box) -> np.ndarray:
    """A line [2, 2] over the gap between two boxes, near the left end of what they share of the page's width."""
    left, right = max(first[0], second[0]), min(first[2], second[2])
    x = left + 0.02 * max(right - left, 0.0)
    above, below = sorted((first, second), key=lambda box: box[1])
    return np.array([[x, above[3]], [x, below[1]]])


def _corners(box: Box) -> tuple[tuple[float, float], ...]:
    left, top, right, bottom = box
    return (left, top), (right, top), (right, bottom), (left, bottom)
