"""Files that a run writes: their names, whole or not at all, and the report of what was written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from framework.core.disk import disk_errors, whole_file
from framework.core.errors import InputError

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_LONGEST_NAME = 255  # bytes of a file's name, of most file systems


@dataclass
class Report:
    """What was written, what went wrong, and what is worth a word."""

    written: list[Path] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    """Ctrl+C or SIGTERM ended it early."""

    def summary(self) -> str:
        lines = [f"{len(self.written)} files in {self.written[0].parent}"] if self.written else []
        lines += self.notes
        if self.failed:
            lines.append(f"{len(self.failed)} failed:")
            lines += [f"  {message}" for _, message in self.failed]
        text = "\n".join(lines) or "nothing to do"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def note_empty(self, count: int, total: int, what: str, note: str) -> None:
        """Say in how many of the images, or frames, nothing was found, where there is a note of that."""
        if count and note:
            self.notes.append(f"{count} of {total} {what}: {note}")

    def note_stop(self, interrupted: bool) -> None:
        """Say that it was stopped early, if it was."""
        if interrupted:
            self.interrupted = True
            self.notes.append("stopped; what is written stays")

    @property
    def exit_code(self) -> int:
        return 130 if self.interrupted else 1 if self.failed else 0


@contextmanager
def text_file(path: Path) -> Iterator[TextIO]:
    """A file to write UTF-8 to; it appears under its name when the block ends without an exception.

    Raises: DiskError, where the disk does not take it.
    """
    with (
        whole_file(path) as temporary,
        # A file's name may hold bytes that are no text; escaped they are valid in JSON.
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out,
    ):
        yield out


def write_json(path: Path, data: object) -> None:
    """Atomically: the file is there whole or not at all."""
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    with text_file(path) as out:
        out.write(text)


def make_folder(path: Path) -> None:
    """Make the folder for the results if it is not there. Raises: DiskError when that cannot be done."""
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def stems(
    files: Iterable[Path], reserved: Iterable[str] = (), endings: Sequence[str] = ("",)
) -> dict[Path, str]:
    """A name for the outputs of each file: its stem, or its whole name where files share a stem, numbered where even
    that is taken or `reserved`. Names that differ in case alone count as one, as on Windows and macOS.

    With `endings` each name stands for itself with every one of them, such as "" and "_label".
    """
    files = list(dict.fromkeys(files))
    count = Counter(file.stem.lower() for file in files)
    names: dict[Path, str] = {}
    used = {name.lower() for name in reserved}
    for file in files:
        name = base = file.stem if count[file.stem.lower()] == 1 else file.name
        number = 2
        while any((name + ending).lower() in used for ending in endings):
            name, number = f"{base}_{number}", number + 1
        used |= {(name + ending).lower() for ending in endings}
        names[file] = name
    return names


def fit_name(name: str, endings: Iterable[str]) -> str:
    """`name`, or a shorter one where with the longest ending it is longer than file systems take.

    What is cut off is replaced by eight hex digits of its hash, so that two long names stay two.
    """
    room = _LONGEST_NAME - max((len(os.fsencode(ending)) for ending in endings), default=0)
    if sys.platform == "win32" and _RESERVED.match(name):  # a device, whatever the ending is
        name = f"_{name}"
    data = os.fsencode(name)
    if len(data) <= room:
        return name
    digest = hashlib.sha256(data).hexdigest()[:8]
    return f"{data[: room - len(digest) - 1].decode('utf-8', 'ignore')}~{digest}"


def spare_sources(sources: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Raises: InputError when writing one of the `outputs` would replace a file that is read."""
    source_files = {
        (facts.st_dev, facts.st_ino): file for file in sources if (facts := _facts(file)) is not None
    }
    for output in outputs:
        facts = _facts(output)
        if facts is not None and (facts.st_dev, facts.st_ino) in source_files:
            raise InputError(
                "the drawn result would replace its source",
                where=source_files[facts.st_dev, facts.st_ino],
                received=f"results in {output.parent}",
                allowed="another folder for the results, or no drawings",
                fix="choose another --output_dir, or --no_draw",
            )


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
