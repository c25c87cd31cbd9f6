"""Pages of documents with all their blocks, drawn while they are read, for layout detectors and reading order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from framework.config.registry import register
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_range
from ocr.data.synthetic.base import Material, SyntheticText
from ocr.data.synthetic.document_pages import PageDrawing, group_lists
from ocr.data.synthetic.document_type import Typeface, Words, group_typefaces
from ocr.data.synthetic.style import TextStyle, degrade_image

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

ClassScheme = Literal["publaynet", "cdla", "doclayout"]

_DOCLAYOUT = (
    "paragraph_title image text number abstract content figure_title formula table table_title reference doc_title "
    "footnote header algorithm footer seal chart_title chart formula_number header_image footer_image aside_text"
)
# What a kind of block is called in each scheme of classes; what is not named there has no box
SCHEMES: dict[ClassScheme, dict[str, str]] = {
    "publaynet": {
        "text": "text",
        "abstract": "text",
        "footnote": "text",
        "table_title": "text",
        "figure_title": "text",
        "formula": "text",
        "doc_title": "title",
        "paragraph_title": "title",
        "list_item": "list",
        "reference": "list",
        "table": "table",
        "image": "figure",
        "chart": "figure",
    },
    "cdla": {
        "text": "text",
        "abstract": "text",
        "list_item": "text",
        "doc_title": "title",
        "paragraph_title": "title",
        "image": "figure",
        "chart": "figure",
        "figure_title": "figure_caption",
        "table": "table",
        "table_title": "table_caption",
        "header": "header",
        "footer": "footer",
        "number": "footer",
        "reference": "reference",
        "formula": "equation",
    },
    "doclayout": {**{name: name for name in _DOCLAYOUT.split()}, "list_item": "text"},
}
CLASS_NAMES: dict[ClassScheme, tuple[str, ...]] = {
    "publaynet": ("text", "title", "list", "table", "figure"),
    "cdla": (
        "text",
        "title",
        "figure",
        "figure_caption",
        "table",
        "table_caption",
        "header",
        "footer",
        "reference",
        "equation",
    ),
    "doclayout": tuple(_DOCLAYOUT.split()),
}


def _scan_style() -> TextStyle:
    return TextStyle(
        p_noise=0.15,
        noise=(1.0, 6.0),
        p_blur=0.15,
        blur=(0.3, 0.8),
        p_motion=0.0,
        p_coarse=0.0,
        p_shade=0.08,
        shade=(0.8, 0.98),
        p_jpeg=0.4,
        jpeg=(50, 95),
    )


@register("dataset")
@dataclass(frozen=True)
class SyntheticDocuments(SyntheticText):
    """Pages of papers, reports and magazines: `boxes` [K, 4] and `labels` of their blocks, `text` of each, the index as
    `id`.

    `page(index)` has the truth in full: blocks in reading order with their lines, tables with cells, and what is not
    read along (headers, footers, numbers) behind them.

    Attributes:
        classes: What blocks are called, and which have a box: PubLayNet's 5 classes, CDLA's 10, PP-DocLayout's 23.
        columns: Least and most columns of a page.
        dpi: Least and most pixels an inch.

    Of the other settings `length`, `words` and `receipts` are those of a corpus, from which all texts come where there
    is one; of `style` only what `degrade_image` applies.

    Raises:
        ConfigError: a number is out of range.
        InputError: at the first use, a file is not there, no font or no text is found, or a character is in no font.
    """

    length: tuple[int, int] = (1, 200)
    words: float = 0.0
    skip_missing: bool = True
    style: TextStyle = field(default_factory=_scan_style)
    classes: ClassScheme = "publaynet"
    columns: tuple[int, int] = (1, 3)
    dpi: tuple[float, float] = (72.0, 110.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "columns", 1, 6)
        check_range(self, "dpi", 30, 600)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the scheme's classes."""
        return CLASS_NAMES[self.classes]

    def __getitem__(self, index: int) -> Sample:
        return self._draw(index, self._draw_sample)

    def page(self, index: int) -> Page:
        """The page of the same image as `self[index]`, with its blocks."""
        found: list[Page] = []

        def keep(material: Material, rng: np.random.Generator) -> Sample:
            page = self._draw_page(material, rng)
            found.append(page)
            return Sample(page.image if page.image is not None else np.zeros((1, 1, 3), np.uint8))

        self._draw(index, keep)
        return found[0]

    def document(self, first: int, count: int) -> Document:
        """Pages `first` to `first + count - 1` as one document; its `to_searchable_pdf` gives a PDF of scans with the
        true text behind them.
        """
        pages = [replace(self.page(first + number), page=number + 1) for number in range(count)]
        from ocr.results.pages import Document

        return Document(tuple(pages))

    def _draw_page(self, material: Material, rng: np.random.Generator) -> Page:
        def make_words(rng: np.random.Generator) -> Words:
            return Words(material.texts, bool(self.corpus), rng)

        drawing = PageDrawing(
            self._typefaces, make_words, rng, columns=self.columns, dpi=float(rng.uniform(*self.dpi))
        )
        blocks = drawing.compose()
        image = degrade_image(drawing.canvas.pixels(), self.style, rng)
        height, width = image.shape[:2]
        lines = tuple(line for block in blocks for line in block.lines)
        from ocr.results.pages import Page  # loads jax, which a loader's processes do without

        return Page(lines, blocks=blocks, text_from="text-layer", width=width, height=height, image=image)

    @cached_property
    def _typefaces(self) -> list[Typeface]:
        return group_typefaces(self._material.fonts)

    def _draw_sample(self, material: Material, rng: np.random.Generator) -> Sample:
        page = self._draw_page(material, rng)
        scheme, names = SCHEMES[self.classes], self.class_names
        merged = ("list_item", "reference") if self.classes == "publaynet" else ()
        kept = [block for block in group_lists(page.blocks, merged) if block.label in scheme]
        boxes = np.array([block.bbox for block in kept], np.float32).reshape(-1, 4)
        assert page.image is not None  # drawn above
        return Sample(
            page.image,
            boxes=boxes,
            labels=np.array([names.index(scheme[block.label]) for block in kept], np.int32),
            valid=np.ones(len(kept), bool),
            text=tuple(block.text for block in kept),
        )
