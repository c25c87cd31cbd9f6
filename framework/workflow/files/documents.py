"""Read documents of files and folders into other formats: what `oar document` calls, for the domain that reads them.

Beside the outputs lies a hidden folder `.oar` with a record of every finished file and the pages of the unfinished one.
So a second run skips what is finished, and a file that was interrupted goes on after its last page.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import shutil
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypedDict

from filelock import FileLock, Timeout
from tqdm import tqdm

from framework.core.disk import DiskError, walk_files
from framework.core.errors import InputError, OarError
from framework.core.interrupts import catch_interrupt
from framework.workflow.domain.outputs import (
    Report,
    fit_name,
    make_folder,
    spare_sources,
    write_json,
)
from framework.workflow.files.sources import SourceFile, Sources, output_stems

log = logging.getLogger("oar")
RECORDS = ".oar"
_LOCK_POLL = 0.2  # seconds


class Interrupted(Exception):
    """Raised by a converter where `Progress.stopped` says so; what it has read so far is kept."""


@dataclass(frozen=True)
class Progress:
    """How a converter tells how far it is, and learns that it is to stop."""

    start: Callable[[int], object] = lambda pages: None
    page: Callable[[], object] = lambda: None
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Conversion:
    """What came of one file: the files written, its pages, those of them that could not be read and why, and notes."""

    written: tuple[Path, ...]
    pages: int
    failed: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()


class DocumentConverter(ABC):
    """Reads one file after the other; made by `Domain.open_documents`.

    Attributes:
        formats: What it writes, such as "md".
        suffixes: Of the files it reads, in small letters.
        labels: What the user calls the files to convert, where that is not their path.
    """

    formats: ClassVar[tuple[str, ...]] = ()
    suffixes: ClassVar[tuple[str, ...]] = ()
    labels: Mapping[Path, str] = {}  # never changed, but replaced

    def check_formats(self, formats: Sequence[str]) -> None:
        """Called before anything is read. Raises: MissingExtraError, where a format needs a package that is missing."""
        return

    @abstractmethod
    def outputs(self, stem: Path, formats: Sequence[str]) -> Sequence[Path]:
        """The files that `convert` writes for these formats, whatever the document holds."""

    @abstractmethod
    def convert(
        self, source: Path, stem: Path, formats: Sequence[str], work: Path, progress: Progress
    ) -> Conversion:
        """Read a file and write `<stem>.<format>` for each of the formats, each whole or not at all.

        Args:
            work: A folder for what is read so far; what is in it is of the same file and settings.

        Raises:
            OarError: the file cannot be read at all. DiskError: the disk takes no more. Interrupted.
        """

    def close(self) -> None:
        """End what was started to convert files; it starts again with the next one."""
        return


@dataclass
class _Run:
    converter: DocumentConverter
    formats: tuple[str, ...]
    settings: Mapping[str, object]
    overwrite: bool
    report: Report = field(default_factory=Report)
    finished: int = 0  # before this run


def find_documents(source: Path, suffixes: Sequence[str], output_dir: Path) -> list[Path]:
    """The file, or all files of a folder and its subfolders with one of the suffixes, by name; not those of the output.

    Raises: InputError: there is nothing to read.
    """
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise InputError("there is no such file or folder", where=source, fix="check the path")
    output = output_dir.resolve()
    inside = output != source.resolve()  # the output may lie in the folder that is read
    files = [
        file
        for file in sorted(map(Path, walk_files(source)))
        if file.suffix.lower() in suffixes
        and file.is_file()
        and not (inside and file.resolve().is_relative_to(output))
    ]
    if not files:
        raise InputError(
            "the folder holds no document", where=source, allowed=f"files such as {', '.join(suffixes)}"
        )
    return files


def convert_documents(
    converter: DocumentConverter,
    source: Path | Sources,
    output_dir: Path,
    formats: Sequence[str],
    settings: Mapping[str, object],
    *,
    overwrite: bool = False,
) -> Report:
    """Convert a file, every document of a folder, whose subfolders the output has too, or those of several.

    A file or page that cannot be read is reported and the others are read. A file whose outputs are there, made of the
    same source and settings, is skipped; one of whose pages some could not be read is reported again.

    Args:
        settings: What the results depend on besides the source, as plain data.
        overwrite: Convert what is finished, too.

    Raises:
        InputError: there is nothing to read, or an output would replace its source.
        MissingExtraError: a format needs a package that is missing. DiskError.
    """
    converter.check_formats(formats)
    if isinstance(source, Path):
        root = source if source.is_dir() else source.parent
        found = find_documents(source, converter.suffixes, output_dir)
        source = Sources(tuple(SourceFile(file, str(file), root) for file in found))
    files = [file.path for file in source.files]
    targets = {
        file: _fitting(converter, stem, formats)
        for file, stem in output_stems(source.files, output_dir).items()
    }
    spare_sources(files, (path for stem in targets.values() for path in converter.outputs(stem, formats)))
    run = _Run(converter, tuple(formats), dict(settings), overwrite)
    run.report.notes += source.notes
    converter.labels = {file.path: file.label for file in source.files}
    stopped = threading.Event()
    show = sys.stderr.isatty()
    with contextlib.closing(converter), catch_interrupt(stopped):
        others = []  # that another process reads into this folder
        for file in tqdm(files, unit="file", disable=not show or len(files) < 2):
            if stopped.is_set():
                break
            if not _convert_locked(run, file, targets[file], stopped, show):
                others.append(file)
        if others and not stopped.is_set():
            log.info("another process reads %d of these files into the same folder, waiting", len(others))
            run.overwrite = False  # what it has finished by then
        for file in others:
            while not stopped.is_set() and not _convert_locked(run, file, targets[file], stopped, show):
                time.sleep(_LOCK_POLL)
    if run.finished:
        run.report.notes.append(f"{run.finished} finished before and skipped; --overwrite reads them again")
    run.report.note_stop(stopped.is_set())
    return run.report


def _fitting(converter: DocumentConverter, stem: Path, formats: Sequence[str]) -> Path:
    """A stem whose outputs have names that file systems take."""
    endings = [path.name.removeprefix(stem.name) for path in converter.outputs(stem, formats)]
    return stem.with_name(fit_name(stem.name, endings))


def _convert_locked(run: _Run, file: Path, stem: Path, stopped: threading.Event, show: bool) -> bool:
    """`_convert_one`, unless another process does it; returns whether this one did."""
    records = stem.parent / RECORDS
    make_folder(records)
    lock = FileLock(records / f"{fit_name(stem.name, ['.pages', '.123456789012'])}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return False
    except (OSError, NotImplementedError):  # a file system without locks, or the disk: it is told below
        _convert_one(run, file, stem, stopped, show)
        return True
    try:
        _convert_one(run, file, stem, stopped, show)
    finally:
        with contextlib.suppress(OSError):  # Windows keeps what is open
            Path(lock.lock_file).unlink()
        lock.release()
    return True


def _convert_one(run: _Run, file: Path, stem: Path, stopped: threading.Event, show: bool) -> None:
    records = stem.parent / RECORDS
    name = fit_name(stem.name, [".pages", ".123456789012"])
    record, work = records / f"{name}.json", records / f"{name}.pages"
    label = run.converter.labels.get(file, str(file))
    try:
        facts = file.stat()
        wanted = {
            "source": str(file),
            "bytes": facts.st_size,
            "modified": facts.st_mtime_ns,
            "formats": list(run.formats),
            "settings": run.settings,
        }
        known = None if run.overwrite else _read_record(record)
        if known is not None and known["made_of"] == wanted and _all_there(known, stem.parent):
            run.finished += 1
            _report_failures(run.report, label, [(n, reason) for n, reason in known["failed"]])
            return
        make_folder(records)
        _prepare_work(work, wanted, run.overwrite)
        with contextlib.ExitStack() as stack:
            bars: list[tqdm] = []

            def start(pages: int) -> None:
                bar = tqdm(total=pages, unit="page", desc=file.name[:30], leave=False, disable=not show)
                bars.append(stack.enter_context(bar))

            progress = Progress(start, lambda: bars[0].update(1) if bars else None, stopped.is_set)
            done = run.converter.convert(file, stem, run.formats, work, progress)
    except Interrupted:
        return
    except (OarError, OSError) as error:
        if isinstance(error, DiskError) and error.errno not in (errno.ENAMETOOLONG, errno.EFBIG):
            raise
        run.report.failed.append((label, str(error)))
        shutil.rmtree(work, ignore_errors=True)
        return
    written = [path.relative_to(stem.parent).as_posix() for path in done.written]
    write_json(
        record,
        {
            "made_of": wanted,
            "written": written,
            "pages": done.pages,
            "failed": [list(f) for f in done.failed],
        },
    )
    shutil.rmtree(work, ignore_errors=True)
    run.report.written += done.written
    run.report.notes += [f"{label}: {note}" for note in done.notes]
    _report_failures(run.report, label, done.failed)


def _report_failures(report: Report, label: str, failed: Iterable[tuple[int, str]]) -> None:
    for number, reason in failed:
        beginning = f"{label}, page {number}: "  # which most reasons begin with
        report.failed.append((label, beginning + reason.removeprefix(beginning)))


class _Record(TypedDict):
    """What is written of a file that is finished."""

    made_of: object
    written: list[str]
    failed: list[tuple[int, str]]


def _read_record(path: Path) -> _Record | None:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not (isinstance(known, dict) and all(isinstance(known.get(n), list) for n in ("written", "failed"))):
        return None
    return _Record(made_of=known.get("made_of"), written=known["written"], failed=known["failed"])


def _all_there(known: _Record, folder: Path) -> bool:
    return all(isinstance(name, str) and (folder / name).is_file() for name in known["written"])


def _prepare_work(work: Path, wanted: Mapping[str, object], fresh: bool) -> None:
    """The folder of the pages that are read; pages of another file or of other settings are taken away."""
    made_of = work / "made_of.json"
    try:
        known = None if fresh else json.loads(made_of.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        known = None
    # Formats say which images were kept: pages without them cannot be used.
    if known != wanted:
        shutil.rmtree(work, ignore_errors=True)
        make_folder(work)
        write_json(made_of, wanted)


def write_scores(
    scores: Mapping[str, float], pages: Sequence[Mapping[str, object]], folder: Path
) -> list[Path]:
    """scores.json and pages.json, a row for each page; returns what was written.

    Raises:
        DiskError: the folder cannot be written to.
    """
    make_folder(folder)
    paths = [folder / "scores.json", folder / "pages.json"]
    for path, data in zip(paths, (scores, pages), strict=True):
        write_json(path, data)
    return paths
