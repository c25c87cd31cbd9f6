"""Files that appear whole or not at all, and one kind of error for a disk that does not take them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.core.errors import OarError
from framework.core.whole_folder import folder_around, put_in_place, remove_leftovers, work_folder

_PROBLEMS = {
    errno.ENOSPC: ("the disk is full", "free some space, or choose a folder on another disk"),
    errno.EDQUOT: (
        "your share of the disk is used up",
        "free some space, or choose a folder on another disk",
    ),
    errno.EROFS: ("the file system is read-only", "choose a folder on another file system"),
    errno.EACCES: (
        "this may not be written here",
        "choose another folder, or ask for the right to write to it",
    ),
    errno.EPERM: (
        "this may not be written here",
        "choose another folder, or ask for the right to write to it",
    ),
    errno.ENAMETOOLONG: ("the name is too long for the file system", "choose a shorter name"),
    errno.EFBIG: (
        "the file is larger than its file system or the limit of this process allows",
        "choose a folder on another file system, or raise the limit (ulimit -f)",
    ),
}
_NO_FOLDER = "a file stands where a folder is needed", "choose another folder, or move that file away"
# Not a matter of the disk: free bytes say nothing about them.
_IN_THE_WAY = {
    errno.EEXIST: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EISDIR: ("a folder stands where a file is to be written", "choose another name, or move it away"),
}
# Libraries in Rust, and tensorstore under orbax, put the number into their message.
_NUMBER = re.compile(r"\(os error (\d+)\)|\bos_error_code='(\d+)'")


class DiskError(OarError, OSError):
    """A file or folder cannot be written. `errno` is the system's number."""


_MEMORY = Path("/dev/shm")  # which Linux has in containers, too, whose file system is read-only


def find_scratch_parent() -> str:
    """Where files of a moment can be written: the folder for temporary files, else one in memory.

    Raises:
        DiskError: there is none.
    """
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        if not os.access(_MEMORY, os.W_OK):
            raise DiskError(
                "there is no folder for temporary files",
                received=error.strerror,
                allowed="TMPDIR, /tmp, /var/tmp or /dev/shm, where files can be written",
                fix="mount a folder that can be written at /tmp",
            ) from None
        return str(_MEMORY)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A folder for files of a moment, which goes at the end. Raises: DiskError, where none can be written."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=find_scratch_parent()) as folder:
        yield Path(folder)


@contextmanager
def disk_errors(path: str | os.PathLike[str], needed: int | None = None) -> Iterator[None]:
    """Turns an error of writing at or below `path` into a DiskError that says what is needed and what is left.

    Args:
        needed: bytes that are written, where that is known.

    Raises:
        DiskError: in the place of an OSError, and of an error of a library that wraps one.
    """
    try:
        yield
    except (OarError, TimeoutError):
        raise
    except Exception as error:
        number = _error_number(error)
        if number is None and not isinstance(error, OSError):
            raise
        raise _disk_error(Path(path), number, str(error), needed) from error


def _error_number(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    match = _NUMBER.search(str(error))
    return int(match[1] or match[2]) if match else None


def _disk_error(path: Path, number: int | None, reason: str, needed: int | None) -> DiskError:
    default = f"this cannot be written: {os.strerror(number) if number else reason}", "choose another folder"
    problem, fix = (_PROBLEMS | _IN_THE_WAY).get(number or 0, default)
    sizes = [] if number in _IN_THE_WAY else [(needed, "to write"), (free_bytes(path), "left")]
    needs = ", ".join(f"{size:,} bytes {what}" for size, what in sizes if size is not None)
    error = DiskError(problem, where=path, received=needs or None, fix=fix)
    error.errno = number
    return error


def check_place(path: Path) -> None:
    """Look whether something could take the name `path`, before it is computed. Raises: as `check_writable`."""
    check_writable(folder_around(path.absolute()))


def check_writable(folder: Path) -> None:
    """Look whether `folder` could be made and written to.

    Raises:
        DiskError: a file stands in its way, or this user may not write there.
    """
    with disk_errors(folder):
        for there in (folder, *folder.absolute().parents):
            if there.is_dir():
                if not os.access(there, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                return
            if os.path.lexists(there):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def free_bytes(path: Path) -> int | None:
    """Bytes left on the disk of `path`, which need not be there; None where the system does not say."""
    for folder in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def sha256_of(path: Path) -> str:
    """The file's SHA-256 as 64 lower-case hex digits, read from disk."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def temporary_beside(path: Path) -> Path:
    """A free hidden name in `path`'s folder with its suffix, to be renamed to `path` when whole."""
    return path.with_name(f".{path.stem[:32]}.{secrets.token_hex(6)}{path.suffix}")


@contextmanager
def whole_file(
    path: str | os.PathLike[str], needed: int | None = None, *, flush: bool = False
) -> Iterator[Path]:
    """A hidden path beside `path` to write to; it takes its name when the block ends without an exception.

    The folder is made. Nothing is left after an exception.

    Args:
        needed: bytes that are written, where that is known.
        flush: have the file on the disk before it takes its name, so that not even a power cut leaves half of it.

    Raises:
        DiskError: the folder or the file cannot be written.
    """
    path = Path(path)
    temporary = temporary_beside(path)
    with disk_errors(path, needed):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent.resolve())
    try:
        yield temporary
        with disk_errors(path, needed):
            if flush:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
    except Exception as error:
        # What else goes wrong in the block, such as a file that is not there, is no matter of this one.
        if isinstance(error, OarError) or _error_number(error) not in _PROBLEMS:
            raise
        raise _disk_error(path, _error_number(error), str(error), needed) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_file(path: str | os.PathLike[str], data: bytes | memoryview, *, flush: bool = False) -> None:
    """Write a file whole or not at all, see `whole_file`. Raises: DiskError."""
    with whole_file(path, len(data), flush=flush) as temporary:
        temporary.write_bytes(data)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty hidden folder beside `path` to write into; it takes its name when the block ends without an exception.

    What is at `path` is replaced then, and stays as it is after an exception.

    Raises:
        DiskError: the folder cannot be written.
    """
    path = Path(path)
    with contextlib.ExitStack() as stack:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(work_folder(path))
            fresh = work / "new"
            fresh.mkdir()
        yield fresh
        with disk_errors(path):
            put_in_place(work, path)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is one that systems hide, or make beside those of the user: of macOS's archives, of the
    thumbnails of network drives and of Windows."""
    return name.startswith(".") or name in ("__MACOSX", "@eaDir", "Thumbs.db", "desktop.ini")


def walk_files(
    folder: str | os.PathLike[str], onerror: Callable[[OSError], object] | None = None
) -> Iterator[str]:
    """The paths of all files in a folder and its folders, hidden ones left out: of each folder its files by name, then
    its folders. Links to folders are followed, but to one that the walk is in, which has no end.

    Args:
        onerror: Told of a folder that cannot be read; None: it is left out.
    """
    top = os.fspath(folder)
    above = {top: frozenset({os.path.realpath(top)})}
    for inside, subfolders, names in os.walk(top, onerror=onerror, followlinks=True):
        around = above.pop(inside)
        entries = []
        for name in sorted(subfolders):
            path = os.path.join(inside, name)
            if not is_hidden(name) and (target := os.path.realpath(path)) not in around:
                above[path] = around | {target}
                entries.append(name)
        subfolders[:] = entries
        yield from (os.path.join(inside, name) for name in sorted(names) if not is_hidden(name))
