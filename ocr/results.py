"""What OCR gives back: Document > Page > Line > Word > Char, frozen and comparable.

Geometry is in pixels of the source image: continuous xy, x to the right, y down, pixel i covers [i, i+1). A polygon
runs clockwise as seen by a reader of the text and starts at the text's own top-left corner, so the edge from its first
to its second point tells which way is "right": for upright text that is the image's right, for text that stands on its
head the image's left. Most polygons are quads; curved text may have more points, upper edge first.

Text is kept as it was recognised: no space is added, dropped or folded at any level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.errors import FormatError, OarError, ShapeError
from framework.workflow.result import ImageResult, Json, Result
from ocr.lines import Char, Line, Polygon, Word


@dataclass(frozen=True)
class Page(ImageResult):
    """The lines of one image or one page of a PDF, in reading order.

    `page` counts from 1, `seconds` names the stages and what each took. `image` is what the pixels of the polygons
    refer to; it is there for drawing and for searchable PDFs.

    Raises: ShapeError when `image` is not of `width` and `height`.
    """

    lines: tuple[Line, ...]
    page: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
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
        """The lines in reading order, joined by newlines."""
        return "\n".join(line.text for line in self.lines)

    def _content(self) -> Mapping[str, Json]:
        """A line is `{"text", "score", "polygon", "words"}`, a word `{…, "chars"}`, a character `{"text", "score",
        "polygon"}`. Scores have 4 decimals, coordinates 1, seconds 4. A line's orientation is not written: the polygon
        starts at the text's own top-left corner and so tells it.
        """
        return {
            "page": self.page,
            "lines": [_piece(line) | {"words": [_word(word) for word in line.words]} for line in self.lines],
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Page:
        """The page that `to_dict` wrote, without its image. Raises: FormatError when keys or values do not fit."""
        return _read(data, _page, "a page: source, width, height, page, lines, seconds")

    def to_v2(self) -> list[list[Any]]:
        """The page as PaddleOCR 2.x gives it: a list of `[quad, (text, score)]`."""
        from ocr.exporters.paddle import page_to_v2

        return page_to_v2(self)

    def to_predict_dict(self) -> dict[str, Any]:
        """The page under the keys of PaddleOCR 3.x' `predict`; see `ocr.exporters.paddle.page_to_predict_dict`."""
        from ocr.exporters.paddle import page_to_predict_dict

        return page_to_predict_dict(self)

    def draw(self, *, side_by_side: bool = True) -> np.ndarray:
        """An image of the result, RGB uint8; see `ocr.exporters.drawing.draw_page`."""
        from ocr.exporters.drawing import draw_page

        return draw_page(self, side_by_side=side_by_side)

    def overlay(self) -> np.ndarray:
        """The page's own image with the lines drawn on it, of its size: for video."""
        return self.draw(side_by_side=False)


@dataclass(frozen=True)
class Document(Result):
    """The pages of one source: one for an image, several for a PDF."""

    pages: tuple[Page, ...]
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pages", tuple(self.pages))

    @property
    def input(self) -> str:
        """`source` under its name of before, for one release."""
        return self.source

    @property
    def text(self) -> str:
        """The pages' texts, joined by form feeds (U+000C), as Tesseract and pdftotext write them."""
        return "\f".join(page.text for page in self.pages)

    def to_dict(self) -> dict[str, Any]:
        """`{"source": ..., "pages": [Page.to_dict(), ...]}`"""
        return {"source": self.source, "pages": [page.to_dict() for page in self.pages]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Document:
        """The document that `to_dict` or `to_json` wrote. Raises: FormatError when keys or values do not fit."""
        return _read(
            data,
            lambda d: Document(tuple(map(_page, d["pages"])), d.get("source", d.get("input", ""))),
            "a document: source, pages",
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text; characters outside ASCII stay readable."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)
        # A lone surrogate cannot be written as UTF-8; JSON can still say it as an escape.
        return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)

    def to_v2(self) -> list[list[list[Any]]]:
        """The document as PaddleOCR 2.x gives it: a list of pages of `[quad, (text, score)]`."""
        return [page.to_v2() for page in self.pages]

    def to_predict_dict(self) -> list[dict[str, Any]]:
        """The document as PaddleOCR 3.x' `predict` gives it: a list of one dict a page."""
        return [page.to_predict_dict() for page in self.pages]

    def to_markdown(self) -> str:
        """Paragraphs, headings and rows as Markdown; see `ocr.exporters.markdown`."""
        from ocr.exporters.markdown import to_markdown

        return to_markdown(self)

    def to_hocr(self, *, chars: bool = False) -> str:
        """hOCR 1.2 as XHTML; `chars=True` adds the characters' boxes. See `ocr.exporters.hocr`."""
        from ocr.exporters.hocr import to_hocr

        return to_hocr(self, chars=chars)

    def to_alto(self, *, chars: bool = False) -> str:
        """ALTO 4 XML; `chars=True` adds the characters' boxes. See `ocr.exporters.alto`."""
        from ocr.exporters.alto import to_alto

        return to_alto(self, chars=chars)

    def to_searchable_pdf(self, path: str | Path, *, dpi: float = 200.0, quality: int = 85) -> None:
        """Writes the page images with the text under them; see `ocr.exporters.searchable_pdf`."""
        from ocr.exporters.searchable_pdf import write_searchable_pdf

        write_searchable_pdf(self, path, dpi=dpi, quality=quality)


def _read(data: Any, make: Any, allowed: str) -> Any:
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


def _piece(piece: Line | Word | Char) -> dict[str, Any]:
    polygon = [[round(x, 1), round(y, 1)] for x, y in piece.polygon]
    return {"text": piece.text, "score": round(piece.score, 4), "polygon": polygon}


def _word(word: Word) -> dict[str, Any]:
    return _piece(word) | {"chars": [_piece(char) for char in word.chars]}


def _parts(data: Mapping[str, Any]) -> tuple[str, float, Polygon]:
    if not isinstance(data["text"], str):
        raise TypeError(f"text is {data['text']!r}")
    return data["text"], data["score"], data["polygon"]


def _page(data: Mapping[str, Any]) -> Page:
    lines = (
        Line(
            *_parts(line),
            words=tuple(
                Word(*_parts(word), chars=tuple(Char(*_parts(char)) for char in word.get("chars", ())))
                for word in line["words"]
            ),
        )
        for line in data["lines"]
    )
    # "size" and "input" are the keys of files from before width, height and source.
    width, height = data["size"] if "size" in data else (data["width"], data["height"])
    source = data.get("source", data.get("input", ""))
    return Page(tuple(lines), data["page"], data["seconds"], source=source, width=width, height=height)
