"""Images of OCR results: where the text was found, and beside it what was read, at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.vision import draw
from framework.vision.fonts import text_alpha
from framework.vision.image import resize
from framework.vision.warp import Warp
from ocr.text.reading_order import quad_of

if TYPE_CHECKING:
    from ocr.results.lines import Line
    from ocr.results.pages import Page

READABLE = 18.0  # height in pixels to which small lines are enlarged
LARGEST_ZOOM = 4.0
LARGEST_SIDE = 4096  # images are not enlarged beyond this
THICKEST = 0.08  # width of an outline over the height of the usual line: small text stays readable in its box
_INK = 0.8  # font size over the height of the line


def draw_page(page: Page, *, side_by_side: bool = True) -> np.ndarray:
    """The result as [H, W, 3] uint8 RGB.

    The image with the lines' polygons, and with `side_by_side` a second one to its right, equally large, with the
    recognised text in the place of each line; so no label ever covers text. Pages of small lines are enlarged, so that
    what was read can be read. Characters that no font has are drawn as hollow boxes. A page without image is drawn on
    white.
    """
    width, height = max(1, page.width), max(1, page.height)
    quads = [quad_of(line.polygon) for line in page.lines]
    usual = _usual_height(quads)
    zoom = max(1.0, min(READABLE / usual, LARGEST_ZOOM, LARGEST_SIDE / max(width, height)))
    size_hw = (round(height * zoom), round(width * zoom))
    outline = min(1.0, THICKEST * usual * zoom / draw.line_width(size_hw))
    blank = np.full((*size_hw, 3), 255, np.uint8)
    polygons = [np.array(line.polygon) * zoom for line in page.lines]
    image = blank if page.image is None else resize(page.image, size_hw, "cubic")
    image = draw.polygons(image, polygons, opacity=0.15, scale=outline)
    if not side_by_side:
        return image
    reading = draw.polygons(blank, polygons, opacity=0.15, scale=outline / 2)
    write_lines(reading, page.lines, zoom)
    divider = np.full((size_hw[0], draw.line_width(size_hw), 3), 128, np.uint8)
    return np.concatenate([image, divider, reading], axis=1)


def write_lines(canvas: np.ndarray, lines: Sequence[Line], zoom: float) -> None:
    """Writes the text of lines at their places, times `zoom`, on `canvas` [H, W, 3], which is changed."""
    for line in lines:
        _write(canvas, line, quad_of(line.polygon) * zoom)


def _usual_height(quads: list[np.ndarray]) -> float:
    heights = [min(np.hypot(*(quad[1] - quad[0])), np.hypot(*(quad[3] - quad[0]))) for quad in quads]
    return max(float(np.median(heights)), 1.0) if heights else READABLE


def _write(canvas: np.ndarray, line: Line, quad: np.ndarray) -> None:
    """Writes the line's text into its quad on `canvas`, which is changed."""
    if not line.vertical:
        _write_run(canvas, line.text, quad)
        return
    for index, char in enumerate(line.text):
        start, end = index / len(line.text), (index + 1) / len(line.text)
        left, right = (
            quad[top] + np.outer((start, end), quad[bottom] - quad[top]) for top, bottom in ((0, 3), (1, 2))
        )
        _write_run(canvas, char, np.array([left[0], right[0], right[1], left[1]]), centred=True)


def _write_run(canvas: np.ndarray, text: str, quad: np.ndarray, *, centred: bool = False) -> None:
    along, down = (quad[1] - quad[0] + quad[2] - quad[3]) / 2, (quad[3] - quad[0] + quad[2] - quad[1]) / 2
    length, height = float(np.hypot(*along)), float(np.hypot(*down))
    if not text.strip() or min(length, height) < 1 or not np.isfinite(quad).all():
        return
    alpha = text_alpha(text, max(6, round(_INK * height)))
    shape = alpha.shape
    tall = height / shape[0]
    wide = min(tall, length / shape[1])  # long text is squeezed, short text is not stretched
    origin = quad[0] + along * ((1 - wide * shape[1] / length) / 2 if centred else 0.0)
    matrix = np.array([[*(along / length * wide), 0], [*(down / height * tall), 0], [*origin, 1]]).T
    corners = matrix @ np.array([[0, shape[1], shape[1], 0], [0, 0, shape[0], shape[0]], [1, 1, 1, 1]])
    x0, y0 = np.maximum(np.floor(corners[:2].min(axis=1)), 0).astype(int)
    x1, y1 = np.minimum(np.ceil(corners[:2].max(axis=1)), canvas.shape[1::-1]).astype(int)
    if x0 >= x1 or y0 >= y1 or abs(np.linalg.det(matrix)) < 1e-9:
        return
    matrix[:2, 2] -= (x0, y0)
    ink = Warp(matrix, (y1 - y0, x1 - x0), shape).image(alpha, "linear")
    region = canvas[y0:y1, x0:x1]
    region[...] = region * (1 - ink[..., None] / 255.0)
