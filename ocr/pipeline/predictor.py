"""What `ocr.predictor` gives: the text of images, PDFs and lists of them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from framework.vision import image as vision_image
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.domain.predictor import ImageSource
from framework.workflow.files.pdf import PdfReader
from ocr.pages.preparation import PreparedImage
from ocr.pipeline.single_stage import SingleStage
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.pages import Document, Page


class OCRPredictor(VisionPredictor[Page]):
    """Finds and recognises text; made by `predictor`. Safe to call from several threads.

    Args:
        name: Of the model.
        pdf_dpi: Resolution at which pages of PDFs are rendered.
    """

    def __init__(self, pipeline: OCRPipeline | SingleStage, name: str, pdf_dpi: float = 200.0) -> None:
        self.pipeline, self.name, self.pdf_dpi = pipeline, name, pdf_dpi

    def __call__(self, source: ImageSource | Sequence[ImageSource]) -> Document:  # type: ignore[override]
        """A path, bytes, a file, an array, a PIL image, a PDF, or a list of them: the pages in order, as one document.

        Raises:
            InputError: a source cannot be read; the message names it.
        """
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        return Document(tuple(self.pages(source)), label)

    def pages(self, source: ImageSource | Iterable[ImageSource]) -> Iterator[Page]:
        """As a call, page by page: memory does not grow with their number."""
        return self.predict_stream(self._read_items(source))

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Page]:
        return self.pipeline.predict_stream(items)

    def predict_prepared(self, item: ImageItem) -> tuple[Page, PreparedImage | None]:
        """As `OCRPipeline.predict_prepared`; models of one stage read images as they are."""
        if isinstance(self.pipeline, OCRPipeline):
            return self.pipeline.predict_prepared(item)
        (page,) = self.pipeline.predict_stream([item])
        return page, None

    def _read_items(self, source: Any) -> Iterator[ImageItem]:
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        if isinstance(source, io.IOBase):  # they are iterators too, of lines
            label = str(getattr(source, "name", ""))
            source, _ = vision_image.read_bytes(source, "image or PDF")  # type: ignore[arg-type]
        if isinstance(source, (list, tuple, Iterator)):
            for item in source:
                yield from self._read_items(item)
            return
        if is_pdf(source):
            with PdfReader(source, dpi=self.pdf_dpi) as pages:
                for number, image in enumerate(pages, start=1):
                    yield ImageItem(image, label, number)
            return
        yield ImageItem(vision_image.read(source), label)

    @property
    def compile_count(self) -> int:
        return self.pipeline.compile_count

    @property
    def bucket_count(self) -> int | None:
        return self.pipeline.bucket_count


def is_pdf(source: Any) -> bool:
    """Whether a path or bytes hold a PDF, by content."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source[:1024]).lstrip().startswith(b"%PDF-")
    if isinstance(source, (str, os.PathLike)) and Path(source).is_file():
        with open(source, "rb") as file:
            return file.read(1024).lstrip().startswith(b"%PDF-")
    return False
