"""Bounded reads of files from outside: never more than a limit, never from a device, and one kind of message.

Every reader of the toolkit begins here. Sizes are in bytes. `what` names the file in messages ("dictionary",
"annotations"), `error` is the class that is raised: a subclass of OarError that takes its parts.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from framework.core.errors import FormatError, OarError

MB = 1 << 20
GB = 1 << 30
SETTINGS = 4 * MB
"""Files that people write or that describe a model: YAML, small JSON, an artifact's config."""
VOCABULARY = 512 * MB
"""Dictionaries, vocabularies, tokenizers, lists of labels, texts."""
DATASET = 4 * GB
"""Annotations of a data set, an image, a document, a member of an archive."""
DEPTH = 100
"""Levels of lists and mappings inside one another."""

_ADDRESS = re.compile(r"(https?|ftp|s3|gs|hf):/")
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def check_file(path: str | Path, what: str = "file", error: type[OarError] = FormatError) -> Path:
    """`path`, if it is a regular file.

    Raises:
        error: nothing is there, or an address, a folder, a device, a pipe or a socket.
    """
    if _ADDRESS.match(str(path)):
        raise error(
            "this is an address, not a file",
            where=path,
            allowed=f"the path of a {what} on this machine",
            fix=f"download it first, for example: curl -LO {re.sub(':/+', '://', str(path), count=1)}",
        )
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as problem:
        raise _unreadable(path, what, error, problem) from None
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise error(
            f"this is {kind}, not one {what}",
            where=path,
            allowed=f"the path of a {what}",
            fix="name a file inside the folder"
            if kind == "a folder"
            else "write what it gives to a file first",
        )
    return Path(path)


def read_bytes(
    path: str | Path, limit: int = DATASET, what: str = "file", error: type[OarError] = FormatError
) -> bytes:
    """All bytes of a file of at most `limit`.

    Raises:
        error: no such file, not a regular one, not readable, or larger.
    """
    path = check_file(path, what, error)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # Files of /proc say that they are empty, so the bytes are counted too. As many are allocated as are read.
            data = file.read(min(size or MB, limit) + 1) if size <= limit else b""
    except OSError as problem:
        raise _unreadable(path, what, error, problem) from None
    if size > limit or len(data) > limit:
        raise _too_large(path, what, error, max(size, len(data)), limit)
    return data


def read_text(
    path: str | Path, limit: int = VOCABULARY, what: str = "file", error: type[OarError] = FormatError
) -> str:
    """The text of a UTF-8 file, without a byte order mark. Raises: as `read_bytes`, or where it is not UTF-8."""
    return decode(read_bytes(path, limit, what, error), path, what, error)


def decode(data: bytes, where: object, what: str = "file", error: type[OarError] = FormatError) -> str:
    """UTF-8 bytes as text, without a byte order mark. Raises: error, which names the line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(
            f"the {what} is not UTF-8",
            where=f"{where}, line {data[: problem.start].count(10) + 1}",
            received=f"byte 0x{data[problem.start]:02x}",
            allowed="UTF-8",
            fix=_advise_encoding(data),
        ) from None


def _advise_encoding(data: bytes) -> str:
    """What to do with bytes that are not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16, as Excel's Unicode text: iconv -f UTF-16 -t UTF-8"
    if data.startswith(b"PK\x03\x04"):
        return "it is a workbook or a zip archive: save the sheet as CSV UTF-8"
    return "save it as UTF-8; if it is Chinese: iconv -f GB18030 -t UTF-8, else of Windows: iconv -f CP1252 -t UTF-8"


def read_json(
    path: str | Path, limit: int = SETTINGS, what: str = "JSON file", error: type[OarError] = FormatError
) -> object:
    """What a JSON file holds. Raises: as `read_bytes` and `parse_json`."""
    return parse_json(read_bytes(path, limit, what, error), path, what, error)


def parse_json(
    text: str | bytes, where: object, what: str = "JSON file", error: type[OarError] = FormatError
) -> object:
    """The value of one JSON text. Raises: error, where it is not JSON or nested more than 100 levels deep."""
    try:
        value = json.loads(decode(text, where, what, error) if isinstance(text, bytes) else text)
        level = [value]
        for _ in range(DEPTH):
            level = [
                child
                for item in level
                if isinstance(item, list | dict)
                for child in (item.values() if isinstance(item, dict) else item)
                if isinstance(child, list | dict)
            ]
            if not level:
                return value
        raise RecursionError(f"nested more than {DEPTH} levels deep")
    except (json.JSONDecodeError, RecursionError, ValueError) as problem:
        if isinstance(problem, OarError):
            raise
        raise error(
            f"the {what} is not JSON",
            where=where,
            received=f"{len(text):,} bytes: {str(problem)[:200]}" if text else "an empty file",
            allowed=f"JSON of at most {DEPTH} levels",
            fix=_fetch_again(error),
        ) from None


def check_mapping(value: object, where: object, what: str, error: type[OarError] = FormatError) -> dict:
    """`value`, if it is a mapping (of JSON or YAML). Raises: error."""
    if not isinstance(value, dict):
        raise error(
            f"the {what} holds no mapping of names to values",
            where=where,
            received=f"a {type(value).__name__}",
            allowed="{…}",
            fix=_fetch_again(error),
        )
    return value


def _fetch_again(error: type[OarError]) -> str | None:
    """What helps where a file is damaged; requests and arguments are none."""
    return "copy or download the file again" if issubclass(error, FormatError) else None


def open_zip(
    source: str | Path | BinaryIO, where: object, error: type[OarError] = FormatError
) -> zipfile.ZipFile:
    """A zip archive. Raises: error, where it is none or its directory is damaged."""
    try:
        return zipfile.ZipFile(
            check_file(source, "zip archive", error) if isinstance(source, str | Path) else source
        )
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError) as problem:
        if isinstance(problem, OarError):
            raise
        raise error(
            "the zip archive cannot be read",
            where=where,
            received=str(problem)[:200],
            fix="copy or download it again",
        ) from None


def read_member(
    archive: zipfile.ZipFile,
    name: str | zipfile.ZipInfo,
    where: object,
    limit: int = DATASET,
    error: type[OarError] = FormatError,
) -> bytes:
    """The bytes of one member of a zip archive, at most `limit` once unpacked.

    Raises:
        error: there is no such member, it is larger, encrypted, or damaged.
    """
    try:
        info = name if isinstance(name, zipfile.ZipInfo) else archive.getinfo(name)
        label = f"{where}, member {info.filename!r}"
        if info.file_size > limit:
            raise _too_large(label, "member", error, info.file_size, limit)
        return archive.read(info)
    except (KeyError, zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError) as problem:
        if isinstance(problem, OarError):
            raise
        raise error(
            "a member of the zip archive cannot be read",
            where=f"{where}, member {str(name)[:100]!r}",
            received=str(problem)[:200],
            fix="copy or download the archive again",
        ) from None


def _too_large(where: object, what: str, error: type[OarError], size: int, limit: int) -> OarError:
    return error(
        f"the {what} is too large",
        where=where,
        received=f"{size:,} bytes" if size > limit + 1 else "more bytes than that",
        allowed=f"at most {limit:,} bytes",
        fix="check that this is the file you mean; a larger one must be split",
    )


def _unreadable(path: object, what: str, error: type[OarError], problem: Exception) -> OarError:
    missing = isinstance(problem, FileNotFoundError | NotADirectoryError)
    reason = problem.strerror if isinstance(problem, OSError) else str(problem)
    return error(
        f"there is no such {what}" if missing else f"the {what} cannot be read: {reason}",
        where=path,
        fix=f"check the path; the current folder is {Path.cwd()}"
        if missing
        else "check the path and who may read it",
    )
