"""Pages of PDF documents as images, through pypdfium2 (an optional package)."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from framework.core.errors import InputError, MissingExtraError
from framework.vision.image import MAX_PIXELS, read_bytes
from framework.workflow.files.pdf_content import PageContent, read_content
from framework.workflow.files.pdf_guard import PdfGuard

if TYPE_CHECKING:
    import pypdfium2

_POINTS_PER_INCH = 72.0
_LAYER = re.compile(rb"/OC[\s/<]")  # of the dictionary of a form or an image, which is never compressed
_PDFIUM = threading.RLock()  # PDFium keeps global state: no two calls at a time, whatever the documents


class PdfReader(contextlib.AbstractContextManager["PdfReader"]):
    """The pages of a document, each rendered when it is asked for: `len(reader)`, `reader[i]`, iteration.

    Pages are `[H, W, 3]` uint8 RGB at `dpi` dots an inch, on white, with annotations and filled-in form fields, turned
    as the document says. Only one rendered page is held at a time. May be used from several threads.

    Raises:
        InputError: the document is missing, empty, damaged, encrypted, or has no pages; or it ends the process that
            looks at each page first, see `pdf_guard`.
        MissingExtraError: pypdfium2 is not installed.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | BinaryIO,
        *,
        dpi: float = 200.0,
        max_pixels: int = MAX_PIXELS,
        password: str | None = None,
    ) -> None:
        try:
            import pypdfium2
        except ImportError as error:
            raise MissingExtraError("pypdfium2", "ocr", "reading PDF documents") from error
        if not 1 <= dpi <= 2400:
            raise InputError(
                "pages cannot be rendered at this resolution", received=f"{dpi} dpi", allowed="1 to 2400"
            )
        self._document: pypdfium2.PdfDocument | None = None
        self.dpi, self._max_pixels = dpi, max_pixels
        self._has_password = bool(password)
        data, self._where = read_bytes(source, "PDF")
        path = Path(source) if isinstance(source, str | os.PathLike) else None
        self._layers = _LAYER.search(data) is not None
        self._guard = PdfGuard(data, path, password, self._where)
        with _PDFIUM:
            try:
                document = pypdfium2.PdfDocument(data, password=password)
                self._count = len(document)
            except pypdfium2.PdfiumError as error:
                raise self._unreadable(error) from error
            if self._count == 0:
                document.close()
                raise InputError("the PDF has no pages", where=self._where)
            # A damaged form is no reason to refuse the pages.
            with contextlib.suppress(pypdfium2.PdfiumError):
                if document.get_formtype():
                    document.init_forms()
            self._document = document

    def _unreadable(self, error: Exception) -> InputError:
        if "password" in str(error).lower():
            return InputError(
                "the password is wrong" if self._has_password else "the PDF is encrypted",
                where=self._where,
                received=error,
                fix="pass the document's password, password=... or --password, or save a copy without one",
            )
        return InputError(
            "this is no PDF that can be read",
            where=self._where,
            received=error,
            allowed="a complete PDF document",
            fix="copy or download the file again, or print it to a new PDF",
        )

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(self._count))

    def __getitem__(self, index: int) -> np.ndarray:
        """Page `index`, counted from 0, or from the end when negative; see `render`."""
        return self.render(index)

    def render(
        self, index: int, *, dpi: float | None = None, box: tuple[int, int, int, int] | None = None
    ) -> np.ndarray:
        """Page `index`, counted from 0, or from the end when negative, at `dpi` (default: the reader's).

        Args:
            box: The part to render, (left, top, right, bottom) in pixels of the page, without the cost of the rest.

        Raises:
            IndexError: there is no such page.
            InputError: the page is damaged, or what is rendered larger than `max_pixels`, or `box` outside of the page.
        """
        with self._page(index) as page:
            width, height = page.get_size()
            dpi = dpi or self.dpi
            scale = dpi / _POINTS_PER_INCH
            page_hw = math.ceil(height * scale), math.ceil(width * scale)
            left, top, right, bottom = box or (0, 0, page_hw[1], page_hw[0])
            left, top, right, bottom = (
                max(left, 0),
                max(top, 0),
                min(right, page_hw[1]),
                min(bottom, page_hw[0]),
            )
            if left >= right or top >= bottom:
                raise InputError(
                    "the part lies outside of the page",
                    where=f"{self._where}, page {index}",
                    received=box,
                    allowed=f"within 0, 0, {page_hw[1]}, {page_hw[0]}",
                )
            pixels = (right - left) * (bottom - top)
            if pixels > self._max_pixels:
                lower = int(dpi * (self._max_pixels / pixels) ** 0.5)
                raise InputError(
                    "the page has too many pixels",
                    where=f"{self._where}, page {index}",
                    received=f"{width:.0f}x{height:.0f} points at {dpi:g} dpi = {pixels:,} pixels",
                    allowed=f"at most {self._max_pixels:,}",
                    fix=f"render at {max(1, lower)} dpi, or raise max_pixels",
                )
            # What is cut off at each side is rounded up again.
            cut = (left, page_hw[0] - bottom, page_hw[1] - right, top)
            crop = tuple(max(side - 0.5, 0.0) / scale for side in cut)
            # RGB, without alpha unless the page needs it.
            bitmap = page.render(scale=scale, rev_byteorder=True, crop=crop)  # type: ignore[arg-type]

            try:
                return np.array(bitmap.to_numpy()[:, :, :3], order="C")
            finally:
                bitmap.close()

    def content(self, index: int, *, dpi: float | None = None) -> PageContent:
        """Characters, drawn paths and image boxes of page `index`, in pixels of `render(index, dpi=dpi)`; nothing is
        rendered.

        Raises: IndexError: there is no such page. InputError: the page is damaged, or has no size.
        """
        with self._page(index) as page:
            width, height = page.get_size()
            if not (0 < width < 1e6 and 0 < height < 1e6):
                raise InputError(
                    "the page has no size that can be used",
                    where=f"{self._where}, page {index}",
                    received=f"{width:g}x{height:g} points",
                    fix="print the document to a new PDF",
                )
            form = getattr(self._document, "formenv", None)
            return read_content(page, index % self._count, dpi or self.dpi, form, layers=self._layers)

    def page_size_hw(self, index: int) -> tuple[float, float]:
        """(height, width) of page `index` in points of 1/72 inch, as it is turned."""
        with self._opened(index) as document:  # to open the page takes as long as to read a tenth of it
            width, height = document.get_page_size(index % self._count)
            return height, width

    @contextlib.contextmanager
    def _page(self, index: int) -> Iterator[pypdfium2.PdfPage]:
        with self._opened(index) as document:
            page = document[index % self._count]
            try:
                yield page
            finally:
                page.close()

    @contextlib.contextmanager
    def _opened(self, index: int) -> Iterator[pypdfium2.PdfDocument]:
        """The document, whose page `index` has been looked at, with PDFium's lock; its errors are InputErrors."""
        import pypdfium2

        if not -self._count <= index < self._count:
            raise IndexError(f"{self._where}: there is no page {index}, only 0 to {self._count - 1}")
        if self._document is not None:
            self._guard.check(index % self._count)
        with _PDFIUM:
            if self._document is None:
                raise InputError("the PDF is closed", where=self._where, fix="use it inside the `with` block")
            try:
                yield self._document
            except pypdfium2.PdfiumError as error:
                raise self._unreadable(error) from error

    def close(self) -> None:
        """Frees the document; its pages cannot be read any more."""
        with _PDFIUM:
            if self._document is not None:
                self._document.close()
                self._document = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Otherwise pypdfium2 frees the document by itself, without the lock.
        if getattr(self, "_document", None) is not None:
            self.close()
