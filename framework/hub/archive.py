"""Takes one file out of a tar archive that the hub downloaded.

Only that file's bytes are written, to a path of the hub's: names of members are compared, and never used as paths.
"""

from __future__ import annotations

import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from framework.core.errors import HubError

CHUNK = 1 << 20  # bytes
MAX_MEMBERS = 10_000
# Weights hardly shrink when they are packed: what is larger than this and so many times its archive is no weights.
LARGE, TIMES = 1 << 30, 100
_SHOWN = 8
_DAMAGED = (tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


def extract_member(archive: Path, member: str, target: Path) -> None:
    """Writes a regular file of a .tar, .tar.gz, .tar.bz2 or .tar.xz archive to `target`.

    Args:
        member: Its path in the archive, without "./" in front.

    Raises:
        HubError: it is no archive, or is cut off; `member` is not in it, or is a link or folder; or the archive says
            that it holds far more than it can.
        OSError: `target` cannot be written.
    """
    chunks = _read(archive, member)
    first = next(chunks)
    with target.open("wb") as out:
        out.write(first)
        out.writelines(chunks)
        out.flush()
        os.fsync(out.fileno())


def _read(archive: Path, member: str) -> Iterator[bytes]:
    """The bytes of the member, in one piece or more. Raises: HubError, as `extract_member`."""
    try:
        with tarfile.open(archive, encoding="utf-8") as opened:
            found = _find(opened, member, max(LARGE, TIMES * archive.stat().st_size))
            content = opened.extractfile(found)
            assert content is not None, "a regular file"
            left = found.size
            while True:
                chunk = content.read(min(CHUNK, left))
                yield chunk
                left -= len(chunk)
                if not left:
                    return
                if not chunk:
                    raise EOFError("it is cut off")
    except _DAMAGED as error:
        raise HubError(f"the archive cannot be unpacked: {error}") from None


def _find(opened: tarfile.TarFile, member: str, limit: int) -> tarfile.TarInfo:
    names: list[str] = []
    size = 0
    for one in opened:
        size += one.size
        if len(names) == MAX_MEMBERS or size > limit:
            raise HubError("the archive says that it holds far more than it can")
        name = one.name.removeprefix("./")
        if name == member:
            if not one.isreg():
                raise HubError(f"{member} is no file in the archive, but a link or a folder")
            return one
        names.append(name)
    shown = ", ".join(names[:_SHOWN]) or "nothing"
    raise HubError(f"the archive has no {member}, but {shown}{' and more' if len(names) > _SHOWN else ''}")
