"""What a file is, recognised from its first bytes: people rename files, and servers send pages instead of them.

And weights inside an archive, as PaddleSeg's servers give them: a .tar, .tar.gz or .zip with one file of weights.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from framework.core.errors import FormatError
from framework.interop.foreign import refuse_foreign
from framework.interop.source import FETCH_AGAIN, Source
from framework.interop.weights.model_folder import is_index
from framework.interop.weights.torch_checkpoint import LEGACY_MAGIC, ZIP_MAGIC, is_zip_checkpoint
from framework.interop.wire import Message

_PROBE = 4096
_MAX_HEADER = 100_000_000  # of the safetensors format


def detect(source: Source) -> str:
    """One of safetensors, torch, pickle, onnx, pdmodel, pir, pdiparams, archive, index (of weights in several files).

    Raises FormatError that says what the file is instead where that can be told. It reads only what tells formats
    apart: a file that passes here may still be damaged.
    """
    data = source.data
    if not data:  # a member of an archive
        raise source.error("the file is empty", received="0 bytes")
    head = bytes(data[:_PROBE])
    # Before pickle: 0x80 is a length too.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < _MAX_HEADER:
        return "safetensors"
    if head.startswith(LEGACY_MAGIC):
        return "torch"
    if head.startswith(ZIP_MAGIC):
        return "torch" if is_zip_checkpoint(source) else "archive"
    if is_archive(head):
        return "archive"
    if len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return "pickle"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "index" if b'"weight_map"' in head or is_index(source.name) else "pir"
    refuse_foreign(source, head)
    if head[:16] == bytes(16):
        return "pdiparams"
    try:
        numbers = Message(source, "the file").numbers
    except FormatError:
        numbers = frozenset()
    if 7 in numbers and 1 in numbers and head[0] == 0x08:
        return "onnx"
    if 1 in numbers and numbers <= {1, 2, 3, 4, 5, 6} and head[0] == 0x0A:
        return "pdmodel"
    if head[0] in (0x08, 0x0A):
        kind = "an ONNX model" if head[0] == 0x08 else "a Paddle program (.pdmodel)"
        raise source.error(
            f"the file starts like {kind} but is cut off or damaged", received=f"{len(data)} bytes"
        )
    raise source.error(
        "unknown kind of file",
        received=f"{len(data)} bytes that start with {head[:16]!r}",
        allowed=".safetensors, .onnx, .pdparams, .pdopt, .pdmodel or inference.json with .pdiparams, .pth, .pt",
    )


# -- archives ----------------------------------------------------------------------------------------------------------


def _gunzip(stream: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=stream))


_OPENERS = {b"\x1f\x8b": _gunzip, b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}
_PACKED = tuple(_OPENERS)
_WEIGHTS = (".pdparams", ".safetensors", ".pth", ".pt", ".bin")
_MAX_NAMES = 8
_MAX_MEMBERS = 10_000
# Weights hardly shrink when they are packed: what is larger than this and so many times its archive is no weights.
_LARGE, _TIMES = 1 << 30, 100
# What the readers of the standard library raise for damaged bytes, and of encrypted or unknown packings
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError)
_DAMAGED += (ValueError, LookupError, RuntimeError)


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
    members = [name for name in sizes if name.endswith(_WEIGHTS) and not name.split("/")[-1].startswith("._")]
    if len(members) != 1:
        names = ", ".join(sorted(members or sizes)[:_MAX_NAMES])
        raise source.error(
            "the archive holds several files of weights"
            if members
            else "the archive holds no file of weights",
            received=names or "an empty archive",
            allowed=f"one file that ends in {', '.join(_WEIGHTS)}",
            fix="unpack it and give the file inside, such as inference.pdmodel with inference.pdiparams",
        )
    (name,) = members
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


class _Unpacked:
    """What a packed stream holds, as a file of at most so many bytes: a small one can unpack without end."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self.file, self.limit = file, limit

    def read(self, size: int = -1) -> bytes:
        return self.file.read(min(size, self.limit) if size >= 0 else self.limit)

    def seek(self, offset: int) -> int:
        if offset > self.limit:
            raise ValueError(f"it unpacks to more than {self.limit:,} bytes")
        return self.file.seek(offset)

    def tell(self) -> int:
        return self.file.tell()


def _tar(source: Source) -> _Opened:
    stream = source.stream()
    opener = next((opener for magic, opener in _OPENERS.items() if source.data[: len(magic)] == magic), None)
    opened = stream if opener is None else cast(BinaryIO, opener(stream))
    limit = max(_LARGE, _TIMES * len(source.data))
    file = tarfile.open(fileobj=cast(BinaryIO, _Unpacked(opened, limit)), mode="r:", encoding="utf-8")  # noqa: SIM115 - only memory
    members = {}
    for count, one in enumerate(file, start=1):
        if count > _MAX_MEMBERS:
            raise ValueError(f"it holds more than {_MAX_MEMBERS:,} files")
        if one.isreg():
            members[one.name] = one

    def read(name: str) -> bytes:
        opened = file.extractfile(members[name])
        assert opened is not None, "a regular file"
        return opened.read()

    return {name: one.size for name, one in members.items()}, read
