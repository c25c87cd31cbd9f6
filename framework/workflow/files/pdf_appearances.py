"""What the appearance of an annotation says: a stamp's text is drawn by its own stream and stands nowhere else.

PDFium reads text of pages alone, so the annotations are drawn on a copy of the page that holds nothing else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import TYPE_CHECKING

from framework.workflow.files.pdf_handles import Handle

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MAX_CHARS = 10_000  # of an annotation


def draws_text(annotation: Handle) -> bool:
    """Whether its appearance holds text, or a form in which there may be some."""
    import pypdfium2.raw as raw

    objects = range(max(raw.FPDFAnnot_GetObjectCount(annotation), 0))
    kinds = {raw.FPDFPageObj_GetType(raw.FPDFAnnot_GetObject(annotation, number)) for number in objects}
    return bool(kinds & {raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_FORM})


def read_appearances(
    page: PdfPage, page_index: int, indexes: Collection[int], warnings: list[str]
) -> dict[int, str]:
    """What annotations of a page say, by their places among its annotations: their lines, apart by newlines; "" where
    they draw no text. The caller holds PDFium's lock.

    Args:
        page_index: The place of the page in its document.
        warnings: Takes that they cannot be read, of a document whose pages cannot be copied.
    """
    import pypdfium2.raw as raw
    from pypdfium2 import PdfDocument, PdfiumError

    copy = PdfDocument.new()
    try:
        copy.import_pages(page.pdf, [page_index])
        drawn = copy[0]
        areas: dict[int, tuple[float, float, float, float]] = {}
        for index in reversed(range(raw.FPDFPage_GetAnnotCount(drawn.raw))):
            annotation = raw.FPDFPage_GetAnnot(drawn.raw, index) if index in indexes else None
            rectangle = raw.FS_RECTF()
            if annotation:
                if raw.FPDFAnnot_GetRect(annotation, ctypes.byref(rectangle)):
                    areas[index] = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
                raw.FPDFPage_CloseAnnot(annotation)
            else:
                raw.FPDFPage_RemoveAnnot(drawn.raw, index)
        for index in reversed(range(raw.FPDFPage_CountObjects(drawn.raw))):
            removed = raw.FPDFPage_GetObject(drawn.raw, index)
            if raw.FPDFPage_RemoveObject(drawn.raw, removed):
                raw.FPDFPageObj_Destroy(removed)
        raw.FPDFPage_GenerateContent(drawn.raw)
        raw.FPDFPage_Flatten(drawn.raw, raw.FLAT_NORMALDISPLAY)
        drawn.close()  # text of the page as it is now is that of one that is opened again
        textpage = copy[0].get_textpage()
        texts = {index: textpage.get_text_bounded(*area)[:MAX_CHARS] for index, area in areas.items()}
    except PdfiumError as error:
        warnings.append(f"text of {len(indexes):,} stamps is not read: {error}")
        return {}
    finally:
        copy.close()
    return {
        index: "\n".join(line.strip() for line in text.splitlines() if line.strip())
        for index, text in texts.items()
    }
