"""What `ocr.predictor` gives: the text of images, PDFs and lists of them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.errors import InputError
from framework.vision import image as vision_image
from framework.vision.image_pages import ImagePages
from framework.workflow import ImageItem
from framework.workflow.domain.predictor import ImagePredictor, ImageSource
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.sources import PDF_HEAD, is_pdf_head
from ocr.pages.preparation import PreparedImage
from ocr.pipeline.single_stage import SingleStage
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.pages import Document, Page


class OCRPredictor(ImagePredictor[Page]):
    """Finds and recognises text; made by `predictor`. Safe to call from several threads.

    Args:
        name: Of the model.
        pdf_dpi: Resolution at which pages of PDFs are rendered.
        bgr: Whether arrays have their channels in OpenCV's order; files and PIL images are not concerned.
    """

    def __init__(
        self,
        pipeline: OCRPipeline | SingleStage,
        name: str,
        pdf_dpi: float = 200.0,
        bgr: bool = False,
    ) -> None:
        self.pipeline, self.name, self.pdf_dpi, self.bgr = pipeline, name, pdf_dpi, bgr

    def __call__(self, source: ImageSource | Sequence[ImageSource]) -> Document:
        """One document of the pages of a path, bytes, a file, an array, a PIL image, a PDF or a list of them, in order.

        Arrays are RGB, or BGR with the option `bgr`. TIFF files, animations and the like have all of their pages, but
        for frames that show what the one before shows.

        Raises:
            InputError: a source cannot be read; the message names it.
        """
        label = _label(source)
        return Document(tuple(self.pages(source)), label)

    def pages(self, source: ImageSource | Iterable[ImageSource]) -> Iterator[Page]:
        """As a call, page by page: memory does not grow with their number."""
        return self.predict_stream(self.read_items(source))

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Page]:
        return self.pipeline.predict_stream(items)

    def predict_prepared(self, item: ImageItem) -> tuple[Page, PreparedImage | None]:
        """As `OCRPipeline.predict_prepared`; models of one stage read images as they are."""
        if isinstance(self.pipeline, OCRPipeline):
            return self.pipeline.predict_prepared(item)
        (page,) = self.pipeline.predict_stream([item])
        return page, None

    def read_items(self, source: Any, label: str | None = None) -> Iterator[ImageItem]:
        """Every page of an image, a PDF or a list of them, as a call reads them; `label` is what they are called.

        Raises: InputError.
        """
        label = _label(source) if label is None else label
        if isinstance(source, io.IOBase):  # they are iterators too, of lines
            label = str(getattr(source, "name", ""))
            source, _ = vision_image.read_bytes(source, "image or PDF")  # type: ignore[arg-type]
        if isinstance(source, (list, tuple, Iterator)):
            for item in source:
                yield from self.read_items(item)
            return
        if is_pdf(source):
            with PdfReader(source, dpi=self.pdf_dpi) as pages:
                for number, image in enumerate(pages, start=1):
                    yield ImageItem(image, label, number)
            return
        for item in self.read_all(source):
            yield item._replace(source=label)

    def read(self, source: ImageSource) -> ImageItem:
        """The first page of an image, with a warning where there are more; see `read_all`."""
        pages = ImagePages(self._as_rgb(source), ground="contrast")
        more = (f"the first of {len(pages)} pages is read",) if len(pages) > 1 else ()
        number = pages.numbers[0]
        return ImageItem(pages.read(number), _label(source), number, (*pages.notes, *more))

    def read_all(self, source: ImageSource) -> Iterator[ImageItem]:
        """Every page of an image; frames of an animation that show what the one before showed are left out.

        Raises: InputError, once all others are out, where one cannot be read.
        """
        pages = ImagePages(self._as_rgb(source), ground="contrast")
        failure, notes = None, pages.notes
        if pages.is_animation:
            found = pages.changes()
        else:
            found = ((number, None) for number in pages.numbers)
        for number, image in found:
            try:
                image = pages.read(number) if image is None else image
            except InputError as error:
                failure = failure or error
                continue
            yield ImageItem(image, _label(source), number, notes)
            notes = ()
        if failure is not None:
            raise failure

    def _as_rgb(self, source: ImageSource) -> ImageSource:
        return to_rgb(source) if self.bgr else source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def compile_count(self) -> int:
        return self.pipeline.compile_count

    @property
    def bucket_count(self) -> int | None:
        return self.pipeline.bucket_count


def _label(source: object) -> str:
    return str(source) if isinstance(source, (str, os.PathLike)) else ""


def to_rgb(source: ImageSource) -> ImageSource:
    """An array of OpenCV's, [H, W, 3] BGR or [H, W, 4] BGRA, with red first; any other source as it is."""
    if isinstance(source, np.ndarray) and source.ndim == 3 and source.shape[2] in (3, 4):
        return source[..., [2, 1, 0, *range(3, source.shape[2])]]
    return source


def is_pdf(source: object) -> bool:
    """Whether a path or bytes hold a PDF, by content."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return is_pdf_head(bytes(source[:PDF_HEAD]))
    if isinstance(source, (str, os.PathLike)) and Path(source).is_file():
        with open(source, "rb") as file:
            return is_pdf_head(file.read(PDF_HEAD))
    return False
