"""What OCR gives back: Document > Page > Line > Word > Char, frozen and comparable.

`ocr.document` says more of a page: its `blocks` (paragraphs, headings, tables, figures; see `ocr.results.blocks`),
and of the document its `fields`. Of a page that was only read, `blocks` is empty.

Geometry is in pixels of the source image: continuous xy, x to the right, y down, pixel i covers [i, i+1). A polygon
runs clockwise as seen by a reader of the text and starts at the text's own top-left corner, so the edge from its first
to its second point tells which way is "right": for upright text that is the image's right, for text that stands on its
head the image's left. Most polygons are quads; curved text may have more points, upper edge first.

Text is kept as it was recognised: no space is added, dropped or folded at any level. `Page.text` alone writes raised
and lowered characters as Unicode has them (`ocr.results.spans`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from framework.core.errors import FormatError, OarError, ShapeError
from framework.core.types import JSON
from framework.workflow.domain.result import ImageResult, Json, Result
from ocr.results.blocks import (
    Block,
    Field,
    Table,
    block_from_dict,
    block_to_dict,
    field_from_dict,
    field_to_dict,
)
from ocr.results.lines import Char as Char
from ocr.results.lines import Line, line_from_dict, line_to_dict
from ocr.results.lines import Polygon as Polygon
from ocr.results.lines import Word as Word
from ocr.results.settings import ReadingSettings
from ocr.results.spans import plain_text

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Page(ImageResult):
    """The lines of one image or one page of a PDF, in reading order.

    `page` counts from 1, `seconds` names the stages and what each took. `image` is what the pixels of the polygons
    refer to; it is there for drawing and for searchable PDFs.

    Attributes:
        blocks: The parts of the page; those that are read along in reading order, then headers, footers and numbers.
        text_from: "ocr", or "text-layer" where the lines come from a PDF's own text.
        to_points: Of a PDF's page: (a, b, c, d, e, f) with x_points = a x + c y + e, y_points = b x + d y + f, from
            pixels to the page's points (1/72 inch, y upwards), as ISO 32000-1 writes matrices.
        warnings: What went wrong on the page without stopping it, and what was left out.
        hidden: Lines of a PDF's own text that nobody can see; they are no part of what the page says.
        fields: What was filled into the page's form.
        angle: By how many degrees clockwise the page was found turned, 0, 90, 180 or 270; None where nobody looked.
        unwarped: Whether the page was made flat before it was read.
        settings: Of the run; None where the page was not read by a pipeline of a detector and a recogniser.

    Raises: ShapeError when `image` is not of `width` and `height`.
    """

    lines: tuple[Line, ...]
    page: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)
    blocks: tuple[Block, ...] = ()
    text_from: str = "ocr"
    to_points: tuple[float, float, float, float, float, float] | None = None
    warnings: tuple[str, ...] = ()
    angle: int | None = None
    unwarped: bool = False
    hidden: tuple[Line, ...] = ()
    fields: tuple[Field, ...] = ()
    settings: ReadingSettings | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "blocks", tuple(self.blocks))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        object.__setattr__(self, "width", int(self.width))
        object.__setattr__(self, "height", int(self.height))
        object.__setattr__(self, "seconds", {name: float(value) for name, value in self.seconds.items()})
        if self.image is not None and self.image.shape != (self.height, self.width, 3):
            raise ShapeError(
                "the page's image is not of the page's size",
                where=self.source or f"page {self.page}",
                received=f"an array of shape {list(self.image.shape)}",
                allowed=f"[{self.height}, {self.width}, 3]: height, width, RGB",
            )

    @property
    def size(self) -> tuple[int, int]:
        """(width, height): the name of before, for one release."""
        return self.width, self.height

    @property
    def input(self) -> str:
        """`source` under its name of before, for one release."""
        return self.source

    @property
    def text(self) -> str:
        """The lines in reading order, joined by newlines; raised and lowered characters are those of Unicode."""
        return "\n".join(plain_text(line.text, line.spans) for line in self.lines)

    def _content(self) -> Mapping[str, Json]:
        """A line is `{"text", "score", "polygon", "words"}`, a word `{…, "chars"}`, a character `{"text", "score",
        "polygon"}`. Scores have 4 decimals, coordinates 1, seconds 4. A line's orientation is not written: the polygon
        starts at the text's own top-left corner and so tells it. "blocks" (`ocr.results.blocks.block_to_dict`),
        "text_from", "to_points", "warnings", "angle", "unwarped", "hidden" and "fields" are there where they say
        something.
        """
        content: dict[str, Json] = {
            "page": self.page,
            "lines": [line_to_dict(line) for line in self.lines],
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }
        if self.blocks:
            content["blocks"] = [block_to_dict(block) for block in self.blocks]
        if self.text_from != "ocr":
            content["text_from"] = self.text_from
        if self.to_points is not None:
            content["to_points"] = list(self.to_points)
        if self.warnings:
            content["warnings"] = list(self.warnings)
        if self.angle is not None:
            content["angle"] = self.angle
        if self.unwarped:
            content["unwarped"] = True
        if self.hidden:
            content["hidden"] = [line_to_dict(line) for line in self.hidden]
        if self.fields:
            content["fields"] = [field_to_dict(item) for item in self.fields]
        return content

    def __repr__(self) -> str:
        blocks = f", {len(self.blocks)} blocks" if self.blocks else ""
        return (
            f"Page({self.source!r}, {self.page}, {self.width}x{self.height}, {len(self.lines)} lines{blocks})"
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Page:
        """The page that `to_dict` wrote, without its image. Raises: FormatError when keys or values do not fit."""
        return _read(data, _page, "a page: source, width, height, page, lines, seconds")

    def to_v2(self) -> list[list[object]]:
        """The page as PaddleOCR 2.x gives it: a list of `[quad, (text, score)]`."""
        from ocr.exporters.paddle import page_to_v2

        return page_to_v2(self)

    def to_predict_dict(self) -> dict[str, object]:
        """The page under the keys of PaddleOCR 3.x' `predict`; see `ocr.exporters.paddle.page_to_predict_dict`."""
        from ocr.exporters.paddle import page_to_predict_dict

        return page_to_predict_dict(self)

    def to_paddle(self) -> dict[str, object]:
        """The page under the keys of PP-StructureV3; see `ocr.exporters.paddle_structure`."""
        from ocr.exporters.paddle_structure import page_to_paddle

        return page_to_paddle(self)

    def draw(self, *, side_by_side: bool = True) -> np.ndarray:
        """An image of the result, RGB uint8; see `ocr.exporters.drawing.draw_page`, and `block_drawing.draw_blocks` for
        pages with blocks.
        """
        if self.blocks:
            from ocr.exporters.block_drawing import draw_blocks

            return draw_blocks(self, side_by_side=side_by_side)
        from ocr.exporters.drawing import draw_page

        return draw_page(self, side_by_side=side_by_side)

    def overlay(self) -> np.ndarray:
        """The page's own image with the lines or blocks drawn on it: for video of its size."""
        return self.draw(side_by_side=False)


@dataclass(frozen=True, repr=False)
class Document(Result):
    """The pages of one source: one for an image, several for a PDF."""

    pages: tuple[Page, ...]
    source: str = ""
    fields: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pages", tuple(self.pages))
        object.__setattr__(self, "fields", tuple(self.fields))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of all pages, in reading order."""
        blocks = (block for page in self.pages for top in page.blocks for block in top.walk())
        return tuple(block.content for block in blocks if isinstance(block.content, Table))

    @property
    def input(self) -> str:
        """`source` under its name of before, for one release."""
        return self.source

    @property
    def text(self) -> str:
        """The pages' texts, joined by form feeds (U+000C), as Tesseract and pdftotext write them."""
        return "\f".join(page.text for page in self.pages)

    def to_dict(self) -> dict[str, JSON]:
        """`{"source": ..., "pages": [Page.to_dict(), ...]}`, with "fields" where there are any."""
        plain: dict[str, JSON] = {"source": self.source, "pages": [page.to_dict() for page in self.pages]}
        if self.fields:
            plain["fields"] = [field_to_dict(item) for item in self.fields]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Document:
        """The document that `to_dict` or `to_json` wrote. Raises: FormatError when keys or values do not fit."""
        return _read(
            data,
            lambda d: Document(
                tuple(map(_page, d["pages"])),
                d.get("source", d.get("input", "")),
                tuple(map(field_from_dict, d.get("fields", ()))),
            ),
            "a document: source, pages",
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text; characters outside ASCII stay readable."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)
        # A lone surrogate cannot be written as UTF-8; JSON can still say it as an escape.
        return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)

    def to_v2(self) -> list[list[list[object]]]:
        """The document as PaddleOCR 2.x gives it: a list of pages of `[quad, (text, score)]`."""
        return [page.to_v2() for page in self.pages]

    def to_predict_dict(self) -> list[dict[str, object]]:
        """The document as PaddleOCR 3.x' `predict` gives it: a list of one dict a page."""
        return [page.to_predict_dict() for page in self.pages]

    def to_markdown(self) -> str:
        """Paragraphs, headings and rows as Markdown; see `ocr.exporters.markdown`."""
        from ocr.exporters.markdown import to_markdown

        return to_markdown(self)

    def to_html(self, folder: str | Path | None = None) -> str:
        """One self-contained HTML page; see `ocr.exporters.html.to_html`."""
        from ocr.exporters.html import to_html

        return to_html(self, folder)

    def to_docx(self, path: str | Path, folder: str | Path | None = None) -> None:
        """Writes a Word file (extra `office`); see `ocr.exporters.docx.write_docx`."""
        from ocr.exporters.docx import write_docx

        write_docx(self, path, folder)

    def to_xlsx(self, path: str | Path) -> None:
        """Writes the tables as an Excel file (extra `office`); see `ocr.exporters.xlsx.write_xlsx`."""
        from ocr.exporters.xlsx import write_xlsx

        write_xlsx(self, path)

    def to_paddle(self) -> list[dict[str, object]]:
        """The document under the keys of PP-StructureV3: a dict a page; see `ocr.exporters.paddle_structure`."""
        from ocr.exporters.paddle_structure import page_to_paddle

        return [page_to_paddle(page, len(self.pages)) for page in self.pages]

    def to_hocr(self, *, chars: bool = False) -> str:
        """hOCR 1.2 as XHTML; `chars=True` adds the characters' boxes. See `ocr.exporters.hocr`."""
        from ocr.exporters.hocr import to_hocr

        return to_hocr(self, chars=chars)

    def to_alto(self, *, chars: bool = False) -> str:
        """ALTO 4 XML; `chars=True` adds the characters' boxes. See `ocr.exporters.alto`."""
        from ocr.exporters.alto import to_alto

        return to_alto(self, chars=chars)

    def to_tsv(self) -> str:
        """Tab-separated values with the columns of Tesseract; see `ocr.exporters.tsv`."""
        from ocr.exporters.tsv import to_tsv

        return to_tsv(self)

    def __repr__(self) -> str:
        lines = sum(len(page.lines) for page in self.pages)
        return f"Document({self.source!r}, {len(self.pages)} pages, {lines} lines)"

    def to_searchable_pdf(self, path: str | Path, *, dpi: float = 200.0, quality: int = 85) -> None:
        """Writes the page images with the text under them; see `ocr.exporters.searchable_pdf`."""
        from ocr.exporters.searchable_pdf import write_searchable_pdf

        write_searchable_pdf(self, path, dpi=dpi, quality=quality)


def _read(data: Mapping[str, Any], make: Callable[[Mapping[str, Any]], T], allowed: str) -> T:
    try:
        return make(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no key {error}" if isinstance(error, KeyError) else error
        if isinstance(error, OarError):
            what = f"{error.problem}: {error.received}"
        raise FormatError(
            "this is no OCR result",
            where="from_dict",
            received=what,
            allowed=allowed,
            fix="pass what to_dict() or json.loads(to_json()) gave",
        ) from error


def _page(data: Mapping[str, Any]) -> Page:
    # "size" and "input" are the keys of files from before width, height and source.
    width, height = data["size"] if "size" in data else (data["width"], data["height"])
    to_points = data.get("to_points")
    return Page(
        tuple(map(line_from_dict, data["lines"])),
        data["page"],
        data["seconds"],
        tuple(map(block_from_dict, data.get("blocks", ()))),
        text_from=data.get("text_from", "ocr"),
        to_points=None if to_points is None else tuple(to_points),
        warnings=tuple(data.get("warnings", ())),
        angle=data.get("angle"),
        unwarped=bool(data.get("unwarped", False)),
        hidden=tuple(map(line_from_dict, data.get("hidden", ()))),
        fields=tuple(map(field_from_dict, data.get("fields", ()))),
        source=data.get("source", data.get("input", "")),
        width=width,
        height=height,
    )
