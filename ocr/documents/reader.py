"""From a PDF or an image to a document of blocks: `ocr.document`.

Each page goes through the same stages: lines of text (from the page's own text layer where that can be believed, else
by OCR), tables (by ruling lines, then by the places of words), figures, blocks of text, and their reading order. No
network takes part but OCR's and a small one that tells where the figures of scans are, and these are opened only for a
page that needs them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
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
from framework.vision import image as vision_image
from framework.workflow import ImageItem
from framework.workflow.domain.predictor import ImageSource
from framework.workflow.files.pdf import PdfReader
from ocr.documents.assemble import arrange
from ocr.documents.layout_blocks import FIGURES, blocks_from_regions, regions_of_scan, without_covered
from ocr.documents.layout_model import LayoutDetector
from ocr.documents.layout_regions import Region
from ocr.documents.options import TextSource
from ocr.documents.page_store import PageStore
from ocr.documents.page_workers import PageWorkers, WorkerTask, no_network
from ocr.documents.paragraphs import make_text_blocks
from ocr.documents.seals import read_seals
from ocr.documents.whole_document import finish_document
from ocr.formulas.blocks import FormulaReader, read_formulas
from ocr.pages.sideways import find_turn
from ocr.pipeline.predictor import OCRPredictor, is_pdf
from ocr.results.blocks import Block, Box, Figure
from ocr.results.lines import Line
from ocr.results.page_text import LineStyle, images_without_text, is_usable, line_box, read_text_layer
from ocr.results.pages import Document, Page
from ocr.tables.network_tables import TableReader, replace_tables
from ocr.tables.ruled_tables import find_ruled_tables
from ocr.tables.ruling_lines import Rules, rules_of_page
from ocr.tables.scanned_ruling_lines import rules_of_image
from ocr.tables.text_tables import find_text_tables

log = logging.getLogger("oar")
LEAST_FIGURE = 0.01  # of the page's area
MARGIN = 0.12  # of the page's width: what is turned against the page's text there is none of its text
_NO_OCR = (ConfigError, DeviceError, HubError, MissingExtraError, WeightError)
_PAGE_ERRORS = (
    OarError,
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
MOST_PIXELS = 50_000_000  # of a rendered page: A1 at 200 dpi


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents with one recogniser. Safe to call from several threads.

    Attributes:
        open_ocr: Gives the predictor for pages without a text layer; called on the first of them, and again on others,
            so it should remember what it opened.
        text_layer: "auto" takes a page's own text where it can stand in for OCR, "always" wherever there is a page of a
            PDF, "never" reads every page by OCR.
        tables: Whether tables are looked for; else their text stands in paragraphs.
        figures: Whether figures are cut out, for which their pages are rendered.
        images: Whether pages keep their image, for drawing and searchable PDFs; every page is rendered then.
        dpi: At which pages of PDFs are measured and rendered.
        first_pages: Of PDFs without `pages` only so many are read; 0 for all.
        layout: Gives the regions of a page's image; every page is rendered then. None: rules find the blocks.
        open_figures: As `open_ocr`, for a layout network that tells where the figures are on pages that OCR reads;
            rules find their other blocks. Not used beside `layout`. None: such figures are not found.
        open_table: As `open_ocr`, for a network that reads tables of images which have no ruling lines; None: none.
        open_seals: As `open_ocr`, for what reads the seals that the layout finds; None: they are figures alone.
        open_formula: As `open_ocr`, for a network that reads the formulas which `layout` finds; None: they stay as OCR
            or the text layer has them.

    Raises: InputError, where `text_layer` is none of these.
    """

    open_ocr: Callable[[], OCRPredictor]
    text_layer: TextSource = "auto"
    tables: bool = True
    figures: bool = True
    images: bool = False
    dpi: float = 200.0
    first_pages: int = 0
    layout: LayoutDetector | None = None
    open_table: Callable[[], TableReader] | None = None
    open_seals: Callable[[], OCRPredictor] | None = None
    open_formula: Callable[[], FormulaReader] | None = None
    open_figures: Callable[[], LayoutDetector] | None = None

    def __post_init__(self) -> None:
        if self.text_layer not in get_args(TextSource):
            raise InputError(
                "there is no such way to use a text layer",
                where="text_layer",
                received=self.text_layer,
                allowed=", ".join(get_args(TextSource)),
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
        self, source: ImageSource, *, pages: str | None = None, password: str | None = None
    ) -> OpenDocument:
        """The document of a source, to be read page by page: what is held does not grow with their number.

        Its pages are not finished: `DocumentFacts` tells what only the whole document does.

        Raises: as a call.
        """
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
        if pages not in (None, "", "1", "1-"):
            raise InputError("an image has one page", where=label or "the image", received=f"pages={pages}")
        try:
            return OpenDocument(self, label, (1,), image=vision_image.read(source))
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

    def without_networks(self) -> DocumentReader:
        """The same, and it can be pickled; a page that needs a network raises `NeedsNetwork`."""
        no = cast(Any, no_network)
        return replace(
            self,
            open_ocr=no,
            layout=None if self.layout is None else no,
            open_table=None if self.open_table is None else no,
            open_seals=None if self.open_seals is None else no,
            open_formula=None if self.open_formula is None else no,
            open_figures=None if self.open_figures is None else no,
        )

    def read_pdf_page(self, reader: PdfReader, number: int, label: str) -> Page:
        """Page `number`, from 1, with its blocks in order. Raises: InputError, where it is damaged."""
        started = time.perf_counter()
        dpi = self._choose_dpi(reader, number)
        content = reader.content(number - 1, dpi=dpi)
        layer = read_text_layer(content)
        usable = is_usable(layer, content)
        if self.text_layer == "never" or (self.text_layer == "auto" and not usable):
            page = self.read_image(reader.render(number - 1, dpi=dpi), label, number, dpi, content.to_points)
            reason = [] if self.text_layer == "never" else [f"read by OCR: {usable.reason}"]
            if dpi < self.dpi:
                reason.append(f"measured at {dpi:.0f} dpi instead of {self.dpi:.0f}: the page is large")
            return replace(page, warnings=(*content.warnings, *reason))
        seconds = {"text_layer": time.perf_counter() - started}
        figures = images_without_text(layer, content, min_area=LEAST_FIGURE) if self.figures else ()
        # Figures alone are rendered in a fraction of the time.
        whole = self.images or self.layout is not None or self.open_table is not None
        image = reader.render(number - 1, dpi=dpi) if whole else None

        def cut(box: Box) -> np.ndarray:
            left, top, right, bottom = map(round, box)
            if image is not None:
                return np.ascontiguousarray(image[top:bottom, left:right])
            return reader.render(number - 1, dpi=dpi, box=(left, top, right, bottom))

        started = time.perf_counter()
        blocks = self._make_blocks(
            layer.lines,
            rules_of_page(content) if self.tables else None,
            content.width,
            content.height,
            styles=layer.styles,
            hyphens=layer.hyphens,
            figures=[Block("image", box, content=Figure(cut(box))) for box in figures],
            image=image,
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
            warnings=content.warnings,
            source=label,
            width=content.width,
            height=content.height,
            image=image if self.images else None,
        )

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
        page, prepared = self.open_ocr().predict_prepared(ImageItem(image, label, number))
        if prepared is not None:
            image = prepared.image
            to_points = None if to_points is None else prepared.compose(to_points)
        started = time.perf_counter()
        rules = rules_of_image(image, dpi=dpi) if self.tables else None
        blocks = self._make_blocks(page.lines, rules, page.width, page.height, image=image, scan=True)
        seconds = {**page.seconds, "blocks": time.perf_counter() - started}
        seconds["total"] = page.seconds.get("total", 0.0) + seconds["blocks"]
        return replace(
            page,
            blocks=blocks,
            seconds=seconds,
            to_points=to_points,
            image=page.image if self.images else None,
        )

    def _make_blocks(
        self,
        lines: Sequence[Line],
        rules: Rules | None,
        width: float,
        height: float,
        *,
        styles: Sequence[LineStyle] | None = None,
        hyphens: Sequence[bool] | None = None,
        figures: Sequence[Block] = (),
        image: np.ndarray | None = None,
        scan: bool = False,
    ) -> tuple[Block, ...]:
        turn = find_turn(lines, width, height)
        if not turn.angle:
            return self._make_upright_blocks(
                lines,
                rules,
                turn.size,
                styles=styles,
                hyphens=hyphens,
                figures=figures,
                image=image,
                scan=scan,
            )
        upright = [turn.line(line) for line in lines]
        known = {id(there): line for there, line in zip(upright, lines, strict=True)}
        back = turn.back
        blocks = self._make_upright_blocks(
            upright,
            None if rules is None else turn.rules(rules),
            turn.size,
            styles=styles,
            hyphens=hyphens,
            figures=[turn.block(block, turn.line) for block in figures],
            image=None if image is None else np.ascontiguousarray(np.rot90(image, turn.angle // 90)),
            scan=scan,
        )
        return tuple(back.block(b, lambda line: known.get(id(line)) or back.line(line)) for b in blocks)

    def _make_upright_blocks(
        self,
        lines: Sequence[Line],
        rules: Rules | None,
        size: tuple[float, float],
        *,
        styles: Sequence[LineStyle] | None,
        hyphens: Sequence[bool] | None,
        figures: Sequence[Block],
        image: np.ndarray | None,
        scan: bool,
    ) -> tuple[Block, ...]:
        width, height = size
        looks = {id(line): i for i, line in enumerate(lines)}
        tables: list[Block] = []
        rest = list(lines)
        if rules is not None:
            ruled, left = find_ruled_tables(rules, rest, styles)
            tables, rest = list(ruled), list(left)
        regions: list[Block] = []
        detected = self._detect(image, rest, tables, scan)
        if detected and image is not None:
            regions, rest = blocks_from_regions(
                detected,
                rest,
                known=[*tables, *figures],
                styles=None if styles is None else {key: styles[i] for key, i in looks.items()},
                hyphens=None if hyphens is None else {key: hyphens[i] for key, i in looks.items()},
                rules=rules,
                image=image,
                tables=self.tables,
                figures=self.figures,
                height=height,
            )
            if self.open_table is not None:
                regions = replace_tables(regions, image, self.open_table)
            if self.open_seals is not None:
                regions = read_seals(regions, image, self.open_seals)
            if self.open_formula is not None:
                regions = read_formulas(regions, image, self.open_formula)
            if any(block.label in FIGURES for block in regions):
                figures = without_covered(figures, regions)
        if self.layout is None and rules is not None:
            # Lines that a table cut in two are of no line's style; those of text beside it are whole.
            there = (*tables, *figures, *regions)
            aligned, left = find_text_tables(rest, rules, _styles_of(rest, looks, styles), there)
            if image is not None and self.open_table is not None:
                aligned = replace_tables(aligned, image, self.open_table)
            tables, rest = [*tables, *aligned], list(left)
        text = make_text_blocks(
            rest,
            _styles_of(rest, looks, styles),
            None if hyphens is None else [hyphens[looks[id(x)]] if id(x) in looks else False for x in rest],
            height=height,
            others=(*tables, *figures, *regions),
        )
        text = [replace(b, label="aside_text", level=0) if _is_aside(b, width) else b for b in text]
        return arrange([*tables, *figures, *regions, *text], height)

    def _detect(
        self, image: np.ndarray | None, lines: Sequence[Line], tables: Sequence[Block], scan: bool
    ) -> Sequence[Region]:
        """The regions of a network: all of `layout`, or of scans figures and headings."""
        if image is None:
            return ()
        if self.layout is not None:
            return self.layout(image)
        if self.open_figures is None or not scan or not self.figures:
            return ()
        return regions_of_scan(self.open_figures()(image), lines, tables)


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
        image: np.ndarray | None = None,
        source: object = None,
        password: str | None = None,
    ) -> None:
        self.label, self.numbers = label, numbers
        self._reader, self._pdf, self._image = reader, pdf, image
        self._source, self._password = source, password

    def read(self, number: int) -> Page:
        """A page with its blocks in order. One that cannot be read has no lines and the reason in its `warnings`.

        Raises: HubError, ConfigError and the like, where OCR cannot be opened: no page that needs it can be read then.
        """
        if self._pdf is None:
            assert self._image is not None
            return self._reader.read_image(self._image, self.label, number, None)
        try:
            return self._reader.read_pdf_page(self._pdf, number, self.label)
        except _NO_OCR:
            raise
        except _PAGE_ERRORS as error:  # whatever is wrong with one page, the others are read
            if not isinstance(error, OarError):
                log.debug("page %d of %s", number, self.label, exc_info=True)
            reason = str(error) if isinstance(error, OarError) else f"{type(error).__name__}: {error}"
            return Page((), number, warnings=(reason,), source=self.label, width=0, height=0)

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


def _styles_of(
    lines: Sequence[Line], places: dict[int, int], styles: Sequence[LineStyle] | None
) -> list[LineStyle] | None:
    """The style of each line; of a part of a line that of its height."""
    if styles is None:
        return None
    return [
        styles[places[id(line)]]
        if id(line) in places
        else LineStyle(line_box(line)[3] - line_box(line)[1], False, False, "")
        for line in lines
    ]


def _lines_in_order(blocks: Sequence[Block], lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines as the blocks are read."""
    ordered = [line for block in blocks for part in block.walk() for line in part.lines]
    return tuple(ordered) if ordered else tuple(lines)


def _is_aside(block: Block, width: float) -> bool:
    """Whether the block stands at the page's side, turned against its text: a stamp, a vertical running title."""
    turned = bool(block.lines) and all(line.orientation in (90, 270) for line in block.lines)
    return turned and (block.bbox[2] <= MARGIN * width or block.bbox[0] >= (1 - MARGIN) * width)


def parse_pages(text: str | None, count: int, where: str = "") -> list[int]:
    """ "1-3,7" of a document of `count` pages: [1, 2, 3, 7]. Open ends are the first and the last page.

    Raises: InputError: this names no pages, or such that the document has not.
    """
    if not text:
        return list(range(1, count + 1))
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first or "1", last or str(count)) if dash else (first, first)
        if not all(end.strip().isdecimal() for end in ends) or not 1 <= int(ends[0]) <= int(ends[1]) <= count:
            raise InputError(
                "there are no such pages",
                where=where or "pages",
                received=f"pages={text!r}, of a document of {count}",
                allowed=f'numbers and ranges from 1 to {count}, such as "1-3,7" or "5-"',
            )
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return list(dict.fromkeys(numbers))
