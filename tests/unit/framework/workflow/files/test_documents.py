"""The loop behind `oar document`, with a converter that copies: what is skipped, resumed, reported, refused."""

from __future__ import annotations

import errno
import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from framework.core.disk import _disk_error
from framework.core.errors import InputError
from framework.workflow.domain.outputs import fit_name
from framework.workflow.files.documents import (
    RECORDS,
    Conversion,
    DocumentConverter,
    Interrupted,
    Progress,
    convert_documents,
    find_documents,
)


class Copies(DocumentConverter):
    """A line is a page; one that says "bad" cannot be read, a file that says "broken" neither."""

    formats = ("txt",)
    suffixes = (".doc",)

    def __init__(self) -> None:
        self.read: list[str] = []
        self.interrupt_at = ""

    def outputs(self, stem: Path, formats: Sequence[str]) -> Sequence[Path]:
        return [stem.with_suffix(".txt")]

    def convert(
        self, source: Path, stem: Path, formats: Sequence[str], work: Path, progress: Progress
    ) -> Conversion:
        lines = source.read_text(encoding="utf-8").split()
        if "broken" in lines:
            raise InputError("this cannot be read", where=source)
        progress.start(len(lines))
        for number, text in enumerate(lines):
            if progress.stopped():
                raise Interrupted
            kept = work / str(number)
            if not kept.is_file():
                self.read.append(text)
                if text == self.interrupt_at:
                    signal.raise_signal(signal.SIGINT)
                kept.write_text(text, encoding="utf-8")
            progress.page()
        stem.with_suffix(".txt").write_text(" ".join(lines), encoding="utf-8")
        failed = tuple((n, "no page") for n, text in enumerate(lines, 1) if text == "bad")
        failed += tuple(
            (n, f"{source}, page {n}: not read") for n, text in enumerate(lines, 1) if text == "worse"
        )
        return Conversion((stem.with_suffix(".txt"),), len(lines), failed, ("a note",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    for name, text in (("a", "one two"), ("b", "broken"), ("sub/c", "three bad"), ("sub/.hidden", "no")):
        (source / f"{name}.doc").write_text(text, encoding="utf-8")
    (source / "other.png").write_bytes(b"")
    return source


def convert(converter: Copies, source: Path, **more):
    output = next((path for path in (source, *source.parents) if path.name == "in"), source).parent / "out"
    return convert_documents(converter, source, output, ["txt"], more.pop("settings", {}), **more)


def test_a_page_is_named_once(folder: Path):
    (folder / "b.doc").write_text("one worse", encoding="utf-8")
    failed = dict(convert(Copies(), folder).failed)
    assert failed[str(folder / "b.doc")] == f"{folder / 'b.doc'}, page 2: not read"


def test_a_folder_and_again(folder: Path):
    converter, output = Copies(), folder.parent / "out"
    report = convert(converter, folder)
    assert report.exit_code == 1
    assert [message for _, message in report.failed] == [
        str(InputError("this cannot be read", where=folder / "b.doc")),
        f"{folder / 'sub/c.doc'}, page 2: no page",
    ]
    assert (output / "a.txt").is_file() and (output / "sub" / "c.txt").read_text(
        encoding="utf-8"
    ) == "three bad"
    assert converter.read == ["one", "two", "three", "bad"]
    assert not list(output.rglob("*.pages"))  # the pages are put away
    # What is finished is skipped, what failed is tried or told again.
    again = convert(converter, folder)
    assert converter.read[4:] == [] and len(again.failed) == 2 and again.exit_code == 1
    assert "2 finished before" in again.summary()
    # It is read again where the source, the settings or the outputs are not the same, or when asked for.
    (folder / "a.doc").write_text("one two four", encoding="utf-8")
    convert(converter, folder)
    assert converter.read[4:] == ["one", "two", "four"]
    convert(converter, folder, settings={"dpi": 100})
    assert converter.read[7:] == ["one", "two", "four", "three", "bad"]
    (output / "sub" / "c.txt").unlink()
    convert(converter, folder, settings={"dpi": 100})
    assert converter.read[12:] == ["three", "bad"]
    convert(converter, folder / "a.doc", settings={"dpi": 100}, overwrite=True)
    assert converter.read[14:] == ["one", "two", "four"]
    (output / RECORDS / "a.json").write_text("[damaged", encoding="utf-8")
    convert(converter, folder / "a.doc", settings={"dpi": 100})
    assert converter.read[17:] == ["one", "two", "four"]


def test_an_interrupted_file_goes_on(folder: Path, ctrl_c_interrupts: None):
    converter = Copies()
    converter.interrupt_at = "one"
    report = convert(converter, folder)
    assert report.exit_code == 130 and converter.read == ["one"]
    assert list((folder.parent / "out").glob(f"{RECORDS}/a.pages/0"))
    convert(converter, folder / "a.doc")
    assert converter.read == ["one", "two"]
    # Pages of other settings are not taken.
    converter.interrupt_at = "three"
    convert(converter, folder / "sub")
    convert(converter, folder / "sub", settings={"dpi": 100})
    assert converter.read[2:] == ["three", "three"] or converter.read[2:] == ["three", "three", "bad"]


def test_what_is_refused(folder: Path, tmp_path: Path):
    with pytest.raises(InputError, match="no such file or folder"):
        convert(Copies(), tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no document"):
        convert(Copies(), tmp_path / "empty")
    with pytest.raises(InputError, match="would replace its source"):
        (folder / "a.txt").hardlink_to(folder / "a.doc")
        convert_documents(Copies(), folder, folder, ["txt"], {})


def test_the_output_is_not_read(folder: Path):
    (folder / "out").mkdir()
    (folder / "out" / "z.doc").write_text("z", encoding="utf-8")
    found = find_documents(folder, (".doc",), folder / "out")
    assert [file.name for file in found] == ["a.doc", "b.doc", "c.doc"]


def test_records_are_plain(folder: Path):
    convert(Copies(), folder / "a.doc", settings={"dpi": 7})
    record = json.loads((folder.parent / "out" / RECORDS / "a.json").read_text(encoding="utf-8"))
    assert (
        record["written"] == ["a.txt"]
        and record["made_of"]["settings"] == {"dpi": 7}
        and record["pages"] == 2
    )


@pytest.mark.parametrize("name", ["a" * 251, "é" * 125, "a" * 240])
def test_a_long_name_ends_no_run(tmp_path: Path, name: str):
    source = tmp_path / "in"
    source.mkdir()
    for stem in ("b", name, name[:-1], "c"):
        (source / f"{stem}.doc").write_text("one", encoding="utf-8")
    report = convert(Copies(), source)
    assert (report.failed, len(report.written)) == ([], 4)
    assert {path.name for path in report.written} >= {"b.txt", "c.txt"}
    assert len({path.name for path in report.written}) == 4
    assert convert(Copies(), source).written == []


def test_a_name_that_the_disk_refuses_is_that_files_own_matter(folder: Path):
    class Refused(Copies):
        def convert(self, source: Path, *args, **more) -> Conversion:
            if source.stem == "a":
                raise _disk_error(source, errno.ENAMETOOLONG, "too long", None)
            return super().convert(source, *args, **more)

    report = convert(Refused(), folder)
    assert len(report.written) == 1
    assert "the name is too long" in report.failed[0][1]


def test_two_runs_into_one_folder_read_each_file_once(tmp_path: Path):
    source = tmp_path / "in"
    source.mkdir()
    for number in range(6):
        (source / f"{number}.doc").write_text(f"one{number}", encoding="utf-8")
    first_is_there = threading.Event()

    class Slow(Copies):
        def convert(self, source: Path, *args, **more) -> Conversion:
            first_is_there.set()
            time.sleep(0.1)
            return super().convert(source, *args, **more)

    one, two = Slow(), Slow()
    reports = []
    thread = threading.Thread(target=lambda: reports.append(convert(one, source)))
    thread.start()
    first_is_there.wait(10)
    reports.append(convert(two, source))
    thread.join()
    assert [report.failed for report in reports] == [[], []]
    assert sorted(one.read + two.read) == [f"one{number}" for number in range(6)]
    output = tmp_path / "out"
    assert sorted(path.name for path in output.iterdir()) == [RECORDS, *(f"{n}.txt" for n in range(6))]
    assert all(path.suffix == ".json" for path in (output / RECORDS).iterdir())


def test_names_of_devices_are_avoided_on_windows(monkeypatch: pytest.MonkeyPatch):
    assert fit_name("aux", [".md"]) == "aux"
    monkeypatch.setattr(sys, "platform", "win32")
    assert [fit_name(name, [".md"]) for name in ("aux", "NUL.page", "com1", "auxiliary", "icon")] == [
        *("_aux", "_NUL.page", "_com1"),
        *("auxiliary", "icon"),
    ]
