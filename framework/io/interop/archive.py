"""Weights inside an archive, as PaddleSeg's servers give them: a .tar, .tar.gz or .zip with one file of weights."""

from __future__ import annotations

import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

from framework.io.interop.source import FETCH_AGAIN, Source
from framework.io.interop.torch_checkpoint import ZIP_MAGIC

_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")  # gzip, bzip2, xz
_WEIGHTS = (".pdparams", ".safetensors", ".pth", ".pt", ".bin")
_SHOWN = 8
# Weights hardly shrink when they are packed: what is larger than this and so many times its archive is no weights.
_LARGE, _TIMES = 1 << 30, 100
# What the readers of the standard library raise for damaged bytes, and of encrypted or unknown packings
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError)
_DAMAGED += (ValueError, KeyError, RuntimeError)


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so is packed, or a tar archive. Zip files: see `is_zip_checkpoint`."""
    return head.startswith(_PACKED) or head[257:262] == b"ustar"


def read_member(source: Source) -> Source:
    """The one file of weights in an archive, whatever folder it is in. Nothing is written.

    Raises:
        FormatError: the archive is damaged, or has no such file or several.
    """
    try:
        sizes, read = _zip(source) if source.data[: len(ZIP_MAGIC)] == ZIP_MAGIC else _tar(source)
    except _DAMAGED as error:
        raise source.error("the archive cannot be opened", received=str(error)) from None
    found = [name for name in sizes if name.endswith(_WEIGHTS) and not name.split("/")[-1].startswith("._")]
    if len(found) != 1:
        shown = ", ".join(sorted(found or sizes)[:_SHOWN])
        raise source.error(
            "the archive holds several files of weights" if found else "the archive holds no file of weights",
            received=shown or "an empty archive",
            allowed=f"one file that ends in {', '.join(_WEIGHTS)}",
            fix="unpack it and give the file inside, such as inference.pdmodel with inference.pdiparams",
        )
    (name,) = found
    if sizes[name] > max(_LARGE, _TIMES * len(source.data)):
        raise source.error(
            "the archive says that it holds far more than it can",
            received=f"{sizes[name]} bytes in {name}, packed in {len(source.data)}",
            fix=FETCH_AGAIN,
        )
    try:
        data = read(name)
    except _DAMAGED as error:
        raise source.error(f"{name} cannot be unpacked", received=str(error)) from None
    return Source(f"{source.name}: {name}", memoryview(data))


_Opened = tuple[dict[str, int], Callable[[str], bytes]]
"""Sizes by name, and what reads one."""


def _zip(source: Source) -> _Opened:
    file = zipfile.ZipFile(source.stream())
    return {one.filename: one.file_size for one in file.infolist() if not one.is_dir()}, file.read


def _tar(source: Source) -> _Opened:
    file = tarfile.open(fileobj=source.stream(), encoding="utf-8")  # noqa: SIM115 - nothing is open but memory
    members = {one.name: one for one in file.getmembers() if one.isreg()}

    def read(name: str) -> bytes:
        opened = file.extractfile(members[name])
        assert opened is not None, "a regular file"
        return opened.read()

    return {name: one.size for name, one in members.items()}, read
