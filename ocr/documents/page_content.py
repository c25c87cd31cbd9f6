"""What is known of a page while its blocks are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ocr.pages.sideways import Rotation
from ocr.results.blocks import Block, Box
from ocr.results.lines import Line
from ocr.tables.ruling_lines import RulingLines


@dataclass(frozen=True, eq=False)
class PageContent:
    """A page between two steps of `ocr.documents.processors`: lines become blocks.

    Attributes:
        lines: Those that stand in no block yet.
        width, height: Of the page as it lies, in pixels.
        ruling: Its ruling lines; None where no tables are looked for.
        image: The page, [H, W, 3] uint8 RGB, where it is rendered.
        scan: Whether OCR read the lines.
        tables: Blocks by ruling lines and by the positions of words.
        figures: Images of a PDF.
        regions: Blocks from a layout network.
        paragraphs: Blocks of the lines that stood in none of those.
        separators: Rules across the page, which end columns, as boxes without height.
        watermarks: Lines that lie across the page's text.
        line_numbers: Numbers of the page's lines, of each margin.
        blocks: All of them in reading order, when that is known.
        rotation: How the page lay before it was turned upright; `sources` has the line of the page for each that was
            turned.
    """

    lines: tuple[Line, ...]
    width: float
    height: float
    ruling: RulingLines | None = None
    image: np.ndarray | None = None
    scan: bool = False
    tables: tuple[Block, ...] = ()
    figures: tuple[Block, ...] = ()
    regions: tuple[Block, ...] = ()
    paragraphs: tuple[Block, ...] = ()
    separators: tuple[Box, ...] = ()
    watermarks: tuple[Line, ...] = ()
    line_numbers: tuple[tuple[Line, ...], ...] = ()
    blocks: tuple[Block, ...] = ()
    rotation: Rotation | None = None
    sources: Mapping[Line, Line] = field(default_factory=dict)

    @property
    def unordered(self) -> tuple[Block, ...]:
        """All blocks so far, without an order."""
        return (*self.tables, *self.figures, *self.regions, *self.paragraphs)
