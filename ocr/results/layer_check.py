"""Whether the text layer of a PDF page can stand in for OCR, and what on the page it does not tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from framework.workflow.files.pdf_content import PageContent
from ocr.results.geometry import Box, bounding_box, line_box, rows_of_boxes
from ocr.results.page_text import TextLayer

LEAST_OUTLINES = 4  # filled shapes with curves that may be letters, on a page without any other text
LEAST_SEGMENTS = 60  # straight lines that may be, of letters without curves

# Of outlines that may be letters.
LETTER = (2.5, 72.0)  # points: their height
LETTERS, SHAPES = 8, 4  # in a row, at least; different widths among them
MOST_OUTLINES = 20_000  # maps and plots have more
WORD_SPACE = 2.5  # of the height, the widest gap


@dataclass(frozen=True)
class TextLayerRule:
    """When a text layer is good enough to take the place of OCR.

    Attributes:
        min_chars: So many characters are needed on a page with images or drawings that may hold text.
        max_broken: The share of characters without a Unicode map from which on the layer is not believed.
        scan_area: An image of this share of the page may be a scan.
        min_cover: On it, lines must cover this share of its height.
        accept_invisible: Believe the invisible text of searchable scans, that is another program's OCR.
    """

    min_chars: int = 50
    max_broken: float = 0.05
    scan_area: float = 0.5
    min_cover: float = 0.08
    accept_invisible: bool = False


@dataclass(frozen=True)
class LayerCheck:
    """Whether the text layer is used, and why. True where `usable` is."""

    usable: bool
    reason: str

    def __bool__(self) -> bool:
        return self.usable


def is_usable(layer: TextLayer, page: PageContent, rule: TextLayerRule | None = None) -> LayerCheck:
    """Whether the text layer of this page tells what the page shows, so that OCR is not needed."""
    rule = rule or TextLayerRule()
    area = max(page.width * page.height, 1)
    images = [_clip(box, page) for box in page.images]
    curves = sum(len(path.outlines) for path in page.paths if path.fill is not None)
    invisible = [line for line in layer.hidden if line.style is not None and line.style.invisible]
    if not layer.chars:
        segments = sum(len(path.segments) for path in page.paths)
        if not images and curves < LEAST_OUTLINES and segments < LEAST_SEGMENTS:
            return LayerCheck(
                True, "the page has no text that can be seen, no images and hardly any drawings"
            )
        if images and invisible:
            return LayerCheck(False, "invisible text over an image: another program's OCR of a scan")
        what = "images" if images else "drawings that may be text as outlines"
        return LayerCheck(False, f"no text, but {what}")
    share = layer.broken / layer.chars
    if share >= rule.max_broken:
        return LayerCheck(False, f"{layer.broken} of {layer.chars} characters have no Unicode map")
    visible = [line for line in layer.lines if line.style is None or not line.style.invisible]
    shown = sum(len(line.text) for line in visible)
    hidden = sum(len(line.text) for line in (*layer.lines, *invisible)) - shown
    if hidden > shown and images and not rule.accept_invisible:
        return LayerCheck(False, "invisible text over an image: another program's OCR of a scan")
    boxes = [line_box(line) for line in (layer.lines if rule.accept_invisible else visible)]
    for image in images:
        if _area(image) < rule.scan_area * area:
            continue
        spans = [(b[1], b[3]) for b in boxes if _area(_cut(b, image)) > 0.5 * max(_area(b), 1e-6)]
        if _covered(spans) < rule.min_cover * (image[3] - image[1]):
            return LayerCheck(
                False, f"an image covers {_area(image) / area:.0%} of the page with hardly any text on it"
            )
    if layer.chars < rule.min_chars:
        if sum(map(_area, images)) > 0.05 * area:
            return LayerCheck(False, f"only {layer.chars} characters beside images")
        if curves > 20 + 5 * layer.chars:
            return LayerCheck(
                False, f"only {layer.chars} characters beside drawings that may be text as outlines"
            )
    return LayerCheck(True, f"{layer.chars} characters with a Unicode map")


def outlined_text(layer: TextLayer, page: PageContent) -> tuple[Box, ...]:
    """Boxes of rows of filled shapes that may be letters, where no text lies on them: rows that touch are one box."""
    found = [path.outlines for path in page.paths if path.fill is not None and path.fill[3] > 0]
    boxes = np.concatenate(found) if found else np.zeros((0, 4))
    heights = boxes[:, 3] - boxes[:, 1]
    widths = boxes[:, 2] - boxes[:, 0]
    small = (heights > 0.2 * LETTER[0] * page.scale) & (heights < LETTER[1] * page.scale)
    boxes = boxes[small & (widths < 3 * LETTER[1] * page.scale)]
    if not LETTERS <= len(boxes) <= MOST_OUTLINES:
        return ()
    rows: list[Box] = []
    for row in rows_of_boxes(boxes):
        for letters in _in_reach(boxes[row]):
            high = letters[letters[:, 3] - letters[:, 1] > LETTER[0] * page.scale]
            if len(high) < LETTERS:
                continue
            shapes = {round(float(value)) for value in np.log(high[:, 2] - high[:, 0]) / 0.12}
            box = bounding_box(letters.tolist())
            if len(shapes) >= SHAPES and box[2] - box[0] > 3 * (box[3] - box[1]):
                rows.append(box)
    lines = [line_box(line) for line in layer.lines]
    rows = [row for row in rows if not any(_area(_cut(line, row)) > 0.3 * _area(row) for line in lines)]
    regions: list[Box] = []
    for row in sorted(rows, key=lambda row: row[1]):
        height = row[3] - row[1]
        last = regions[-1] if regions else None
        if last is not None and row[1] - last[3] < 2 * height and row[0] < last[2] and row[2] > last[0]:
            regions[-1] = bounding_box([last, row])
        else:
            regions.append(row)
    pad = 3 * page.scale
    return tuple(
        _clip(np.array([left - pad, top - pad, right + pad, bottom + pad]), page)
        for left, top, right, bottom in regions
    )


def _in_reach(boxes: np.ndarray) -> list[np.ndarray]:
    """The boxes [N, 4] of a row, from left to right, in groups that stand apart."""
    height = float(np.median(boxes[:, 3] - boxes[:, 1]))
    reach = np.maximum.accumulate(boxes[:, 2])
    cuts = np.flatnonzero(boxes[1:, 0] - reach[:-1] > WORD_SPACE * height) + 1
    return np.split(boxes, cuts)


def images_without_text(layer: TextLayer, page: PageContent, *, min_area: float = 0.01) -> tuple[Box, ...]:
    """Boxes of images of at least `min_area` of the page on which no line of the layer lies: OCR may read these."""
    boxes = [line_box(line) for line in layer.lines]
    found = []
    for box in page.images:
        image = _clip(box, page)
        if _area(image) >= min_area * page.width * page.height and not any(
            _area(_cut(b, image)) > 0.5 * _area(b) for b in boxes
        ):
            found.append(image)
    return tuple(found)


def _clip(box: np.ndarray, page: PageContent) -> Box:
    left, top, right, bottom = (float(value) for value in box)
    return _cut((left, top, right, bottom), (0.0, 0.0, float(page.width), float(page.height)))


def _cut(first: Box, second: Box) -> Box:
    left, top = max(first[0], second[0]), max(first[1], second[1])
    return left, top, max(left, min(first[2], second[2])), max(top, min(first[3], second[3]))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _covered(spans: list[tuple[float, float]]) -> float:
    total, end = 0.0, -math.inf
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total
