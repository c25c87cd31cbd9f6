"""Pages read by processes side by side: the same pages in the same order, whatever becomes of a worker."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import InputError
from framework.workflow.files.documents import Interrupted, Progress
from framework.workflow.files.pdf import PdfReader
from ocr.documents import page_workers
from ocr.documents.convert import OCRDocuments
from ocr.documents.lazy import Lazy
from ocr.documents.options import DocumentOptions
from ocr.documents.page_workers import PageWorkers
from ocr.documents.reader import DocumentReader
from ocr.results.pages import Page
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf
from tests.unit.ocr.documents.test_reader import no_ocr


class Deadly(DocumentReader):
    """Page 3 ends the process that reads it, page 5 needs OCR, page 6 is damaged."""

    def read_pdf_page(self, reader: PdfReader, number: int, label: str) -> Page:
        if number == 3:
            os._exit(7)
        if number == 5:
            self.ocr.get()
        if number == 6:
            raise InputError("this page is damaged")
        return super().read_pdf_page(reader, number, label)


def pages(count: int) -> bytes:
    return make_pdf(*(PdfPage().text(50, 100, f"the words of page {n}") for n in range(1, count + 1)))


def new_workers(before: set[int | None]) -> set[int | None]:
    """Processes that read pages, but for those that other tests of this process keep open."""
    return {child.pid for child in mp.active_children() if child.name == "oar-pages"} - before


def test_pages_come_in_order_and_a_dead_worker_costs_its_own_page_alone() -> None:
    before = new_workers(set())
    with (
        DocumentReader(Lazy(no_ocr), dpi=72).open(pages(9)) as opened,
        Deadly(Lazy(no_ocr), dpi=72).open(pages(9)) as deadly,
    ):
        workers = PageWorkers(2)
        whole, broken = opened.worker_task(), deadly.worker_task()
        assert whole is not None and broken is not None
        found = list(workers.read(broken, deadly.numbers))
        assert [number for number, _ in found] == list(range(1, 10))
        texts = {number: None if page is None else page.text for number, page in found}
        said = {n: f"the words of page {n}" for n in range(1, 10)}
        assert texts == {**said, 3: "", 5: None, 6: ""}
        dead, damaged = found[2][1], found[5][1]
        assert dead is not None and damaged is not None and (dead.width, damaged.width) == (0, 0)
        assert dead.warnings == ("the process that read it ended, exit code 7",)
        assert damaged.warnings == ("this page is damaged",)
        # They read another document, whose pages are those that this process reads.
        again = dict(workers.read(whole, (8, 2, 3)))
        assert list(again) == [8, 2, 3]
        for number, page in again.items():
            assert page is not None and page.blocks == opened.read(number).blocks
        left = workers.read(whole, opened.numbers)
        next(left)
        left.close()
        assert not new_workers(before)
        workers.close()


def test_where_no_worker_starts_pages_are_read_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started = page_workers._start

    def start() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(page_workers, "serve", _end)
            return started()

    monkeypatch.setattr(page_workers, "_start", start)
    monkeypatch.setattr(page_workers, "FEW", 1)
    found = DocumentReader(Lazy(no_ocr), dpi=72)(pages(4), workers=2)
    assert [page.text for page in found.pages] == [f"the words of page {n}" for n in range(1, 5)]
    assert "worker processes cannot be started (exit code 4)" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal masks")
def test_ctrl_c_does_not_end_a_worker_that_starts() -> None:
    worker = page_workers._start()
    try:
        for _ in range(20):  # while it is not Python yet, and while it imports
            assert worker.process.pid is not None
            os.kill(worker.process.pid, signal.SIGINT)
            time.sleep(0.02)
        assert worker.connection.poll(60) and worker.connection.recv() == "ready"
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        worker.connection.close()
        worker.process.join()
    assert worker.process.exitcode == 0


def _end(connection: object) -> None:
    os._exit(4)


def test_windows_waits_for_so_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_workers.sys, "platform", "win32")
    assert PageWorkers(100).are_worth(8 * 61) and not PageWorkers(100).are_worth(8 * 61 - 1)
    monkeypatch.setattr(page_workers.sys, "platform", "linux")
    assert not PageWorkers(100).are_worth(8 * 61)


def test_what_workers_do_not_read() -> None:
    assert not PageWorkers(1).are_worth(1000) and not PageWorkers(2).are_worth(15)
    assert PageWorkers(2).are_worth(16)
    with DocumentReader(Lazy(no_ocr), text_layer="never").open(pages(1)) as opened:
        assert opened.worker_task() is None  # every page needs OCR
    with DocumentReader(Lazy(no_ocr), layout=no_ocr).open(pages(1)) as opened:  # type: ignore[arg-type]
        assert opened.worker_task() is None
    with pytest.raises(InputError, match="workers are too few"):
        DocumentOptions(workers=0)


def convert(
    tmp_path: Path, workers: int, stopped: Callable[[], bool] = lambda: False
) -> tuple[OCRDocuments, dict[str, Any], list[int]]:
    """The converter, what was written of in.pdf, and how many pages were told of."""
    told: list[int] = []
    progress = Progress(told.append, lambda: told.append(1), lambda: len(told) > 1 and stopped())
    converter = OCRDocuments(DocumentReader(Lazy(no_ocr), dpi=72), DocumentOptions(workers=workers))
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    try:
        converter.convert(tmp_path / "in.pdf", tmp_path / "in", ("md", "json"), work, progress)
    except Interrupted:
        converter.close()  # as commands do: workers that have read all that they may stay until then
        raise
    plain = json.loads((tmp_path / "in.json").read_text(encoding="utf-8"))
    for page in plain["pages"]:
        del page["seconds"], page["source"]
    del plain["source"]
    return converter, {"md": (tmp_path / "in.md").read_bytes(), "json": plain}, told


def test_files_are_those_of_one_process_and_ctrl_c_loses_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_workers, "FEW", 1)
    before = new_workers(set())
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.pdf").write_bytes(pages(12))
    _, alone, told = convert(tmp_path / "one", 1)
    assert told == [12, *[1] * 12]
    with pytest.raises(Interrupted):
        convert(tmp_path / "two", 2, stopped=lambda: True)
    assert not new_workers(before)
    kept = sorted((tmp_path / "two" / "work").iterdir())
    assert 1 <= len(kept) < 12 and all(file.suffix == ".json" for file in kept)
    times = [file.stat().st_mtime_ns for file in kept]
    converter, beside, told = convert(tmp_path / "two", 2)
    converter.close()
    assert beside == alone and told == [12, *[1] * 12]
    assert [file.stat().st_mtime_ns for file in kept] == times  # none was read again
