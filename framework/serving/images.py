"""What a request brings, as the items of a predictor: sizes are checked before anything is decoded."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Self

from framework.core.errors import InputError, OarError
from framework.serving.budget import Budget
from framework.serving.errors import RetryError, TooLargeError, UnsupportedError
from framework.serving.models import Options, ServedModel
from framework.serving.settings import Limits
from framework.vision import image as vision_image
from framework.workflow.domain.predictor import AnyPredictor, ImageItem, ImagePredictor
from framework.workflow.domain.result import Result
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.sources import PDF_HEAD, is_pdf_head

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
        return is_pdf_head(self.data[:PDF_HEAD])


@dataclass(frozen=True)
class PageFailure:
    """A page that cannot be read, in the place of its result."""

    number: int
    error: OarError


@dataclass(frozen=True)
class PageAhead:
    """A page that was read before it was asked for, or why it cannot be read; and the pixels that it has taken."""

    pixels: int
    item: ImageItem | PageFailure | Exception | None


class PageReader:
    """The pages of an upload, one after the other; used by one thread at a time.

    Raises:
        TooLargeError: more pixels or pages than the limits say. InputError: it cannot be read.
        UnsupportedError: the model takes no images.
    """

    def __init__(self, upload: Upload, predictor: AnyPredictor, limits: Limits) -> None:
        self.began = time.monotonic()
        if not isinstance(predictor, ImagePredictor):
            raise UnsupportedError("this model takes texts", received="a file", allowed='{"text": …} as JSON')
        self.upload, self.limits = upload, limits
        self.pages_read = 0
        self._pdf: PdfReader | None = None
        self._count: int | None = None
        self._ahead: PageAhead | None = None
        where = upload.name or "the file"
        if upload.is_pdf:
            self._pdf = PdfReader(upload.data, dpi=_DPI, max_pixels=limits.pixels)
            self._count = count = len(self._pdf)
            if count > limits.pages:
                self.close()
                raise TooLargeError(
                    "the document has too many pages",
                    where=where,
                    received=f"{count} pages",
                    allowed=f"at most {limits.pages}",
                    fix="send its pages in several documents",
                )
            return
        header = vision_image.open_header(upload.data, where)
        self._size = header.width * header.height
        self._count = None if getattr(header, "is_animated", False) else 1
        self._check_size(header.height, header.width)
        self._items: Iterator[ImageItem] = predictor.read_all(upload.data)

    def _check_size(self, height: int, width: int) -> None:
        """Raises: TooLargeError."""
        limits, where = self.limits, self.upload.name or "the file"
        if height * width > limits.pixels:
            raise TooLargeError(
                "the image has too many pixels",
                where=where,
                received=f"{height * width:,} pixels",
                allowed=f"at most {limits.pixels:,}",
            )
        if max(height, width) > limits.side:
            raise TooLargeError(
                "the image is too long",
                where=where,
                received=f"{width:,} x {height:,} pixels",
                allowed=f"at most {limits.side:,} a side",
            )

    @property
    def is_document(self) -> bool:
        """Whether results come as one of several pages, however many there are."""
        return self._pdf is not None

    @property
    def is_done(self) -> bool:
        """Whether there is no further page, as far as the file's header says."""
        return self._count is not None and self.pages_read >= self._count

    @property
    def needs_close(self) -> bool:
        """Whether `close` has something to do."""
        return self._pdf is not None

    def read_ahead(self, pixels: Budget) -> Self:
        """Read the first page at once, where its pixels are free: one call in a thread less for most requests."""
        amount = self.next_pixels()
        if pixels.try_take(amount):
            try:
                self._ahead = PageAhead(amount, self.read())
            except Exception as error:
                self._ahead = PageAhead(amount, error)
        return self

    def take_ahead(self) -> PageAhead | None:
        """What `read_ahead` has read; its pixels are the caller's from now on."""
        ahead, self._ahead = self._ahead, None
        return ahead

    def next_pixels(self) -> int:
        """Of the next page, about."""
        if self._pdf is None:
            return self._size
        if self.is_done:
            return 1
        try:
            height, width = self._page_size(self.pages_read)
        except OarError:  # `read` says what is wrong
            return 1
        return max(1, height * width)

    def _page_size(self, index: int) -> tuple[int, int]:
        """(height, width) in pixels of a page of the PDF. Raises: InputError."""
        assert self._pdf is not None
        height, width = self._pdf.page_size_hw(index)
        return math.ceil(height * _DPI / 72), math.ceil(width * _DPI / 72)

    def read(self) -> ImageItem | PageFailure | None:
        """The next page; None behind the last one."""
        number = self.pages_read + 1
        if self.is_done:
            return None
        if self._pdf is None:
            item = next(self._items, None)
            if item is None:
                return None
            if number > self.limits.pages:
                raise TooLargeError("the file has too many pages", allowed=f"at most {self.limits.pages}")
            self._check_size(*item.image.shape[:2])
            self.pages_read = number
            return item._replace(source=self.upload.name)
        self.pages_read = number
        try:
            height, width = self._page_size(number - 1)
            if max(height, width) > self.limits.side:
                self._check_size(height, width)
            return ImageItem(self._pdf[number - 1], self.upload.name, number)
        except (InputError, TooLargeError) as error:
            return PageFailure(number, error)

    def close(self) -> None:
        """Free the document."""
        if self._pdf is not None:
            self._pdf.close()


@contextlib.asynccontextmanager
async def open_upload(
    model: ServedModel, upload: Upload, can_be_refused: bool = False
) -> AsyncIterator[PageReader]:
    """The pages of an upload.

    Args:
        can_be_refused: Whether it is all of a request, which an overloaded model may still refuse.

    Raises:
        RetryError: the model is not ready, or is overloaded, and the upload has waited for too long before it could be
        decoded. As PageReader.
    """
    predictor, pixels, began = model.predictor, model.pixels, time.monotonic()
    is_dropped = False

    def read() -> PageReader:
        if is_dropped:
            raise RetryError("the client has gone")
        if can_be_refused:
            model.batcher.check_stale(began)
        return PageReader(upload, predictor, model.limits).read_ahead(pixels)

    future = asyncio.ensure_future(model.in_thread(read))
    try:
        reader = await asyncio.shield(future)
    except asyncio.CancelledError:
        is_dropped = True
        future.add_done_callback(lambda done: done.exception() or _let_go(model, done.result()))
        raise
    try:
        yield reader
    finally:
        _let_go(model, reader)


def _let_go(model: ServedModel, reader: PageReader) -> None:
    if (ahead := reader.take_ahead()) is not None:
        model.pixels.give(ahead.pixels)
    if reader.needs_close:
        model.start_in_thread(reader.close)  # which waits for a page that is drawn right now


async def predict_pages(
    model: ServedModel,
    reader: PageReader,
    options: Options | None = None,
    seconds: float | None = None,
    is_request: bool = True,
) -> AsyncIterator[tuple[ImageItem, Result] | PageFailure]:
    """The result of each page, in order; few pages are under way at a time, however fast they are asked for.

    Args:
        seconds: Of each page; None: what the limits say.
        is_request: Whether the file is all of its request, which an overloaded model may still refuse then, where it
            has one page.

    Raises:
        DeadlineError: one was not there in time. OarError: the image cannot be read, or an option is wrong.
    """
    waiting: deque[asyncio.Task[tuple[ImageItem, Result] | PageFailure]] = deque()
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < _AHEAD:
                if (ahead := reader.take_ahead()) is not None:
                    deadline = model.deadline(seconds, reader.began)
                    pixels, item = ahead.pixels, ahead.item
                else:
                    deadline = model.deadline(seconds)
                    pixels, item = await _read_page(model, reader, deadline)
                if item is None or isinstance(item, Exception):
                    model.pixels.give(pixels)
                    if item is not None:
                        raise item
                    more = False
                    break
                more = not reader.is_done
                if (
                    not more and not waiting
                ):  # the only page, or the last of those that are asked for one by one
                    alone = is_request and reader.pages_read == 1
                    yield await _predict(model, item, pixels, options, deadline, alone)
                    return
                waiting.append(asyncio.create_task(_predict(model, item, pixels, options, deadline)))
            if waiting:
                yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _read_page(
    model: ServedModel, reader: PageReader, deadline: float
) -> tuple[int, ImageItem | PageFailure | None]:
    """The next page, and its pixels, which the caller gives back."""
    pixels = reader.next_pixels()
    await model.within(model.pixels.take(pixels), deadline)
    try:
        return pixels, await model.within(model.in_thread(reader.read), deadline)
    except BaseException:
        model.pixels.give(pixels)
        raise


async def _predict(
    model: ServedModel,
    item: ImageItem | PageFailure,
    pixels: int,
    options: Options | None,
    deadline: float,
    can_be_refused: bool = False,
) -> tuple[ImageItem, Result] | PageFailure:
    try:
        if isinstance(item, PageFailure):
            return item
        return item, await model.predict(item, options, deadline, can_be_refused)
    finally:
        model.pixels.give(pixels)
