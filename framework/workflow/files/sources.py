"""What the arguments of a command name: files, folders with their subfolders, patterns, standard input, addresses."""

from __future__ import annotations

import contextlib
import glob
import re
import sys
import urllib.error
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from framework.core.bounded import check_file
from framework.core.disk import scratch_folder, walk_files
from framework.core.errors import InputError
from framework.hub.transfer import open_url
from framework.vision.image_formats import find_format
from framework.vision.video import is_stream
from framework.workflow.domain.outputs import stems

STDIN = "-"
MOST_BYTES = 1 << 30  # of standard input or of what an address gives
PDF_HEAD = 1024  # bytes at the beginning of a file, where a PDF says that it is one
_ADDRESS = re.compile(r"https?://")
_TIMEOUT = 30.0  # seconds without an answer
_PDF = re.compile(rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?\s*%PDF-")  # at the beginning of a line
_MASK = "_mask"  # ends the name of a mask that lies beside its image
_MOST_SUFFIXES = 8  # that are named of what a folder holds besides


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: Where it lies.
        label: What the user calls it.
        folder: The folder that was named, in which it was found; its own where it was named itself.
    """

    path: Path
    label: str
    folder: Path


@dataclass(frozen=True)
class Sources:
    """The files that arguments name, each once, and what is to be said of what is left out."""

    files: tuple[SourceFile, ...]
    notes: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    """Addresses of streams, such as rtsp://camera/stream."""


@contextlib.contextmanager
def open_sources(
    names: Sequence[str],
    suffixes: Sequence[str],
    *,
    output_dir: Path | None = None,
    allow_url: bool = False,
    with_streams: bool = False,
) -> Iterator[Sources]:
    """The files of arguments; what comes from standard input or from addresses lies in a folder that goes at the end.

    Args:
        names: Files, folders, patterns such as "scans/*.png" (which Windows' shells leave to the program), "-", and
            addresses.
        suffixes: Of the files that are read of a folder, in small letters.
        output_dir: Not read, where it lies in a folder that is.
        allow_url: Whether addresses are fetched.
        with_streams: Whether addresses of streams, such as rtsp://camera/stream, are handed on.

    Raises:
        InputError: one names nothing that can be read, or an address that is not to be fetched.
    """
    with scratch_folder("oar-") as scratch:
        files: list[SourceFile] = []
        notes: list[str] = []
        streams = [name for name in names if with_streams and is_stream(name) and not _ADDRESS.match(name)]
        for number, name in enumerate(names):
            if name in streams:
                continue
            if name == STDIN or _ADDRESS.match(name):
                files.append(_fetch(name, scratch / str(number), allow_url))
                continue
            for path in _expand(name):
                if path.is_dir():
                    inside, note = _files_of_folder(path, suffixes, output_dir)
                    files += (SourceFile(file, str(file), path) for file in inside)
                    notes += note
                else:
                    check_file(str(path), "file", InputError)
                    files.append(SourceFile(path, str(path), path.parent))
        if not files and not streams:
            raise InputError(
                "there is nothing to read",
                where=", ".join(names),
                received="; ".join(notes) or "empty folders",
                allowed=f"files such as {', '.join(suffixes)}",
            )
        yield Sources(
            tuple({file.path: file for file in files}.values()), tuple(notes), tuple(dict.fromkeys(streams))
        )


def output_stems(files: Iterable[SourceFile], output_dir: Path) -> dict[Path, Path]:
    """The path without an ending of the outputs of each file: below the output as below the folder that was named."""
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        target = output_dir / file.path.parent.relative_to(file.folder)
        by_folder.setdefault(target, []).append(file.path)
    return {
        file: folder / name for folder, inside in by_folder.items() for file, name in stems(inside).items()
    }


def _expand(name: str) -> list[Path]:
    """The file or folder of this name, or those that match a pattern. Raises: InputError, where there is none."""
    path = Path(name).expanduser()
    if path.exists() or not glob.has_magic(name):
        if not path.exists():
            check_file(name, "file", InputError)  # which knows addresses, links that lead nowhere …
        return [path]
    found = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not found:
        raise InputError("no file matches the pattern", where=name, fix=f"the current folder is {Path.cwd()}")
    return found


def _files_of_folder(
    folder: Path, suffixes: Sequence[str], output_dir: Path | None
) -> tuple[list[Path], list[str]]:
    """The files of a folder and its subfolders, by name, but hidden ones and those of the output; and a note of what
    it holds besides."""
    output = None if output_dir is None else output_dir.resolve()
    if output is not None and folder.resolve().is_relative_to(output):
        output = None  # the folder lies in that of the output, not the other way around
    files, others = list[Path](), Counter[str]()
    for file in sorted(map(Path, walk_files(folder))):
        if not file.is_file():
            continue
        if output is not None and file.resolve().is_relative_to(output):
            continue
        if file.suffix.lower() in suffixes:
            files.append(file)
        else:
            others[file.suffix.lower() or "without a suffix"] += 1
    files, notes = _without_masks(files, folder)
    if not others:
        return files, notes
    counts = [f"{count} {suffix}" for suffix, count in others.most_common(_MOST_SUFFIXES)]
    more = len(others) - len(counts)
    listed = ", ".join(counts) + (f" and {more} more kinds" if more > 0 else "")
    notes.append(f"{_not_read(folder, others.total())}: {listed}")
    return files, notes


def _without_masks(files: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    """Without the masks that Roboflow's export has beside its images, and a note of them."""
    images = {file.with_suffix("") for file in files}
    masks = {
        file
        for file in files
        if file.stem.endswith(_MASK) and file.with_name(file.stem.removesuffix(_MASK)) in images
    }
    note = f"{_not_read(folder, len(masks))}: masks beside their images (…{_MASK})"
    return [file for file in files if file not in masks], [note] if masks else []


def _not_read(folder: Path, count: int) -> str:
    return f"{folder}: {count} {'file is' if count == 1 else 'files are'} not read"


def _fetch(name: str, folder: Path, allow_url: bool) -> SourceFile:
    """What standard input or an address gives, as a file. Raises: InputError."""
    folder.mkdir()
    file = folder / "content"
    if name == STDIN:
        stem, label = "stdin", "standard input"
        _copy(sys.stdin.buffer, file, label)
    elif not allow_url:
        raise InputError(
            "addresses are not fetched unless that is allowed",
            where=name,
            fix="--allow_url, or download the file and name it",
        )
    else:
        label = name
        stem = Path(urllib.parse.unquote(urllib.parse.urlsplit(name).path)).stem or "download"
        stem = re.sub(r"[^\w.-]", "_", stem)[:80]
        try:
            with open_url(name, {"User-Agent": "oar"}, timeout=_TIMEOUT) as answer:
                _copy(answer, file, label)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise InputError("the address cannot be fetched", where=name, received=error) from error
    return SourceFile(file.rename(folder / f"{stem}{_suffix(file)}"), label, folder)


def _copy(source: BinaryIO, file: Path, label: str) -> None:
    with file.open("wb") as out:
        while block := source.read(1 << 20):
            if out.tell() + len(block) > MOST_BYTES:
                raise InputError("this is too large", where=label, allowed=f"at most {MOST_BYTES >> 20} MB")
            out.write(block)
    if not file.stat().st_size:
        raise InputError("nothing came", where=label, received="0 bytes")


def is_pdf_head(head: bytes) -> bool:
    """Whether a file's first bytes hold the header of a PDF, which its readers look for in the first PDF_HEAD: mail
    servers, printers and web caches put lines of their own before it.
    """
    return _PDF.search(head[:PDF_HEAD]) is not None and find_format(head) is None


def _suffix(file: Path) -> str:
    with file.open("rb") as opened:
        head = opened.read(PDF_HEAD)
    if is_pdf_head(head):
        return ".pdf"
    known = find_format(head)
    return known.suffixes[0] if known else ""
