"""PDFs that are made to end the process that reads them: the process that looks at them first dies instead."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.workflow.files import pdf_child, pdf_guard
from framework.workflow.files.pdf import PdfReader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems bound the time alone")
LEAF = b"0 0 m 9 9 l S"


def stream(entries: bytes, data: bytes, packed: bool = True) -> bytes:
    if packed:
        data, entries = zlib.compress(data), entries + b"/Filter/FlateDecode"
    return b"<<" + entries + b"/Length %d>>\nstream\n" % len(data) + data + b"\nendstream"


def write(path: Path, resources: bytes, contents: bytes, *more: bytes, page: bytes = b"") -> Path:
    """A document of one page; its content is object 4, the others follow."""
    kinds = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 60 80]/Contents 4 0 R/Resources<<"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        kinds + resources + b">>" + page + b">>",
        contents,
        *more,
    ]
    data, starts = b"%PDF-1.7\n", []
    for number, value in enumerate(objects, 1):
        starts.append(len(data))
        data += b"%d 0 obj\n" % number + value + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    count = len(objects) + 1
    tail = b"xref\n0 %d\n0000000000 65535 f \n" % count + table
    tail += b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (count, len(data))
    path.write_bytes(data + tail)
    return path


def forms(first: int, depth: int, draws: int, packed: bool) -> list[bytes]:
    """Forms of which each draws the next one so often."""
    head = b"/Type/XObject/Subtype/Form/BBox[0 0 60 80]"
    made = [
        stream(head + b"/Resources<</XObject<</X %d 0 R>>>>" % (first + n + 1), b"/X Do " * draws, packed)
        for n in range(depth - 1)
    ]
    return [*made, stream(head, LEAF, packed)]


def bomb(path: Path, kind: str) -> Path:
    if kind == "annotation":
        note = b"<</Type/Annot/Subtype/Stamp/Rect[0 0 60 80]/AP<</N 6 0 R>>>>"
        return write(path, b"", stream(b"", LEAF), note, *forms(6, 9, 10, True), page=b"/Annots[5 0 R]")
    if kind == "paths":
        return write(path, b"", stream(b"", b"0 0 m 10 10 l S\n" * 20_000_000))
    contents = stream(b"", b"/X Do " * 10, kind == "packed forms")
    return write(path, b"/XObject<</X 5 0 R>>", contents, *forms(5, 8, 10, kind == "packed forms"))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The process with less memory, so that it dies sooner."""
    text = Path(pdf_child.__file__).read_text(encoding="utf-8")
    program = tmp_path_factory.mktemp("child") / "pdf_child.py"
    program.write_text(text.replace("MEMORY = 2 << 30", "MEMORY = 1 << 29"), encoding="utf-8")
    monkeypatch.setattr(pdf_child, "__file__", str(program))
    monkeypatch.setattr(pdf_guard, "_child", pdf_guard._Child())
    yield
    pdf_guard._child.close()


@pytest.mark.parametrize("kind", ["forms", "packed forms", "paths", "annotation"])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_bomb_is_refused_and_the_next_document_is_read(tmp_path: Path, kind: str, as_bytes: bool) -> None:
    path = bomb(tmp_path / "bomb.pdf", kind)
    with PdfReader(path.read_bytes() if as_bytes else path) as pages:
        for _ in range(2):  # the second time nothing dies
            with pytest.raises(InputError, match=r"(?s)page 1: the PDF ends the process.*with at most \d GB"):
                _ = pages[0]
        with pytest.raises(InputError, match="ends the process"):
            pages.content(0)
    with PdfReader(write(tmp_path / "good.pdf", b"", stream(b"", LEAF))) as pages:
        assert pages[0].shape == (223, 167, 3)


def test_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "slow.py"
    text = Path(pdf_child.__file__).read_text(encoding="utf-8")
    text = text.replace("SECONDS = 8", "SECONDS = 0").replace(
        '                    _look(document, request["page"])', "                    while True: pass"
    )
    program.write_text(text, encoding="utf-8")
    monkeypatch.setattr(pdf_child, "__file__", str(program))
    good = write(tmp_path / "good.pdf", b"", stream(b"", LEAF))
    with PdfReader(good) as pages, pytest.raises(InputError, match="seconds of CPU time"):
        _ = pages[0]


def test_two_documents_at_once(tmp_path: Path) -> None:
    one = write(tmp_path / "one.pdf", b"", stream(b"", LEAF))
    with PdfReader(one, dpi=72) as first, PdfReader(one.read_bytes(), dpi=72) as second:
        for _ in range(2):
            assert np.array_equal(first[0], second[0])
        assert pdf_guard._child.process is not None


def test_a_process_that_forked_starts_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "one.pdf", b"", stream(b"", LEAF))
    with PdfReader(one) as pages:
        before = pdf_guard._child.process
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            assert pages[0].size
            assert pdf_guard._child.process is not before
            pdf_guard._child.close()
    assert before is not None
    os.waitpid(before.pid, 0)  # its pipe is closed


def test_where_no_process_can_be_started_pages_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with PdfReader(write(tmp_path / "good.pdf", b"", stream(b"", LEAF))) as pages:
        assert pages[0].size
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(pdf_guard, "_child", pdf_guard._Child())
    with PdfReader(tmp_path / "good.pdf") as pages:
        assert pages[0].size
