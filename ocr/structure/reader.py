"""From a PDF or an image to a document of blocks: `ocr.document`.

Each page goes through the same stages: lines of text (from the page's own text layer where that can be believed, else
by OCR), tables (by ruling lines, then by the places of words), figures, blocks of text, and their reading order. No
network but OCR's takes part, and OCR is opened only for a page that needs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from framework.core.errors import InputError, OarError
from framework.vision import image as vision_image
from framework.vision.pdf import PdfReader
from framework.workflow import ImageItem
from framework.workflow.predictor import ImageSource
from ocr.blocks import Block, Box, Figure
from ocr.lines import Line
from ocr.ocr_predictor import OCRPredictor, is_pdf
from ocr.results import Document, Page
from ocr.structure.assemble import arrange, finish_document
from ocr.structure.image_rules import rules_of_image
from ocr.structure.paragraphs import make_text_blocks
from ocr.structure.ruled_tables import find_ruled_tables
from ocr.structure.rules import Rules, rules_of_page
from ocr.structure.text_layer import LineStyle, images_without_text, is_usable, line_box, read_text_layer
from ocr.structure.text_tables import find_text_tables

TextSource = Literal["auto", "always", "never"]
LEAST_FIGURE = 0.01  # of the page's area


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

    Raises: InputError, where `text_layer` is none of these.
    """

    open_ocr: Callable[[], OCRPredictor]
    text_layer: TextSource = "auto"
    tables: bool = True
    figures: bool = True
    images: bool = False
    dpi: float = 200.0

    def __post_init__(self) -> None:
        if self.text_layer not in get_args(TextSource):
            raise InputError(
                "there is no such way to use a text layer",
                where="text_layer",
                received=self.text_layer,
                allowed=", ".join(get_args(TextSource)),
            )

    def __call__(
        self, source: ImageSource, *, pages: str | None = None, password: str | None = None
    ) -> Document:
        """A PDF or an image as a document.

        A page that cannot be read is there without lines, with the reason among its `warnings`.

        Args:
            source: A path, bytes, an array [H, W, 3] or a PIL image.
            pages: Of a PDF, from 1: "1-3,7", "5-"; None for all.
            password: Of an encrypted PDF.

        Raises:
            InputError: the source cannot be read, or has no such pages.
        """
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        return Document(finish_document(list(self._pages(source, label, pages, password))), label)

    def _pages(self, source: Any, label: str, pages: str | None, password: str | None) -> Iterator[Page]:
        if not is_pdf(source):
            if pages not in (None, "", "1", "1-"):
                raise InputError(
                    "an image has one page", where=label or "the image", received=f"pages={pages}"
                )
            yield self._read_image(vision_image.read(source), label, 1, None)
            return
        with PdfReader(source, dpi=self.dpi, password=password) as reader:
            for number in parse_pages(pages, len(reader), label):
                try:
                    yield self._read_pdf_page(reader, number, label)
                except OarError as error:
                    yield Page((), number, warnings=(str(error),), source=label, width=0, height=0)

    def _read_pdf_page(self, reader: PdfReader, number: int, label: str) -> Page:
        started = time.perf_counter()
        content = reader.content(number - 1)
        layer = read_text_layer(content)
        usable = is_usable(layer, content)
        if self.text_layer == "never" or (self.text_layer == "auto" and not usable):
            page = self._read_image(reader[number - 1], label, number, self.dpi)
            reason = () if self.text_layer == "never" else (f"read by OCR: {usable.reason}",)
            return replace(page, to_points=content.to_points, warnings=(*content.warnings, *reason))
        seconds = {"text_layer": time.perf_counter() - started}
        figures = images_without_text(layer, content, min_area=LEAST_FIGURE) if self.figures else ()
        image = reader[number - 1] if figures or self.images else None
        started = time.perf_counter()
        blocks = self._make_blocks(
            layer.lines,
            rules_of_page(content) if self.tables else None,
            content.height,
            styles=layer.styles,
            hyphens=layer.hyphens,
            figures=[_figure(box, image) for box in figures],
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
            width=content.width if image is None else image.shape[1],
            height=content.height if image is None else image.shape[0],
            image=image if self.images else None,
        )

    def _read_image(self, image: np.ndarray, label: str, number: int, dpi: float | None) -> Page:
        (page,) = self.open_ocr().predict_stream([ImageItem(image, label, number)])
        started = time.perf_counter()
        rules = rules_of_image(image, dpi=dpi) if self.tables else None
        blocks = self._make_blocks(page.lines, rules, page.height)
        seconds = {**page.seconds, "blocks": time.perf_counter() - started}
        seconds["total"] = page.seconds.get("total", 0.0) + seconds["blocks"]
        return replace(page, blocks=blocks, seconds=seconds, image=page.image if self.images else None)

    def _make_blocks(
        self,
        lines: Sequence[Line],
        rules: Rules | None,
        height: float,
        *,
        styles: Sequence[LineStyle] | None = None,
        hyphens: Sequence[bool] | None = None,
        figures: Sequence[Block] = (),
    ) -> tuple[Block, ...]:
        looks = {id(line): i for i, line in enumerate(lines)}
        tables: list[Block] = []
        rest = list(lines)
        if rules is not None:
            ruled, left = find_ruled_tables(rules, rest, styles)
            # Lines that a table cut in two are of no line's style; those of text beside it are whole.
            kept = _styles_of(left, looks, styles)
            aligned, left = find_text_tables(left, rules, kept)
            tables, rest = [*ruled, *aligned], list(left)
        text = make_text_blocks(
            rest,
            _styles_of(rest, looks, styles),
            None if hyphens is None else [hyphens[looks[id(x)]] if id(x) in looks else False for x in rest],
            height=height,
        )
        return arrange([*tables, *figures, *text], height)


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


def _figure(box: Box, image: np.ndarray | None) -> Block:
    left, top, right, bottom = (round(value) for value in box)
    cut = None if image is None else np.ascontiguousarray(image[top:bottom, left:right])
    return Block("image", box, content=Figure(cut))


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


def document(
    source: str | Path | ImageSource,
    *,
    model: str | os.PathLike[str] | None = None,
    pages: str | None = None,
    password: str | None = None,
    text_layer: TextSource = "auto",
    tables: bool = True,
    figures: bool = True,
    images: bool = False,
    dpi: float = 200.0,
    **options: Any,
) -> Document:
    """A PDF or an image as a document of headings, paragraphs, lists, tables and figures in reading order.

    import ocr

    found = ocr.document("paper.pdf", pages="1-3")
    print(found.to_markdown())
    for table in found.tables:
        print(table.to_html())

    Args:
        source, pages, password: See `DocumentReader.__call__`.
        model, options: Of `ocr.predictor`, for pages without a text layer; None: its default model.
        text_layer, tables, figures, images, dpi: See `DocumentReader`.

    Raises:
        InputError: the source cannot be read, or an option is out of range.
    """
    opened: list[OCRPredictor] = []

    def open_ocr() -> OCRPredictor:
        from ocr.domain import predictor  # what reads text layers alone loads no model

        if not opened:
            opened.append(predictor(**options) if model is None else predictor(model, **options))
        return opened[0]

    reader = DocumentReader(open_ocr, text_layer, tables, figures, images, dpi)
    return reader(source, pages=pages, password=password)  # type: ignore[arg-type]
