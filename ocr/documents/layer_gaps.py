"""What a page's text layer leaves out or tells wrongly, read by OCR: text in images, letters drawn as outlines, and
fonts whose letters make no words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from framework.core.errors import ConfigError, DeviceError, HubError, MissingExtraError, WeightError
from framework.workflow import ImageItem
from ocr.documents.lazy import Lazy
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.blocks import Block, Box, Figure
from ocr.results.geometry import line_box
from ocr.results.lines import Char, Line, LineStyle, Polygon, Word

NO_OCR = (ConfigError, DeviceError, HubError, MissingExtraError, WeightError)
"""What opening OCR raises where it cannot be had: a page with a text layer is read without it."""
WIDE = 0.15  # of the page's width: narrower images are logos and the like
SCORE = 0.6  # of a line that is read in a image, at least
TYPE_SIZE = 0.75  # of a line's height, as OCR finds it
ALIKE = 0.5  # of the letters that a font says and OCR reads, at least
LINES = 2  # of a font that are read to judge it
PADDING = 0.35  # of a line's height, around it
# Of images that may hold text: the share of their most frequent grey; grey levels between neighbours that are an
# edge; edges in a row; the share of rows with so many.
GROUND, EDGE, EDGES, ROWS = 0.3, 50, 8, 0.03


@dataclass(frozen=True)
class LayerGaps:
    """Reads what the text layer of one page does not tell.

    Attributes:
        ocr: Opened where something is to be read.
        render: A box of the page, in pixels, as an image [H, W, 3].
        label, number: Of the page.
    """

    ocr: Lazy[OCRPredictor]
    render: Callable[[Box], np.ndarray]
    label: str
    number: int

    def find_wrong_font(self, fonts: dict[str, list[Line]]) -> str | None:
        """The name of the first font whose letters are not those that are seen; None where all are right.

        Args:
            fonts: Lines of each font that is looked at, the longest first.
        """
        for font, lines in fonts.items():
            said, read = "", ""
            for line in lines[:LINES]:
                left, top, right, bottom = line_box(line)
                pad = PADDING * (bottom - top)
                box = (left - pad, top - pad, right + pad, bottom + pad)
                said += _letters(line.text)
                read += "".join(_letters(other.text) for other in self._read(box))
            if read and SequenceMatcher(None, said, read, autojunk=False).ratio() < ALIKE:
                return font
        return None

    def read_outlines(self, boxes: Sequence[Box]) -> list[Line]:
        """The lines in boxes of the page where letters are drawn as outlines."""
        lines = [line for box in boxes for line in self._read(box)]
        return [replace(line, style=LineStyle(_size(line), False, False, "")) for line in lines]

    def read_figure(self, figure: Block, page_width: float, always: bool) -> Block:
        """A figure with the lines of text that stand in it.

        Args:
            always: Whether it is read however it looks.
        """
        content = figure.content
        if not isinstance(content, Figure) or content.image is None or not content.image.size:
            return figure
        wide = figure.bbox[2] - figure.bbox[0] >= WIDE * page_width
        if not always and not (wide and may_hold_text(content.image)):
            return figure
        lines = tuple(self._read(figure.bbox, content.image))
        return replace(figure, lines=lines, text="\n".join(line.text for line in lines))

    def _read(self, box: Box, image: np.ndarray | None = None) -> list[Line]:
        if image is None:
            image = self.render(box)
        page, _ = self.ocr.get().predict_prepared(ImageItem(image, self.label, self.number))
        left, top = round(max(box[0], 0.0)), round(max(box[1], 0.0))
        return [
            _moved(line, left, top)
            for line in page.lines
            if line.score >= SCORE and sum(map(str.isalnum, line.text)) > 1
        ]


def may_hold_text(image: np.ndarray) -> bool:
    """Whether a image [H, W, 3] looks like a drawing, a table or a screen: much of one grey, and rows with many sharp
    edges. Photographs have few such rows or no ground.
    """
    light = image[..., 0].astype(np.int16) + image[..., 1] + image[..., 2]  # three times its grey
    if np.bincount((light >> 5).ravel()).max() < GROUND * light.size:
        return False
    edges = (np.abs(np.diff(light, axis=1)) > 3 * EDGE).sum(1)
    return bool((edges >= EDGES).mean() >= ROWS)


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W\d_]", text.casefold()))


def _size(line: Line) -> float:
    left, top, right, bottom = line_box(line)
    return TYPE_SIZE * (right - left if line.vertical or line.orientation in (90, 270) else bottom - top)


def _moved(line: Line, x: float, y: float) -> Line:
    """A line with its words and characters as far to the right and down."""

    def polygon(points: Polygon) -> Polygon:
        return tuple((px + x, py + y) for px, py in points)

    words = tuple(
        Word(
            word.text,
            word.score,
            polygon(word.polygon),
            tuple(Char(char.text, char.score, polygon(char.polygon)) for char in word.chars),
            word.spans,
        )
        for word in line.words
    )
    return replace(line, polygon=polygon(line.polygon), words=words)
