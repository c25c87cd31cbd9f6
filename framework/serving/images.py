"""What a request brings, as the items of a predictor: sizes are checked before anything is decoded."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from framework.core.errors import InputError, OarError
from framework.serving.errors import TooLargeError, UnsupportedError
from framework.serving.models import Options, ServedModel
from framework.serving.settings import Limits
from framework.vision import image as vision_image
from framework.workflow.domain.predictor import AnyPredictor, ImageItem, ImagePredictor
from framework.workflow.domain.result import Result
from framework.workflow.files.pdf import PdfReader

_DPI = 200.0  # of PDFs, as `oar infer` reads them
_AHEAD = 2  # pages of one document that are under way at a time


@dataclass(frozen=True)
class Upload:
    """A file of a request.

    Attributes:
        name: What the client calls it: in results and messages, never a path here.
    """

    data: bytes
    name: str = ""

    @property
    def is_pdf(self) -> bool:
        """By content."""
        return self.data[:1024].lstrip().startswith(b"%PDF-")


@dataclass(frozen=True)
class PageFailure:
    """A page that cannot be read, in the place of its result."""

    number: int
    error: OarError


class PageReader:
    """The pages of an upload, one after the other; used by one thread at a time.

    Raises:
        TooLargeError: more pixels or pages than the limits say. InputError: it cannot be read.
        UnsupportedError: the model takes no images.
    """

    def __init__(self, upload: Upload, predictor: AnyPredictor, limits: Limits) -> None:
        if not isinstance(predictor, ImagePredictor):
            raise UnsupportedError("this model takes texts", received="a file", allowed='{"text": …} as JSON')
        self.upload, self.limits = upload, limits
        self.pages_read = 0
        self._pdf: PdfReader | None = None
        self._count = 0
        where = upload.name or "the file"
        if upload.is_pdf:
            self._pdf = PdfReader(upload.data, dpi=_DPI, max_pixels=limits.pixels)
            self._count = len(self._pdf)
            if self._count > limits.pages:
                self.close()
                raise TooLargeError(
                    "the document has too many pages",
                    where=where,
                    received=f"{self._count} pages",
                    allowed=f"at most {limits.pages}",
                    fix="send its pages in several documents",
                )
            return
        header = vision_image.open_header(upload.data, where)
        self._size = header.width * header.height
        self._check_pixels(self._size)
        self._items: Iterator[ImageItem] = predictor.read_all(upload.data)

    def _check_pixels(self, pixels: int) -> None:
        if pixels > self.limits.pixels:
            raise TooLargeError(
                "the image has too many pixels",
                where=self.upload.name or "the file",
                received=f"{pixels:,} pixels",
                allowed=f"at most {self.limits.pixels:,}",
            )

    @property
    def is_document(self) -> bool:
        """Whether results come as one of several pages, however many there are."""
        return self._pdf is not None

    def next_pixels(self) -> int:
        """Of the next page, about."""
        if self._pdf is None:
            return self._size
        if self.pages_read >= self._count:
            return 1
        try:
            height, width = self._pdf.page_size_hw(self.pages_read)
        except OarError:  # `read` says what is wrong
            return 1
        return max(1, math.ceil(height * width * (_DPI / 72) ** 2))

    def read(self) -> ImageItem | PageFailure | None:
        """The next page; None behind the last one."""
        number = self.pages_read + 1
        if self._pdf is None:
            item = next(self._items, None)
            if item is None:
                return None
            if number > self.limits.pages:
                raise TooLargeError("the file has too many pages", allowed=f"at most {self.limits.pages}")
            self._check_pixels(item.image.shape[0] * item.image.shape[1])
            self.pages_read = number
            return item._replace(source=self.upload.name)
        if number > self._count:
            return None
        self.pages_read = number
        try:
            return ImageItem(self._pdf[number - 1], self.upload.name, number)
        except InputError as error:
            return PageFailure(number, error)

    def close(self) -> None:
        """Free the document."""
        if self._pdf is not None:
            self._pdf.close()


@contextlib.asynccontextmanager
async def open_upload(model: ServedModel, upload: Upload) -> AsyncIterator[PageReader]:
    """The pages of an upload. Raises: as PageReader; RetryError: the model is not ready."""
    predictor = model.predictor
    reader = await model.in_thread(lambda: PageReader(upload, predictor, model.limits))
    try:
        yield reader
    finally:
        model.start_in_thread(reader.close)  # which waits for a page that is drawn right now


async def predict_pages(
    model: ServedModel,
    reader: PageReader,
    options: Options | None = None,
    seconds: float | None = None,
) -> AsyncIterator[tuple[ImageItem, Result] | PageFailure]:
    """The result of each page, in order; few pages are under way at a time, however fast they are asked for.

    Args:
        seconds: Of each page; None: what the limits say.

    Raises:
        DeadlineError: one was not there in time. OarError: the image cannot be read, or an option is wrong.
    """
    waiting: deque[asyncio.Task[tuple[ImageItem, Result] | PageFailure]] = deque()
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < _AHEAD:
                deadline = model.deadline(seconds)
                pixels = reader.next_pixels()
                await model.within(model.pixels.take(pixels), deadline)
                try:
                    item = await model.within(model.in_thread(reader.read), deadline)
                except BaseException:
                    model.pixels.give(pixels)
                    raise
                if item is None:
                    model.pixels.give(pixels)
                    more = False
                    break
                waiting.append(asyncio.create_task(_predict(model, item, pixels, options, deadline)))
            if waiting:
                yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _predict(
    model: ServedModel,
    item: ImageItem | PageFailure,
    pixels: int,
    options: Options | None,
    deadline: float,
) -> tuple[ImageItem, Result] | PageFailure:
    try:
        if isinstance(item, PageFailure):
            return item
        return item, await model.predict(item, options, deadline)
    finally:
        model.pixels.give(pixels)
