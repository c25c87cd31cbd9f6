"""Folders that take the place of others in one step, and what killed processes left on the way.

Both folders change their names at once where the system can do that (Linux, macOS). Elsewhere the old one is moved away
first, into the hidden folder that the new one was made in; where a process is killed between the two, `recover` moves
it back. The folder of a mount (a container's volume) keeps its name: there the hidden folder is in it, and what it
holds is moved, entry by entry.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_OLD, _NEW, _LOCK, _TARGET = "old", "new", "lock", "target"
_CONTENT = {_OLD, _NEW, _LOCK, _TARGET}
# A folder of this module, one of tempfile's as it was used before, and a file of `framework.core.disk`.
_FOLDER = re.compile(r"\.(?P<name>.+)\.(?:[0-9a-f]{12}|[a-z0-9_]{8})")
_FILE = re.compile(r"\..{1,32}\.[0-9a-f]{12}(?:\.\w{1,12})?")
STALE_SECONDS = 3600.0
OF_THE_FILE_SYSTEM = "lost+found"
"""A folder that volumes begin with."""
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_AT_FDCWD, _EXCHANGE = -100, 2  # of renameat2 and renamex_np alike


@contextlib.contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """A hidden folder beside `path`, or in it where it is a mount, for what is to take its name, as `new`; it is
    removed at the end. Of a link it is beside the folder that the link leads to.

    What processes left there that were killed is removed before.
    """
    path = _behind_link(path)
    parent = folder_around(path)
    remove_leftovers(parent.resolve())
    recover(path)
    work = parent / f".{path.name[:32]}.{secrets.token_hex(6)}"
    work.mkdir()
    try:
        with (work / _LOCK).open("wb") as lock:
            _try_lock(lock)
            (work / _TARGET).write_text(path.name, encoding="utf-8", errors="surrogateescape")
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def fresh_folder(path: Path) -> Iterator[Path]:
    """An empty folder in the `work_folder` of `path`, for files that are moved out of it one by one."""
    with work_folder(path) as work:
        fresh = work / _NEW
        fresh.mkdir()
        yield fresh


def put_in_place(work: Path, path: Path) -> None:
    """`work`/new takes the name `path`; what is there is then in `work`. A link stays one, and leads to the new folder.

    Raises: OSError, and nothing has changed.
    """
    path = _behind_link(path)
    fresh, old = work / _NEW, work / _OLD
    if work.parent == path:
        _move_entries(work)
        return
    if not os.path.lexists(path):
        with contextlib.suppress(OSError):  # another process was faster
            os.replace(fresh, path)
            return
    if _exchange(fresh, path):
        return
    if not os.path.lexists(path):
        os.replace(fresh, path)
        return
    try:
        os.replace(path, old)
    except FileNotFoundError:  # another process has moved it away, and puts its own there
        os.replace(fresh, path)
        return
    try:
        os.replace(fresh, path)
    except OSError:
        if os.path.lexists(path):  # another process was faster, and its folder is as new as this one
            return
        os.replace(old, path)
        raise


def _move_entries(work: Path) -> None:
    """What is in `work`/new takes the place of what is around `work`, which is then in `work`/old."""
    fresh, old, folder = work / _NEW, work / _OLD, work.parent
    old.mkdir()
    before = [entry.name for entry in folder.iterdir() if entry.name not in (work.name, OF_THE_FILE_SYSTEM)]
    after = [entry.name for entry in fresh.iterdir()]
    moves = [(folder / name, old / name) for name in before] + [(fresh / n, folder / n) for n in after]
    done = []
    try:
        for source, target in moves:
            os.replace(source, target)
            done.append((source, target))
    except OSError:
        for source, target in reversed(done):
            os.replace(target, source)
        raise


def folder_around(path: Path) -> Path:
    """Where what is to take the name `path` is made: the folder that it is in, or itself where it is a mount."""
    return path if is_mount(path) else path.parent


def is_mount(path: Path) -> bool:
    """Whether a file system, or a folder of one (`mount --bind`), is mounted there: it cannot be renamed.

    `os.path.ismount` compares devices, and does not see a folder that is mounted elsewhere on its own file system.
    """
    if os.path.ismount(path):
        return True
    try:
        table = _MOUNTS.read_bytes()
    except OSError:  # not Linux
        return False
    return os.fsencode(os.path.realpath(path)) in {
        _ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), line.split(b" ")[4])
        for line in table.splitlines()
        if line.count(b" ") > 4
    }


def _behind_link(path: Path) -> Path:
    """The folder that a link leads to: models are kept on another disk so, and this one may have no room for them."""
    return Path(os.path.realpath(path)) if path.is_symlink() and not path.is_file() else path


def recover(path: Path) -> bool:
    """Bring back the folder `path` where a process was killed while it replaced it. Returns whether it did."""
    path = _behind_link(path)
    if os.path.lexists(path) or not path.parent.is_dir():
        return False
    for work in path.parent.glob(f".{_escaped(path.name[:32])}*"):
        if _target(work) == path.name and (work / _OLD).is_dir() and _is_left(work):
            with contextlib.suppress(OSError):
                os.rename(work / _OLD, path)
                shutil.rmtree(work, ignore_errors=True)
                return True
    return False


@functools.lru_cache(maxsize=256)
def remove_leftovers(folder: Path) -> None:
    """Remove the hidden files and folders of processes that were killed while they wrote into `folder`; once a process.

    Files go after an hour, folders at once where their process is gone. One that holds the last copy of what it was to
    replace is moved back.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if not entry.name.startswith("."):
                continue
            path = Path(entry.path)
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _remove_folder(path)
                elif _FILE.fullmatch(entry.name) and _is_old(path):
                    path.unlink()


def _remove_folder(work: Path) -> None:
    target = _target(work)
    if target is None or not _is_left(work):
        return
    if (work / _OLD).exists() and not os.path.lexists(work.parent / target):
        os.rename(work / _OLD, work.parent / target)
    shutil.rmtree(work, ignore_errors=True)


def _target(work: Path) -> str | None:
    """The name that the content of a folder was to take; None where it is no folder of this module."""
    match = _FOLDER.fullmatch(work.name)
    if match is None or not work.is_dir() or not {file.name for file in work.iterdir()} <= _CONTENT:
        return None
    with contextlib.suppress(OSError, ValueError):
        name = (work / _TARGET).read_text(encoding="utf-8", errors="surrogateescape")
        return name if name and name == Path(name).name else None
    is_of_ours = (work / _OLD).exists() or (work / _NEW).exists()
    return match["name"] if is_of_ours else None


def _is_left(work: Path) -> bool:
    """Whether the process that works there is gone, or not known and an hour passed."""
    try:
        with (work / _LOCK).open("r+b") as lock:
            free = _try_lock(lock)
            return free if free is not None else _is_old(work)
    except OSError:
        return _is_old(work)


def _is_old(path: Path) -> bool:
    times = [path.lstat().st_mtime]
    if path.is_dir():
        times += [file.lstat().st_mtime for file in path.rglob("*")]
    return time.time() - max(times) > STALE_SECONDS


def _escaped(name: str) -> str:
    return re.sub(r"([\[*?])", r"[\1]", name)


def _try_lock(file: IO[bytes]) -> bool | None:
    """Whether nobody else holds it; None where the system does not say."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None


def _exchange(one: Path, other: Path) -> bool:
    """Whether two paths have exchanged their names."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            function = library.renameat2
            arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE)
        elif sys.platform == "darwin":
            function = library.renamex_np
            arguments = (os.fsencode(one), os.fsencode(other), _EXCHANGE)
        else:
            return False
        return function(*arguments) == 0
    except (OSError, AttributeError, TypeError):
        return False
