"""Where the files of the classic data sets come from, and where they are kept: OAR_HOME/datasets/<name>/<file>."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from framework.core.errors import ConfigError, HubError
from framework.core.home import home
from framework.hub import transfer
from framework.hub.store import offline_reason


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its address, and its MD5, the only hash that the publishers give."""

    folder: str
    url: str
    md5: str

    @property
    def path(self) -> Path:
        """Where it is kept on this machine."""
        return home() / "datasets" / self.folder / self.url.rpartition("/")[2]


def find_file(given: str | os.PathLike[str] | None, file: RemoteFile, download: bool, argument: str) -> Path:
    """The path that was given, or that of the published file, brought here if need be and verified.

    Raises:
        HubError: it is not here and may not or cannot be downloaded, or its hash is another one.
    """
    if given is not None:
        return Path(given)
    path = file.path
    if path.is_file():
        _verify(path, file)
        return path
    reason = "download=False" if not download else offline_reason()
    if reason is None:
        try:
            with transfer.place_for(path) as place:
                part = place / f"{path.name}.part"
                if not path.is_file():
                    transfer.download(file.url, part, None, path.name)
                    _take_over(part, path, file)
            return path
        except HubError as error:
            reason = error.problem
        except OSError as error:
            reason = f"cannot write {path}: {error.strerror or error}"
    raise HubError(
        "a file of the data set is not on this machine and was not downloaded",
        where=argument,
        received=reason,
        fix=f"download {file.url} (MD5 {file.md5}) and put it at {path}, or give its path: {argument}=...",
    )


def check_mode(mode: str, allowed: tuple[str, ...], where: str) -> str:
    """The mode in lower case. Raises: ConfigError."""
    if mode.lower() not in allowed:
        raise ConfigError(
            "unknown mode", where=f"{where}.mode", received=repr(mode), allowed=", ".join(allowed)
        )
    return mode.lower()


def _take_over(part: Path, path: Path, file: RemoteFile) -> None:
    """Moves a download to its place; one with another hash is removed, or the next call would go on from it."""
    try:
        _check_hash(part, file)
    except HubError:
        part.unlink()
        raise
    os.replace(part, path)


def _verify(path: Path, file: RemoteFile) -> None:
    """Reads the file once; a note beside it spares the next time while its size and time stay.

    Raises:
        HubError: the hash is another one.
    """
    state = path.stat()
    note = path.with_name(path.name + ".verified")
    text = f"{file.md5} {state.st_size} {state.st_mtime_ns}\n"
    if note.is_file() and note.read_text(encoding="utf-8") == text:
        return
    _check_hash(path, file)
    with contextlib.suppress(OSError):  # a folder that cannot be written: it is read again next time
        note.write_text(text, encoding="utf-8")


def _check_hash(path: Path, file: RemoteFile) -> None:
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != file.md5:
        raise HubError(
            "a file of the data set is not the published one",
            where=path,
            received=f"MD5 {found}",
            allowed=f"MD5 {file.md5}",
            fix=f"remove it; it comes from {file.url}",
        )
