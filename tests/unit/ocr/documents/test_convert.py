"""Formats written in one pass over the pages of a document: what is loaded, held and left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.core.disk import DiskError
from framework.workflow.files.documents import Conversion, Interrupted, Progress
from ocr.documents import convert
from ocr.documents.convert import OCRDocuments
from ocr.documents.options import DocumentOptions
from ocr.documents.page_store import PageStore
from ocr.documents.reader import DocumentReader
from ocr.results.pages import Page
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf
from tests.unit.ocr.documents.test_reader import no_ocr, table_page

PAGES = 12


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with in.pdf, whose pages are not held."""
    monkeypatch.setattr(convert, "KEPT", 2)
    # Where a paragraph goes on over the page break, Markdown and HTML take a page more than JSON before they write.
    pages = (
        (table_page() if n % 3 else PdfPage()).text(30, 200, f"words of page {n} that go on,")
        for n in range(PAGES)
    )
    (tmp_path / "in.pdf").write_bytes(make_pdf(*pages))
    (tmp_path / "work").mkdir()
    return tmp_path


def write(folder: Path, *formats: str, progress: Progress | None = None) -> Conversion:
    converter = OCRDocuments(DocumentReader(no_ocr, dpi=72), DocumentOptions())
    return converter.convert(
        folder / "in.pdf", folder / "in", formats, folder / "work", progress or Progress()
    )


def test_all_formats_take_one_pass_and_hold_few_pages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    formats = ("md", "html", "json", "paddle")
    alone = {path.name: path.read_bytes() for name in formats for path in write(folder, name).written}
    loaded: list[int] = []
    load, queues = PageStore.load, []

    def count(store: PageStore, number: int) -> Page | None:
        loaded.append(number)
        return load(store, number)

    class Queue(convert.deque):
        def append(self, page: Page) -> None:
            super().append(page)
            queues.append(len(self))

    write(folder, *formats)  # the pages are in the store now
    monkeypatch.setattr(PageStore, "load", count)
    monkeypatch.setattr(convert, "deque", Queue)
    done = write(folder, *formats)
    assert [path.name for path in done.written] == ["in.md", "in.html", "in.json", "in_res.json"]
    assert {path.name: path.read_bytes() for path in done.written} == alone
    assert loaded == [*range(1, PAGES + 1)] * 2  # to tell what all of them say, and to write
    assert len(queues) == PAGES * len(formats) and max(queues) <= 3


def test_ctrl_c_while_files_are_written_keeps_the_pages(folder: Path) -> None:
    told: list[int] = []
    asked: Iterator[bool] = iter(
        [False] * (PAGES + 4)
    )  # after each page that is read, and then while it is written
    progress = Progress(page=lambda: told.append(1), stopped=lambda: next(asked, True))
    with pytest.raises(Interrupted):
        write(folder, "md", "json", progress=progress)
    assert len(told) == PAGES
    assert sorted(path.name for path in folder.iterdir()) == ["in.pdf", "work"]
    assert len(list((folder / "work").iterdir())) == PAGES
    assert len(write(folder, "md", "json").written) == 2


def test_a_format_that_fails_leaves_no_half_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(page: Page, count: int) -> None:
        if page.page == 5:
            raise DiskError("the disk is full", where=folder)

    monkeypatch.setattr(convert, "page_to_paddle", fail)
    with pytest.raises(DiskError):
        write(folder, "md", "json", "paddle")
    assert sorted(path.name for path in folder.iterdir()) == ["in.pdf", "work"]
