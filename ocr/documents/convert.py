"""Documents into files of other formats, page by page: what `oar document` runs.

Pages are read once, and each is kept as JSON in a folder of work, without its characters; when all are read, what only
the whole document tells is added while they are written. They are loaded again once for all formats together, since
that takes longer than writing them. So memory does not grow with the number of pages, but for Word and Excel files,
which are held until they are written.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from framework.core.disk import whole_file
from framework.inference import Runtime
from framework.vision import image as vision_image
from framework.workflow.domain.config_file import ConfigFile
from framework.workflow.domain.domain import Model
from framework.workflow.domain.outputs import text_file, write_json
from framework.workflow.files.documents import Conversion, DocumentConverter, Interrupted, Progress
from ocr.documents.document import make_reader
from ocr.documents.loaders import lazy_ocr, open_field_model
from ocr.documents.options import DocumentOptions
from ocr.documents.page_store import PageStore
from ocr.documents.page_workers import PageWorkers
from ocr.documents.reader import DocumentReader, OpenDocument
from ocr.documents.whole_document import DocumentFacts
from ocr.exporters.docx import import_docx, write_docx_pages
from ocr.exporters.html import iterate_html
from ocr.exporters.markdown import iterate_markdown
from ocr.exporters.paddle_structure import page_to_paddle, plain
from ocr.exporters.searchable_pdf import SearchablePdf, paper_of, to_jpeg
from ocr.exporters.tsv import iterate_tsv
from ocr.exporters.xlsx import import_openpyxl, write_xlsx_pages
from ocr.fields.rules import FieldFinder, FieldModel
from ocr.results.blocks import Field, field_to_dict
from ocr.results.pages import Document, Page

KEPT = 32  # pages of a document that are held and not read back
NOTES = 5  # of a document; how many more there are is said
_A4 = (595.0, 842.0)
_NEED_FIGURES = {"md", "html", "json", "docx"}
_SHOW_FIGURES_BESIDE = {"md", "json"}  # which name their files
_ENDINGS = {"paddle": "_res.json", "png": "_page1.png", "alto": ".alto.xml"}
_EXTRAS = {"docx": import_docx, "xlsx": import_openpyxl}
_Steps = Generator[None, None, list[Path]]  # of writing a format; the result are its files


@dataclass
class _Pages:
    """The pages of one document: each read once, and given again as often as they are asked for."""

    opened: OpenDocument
    store: PageStore
    workers: PageWorkers
    progress: Progress
    facts: DocumentFacts = field(default_factory=DocumentFacts)
    failed: list[tuple[int, str]] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    by_ocr: int = 0
    _held: dict[int, Page] = field(default_factory=dict)

    def read_all(self, finder: FieldFinder | None) -> None:
        """Reads what is not read yet. Raises: Interrupted."""
        numbers = self.opened.numbers
        self.progress.start(len(numbers))
        with contextlib.closing(self._each()) as pages:
            for page in pages:
                if not page.width:
                    self.failed.append((page.page, "; ".join(page.warnings)))
                else:
                    self._count_warnings(page)
                self.facts.add(page)
                if finder is not None:
                    finder.add(self.store.with_image(page) if finder.reads_images else page)
                if len(numbers) <= KEPT:
                    self._held[page.page] = page
                self.progress.page()
                if self.progress.stopped():
                    raise Interrupted

    def finished(self) -> Iterator[Page]:
        """All pages, with what only the whole document tells. Raises: Interrupted."""
        return self.facts.finish(self._all())

    def _each(self) -> Generator[Page, None, None]:
        """All pages in order: those that were read before from the store, the others read now."""
        task, missing = self.opened.worker_task(self.store), set[int]()
        if task is not None and self.workers.are_worth(len(self.opened.numbers)):
            missing = {number for number in self.opened.numbers if not self.store.file(number).is_file()}
        if task is None or not self.workers.are_worth(len(missing)):
            for number in self.opened.numbers:
                yield self.store.load(number) or self._read(number)
            return
        found = self.workers.read(task, [number for number in self.opened.numbers if number in missing])
        with contextlib.closing(found):
            for number in self.opened.numbers:
                page = next(found)[1] if number in missing else self.store.load(number)
                yield page or self._read(number)

    def _read(self, number: int) -> Page:
        return self.store.save(self.opened.read(number))

    def _all(self) -> Iterator[Page]:
        for number in self.opened.numbers:
            if self.progress.stopped():
                raise Interrupted
            page = self._held.get(number) or self.store.load(number)
            assert page is not None
            yield page

    def _count_warnings(self, page: Page) -> None:
        by_ocr = [warning for warning in page.warnings if warning.startswith("read by OCR")]
        self.by_ocr += bool(by_ocr)
        for warning in page.warnings:
            if warning not in by_ocr:
                self.warnings[f"page {page.page}: {warning}"] += 1

    def notes(self) -> tuple[str, ...]:
        """What is worth a word."""
        notes = list(self.warnings)[:NOTES]
        if len(self.warnings) > NOTES:
            notes.append(f"{len(self.warnings) - NOTES} more warnings, in the pages' JSON")
        if self.by_ocr:
            notes.append(
                f"{self.by_ocr} of {self.facts.pages} pages have no text layer to believe: read by OCR"
            )
        return tuple(notes)


class OCRDocuments(DocumentConverter):
    """Writes documents in the formats that are named here; paddle is PP-StructureV3's JSON, png are drawings."""

    formats: ClassVar[tuple[str, ...]] = tuple(
        ["md", "html", "json", "txt", "docx", "xlsx", "pdf", "hocr", "alto", "tsv", "paddle", "png"]
    )
    suffixes: ClassVar[tuple[str, ...]] = (".pdf", *vision_image.SUFFIXES)

    def __init__(
        self, reader: DocumentReader, options: DocumentOptions, field_model: FieldModel | None = None
    ) -> None:
        self._reader, self._options, self._field_model = reader, options, field_model
        self._workers = PageWorkers(options.workers)

    def close(self) -> None:
        self._workers.close()

    def check_formats(self, formats: Sequence[str]) -> None:
        for name in formats:
            if name in _EXTRAS:
                _EXTRAS[name]()

    def outputs(self, stem: Path, formats: Sequence[str]) -> Sequence[Path]:
        names = [stem.with_name(stem.name + _ENDINGS.get(name, f".{name}")) for name in formats]
        return [*names, *([_fields_file(stem)] if self._options.wants_fields else [])]

    def convert(
        self, source: Path, stem: Path, formats: Sequence[str], work: Path, progress: Progress
    ) -> Conversion:
        beside = not _SHOW_FIGURES_BESIDE.isdisjoint(formats)
        figures = (stem.with_name(f"{stem.name}_files") if beside else work / "figures") if (
            not _NEED_FIGURES.isdisjoint(formats)
        ) else None  # fmt: skip
        finder = FieldFinder(model=self._field_model) if self._options.wants_fields else None
        image = bool({"pdf", "png"} & set(formats)) or (finder is not None and finder.reads_images)
        reader = replace(self._reader, images=image, figures=self._reader.figures and figures is not None)
        label = self.labels.get(source, str(source))
        options = self._options
        with reader.open(source, pages=options.pages, password=options.password, label=label) as opened:
            pages = _Pages(opened, PageStore(work, figures, image), self._workers, progress)
            pages.read_all(finder)
            fields = () if finder is None else finder.find()
            folder = None if figures is None else figures.parent
            written = _write(_Job(pages, label, stem, folder, fields), formats)
            if finder is not None:
                write_json(_fields_file(stem), [field_to_dict(item) for item in fields])
                written.append(_fields_file(stem))
            return Conversion(tuple(written), len(opened.numbers), tuple(pages.failed), pages.notes())


@dataclass(frozen=True)
class _Job:
    """What a format is written from, and its file's name up to the ending."""

    pages: _Pages
    source: str
    stem: Path
    folder: Path | None  # where the paths of figures start
    fields: tuple[Field, ...]

    def file(self, ending: str) -> Path:
        return self.stem.with_name(self.stem.name + ending)


def _fields_file(stem: Path) -> Path:
    return stem.with_name(f"{stem.name}_fields.json")


def _write(job: _Job, formats: Sequence[str]) -> list[Path]:
    """Writes the formats; returns their files, in this order. Raises: DiskError, Interrupted."""
    written = {name: _WHOLE_FILES[name](job) for name in formats if name in _WHOLE_FILES}
    written |= _write_together(job, [name for name in formats if name in _STEPWISE])
    return [path for name in formats for path in written[name]]


def _write_together(job: _Job, formats: Sequence[str]) -> Mapping[str, list[Path]]:
    """The files of formats that are written step by step, all in one pass over the pages.

    The format that is the most pages behind goes on, so that few pages are held.
    """
    pages = job.pages.finished()
    waiting: dict[str, deque[Page]] = {name: deque() for name in formats}

    def take(name: str) -> Iterator[Page]:
        while True:
            if not waiting[name]:
                page = next(pages, None)
                if page is None:
                    return
                for queue in waiting.values():
                    queue.append(page)
            yield waiting[name].popleft()

    written: dict[str, list[Path]] = {}
    with contextlib.ExitStack() as stack:
        steps = {name: _STEPWISE[name](job, take(name)) for name in formats}
        for each in steps.values():  # after an error of one format the others leave no half file
            stack.enter_context(contextlib.closing(each))
        while len(written) < len(steps):
            name = max((n for n in formats if n not in written), key=lambda name: len(waiting[name]))
            try:
                next(steps[name])
            except StopIteration as end:
                written[name] = end.value
    return written


def _write_text(path: Path, pieces: Iterator[str]) -> _Steps:
    with text_file(path) as out:
        for piece in pieces:
            out.write(piece)
            yield
    return [path]


def _write_json(job: _Job, pages: Iterator[Page]) -> _Steps:
    def pieces() -> Iterator[str]:
        yield f'{{"source": {_dump(job.source)}, "pages": ['
        for number, page in enumerate(pages):
            yield (",\n" if number else "\n") + _dump(page.to_dict())
        fields = [field_to_dict(item) for item in job.fields]
        yield "\n]" + (f', "fields": {_dump(fields)}' if fields else "") + "}\n"

    return _write_text(job.file(".json"), pieces())


def _write_paddle(job: _Job, pages: Iterator[Page]) -> _Steps:
    def pieces() -> Iterator[str]:
        count = len(job.pages.opened.numbers)
        for number, page in enumerate(pages):
            yield (",\n" if number else "[") + _dump(plain(page_to_paddle(page, count)))
        yield "]\n"

    return _write_text(job.file(_ENDINGS["paddle"]), pieces())


def _dump(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def _write_docx(job: _Job) -> list[Path]:
    path = job.file(".docx")
    write_docx_pages(job.pages.finished(), path, job.source, job.folder)
    return [path]


def _write_xlsx(job: _Job) -> list[Path]:
    path = job.file(".xlsx")
    write_xlsx_pages(job.pages.finished(), path)
    return [path]


def _write_plain(job: _Job, pages: Iterator[Page]) -> _Steps:
    return _write_text(
        job.file(".txt"), (("\f" if number else "") + page.text for number, page in enumerate(pages))
    )


def _write_tsv(job: _Job, pages: Iterator[Page]) -> _Steps:
    return _write_text(job.file(".tsv"), iterate_tsv(pages))


def _write_document(job: _Job, name: str, text: Callable[[Document], str]) -> list[Path]:
    path = job.file(_ENDINGS.get(name, f".{name}"))
    with text_file(path) as out:
        out.write(text(Document(tuple(job.pages.finished()), job.source)))
    return [path]


def _write_pdf(job: _Job, pages: Iterator[Page]) -> _Steps:
    path = job.file(".pdf")
    with whole_file(path) as temporary, temporary.open("wb") as out:
        writer = SearchablePdf(out, job.source)
        for page in pages:
            jpeg = job.pages.store.jpeg(page)
            if jpeg is None:  # a page that cannot be read keeps its place
                blank = Page((), page.page, width=8, height=8, image=np.full((8, 8, 3), 255, np.uint8))
                writer.add(blank, to_jpeg(blank), _A4)
            else:
                writer.add(page, jpeg, paper_of(page, 200.0))
            yield
        writer.finish()
    return [path]


def _write_drawings(job: _Job, pages: Iterator[Page]) -> _Steps:
    written = []
    for page in pages:
        shown = job.pages.store.with_image(page)
        if shown.image is not None:
            path = job.file(f"_page{page.page}.png")
            vision_image.write(path, shown.draw())
            written.append(path)
        yield
    return written


_STEPWISE: dict[str, Callable[[_Job, Iterator[Page]], _Steps]] = {
    "md": lambda job, pages: _write_text(job.file(".md"), iterate_markdown(pages)),
    "html": lambda job, pages: _write_text(job.file(".html"), iterate_html(pages, job.source, job.folder)),
    "json": _write_json,
    "txt": _write_plain,
    "tsv": _write_tsv,
    "pdf": _write_pdf,
    "paddle": _write_paddle,
    "png": _write_drawings,
}
_WHOLE_FILES: dict[str, Callable[[_Job], list[Path]]] = {
    "docx": _write_docx,
    "xlsx": _write_xlsx,
    "hocr": lambda job: _write_document(job, "hocr", Document.to_hocr),
    "alto": lambda job: _write_document(job, "alto", Document.to_alto),
}


def open_converter(
    model: Model | ConfigFile, options: DocumentOptions, runtime: Runtime, overrides: Sequence[str] = ()
) -> OCRDocuments:
    """The converter that these options ask for; the model is opened for the first page that needs it."""
    ocr = lazy_ocr(model, runtime, overrides, options.ocr_options())
    return OCRDocuments(make_reader(options, ocr, runtime), options, open_field_model(options, runtime))
