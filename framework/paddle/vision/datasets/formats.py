"""Readers of CIFAR's pickles and of MATLAB's MAT files of version 5 (Flowers). Sizes are bounded before memory is."""

from __future__ import annotations

import struct
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.errors import FormatError
from framework.interop.source import Source
from framework.interop.weights.pickled import CONTAINERS, NUMPY, to_plain
from framework.interop.weights.pickles import PickleReader
from framework.io.benchmark_files import check_labels
from framework.vision.image import check_file

_MAX_MEMBER = 2**28  # bytes of a batch of CIFAR: they have 31 MB
_MAX_MAT = 2**24  # bytes of a MAT file, unpacked: those of Flowers have 65 kB
_CIFAR_SIDE = 32
_MAT_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


def read_cifar_archive(path: Path, prefix: str, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """(images [count, 32, 32, 3] uint8 RGB, labels [count] int64) of CIFAR's version for Python, a tar of pickles.

    The pickles are read by an interpreter that builds data and calls nothing. `prefix` is how the files' names begin;
    they are joined in the order of their names.

    Raises:
        InputError: there is no such file. FormatError: it is damaged, or not what CIFAR consists of.
    """
    images, labels = [], []
    try:
        for name, data in sorted(_read_members(path, prefix)):
            batch = _read_batch(data, f"{path}, {name}")
            images.append(batch[0])
            labels.append(batch[1])
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise FormatError(
            "the archive cannot be read", where=path, received=error, fix="download it again"
        ) from error
    if not images:
        raise FormatError(
            "the archive holds no such data",
            where=path,
            received=f"no file whose name begins with {prefix}",
            allowed="cifar-10-python.tar.gz or cifar-100-python.tar.gz",
        )
    joined = np.concatenate(labels)
    check_labels(joined, num_classes, path)
    return np.concatenate(images), joined


def _read_members(path: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(check_file(path, "CIFAR archive"), mode="r:*") as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if member.isfile() and name.startswith(prefix):
                if member.size > _MAX_MEMBER:
                    raise FormatError(
                        "a file of the archive is too large",
                        where=f"{path}, {name}",
                        received=f"{member.size:,} bytes",
                        allowed=f"at most {_MAX_MEMBER:,}",
                    )
                file = archive.extractfile(member)
                assert file is not None  # it is a file
                yield name, file.read()


def _text(key: object) -> str:
    """A key as text: Python 3 writes bytes where it read the text of Python 2 as bytes."""
    return key.decode("latin-1") if isinstance(key, bytes) else str(key)


def _read_batch(data: bytes, where: str) -> tuple[np.ndarray, np.ndarray]:
    source = Source(where, memoryview(data))
    value, _ = PickleReader(source, {**NUMPY, **CONTAINERS}, fix="download the archive again").run()
    batch: Any = to_plain(source, value)
    entries = {_text(key): part for key, part in batch.items()} if isinstance(batch, dict) else {}
    pixels, labels = entries.get("data"), entries.get("labels", entries.get("fine_labels"))
    size = 3 * _CIFAR_SIDE**2
    if (
        not isinstance(pixels, np.ndarray)
        or not isinstance(labels, list)
        or pixels.dtype != np.uint8
        or pixels.shape != (len(labels), size)
        or not all(type(label) is int for label in labels)
    ):
        raise FormatError(
            "this is no batch of CIFAR",
            where=where,
            received=f"a {type(batch).__name__} with {', '.join(sorted(entries)[:8]) or 'nothing'}",
            allowed=f"data [count, {size}] uint8 and as many labels or fine_labels",
        )
    images = pixels.reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.asarray(labels, np.int64)


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The matrices of numbers in a MAT file of version 5, by name. Other kinds of values are left out.

    Source: "MAT-File Format", MathWorks, chapter 1.

    Raises:
        InputError: there is no such file. FormatError: it is no such file, or damaged.
    """
    data = check_file(path, "MAT").read_bytes()
    if len(data) < 128 or data[126:128] != b"IM" or len(data) > _MAX_MAT:
        raise FormatError(
            "this is no MAT file of version 5",
            where=path,
            received=f"{len(data)} bytes that begin with {data[:20]!r}",
            allowed=f"a little-endian one of at most {_MAX_MAT:,} bytes",
        )
    try:
        found = {}
        for kind, content in _elements(data[128:]):
            if kind == 15:  # packed
                unpacker = zlib.decompressobj()
                unpacked = unpacker.decompress(content, _MAX_MAT)
                inner = list(_elements(unpacked))
            else:
                inner = [(kind, content)]
            for inner_kind, matrix in inner:
                if inner_kind == 14 and (named := _read_matrix(matrix)) is not None:
                    found[named[0]] = named[1]
        return found
    except (struct.error, zlib.error, ValueError, KeyError, IndexError) as error:
        raise FormatError(
            "the MAT file is damaged", where=path, received=error, fix="download it again"
        ) from error


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, content) of the data elements that stand one after another."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:  # the small form: 2 bytes of type, 2 of size, 4 of content
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start, end = at + 8, at + 8 + (size if kind == 15 else -(-size // 8) * 8)
        if start + size > len(data):
            raise ValueError("an element is cut off")
        yield kind, data[start : start + size]
        at = end


def _read_matrix(data: bytes) -> tuple[str, np.ndarray] | None:
    parts = list(_elements(data))
    flags, (_, shape), (_, name), *rest = parts
    kind = flags[1][0]
    if not 6 <= kind <= 15 or not rest:  # cells, structures and texts
        return None
    sizes = np.frombuffer(shape, "<i4")
    number, content = rest[0]
    values = np.frombuffer(content, "<" + _MAT_NUMBERS[number])
    return name.decode("latin-1"), values.reshape(sizes[::-1]).T
