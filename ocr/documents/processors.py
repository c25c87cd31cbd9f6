"""The steps from a page's lines to its blocks, in their order: `(PageContent) -> PageContent`.

What a step is set to, its networks and its constants, are its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ocr.documents.assemble import arrange
from ocr.documents.layout_blocks import add_regions, regions_of_scan
from ocr.documents.layout_model import LayoutDetector
from ocr.documents.layout_regions import Region
from ocr.documents.lazy import Lazy
from ocr.documents.line_numbers import find_line_numbers
from ocr.documents.page_content import PageContent
from ocr.documents.seals import read_seals
from ocr.documents.separators import separators_of
from ocr.formulas.blocks import FormulaReader, read_formulas
from ocr.pages.sideways import find_rotation
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.blocks import Block
from ocr.results.geometry import bounding_box, line_box
from ocr.results.lines import Line
from ocr.tables.network_tables import TableReader, replace_tables
from ocr.tables.right_to_left import in_reading_order
from ocr.tables.ruled_tables import find_ruled_tables
from ocr.tables.text_tables import find_text_tables
from ocr.text.code_blocks import find_code
from ocr.text.paragraphs import make_text_blocks
from ocr.text.reading_order import join_texts

Processor = Callable[[PageContent], PageContent]


def turn_upright(page: PageContent) -> PageContent:
    """The page as a reader of its text holds it."""
    rotation = find_rotation(page.lines, page.width, page.height)
    if not rotation.angle:
        return page
    upright = tuple(map(rotation.line, page.lines))
    width, height = rotation.size
    image = page.image
    return replace(
        page,
        lines=upright,
        watermarks=tuple(map(rotation.line, page.watermarks)),
        width=width,
        height=height,
        ruling=None if page.ruling is None else rotation.ruling(page.ruling),
        figures=tuple(rotation.block(block, rotation.line) for block in page.figures),
        image=None if image is None else np.ascontiguousarray(np.rot90(image, rotation.angle // 90)),
        rotation=rotation,
        sources=dict(zip(upright, page.lines, strict=True)),
    )


def take_line_numbers(page: PageContent) -> PageContent:
    """Numbers of lines in the margin are not read along."""
    columns, lines = find_line_numbers(page.lines)
    return replace(page, line_numbers=tuple(map(tuple, columns)), lines=tuple(lines)) if columns else page


def add_code(page: PageContent) -> PageContent:
    """Program text, which would be taken for tables and lists. A scan does not tell its fonts."""
    if page.scan:
        return page
    blocks, lines = find_code(page.lines)
    return replace(page, regions=(*page.regions, *blocks), lines=tuple(lines)) if blocks else page


def add_ruled_tables(page: PageContent) -> PageContent:
    """Tables that ruling lines tell."""
    if page.ruling is None:
        return page
    tables, lines = find_ruled_tables(page.ruling, page.lines)
    return replace(page, tables=(*page.tables, *tables), lines=lines)


@dataclass(frozen=True)
class AddRegions:
    """Blocks of a layout network: all that `layout` finds, or figures and headings of scans by `figure_layout`.

    Attributes:
        tables, figures: Whether there are such blocks; without them their text is that of paragraphs.
    """

    layout: LayoutDetector | None
    figure_layout: Lazy[LayoutDetector] | None
    tables: bool
    figures: bool

    def __call__(self, page: PageContent) -> PageContent:
        detected = self._detect(page)
        return add_regions(page, detected, tables=self.tables, figures=self.figures) if detected else page

    def _detect(self, page: PageContent) -> Sequence[Region]:
        if page.image is None:
            return ()
        if self.layout is not None:
            return self.layout(page.image)
        if self.figure_layout is None or not page.scan or not self.figures:
            return ()
        return regions_of_scan(self.figure_layout.get()(page.image), page.lines, page.tables)


@dataclass(frozen=True)
class ReadRegions:
    """What networks read of tables, seals and formulas that the layout has found; None leaves them as they are."""

    table: Lazy[TableReader] | None
    seals: Lazy[OCRPredictor] | None
    formula: Lazy[FormulaReader] | None

    def __call__(self, page: PageContent) -> PageContent:
        regions, image = page.regions, page.image
        if image is None or not regions:
            return page
        if self.table is not None:
            regions = replace_tables(regions, image, self.table.get)
        if self.seals is not None:
            regions = read_seals(regions, image, self.seals.get)
        if self.formula is not None:
            regions = read_formulas(regions, image, self.formula.get)
        return replace(page, regions=tuple(regions))


@dataclass(frozen=True)
class AddTextTables:
    """Tables that the positions of words tell; where the page is rendered `table` reads them again."""

    table: Lazy[TableReader] | None

    def __call__(self, page: PageContent) -> PageContent:
        if page.ruling is None:
            return page
        tables, lines = find_text_tables(page.lines, page.ruling, page.unordered)
        if page.image is not None and self.table is not None:
            tables = replace_tables(tables, page.image, self.table.get)
        return replace(page, tables=(*page.tables, *tables), lines=lines)


@dataclass(frozen=True)
class AddParagraphs:
    """Blocks of all lines that stand in none.

    Attributes:
        margin: Of the page's width: what is turned against the page's text there is none of its text.
    """

    margin: float = 0.12

    def __call__(self, page: PageContent) -> PageContent:
        turned = [
            line for line in page.lines if page.scan and line.orientation in (90, 270) and not line.vertical
        ]
        asides = [_aside_block(group) for group in _beside(turned)]
        level = [line for line in page.lines if line not in turned]
        rules = separators_of(page.ruling, level, page.unordered)
        blocks = make_text_blocks(level, height=page.height, others=page.unordered, rules=rules) + asides
        paragraphs = tuple(
            replace(block, label="aside_text", level=0) if self._is_aside(block, page.width) else block
            for block in blocks
        )
        return replace(page, paragraphs=paragraphs, lines=(), separators=rules)

    def _is_aside(self, block: Block, width: float) -> bool:
        """Whether it stands at the page's side, turned against its text: a stamp, a vertical running title."""
        turned = bool(block.lines) and all(line.orientation in (90, 270) for line in block.lines)
        return turned and (block.bbox[2] <= self.margin * width or block.bbox[0] >= (1 - self.margin) * width)


def _beside(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that run up or down a page, those together that stand beside one another as the lines of one text do."""
    groups: list[list[Line]] = []
    for line in sorted(lines, key=lambda one: line_box(one)[0]):
        x0, y0, x1, y1 = line_box(line)
        for group in groups:
            _, top, right, bottom = line_box(group[-1])
            shared = min(y1, bottom) - max(y0, top)
            if line.orientation == group[-1].orientation and (
                x0 - right <= x1 - x0 and 2 * shared > min(y1 - y0, bottom - top)
            ):
                group.append(line)
                break
        else:
            groups.append([line])
    # Text that runs down has its first line on the right.
    return [group[::-1] if group[0].orientation == 90 else group for group in groups]


def _aside_block(lines: Sequence[Line]) -> Block:
    text = reduce(join_texts, (line.text for line in lines))
    score = sum(line.score for line in lines) / len(lines)
    return Block("text", bounding_box(map(line_box, lines)), text, tuple(lines), score=score)


def arrange_blocks(page: PageContent) -> PageContent:
    """Captions join what they belong to, and the blocks get their reading order; watermarks are not read along."""
    asides = [Block("aside_text", line_box(line), line.text, (line,)) for line in page.watermarks]
    for numbers in page.line_numbers:
        text = " ".join(line.text for line in numbers)
        asides.append(Block("aside_text", bounding_box(map(line_box, numbers)), text, numbers))
    blocks = in_reading_order((*page.unordered, *asides))
    return replace(page, blocks=arrange(blocks, page.height, page.separators))


def turn_back(page: PageContent) -> PageContent:
    """The blocks as they stand on the page as it is."""
    if page.rotation is None:
        return page
    inverse = page.rotation.inverse

    def line(upright: Line) -> Line:
        return page.sources.get(upright) or inverse.line(upright)

    return replace(page, blocks=tuple(inverse.block(block, line) for block in page.blocks))
