"""OCR: from images, scans, PDFs and video to text with its place on the page.

from ocr import predictor

read = predictor("pp_ocrv6_small")
doc = read("scan.jpg")
print(doc.text)

And from PDFs and scans to headings, paragraphs and tables:

import ocr

print(ocr.document("paper.pdf").to_markdown())
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocr.documents.document import document as document
    from ocr.documents.reader import DocumentReader as DocumentReader
    from ocr.pipeline.predictor import OCRPredictor as OCRPredictor
    from ocr.results.pages import Document as Document
    from ocr.results.pages import Line as Line
    from ocr.results.pages import Page as Page
    from ocr.results.pages import Word as Word

    predictor: Callable[..., OCRPredictor]

_WHERE = {
    "predictor": "ocr.domain",
    "OCRPredictor": "ocr.pipeline.predictor",
    "document": "ocr.documents.document",
    "DocumentReader": "ocr.documents.reader",
    **dict.fromkeys(("Document", "Page", "Line", "Word"), "ocr.results.pages"),
}


def __getattr__(name: str) -> object:
    import importlib

    from framework.core.process import pause_collection

    if name == "TextReader":  # its name of before, for one release
        name = "OCRPredictor"
    if name in _WHERE:
        with pause_collection():
            return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'ocr' has no attribute {name!r}")
