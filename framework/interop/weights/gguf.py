"""GGUF, the files of llama.cpp: metadata, and tensors in blocks of a few bits. Mapped into memory, never read whole.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.interop.source import Source
from framework.interop.weights.gguf_blocks import BLOCKS, OTHER_KINDS, dequantize_blocks
from framework.interop.weights.lazy_state import LazyArray, LazyState
from framework.interop.weights.mapped_file import map_source

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_RANK = 4
_MAX_NAME = 1 << 16  # bytes of a key or of a name of a tensor
_MAX_ALIGNMENT = 1 << 20
_MAX_DEPTH = 4  # of arrays in arrays
_NUMBERS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}
"""Codes of types of metadata, for struct."""
_STRING, _ARRAY = 8, 9
_SPLIT = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
_LEAST_BYTES = {code: struct.calcsize(form) for code, form in _NUMBERS.items()} | {_STRING: 8, _ARRAY: 12}

Value = bool | int | float | str | list
"""Of metadata: a list holds values of one kind, or lists."""


class TensorEntry(NamedTuple):
    """A tensor of a file.

    Attributes:
        shape: As numpy has it, the first axis slowest; the file lists axes the other way round.
        kind: "F32", "Q4_K" and the like.
        start: Of its first byte in the file.
        size: In bytes.
        source: The file: one of several where a model is split.
    """

    shape: tuple[int, ...]
    kind: str
    start: int
    size: int
    source: Source


@dataclass(frozen=True)
class GGUFFile:
    """A GGUF file: what it says, and its tensors, whose bytes stay on the disk until they are asked for."""

    source: Source
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorEntry]

    def data(self, name: str) -> memoryview:
        """The bytes of a tensor as they stand in the file."""
        entry = self.tensors[name]
        return entry.source.view(entry.start, entry.size, f"the tensor {name!r}")

    def array(self, name: str) -> np.ndarray:
        """A tensor in float32; types of whole numbers as they are.

        Raises:
            FormatError: the file ends before it, or its blocks are of a kind that is not read.
        """
        entry = self.tensors[name]
        return dequantize_blocks(self.data(name), entry.kind, entry.shape)

    def state(self) -> LazyState:
        """All tensors by their names in the file."""
        return LazyState(
            {
                name: LazyArray(entry.shape, lambda name=name: self.array(name))
                for name, entry in self.tensors.items()
            }
        )


def read_gguf(path: str | Path | Source) -> GGUFFile:
    """The metadata of a GGUF file and where its tensors are; of a model that is split, those of all its files, which
    stand beside each other as llama-gguf-split names them: model-00001-of-00003.gguf.

    Raises:
        FormatError: not a GGUF file of version 2 or 3, damaged, cut off, with tensors in blocks that no version of
            the format had, or one of several that are not all there.
    """
    source = path if isinstance(path, Source) else map_source(path)
    file = _read_file(source)
    count = file.metadata.get("split.count", 1)
    if not isinstance(count, int) or count <= 1:
        return file
    match = None if isinstance(path, Source) else _SPLIT.fullmatch(Path(path).name)
    if match is None or int(match[3]) != count:
        raise source.error(
            f"the file is one of {count} of a model, whose names say which",
            allowed=f"model-00001-of-{count:05}.gguf",
            fix="give the files the names that llama-gguf-split wrote",
        )
    return _join_files(file, Path(path), match[1], count)  # type: ignore[arg-type]


def _join_files(file: GGUFFile, path: Path, stem: str, count: int) -> GGUFFile:
    """All tensors of a model in several files, with the metadata of the first."""
    files = []
    for number in range(1, count + 1):
        other = path.with_name(f"{stem}-{number:05}-of-{count:05}.gguf")
        if other != path and not other.is_file():
            raise file.source.error(
                "a file of the model is missing",
                received=f"no {other.name}",
                allowed=f"{count} files beside each other",
            )
        files.append(file if other == path else _read_file(map_source(other)))
    tensors: dict[str, TensorEntry] = {}
    for one in files:
        if twice := tensors.keys() & one.tensors.keys():
            raise one.source.error(f"the tensor {min(twice)[:80]!r} is in two files of the model")
        tensors |= one.tensors
    total = files[0].metadata.get("split.tensors.count", len(tensors))
    if total != len(tensors):
        raise files[0].source.error(
            "the files are not those of one model",
            received=f"{len(tensors)} tensors in {count} files",
            allowed=f"{total}, as split.tensors.count says",
        )
    return GGUFFile(files[0].source, files[0].metadata, tensors)


def _read_file(source: Source) -> GGUFFile:
    reader = _Reader(source)
    reader.check_magic()
    tensor_count, value_count = reader.number("<Q"), reader.number("<Q")
    reader.check_count(tensor_count, 24, "tensors")  # the least that an entry of a tensor takes
    reader.check_count(value_count, 13, "values of metadata")
    metadata: dict[str, Value] = {}
    for _ in range(value_count):
        key = reader.string(_MAX_NAME, "a key of the metadata")
        if key in metadata:
            raise source.error(f"the metadata has the key {key[:80]!r} twice", reader.at)
        metadata[key] = reader.value(reader.number("<I"), 0)
    entries = [reader.entry() for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= _MAX_ALIGNMENT or alignment % 8:
        raise source.error(
            "tensors cannot be aligned like this",
            received=f"general.alignment {alignment!r}"[:80],
            allowed=f"a multiple of 8 up to {_MAX_ALIGNMENT}",
        )
    start = -(-reader.at // alignment) * alignment
    tensors: dict[str, TensorEntry] = {}
    for name, shape, kind, offset in entries:
        size = _byte_size(source, name, shape, kind)
        if name in tensors or offset % alignment:
            problem = "is there twice" if name in tensors else "does not begin at a multiple of the alignment"
            raise source.error(f"the tensor {name[:80]!r} {problem}", received=f"offset {offset}")
        source.view(start + offset, size, f"the tensor {name[:80]!r}")
        tensors[name] = TensorEntry(shape, kind, start + offset, size, source)
    return GGUFFile(source, metadata, tensors)


def _byte_size(source: Source, name: str, shape: tuple[int, ...], kind: str) -> int:
    """Raises: FormatError, where a row is not a whole number of blocks."""
    block = BLOCKS[kind]
    if shape[-1] % block.length:
        raise source.error(
            f"the rows of the tensor {name[:80]!r} are not whole blocks",
            received=f"{list(shape)} in {kind}",
            allowed=f"rows of a multiple of {block.length} numbers",
        )
    return math.prod(shape) // block.length * block.size


class _Reader:
    """The header of a file, from its beginning on."""

    def __init__(self, source: Source) -> None:
        self.source, self.at = source, 0

    def take(self, size: int, what: str) -> memoryview:
        view = self.source.view(self.at, size, what)
        self.at += size
        return view

    def number(self, form: str) -> int:
        """A whole number; `form` is struct's."""
        return struct.unpack(form, self.take(struct.calcsize(form), "the header"))[0]

    def check_magic(self) -> None:
        """Raises: FormatError, which says what the file is where that can be told."""
        if bytes(self.source.data[:4]) != MAGIC:
            raise self.source.error(
                "not a GGUF file",
                received=f"it starts with {bytes(self.source.data[:4])!r}",
                allowed=repr(MAGIC),
            )
        self.at = 4
        version = self.number("<I")
        if version in _VERSIONS:
            return
        big_endian = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        raise self.source.error(
            "GGUF files of this version are not read",
            4,
            received="numbers with the highest byte first" if big_endian else f"version {version}",
            allowed="version 2 or 3, the lowest byte first",
            fix="convert the model again with a llama.cpp of 2024 or later",
        )

    def check_count(self, count: int, least: int, what: str) -> None:
        """Raises: FormatError, where the rest of the file is too short for so many, of `least` bytes each."""
        remaining = len(self.source.data) - self.at
        if count * least > remaining:
            raise self.source.error(
                f"the file is too short for the {what} that it announces",
                self.at,
                received=f"{count} in {remaining} bytes",
            )

    def string(self, limit: int, what: str) -> str:
        at, size = self.at, self.number("<Q")
        if size > limit:
            raise self.source.error(f"{what} is too long", at, received=f"{size} bytes", allowed=f"{limit}")
        # Tokens of some models are no UTF-8, and nothing but the tokenizer reads them.
        return str(self.take(size, what), "utf-8", "replace")

    def value(self, code: int, depth: int) -> Value:
        """A value of metadata by the code of its type."""
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if code == _STRING:
            return self.string(len(self.source.data), "a text of the metadata")
        if code != _ARRAY or depth >= _MAX_DEPTH:
            raise self.source.error(
                "the metadata holds a value of an unknown type",
                self.at,
                received=f"type {code}" if code != _ARRAY else f"lists in lists, {depth} deep",
            )
        kind, count = self.number("<I"), self.number("<Q")
        if kind not in _LEAST_BYTES:
            raise self.source.error("a list of the metadata is of an unknown type", self.at, received=kind)
        self.check_count(count, _LEAST_BYTES[kind], "values of a list")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            data = self.take(count * _LEAST_BYTES[kind], "a list of the metadata")
            return [one for (one,) in struct.iter_unpack(form, data)]
        return [self.value(kind, depth + 1) for _ in range(count)]

    def entry(self) -> tuple[str, tuple[int, ...], str, int]:
        """(name, shape, kind, offset) of a tensor."""
        name = self.string(_MAX_NAME, "the name of a tensor")
        rank = self.number("<I")
        if not 1 <= rank <= _MAX_RANK:
            raise self.source.error(
                f"the tensor {name[:80]!r} has no shape",
                self.at,
                received=f"{rank} axes",
                allowed=f"1 to {_MAX_RANK}",
            )
        shape = tuple(self.number("<Q") for _ in range(rank))[::-1]
        if not all(shape) or math.prod(shape) > len(self.source.data) * 8:  # a number takes a bit at least
            raise self.source.error(
                f"the tensor {name[:80]!r} is larger than the file, or empty",
                self.at,
                received=f"{list(shape)} in {len(self.source.data)} bytes",
            )
        code = self.number("<I")
        kind = next((kind for kind, block in BLOCKS.items() if block.code == code), None)
        if kind is None:
            raise self.source.error(
                f"the tensor {name[:80]!r} is in blocks of a kind that is not read",
                self.at,
                received=OTHER_KINDS.get(code, f"ggml type {code}"),
                allowed=", ".join(BLOCKS),
                fix="take a file of the same model in Q4_K_M, Q5_K_M, Q6_K, Q8_0, F16 or BF16",
            )
        return name, shape, kind, self.number("<Q")
