"""A row for each source of a batch: its result, or its error. Nothing that is wrong with one touches another."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framework.core.errors import InputError, OarError
from framework.core.types import JSON
from framework.vision.video import SUFFIXES as VIDEO_SUFFIXES
from framework.workflow.domain.predictor import (
    AnyPredictor,
    ImageItem,
    ImagePredictor,
    LanguagePredictor,
    Text,
)
from framework.workflow.domain.result import ImageResult, TextResult
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.sources import PDF_HEAD, is_pdf_head

log = logging.getLogger("oar")


@dataclass(frozen=True)
class BatchSource:
    """What one row is about.

    Attributes:
        name: Tells sources apart: a file's path, or that of a table with `#` and the number of its row, from 0.
        content: A file's path, the bytes of a file, a text or a pair of texts.
        problem: Why there is no content.
    """

    name: str
    content: Path | bytes | Text = b""
    problem: str | None = None


@dataclass(frozen=True)
class ResultRow:
    """What is written of a source.

    Attributes:
        source: Its name.
        result: The JSON of `oar infer`; of a PDF, and of an image file of several pages, a list with an entry for each
            page; None, where nothing can be read.
        error: Why the source, or a page of it, cannot be read; None, where all was.
        warnings: What of the source is not in the result.
    """

    source: str
    result: JSON = None
    error: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass
class _OpenRow:
    """A source whose pages are under way; `pages` has the result of each, or its error."""

    source: str
    pages: list[JSON] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_pdf: bool = False
    is_read: bool = False
    running: int = 0

    def fail(self, error: Exception | str, page: int | None = None) -> None:
        """Note an error, of a page by its index, or of the whole source."""
        text = _message(error)
        if page is None:
            self.errors.append(text)
        else:
            self.errors.append(f"page {page + 1}: {text}" if self.is_pdf or len(self.pages) > 1 else text)
            self.pages[page] = {"page": page + 1, "error": text}

    def close(self) -> ResultRow:
        """The row. What is not a document has its one result, and none where that failed."""
        result: JSON = self.pages or None
        if len(self.pages) == 1 and not self.is_pdf:
            result = None if self.errors else self.pages[0]
        return ResultRow(self.source, result, "\n".join(self.errors) or None, tuple(self.warnings))


def _message(error: Exception | str) -> str:
    if isinstance(error, Exception) and not isinstance(error, OarError):
        return f"{type(error).__name__}: {error}"
    return str(error)


def predict_rows(predictor: AnyPredictor, sources: Iterable[BatchSource]) -> Iterator[ResultRow]:
    """One row for each source, in order. Images of several sources share batches; where a batch fails, its images run
    alone, so that the error stands with the image that it is of."""
    if isinstance(predictor, LanguagePredictor):
        yield from _predict_texts(predictor, list(sources))
    elif isinstance(predictor, ImagePredictor):
        yield from _predict_images(predictor, sources)
    else:
        raise InputError("a model of this kind reads no files", received=type(predictor).__name__)


def _predict_images(
    predictor: ImagePredictor[ImageResult],
    sources: Iterable[BatchSource],
) -> Iterator[ResultRow]:
    rows: deque[_OpenRow] = deque()
    running: deque[tuple[_OpenRow, int, ImageItem]] = deque()  # what the predictor has taken and not answered

    def items() -> Iterator[ImageItem]:
        for source in sources:
            row = _OpenRow(source.name)
            rows.append(row)
            for item in _read_pages(predictor, source, row):
                running.append((row, len(row.pages), item))
                row.pages.append(None)
                row.running += 1
                yield item
            row.is_read = True

    def finish(result: JSON | Exception) -> None:
        row, page, _ = running.popleft()
        row.running -= 1
        if isinstance(result, Exception):
            row.fail(result, page)
        else:
            row.pages[page] = result

    def closed() -> Iterator[ResultRow]:
        while rows and rows[0].is_read and not rows[0].running:
            yield rows.popleft().close()

    stream = items()
    while True:
        try:
            for result in predictor.predict_stream(stream):
                finish(result.to_dict())
                yield from closed()
            break
        except Exception:
            # The stream itself raises nothing: an image, or a batch of several, cannot be predicted. Those that were
            # taken run alone, and the stream goes on behind them.
            log.debug("a batch failed; its images run alone", exc_info=True)
            if not running:
                raise
            while running:
                finish(_predict_alone(predictor, running[0][2]))
    yield from closed()


def _predict_alone(predictor: ImagePredictor[ImageResult], item: ImageItem) -> JSON | Exception:
    try:
        return next(iter(predictor.predict_stream([item]))).to_dict()
    except Exception as error:
        return error


def _read_pages(
    predictor: ImagePredictor[ImageResult],
    source: BatchSource,
    row: _OpenRow,
) -> Iterator[ImageItem]:
    """The items of a source. What cannot be read is noted in its row."""
    try:
        if source.problem is not None:
            row.fail(source.problem)
            return
        content = source.content
        if not isinstance(content, Path | bytes):
            raise InputError("the model takes images", received="a text")
        if isinstance(content, Path) and content.suffix.lower() in VIDEO_SUFFIXES:
            raise InputError(
                "videos are not read in a batch", received=content.suffix, fix="oar infer --video_file"
            )
        row.is_pdf = _is_pdf(content)
        if row.is_pdf:
            yield from _read_pdf(content, source.name, row)
            return
        for item in predictor.read_all(content):
            row.warnings += item.warnings
            yield item._replace(source=source.name)
    except Exception as error:
        row.fail(error)


def _is_pdf(content: Path | bytes) -> bool:
    if isinstance(content, bytes):
        return is_pdf_head(content[:PDF_HEAD])
    with content.open("rb") as file:
        return is_pdf_head(file.read(PDF_HEAD))


def _read_pdf(content: Path | bytes, name: str, row: _OpenRow) -> Iterator[ImageItem]:
    with PdfReader(content) as pages:
        for page in range(len(pages)):
            try:
                image = pages[page]
            except OarError as error:
                row.pages.append(None)
                row.fail(error, page)
                continue
            yield ImageItem(image, name, page + 1)


def _predict_texts(
    predictor: LanguagePredictor[TextResult], sources: Sequence[BatchSource]
) -> Iterator[ResultRow]:
    """Texts are small: all of them are there at once."""
    problems = {number: text for number, one in enumerate(sources) if (text := _text_problem(predictor, one))}
    texts = [one.content for number, one in enumerate(sources) if number not in problems]
    attempts = iter(_attempt_all(predictor, [one for one in texts if isinstance(one, str | tuple)]))
    for number, source in enumerate(sources):
        result = problems[number] if number in problems else next(attempts)
        if isinstance(result, Exception | str):
            yield ResultRow(source.name, None, _message(result))
        else:
            yield ResultRow(source.name, result)


def _text_problem(predictor: LanguagePredictor[TextResult], source: BatchSource) -> str | None:
    if source.problem is not None:
        return source.problem
    needed = "a pair of texts" if predictor.pairs else "a text"
    if isinstance(source.content, Path | bytes):
        return f"the model takes {needed}, and this is a file"
    return None if isinstance(source.content, tuple) == predictor.pairs else f"the model takes {needed}"


def _attempt_all(
    predictor: LanguagePredictor[TextResult], texts: Sequence[Text]
) -> Iterator[JSON | Exception]:
    try:
        results = list(predictor.predict_attempts(texts))
    except Exception as error:
        if len(texts) == 1:
            yield error
            return
        for text in texts:
            yield from _attempt_all(predictor, [text])
        return
    for result in results:
        yield result if isinstance(result, OarError) else result.to_dict()
