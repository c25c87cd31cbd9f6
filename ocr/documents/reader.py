"""From a PDF or an image to a document of blocks: `ocr.document`.

Each page goes through the same steps (`ocr.documents.processors`): lines of text (from the page's own text layer where
that can be believed, else by OCR), tables (by ruling lines, then by the positions of words), figures, blocks of text,
and their reading order. No network takes part but OCR's and a small one that tells where the figures of scans are, and
these are opened only for a page that needs them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from framework.core.errors import (
    ConfigError,
    DeviceError,
    HubError,
    InputError,
    MissingExtraError,
    OarError,
    WeightError,
)
from framework.vision.image_pages import ImagePages
from framework.workflow import ImageItem
from framework.workflow.domain.predictor import ImageSource
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.pdf_content import PageContent as PdfContent
from ocr.documents.check_boxes import find_check_boxes
from ocr.documents.drawn_bullets import add_drawn_bullets
from ocr.documents.form_lines import FORM_REACH, add_boxes, form_boxes, form_fields, form_lines
from ocr.documents.layer_gaps import NO_OCR, LayerGaps
from ocr.documents.layout_model import LayoutDetector
from ocr.documents.lazy import Lazy
from ocr.documents.options import HiddenText, TextSource
from ocr.documents.page_content import PageContent
from ocr.documents.page_store import PageStore
from ocr.documents.page_workers import NeedsNetwork, PageWorkers, WorkerTask, no_network
from ocr.documents.processors import (
    AddParagraphs,
    AddRegions,
    AddTextTables,
    Processor,
    ReadRegions,
    add_code,
    add_ruled_tables,
    arrange_blocks,
    take_line_numbers,
    turn_back,
    turn_upright,
)
from ocr.documents.turned_tables import add_turned_tables
from ocr.documents.whole_document import finish_document
from ocr.formulas.blocks import FormulaReader
from ocr.pages.tilt import Straightened
from ocr.pipeline.predictor import OCRPredictor, is_pdf, to_rgb
from ocr.results.blocks import Block, Box, Figure
from ocr.results.layer_check import LayerCheck, images_without_text, is_usable, outlined_text
from ocr.results.letter_statistics import doubtful_fonts
from ocr.results.lines import Line
from ocr.results.page_text import TextLayer, hidden_text, lost_text, read_text_layer
from ocr.results.pages import Document, Page
from ocr.tables.network_tables import TableReader
from ocr.tables.ruling_lines import ruling_lines_of_page
from ocr.tables.scanned_ruling_lines import ruling_lines_of_image
from ocr.text.drop_caps import join_drop_caps

log = logging.getLogger("oar")
LEAST_FIGURE = 0.01  # of the page's area
MOST_PIXELS = 50_000_000  # of a rendered page: A1 at 200 dpi
_EVERY_PAGE = (ConfigError, DeviceError, HubError, MissingExtraError, WeightError, NeedsNetwork)
"""What would come again on every page, or is read elsewhere."""
_DAMAGED = (OarError, MemoryError, OSError)
"""What a page raises that is damaged or too large."""
_FAULTS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What our own code or an engine raises on a page that it cannot cope with."""


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents with one recogniser. Safe to call from several threads.

    Attributes:
        ocr: The predictor for pages without a text layer.
        text_layer: "auto" takes a page's own text where it can stand in for OCR, "always" wherever there is a page of a
            PDF, "never" reads every page by OCR.
        tables: Whether tables are looked for; else their text stands in paragraphs.
        figures: Whether figures are cut out, for which their pages are rendered.
        images: Whether pages keep their image, for drawing and searchable PDFs; every page is rendered then.
        dpi: At which pages of PDFs are measured and rendered.
        first_pages: Of PDFs without `pages` only so many are read; 0 for all.
        layout: Gives the regions of a page's image; every page is rendered then. None: rules find the blocks.
        table: A network that reads tables of images which have no ruling lines; None: none.
        seals: What reads the seals that the layout finds; None: they are figures alone.
        formula: A network that reads the formulas which `layout` finds; None: they stay as OCR or the text layer has
            them.
        hidden: "drop" leaves out what nobody can see of a text layer, which the page's `hidden` and a warning tell,
            "keep" reads it as any other text.
        figure_text: Whether OCR reads images of pages with a text layer: "auto" those that may hold text, "always",
            "never".
        figure_layout: A layout network that tells where the figures are on pages that OCR reads; rules find their other
            blocks. Not used beside `layout`. None: such figures are not found.
        bgr: Whether arrays have their channels as OpenCV reads them, blue first.

    Raises: InputError, where `text_layer` is none of these.
    """

    ocr: Lazy[OCRPredictor]
    text_layer: TextSource = "auto"
    tables: bool = True
    figures: bool = True
    images: bool = False
    dpi: float = 200.0
    first_pages: int = 0
    layout: LayoutDetector | None = None
    table: Lazy[TableReader] | None = None
    seals: Lazy[OCRPredictor] | None = None
    formula: Lazy[FormulaReader] | None = None
    figure_layout: Lazy[LayoutDetector] | None = None
    hidden: HiddenText = "drop"
    figure_text: TextSource = "auto"
    bgr: bool = False

    def __post_init__(self) -> None:
        for name, kind, problem in (
            ("text_layer", TextSource, "there is no such way to use a text layer"),
            ("hidden", HiddenText, "there is no such way to treat hidden text"),
            ("figure_text", TextSource, "there is no such way to read images"),
        ):
            value = getattr(self, name)
            if value not in get_args(kind):
                raise InputError(problem, where=name, received=value, allowed=", ".join(get_args(kind)))

    @property
    def processors(self) -> tuple[Processor, ...]:
        """The steps from a page's lines to its blocks."""
        return (
            turn_upright,
            take_line_numbers,
            *([add_code] if self.layout is None else []),
            add_turned_tables,
            add_ruled_tables,
            AddRegions(self.layout, self.figure_layout, self.tables, self.figures),
            ReadRegions(self.table, self.seals, self.formula),
            *([AddTextTables(self.table)] if self.layout is None else []),
            AddParagraphs(),
            arrange_blocks,
            turn_back,
        )

    def __call__(
        self,
        source: ImageSource,
        *,
        pages: str | None = None,
        password: str | None = None,
        workers: int = 1,
    ) -> Document:
        """A PDF or an image as a document.

        A page that cannot be read is there without lines, with the reason among its `warnings`.

        Args:
            source: A path, bytes, an array [H, W, 3] or a PIL image.
            pages: Of a PDF, from 1: "1-3,7", "5-"; None for all.
            password: Of an encrypted PDF.
            workers: Processes that read pages of a PDF; see `ocr.documents.page_workers`. With 1 this one does.

        Raises:
            InputError: the source cannot be read, or has no such pages.
        """
        with self.open(source, pages=pages, password=password) as opened:
            return Document(finish_document(list(opened.read_all(workers))), opened.label)

    def open(
        self,
        source: ImageSource,
        *,
        pages: str | None = None,
        password: str | None = None,
        label: str | None = None,
    ) -> OpenDocument:
        """The document of a source, to be read page by page: what is held does not grow with their number.

        Its pages are not finished: `DocumentFacts` tells what only the whole document does.

        Args:
            label: What the source is called; its path where it is None.

        Raises: as a call.
        """
        if label is None:
            label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        if is_pdf(source):
            pdf = PdfReader(source, dpi=self.dpi, password=password)  # type: ignore[arg-type]
            try:
                numbers = parse_pages(pages, len(pdf), label)
                numbers = numbers if pages else numbers[: self.first_pages or None]
                return OpenDocument(self, label, tuple(numbers), pdf=pdf, source=source, password=password)
            except OarError:
                pdf.close()
                raise
        try:
            images = ImagePages(self.as_rgb(source), ground="contrast")
            frames = [number for number, _ in images.changes()] if images.is_animation else images.numbers
            numbers = parse_pages(pages, len(frames), label)
            numbers = numbers if pages else numbers[: self.first_pages or None]
            return OpenDocument(self, label, tuple(numbers), images=images, frames=tuple(frames))
        except InputError as error:
            if not label.lower().endswith(".pdf"):
                raise
            raise InputError(
                "this is no PDF",
                where=label,
                received=error.received,
                allowed="a complete PDF document, or an image",
                fix="copy or download the file again, or print it to a new PDF",
            ) from error

    def as_rgb(self, source: ImageSource) -> ImageSource:
        """The source, with the channels of an array in the order red, green, blue."""
        return to_rgb(source) if self.bgr else source

    def without_networks(self) -> DocumentReader:
        """The same, and it can be pickled; a page that needs a network raises `NeedsNetwork`."""
        lazy = {
            name: None if getattr(self, name) is None else Lazy(no_network)
            for name in ("ocr", "table", "seals", "formula", "figure_layout")
        }
        return replace(self, layout=None if self.layout is None else cast(Any, no_network), **cast(Any, lazy))

    def read_pdf_page(self, reader: PdfReader, number: int, label: str) -> Page:
        """Page `number`, from 1, with its blocks in order. Raises: InputError, where it is damaged."""
        started = time.perf_counter()
        dpi = self._choose_dpi(reader, number)
        content = reader.content(number - 1, dpi=dpi)
        layer = read_text_layer(
            content, keep_hidden=self.hidden == "keep", keep_invisible=self.text_layer == "always"
        )
        usable = is_usable(layer, content)
        image: np.ndarray | None = None

        def cut(box: Box) -> np.ndarray:
            left, top, right, bottom = map(round, box)
            if image is not None:
                return np.ascontiguousarray(image[max(top, 0) : bottom, max(left, 0) : right])
            return reader.render(number - 1, dpi=dpi, box=(left, top, right, bottom))

        gaps = LayerGaps(self.ocr, cut, label, number)
        warnings = [*content.warnings, *hidden_text(layer)]
        if usable and self.text_layer == "auto":
            usable = self._check_fonts(usable, layer, gaps, warnings)
        if self.text_layer == "never" or (self.text_layer == "auto" and not usable):
            page = self.read_image(reader.render(number - 1, dpi=dpi), label, number, dpi, content.to_points)
            reason = [] if self.text_layer == "never" else [f"read by OCR: {usable.reason}"]
            if dpi < self.dpi:
                reason.append(f"measured at {dpi:.0f} dpi instead of {self.dpi:.0f}: the page is large")
            fields = form_fields(content, number)
            return replace(page, warnings=(*content.warnings, *reason), hidden=layer.hidden, fields=fields)
        warnings += lost_text(layer)
        seconds = {"text_layer": time.perf_counter() - started}
        boxes = images_without_text(layer, content, min_area=LEAST_FIGURE) if self.figures else ()
        # Figures alone are rendered in a fraction of the time.
        if self.images or self.layout is not None or self.table is not None:
            image = reader.render(number - 1, dpi=dpi)
        started = time.perf_counter()
        figures = tuple(Block("image", box, content=Figure(cut(box))) for box in boxes)
        figures, outlined = self._read_gaps(figures, layer, content, gaps, warnings)
        ruling = ruling_lines_of_page(content)
        drawn, ruling = find_check_boxes(content, ruling)
        text = add_drawn_bullets(join_drop_caps(layer.lines), content)
        lines = add_boxes((*text, *outlined, *form_lines(content)), drawn)
        lines = add_boxes(lines, form_boxes(content), FORM_REACH)
        blocks = self._make_blocks(
            PageContent(
                tuple(lines),
                content.width,
                content.height,
                ruling if self.tables else None,
                image,
                figures=figures,
                watermarks=layer.watermarks,
            )
        )
        seconds["blocks"] = time.perf_counter() - started
        seconds["total"] = sum(seconds.values())
        return Page(
            _lines_in_order(blocks, layer.lines),
            number,
            seconds,
            blocks,
            text_from="text-layer",
            to_points=content.to_points,
            warnings=tuple(warnings),
            hidden=layer.hidden,
            fields=form_fields(content, number),
            source=label,
            width=content.width,
            height=content.height,
            image=image if self.images else None,
        )

    def _check_fonts(
        self, usable: LayerCheck, layer: TextLayer, gaps: LayerGaps, warnings: list[str]
    ) -> LayerCheck:
        """Whether the layer can be used as far as its fonts say what they show."""
        fonts = doubtful_fonts(layer.lines)
        try:
            wrong = gaps.find_wrong_font(fonts) if fonts else None
        except NO_OCR as error:
            warnings.append(
                f"the letters of {', '.join(fonts)} make no words, and OCR cannot be opened: {error.problem}"
            )
            return usable
        if wrong is None:
            return usable
        return LayerCheck(False, f"the font {wrong or 'without a name'} says other letters than it shows")

    def _read_gaps(
        self,
        figures: tuple[Block, ...],
        layer: TextLayer,
        content: PdfContent,
        gaps: LayerGaps,
        warnings: list[str],
    ) -> tuple[tuple[Block, ...], list[Line]]:
        """(the figures with their text, the lines that are drawn as outlines)"""
        outlines = outlined_text(layer, content) if self.text_layer == "auto" else ()
        lines: list[Line] = []
        try:
            if outlines and (lines := gaps.read_outlines(outlines)):
                warnings.append(f"{len(lines)} lines are drawn as outlines: read by OCR")
            if self.figure_text != "never":
                always = self.figure_text == "always"
                figures = tuple(gaps.read_figure(figure, content.width, always) for figure in figures)
        except NO_OCR as error:
            what = " and ".join(
                ["text drawn as outlines"] * bool(outlines and not lines) + ["images"] * bool(figures)
            )
            warnings.append(f"{what} may hold text that is not read: {error.problem}")
        return figures, lines

    def _choose_dpi(self, reader: PdfReader, number: int) -> float:
        """The reader's resolution, or less for a page of which an image of that one would be too large."""
        height, width = reader.page_size_hw(number - 1)
        pixels = width * height * (self.dpi / 72.0) ** 2
        return self.dpi * min(1.0, (MOST_PIXELS / max(pixels, 1.0)) ** 0.5)

    def read_image(
        self,
        image: np.ndarray,
        label: str,
        number: int,
        dpi: float | None,
        to_points: tuple[float, float, float, float, float, float] | None = None,
    ) -> Page:
        """An image by OCR, with its blocks in order.

        What was turned upright or made flat first stays so: blocks, rules and columns are looked for there.
        """
        page, prepared = self.ocr.get().predict_prepared(ImageItem(image, label, number))
        if prepared is not None:
            image = prepared.image
            to_points = None if to_points is None else prepared.compose(to_points)
        started = time.perf_counter()
        straight = Straightened.make(image, page.lines)
        lines = page.lines if straight is None else straight.lines
        seen = image if straight is None else straight.image
        ruling = ruling_lines_of_image(seen, dpi=dpi) if self.tables else None
        height, width = seen.shape[:2]
        blocks = self._make_blocks(PageContent(lines, width, height, ruling, seen, scan=True))
        if straight is not None:
            blocks = straight.restore(blocks)
        seconds = {**page.seconds, "blocks": time.perf_counter() - started}
        seconds["total"] = page.seconds.get("total", 0.0) + seconds["blocks"]
        return replace(
            page,
            blocks=blocks,
            seconds=seconds,
            to_points=to_points,
            image=page.image if self.images else None,
        )

    def _make_blocks(self, content: PageContent) -> tuple[Block, ...]:
        for process in self.processors:
            content = process(content)
        return content.blocks


class OpenDocument(contextlib.AbstractContextManager["OpenDocument"]):
    """A PDF or an image that is being read; made by `DocumentReader.open`.

    Attributes:
        label: Its path, or "".
        numbers: Of the pages that are wanted, from 1.
    """

    def __init__(
        self,
        reader: DocumentReader,
        label: str,
        numbers: tuple[int, ...],
        *,
        pdf: PdfReader | None = None,
        images: ImagePages | None = None,
        frames: tuple[int, ...] = (),
        source: object = None,
        password: str | None = None,
    ) -> None:
        self.label, self.numbers = label, numbers
        self._reader, self._pdf, self._images, self._frames = reader, pdf, images, frames
        self._source, self._password = source, password

    def read(self, number: int) -> Page:
        """A page with its blocks in order. One that cannot be read has no lines and the reason in its `warnings`.

        Raises: HubError, ConfigError and the like, where OCR cannot be opened: no page that needs it can be read then.
        """
        if len(self._frames) == 1:
            return self._read_image(number)
        try:
            if self._pdf is None:
                return self._read_image(number)
            return self._reader.read_pdf_page(self._pdf, number, self.label)
        except _EVERY_PAGE:
            raise
        except _DAMAGED as error:
            reason = str(error) if isinstance(error, OarError) else f"{type(error).__name__}: {error}"
        except _FAULTS as error:  # whatever is wrong with one page, the others are read
            reason = f"{type(error).__name__}: {error}"
            debug = log.isEnabledFor(logging.DEBUG)
            log.warning("a fault on page %d of %s: %s", number, self.label, reason, exc_info=debug)
        return Page((), number, warnings=(reason,), source=self.label, width=0, height=0)

    def _read_image(self, number: int) -> Page:
        assert self._images is not None
        page = self._reader.read_image(self._images.read(self._frames[number - 1]), self.label, number, None)
        notes = self._images.notes if number == self.numbers[0] else ()
        return replace(page, warnings=(*notes, *page.warnings)) if notes else page

    def read_all(self, workers: int = 1) -> Iterator[Page]:
        """All pages in order, as `read`; with several workers in processes beside this one."""
        task, pool = self.worker_task(), PageWorkers(workers)
        if task is None or not pool.are_worth(len(self.numbers)):
            yield from map(self.read, self.numbers)
            return
        with contextlib.closing(pool):
            for number, page in pool.read(task, self.numbers):
                yield page or self.read(number)

    def worker_task(self, store: PageStore | None = None) -> WorkerTask | None:
        """What other processes read these pages with; None where they cannot: of images, of open files, and where every
        page needs a network."""
        if not isinstance(self._source, (str, Path, bytes)) or self._pdf is None:
            return None
        if self._reader.text_layer == "never" or self._reader.layout is not None:
            return None
        return WorkerTask(self._reader.without_networks(), self._source, self.label, self._password, store)

    def __exit__(self, *_: object) -> None:
        if self._pdf is not None:
            self._pdf.close()


def _lines_in_order(blocks: Sequence[Block], lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines as the blocks are read."""
    ordered = [line for block in blocks for part in block.walk() for line in part.lines]
    return tuple(ordered) if ordered else tuple(lines)


def parse_pages(text: str | None, count: int, where: str = "") -> list[int]:
    """ "1-3,7" of a document of `count` pages: [1, 2, 3, 7]. Open ends are the first and the last page.

    Raises: InputError: this names no pages, or such that the document has not.
    """
    if not text:
        return list(range(1, count + 1))
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first.strip() or "1", last.strip() or str(count)) if dash else (first, first)
        if not all(map(str.isdecimal, ends)) or not 1 <= int(ends[0]) <= int(ends[1]) <= count:
            raise InputError(
                "there are no such pages",
                where=where or "pages",
                received=f"pages={text!r}, of a document of {count}",
                allowed=f'numbers and ranges from 1 to {count}, such as "1-3,7" or "5-"',
            )
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return list(dict.fromkeys(numbers))
