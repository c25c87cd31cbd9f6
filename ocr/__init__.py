"""OCR: from images, scans, PDFs and video to text with its place on the page.

from ocr import predictor

read = predictor("pp_ocrv6_small")
doc = read("scan.jpg")
print(doc.text)

And from PDFs and scans to headings, paragraphs and tables:

import ocr

print(ocr.document("paper.pdf").to_markdown())
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocr.ocr_predictor import OCRPredictor as OCRPredictor
    from ocr.results import Document as Document
    from ocr.results import Line as Line
    from ocr.results import Page as Page
    from ocr.results import Word as Word
    from ocr.structure.document import document as document
    from ocr.structure.reader import DocumentReader as DocumentReader

    predictor: Callable[..., OCRPredictor]

_WHERE = {
    "predictor": "ocr.domain",
    "OCRPredictor": "ocr.ocr_predictor",
    "document": "ocr.structure.document",
    "DocumentReader": "ocr.structure.reader",
    **dict.fromkeys(("Document", "Page", "Line", "Word"), "ocr.results"),
}


def __getattr__(name: str) -> Any:
    import importlib

    from framework.core.process import pause_collection

    if name == "TextReader":  # its name of before, for one release
        name = "OCRPredictor"
    if name in _WHERE:
        with pause_collection():
            return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'ocr' has no attribute {name!r}")
