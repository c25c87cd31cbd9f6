"""torch checkpoints: the zip files of torch 1.6 and later, and the older stream of pickles.

Tensors are views of the file, strided ones too. Nothing of torch is needed, and nothing that the pickle names is run.

Source: torch/serialization.py and torch/_utils.py of torch 2.13
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.errors import FormatError
from framework.interop import source as src
from framework.interop.source import MAX_RANK, Source, read_source
from framework.interop.weights.pickled import CONTAINERS, NUMPY, is_shape, to_native, to_plain
from framework.interop.weights.pickles import AllowList, Global, PickleReader

# Protocol 2, the number 0x1950a86a20f9469cfc6c, stop.
LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
ZIP_MAGIC = b"PK\x03\x04"
_RESAVE = (
    "load it in the torch that wrote it and save only the weights: torch.save(model.state_dict(), path). "
    "If you did not make this file yourself, do not open it there either: it may have been made to run code"
)

_STORAGES = {
    "FloatStorage": np.dtype("f4"),
    "DoubleStorage": np.dtype("f8"),
    "HalfStorage": np.dtype("f2"),
    "BFloat16Storage": src.bfloat16,
    "LongStorage": np.dtype("i8"),
    "IntStorage": np.dtype("i4"),
    "ShortStorage": np.dtype("i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
    "ComplexFloatStorage": np.dtype("c8"),
    "ComplexDoubleStorage": np.dtype("c16"),
}
_DTYPES = {
    **{name: np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")},
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "bool")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    "bfloat16": src.bfloat16,
    "float8_e4m3fn": src.float8_e4m3fn,
    "float8_e4m3fnuz": src.float8_e4m3fnuz,
    "float8_e5m2": src.float8_e5m2,
    "float8_e5m2fnuz": src.float8_e5m2fnuz,
}


@dataclass(eq=False)
class _Storage:
    """A run of numbers that tensors look into; `dtype` is None for a storage that is only bytes."""

    key: str
    dtype: np.dtype | None
    data: Callable[[], memoryview]


@dataclass(eq=False)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    big_endian: bool

    def finish(self) -> np.ndarray:
        data = self.storage.data()
        size = self.dtype.itemsize
        count = math.prod(self.shape)
        span = 1 + sum((length - 1) * stride for length, stride in zip(self.shape, self.strides))
        if count and (self.offset + span) * size > len(data):
            raise ValueError(
                f"a tensor of shape {list(self.shape)} and strides {list(self.strides)} at {self.offset} "
                f"reaches beyond its storage of {len(data)} bytes"
            )
        # An expanded tensor (stride 0) is larger than its storage; a huge one would explode in the first copy.
        if count * size > max(64 * len(data), 1 << 20):
            raise ValueError(
                f"a tensor of shape {list(self.shape)} is declared over {len(data)} bytes of storage"
            )
        if not count:
            return np.empty(self.shape, self.dtype)
        order = ">" if self.big_endian else "<"
        flat = np.frombuffer(data, self.dtype.newbyteorder(order), len(data) // size)[self.offset :]
        strides = tuple(stride * size for stride in self.strides)
        return to_native(np.lib.stride_tricks.as_strided(flat, self.shape, strides, writeable=False))


def read_torch(path: str | Path | Source) -> Any:
    """Read a torch checkpoint: what was saved, with numpy arrays (read-only) for tensors and str for torch's dtypes.

    Raises FormatError for a damaged file, for a pickle that names classes other than those of tensors and plain
    containers (a whole model instead of its state dict), and for sparse or quantized tensors.
    """
    source = read_source(path)
    if source.data[: len(LEGACY_MAGIC)] == LEGACY_MAGIC:
        return _read_legacy(source)
    return _read_zip(source)


def _make_allow_list(big_endian: bool) -> AllowList:
    def tensor(storage: object, offset: object, shape: object, strides: object, *_: object) -> _Tensor:
        dtype = storage.dtype if isinstance(storage, _Storage) else None
        return build(storage, offset, shape, strides, dtype)

    def tensor_v2(
        storage: object,
        offset: object,
        shape: object,
        strides: object,
        grad: object,
        hooks: object,
        metadata: object = None,
    ) -> _Tensor:
        if metadata:
            raise ValueError("a tensor with lazy conjugation or negation")
        return tensor(storage, offset, shape, strides)

    def tensor_v3(
        storage: object,
        offset: object,
        shape: object,
        strides: object,
        grad: object,
        hooks: object,
        dtype: object,
        metadata: object = None,
    ) -> _Tensor:
        if metadata or not isinstance(dtype, Global):
            raise ValueError("a tensor with lazy conjugation or without dtype")
        return build(storage, offset, shape, strides, _DTYPES[dtype.name])

    def build(
        storage: object, offset: object, shape: object, strides: object, dtype: np.dtype | None
    ) -> _Tensor:
        if (
            not (is_shape(shape) and is_shape(strides) and type(offset) is int)
            or min((offset, *shape, *strides)) < 0
        ):
            raise ValueError("offset, shape or strides of a tensor are not numbers of 0 and above")
        if (
            not isinstance(storage, _Storage)
            or dtype is None
            or len(shape) != len(strides)
            or len(shape) > MAX_RANK
        ):
            raise ValueError(
                "a tensor without storage or dtype, or with shape and strides of different lengths"
            )
        if math.prod(max(size, 1) for size in shape) >= 2**48:
            raise ValueError("the shape of a tensor is impossible")
        return _Tensor(storage, offset, shape, strides, dtype, big_endian)

    def first(value: object, *_: object) -> object:
        return value

    return {
        **NUMPY,
        **CONTAINERS,
        **{("torch", name): None for name in (*_STORAGES, *_DTYPES)},
        ("torch.storage", "UntypedStorage"): None,
        ("torch.storage", "TypedStorage"): None,
        ("torch._utils", "_rebuild_tensor"): tensor,
        ("torch._utils", "_rebuild_tensor_v2"): tensor_v2,
        ("torch._utils", "_rebuild_tensor_v3"): tensor_v3,
        ("torch._utils", "_rebuild_parameter"): first,
        ("torch._utils", "_rebuild_parameter_with_state"): first,
        ("torch", "Size"): first,
        ("torch", "device"): first,
    }


def _storage_class(kind: object) -> np.dtype | None:
    if not isinstance(kind, Global) or (kind.name not in _STORAGES and kind.name != "UntypedStorage"):
        raise ValueError("a storage of an unknown class")
    return _STORAGES.get(kind.name)


# Zip ---------------------------------------------------------------------------------------------------------------


def is_zip_checkpoint(source: Source) -> bool:
    """Whether a zip file is a checkpoint, or too damaged to tell, which `read_torch` says then."""
    try:
        return bool(_pickles(_directory(source)))
    except FormatError:
        return True


def _directory(source: Source) -> dict[str, zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(source.stream()) as archive:
            return {entry.filename: entry for entry in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error) as error:
        raise source.error(f"the zip directory at the end of the file cannot be read: {error}") from None


def _pickles(entries: Iterable[str]) -> list[str]:
    return [name for name in entries if name == "data.pkl" or name.endswith("/data.pkl")]


def _read_zip(source: Source) -> object:
    entries = _directory(source)
    pickles = _pickles(entries)
    if len(pickles) != 1:
        raise source.error(
            "this zip file is not a torch checkpoint",
            received=f"{len(entries)} entries: {', '.join(list(entries)[:5])}"[:300],
            allowed="one entry named data.pkl",
            fix="give the .pth or .pt file itself; unpack the archive first if it holds one",
        )
    root = pickles[0].removesuffix("data.pkl")
    if any(name.startswith(f"{root}code/") for name in entries):
        raise source.error("this is a TorchScript program, not a checkpoint", fix=_RESAVE)
    order = bytes(_entry(source, entries[root + "byteorder"])) if root + "byteorder" in entries else b"little"
    storages: dict[str, _Storage] = {}

    def persistent(identity: object) -> _Storage:
        tag, kind, key, _, _ = identity if type(identity) is tuple else (None,) * 5
        if tag != "storage" or type(key) is not str or f"{root}data/{key}" not in entries:
            raise ValueError("a reference to something other than a storage of this file")
        if key not in storages:
            entry = entries[f"{root}data/{key}"]
            data = _entry(source, entry)
            storages[key] = _Storage(key, _storage_class(kind), lambda: data)
        return storages[key]

    body = _entry(source, entries[pickles[0]])
    inner = Source(f"{source.name}: {pickles[0]}", body)
    value, _ = PickleReader(
        inner, _make_allow_list(order == b"big"), persistent=persistent, fix=_RESAVE
    ).run()
    return to_plain(inner, value)


def _entry(source: Source, entry: zipfile.ZipInfo) -> memoryview:
    """A stored entry as a view of the file, its checksum verified."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise source.error(
            f"the entry {entry.filename!r} is compressed or encrypted", entry.header_offset, fix=_RESAVE
        )
    header = source.view(entry.header_offset, 30, "a zip entry")
    if header[:4] != ZIP_MAGIC:
        raise source.error("a zip entry does not start where the directory says", entry.header_offset)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    view = source.view(entry.header_offset + 30 + lengths, entry.file_size, f"the entry {entry.filename!r}")
    if zlib.crc32(view) != entry.CRC:
        raise source.error(
            f"the entry {entry.filename!r} is damaged: its checksum differs", entry.header_offset
        )
    return view


# Legacy stream -----------------------------------------------------------------------------------------------------


def _read_legacy(source: Source) -> object:
    """Magic number, protocol, system facts, the object, the keys of its storages; then each storage's numbers."""
    storages: dict[str, _Storage] = {}
    located: dict[str, memoryview] = {}

    def persistent(identity: object) -> _Storage:
        tag, kind, key, _, _, view = identity if type(identity) is tuple else (None,) * 6
        if tag != "storage" or type(key) is not str or view is not None:
            raise ValueError(
                "a reference to something other than a whole storage, such as the code of a model"
            )
        if key not in storages:
            storages[key] = _Storage(key, _storage_class(kind), lambda: located[key])
        return storages[key]

    at = len(LEGACY_MAGIC)
    heads = []
    for _ in range(2):
        head, at = PickleReader(source, {}, start=at, fix=_RESAVE).run()
        heads.append(head)
    if heads[0] != 1001 or not isinstance(heads[1], dict) or heads[1].get("little_endian") is not True:
        raise source.error(
            "a torch stream of an unknown version or byte order", len(LEGACY_MAGIC), fix=_RESAVE
        )
    value, at = PickleReader(
        source, _make_allow_list(False), start=at, persistent=persistent, fix=_RESAVE
    ).run()
    keys, at = PickleReader(source, {}, start=at, fix=_RESAVE).run()
    for key in keys if isinstance(keys, list) else ():
        if type(key) is not str or key not in storages or (dtype := storages[key].dtype) is None:
            raise source.error("the list of storages does not fit the tensors", at, fix=_RESAVE)
        count = int.from_bytes(source.view(at, 8, "the size of a storage"), "little")
        located[key] = source.view(at + 8, count * dtype.itemsize, f"the storage {key!r}")
        at += 8 + count * dtype.itemsize
    if set(located) != set(storages) or at != len(source.data):
        raise source.error(
            "the storages do not end where the file ends",
            at,
            received=f"{len(located)} of {len(storages)} storages, {len(source.data) - at} bytes left",
        )
    return to_plain(source, value)
