"""Tensors of ONNX files: raw bytes, typed fields, packed bits, and data in files beside the model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from framework.interop.programs.onnx_types import BITS, DTYPES, TEXT, unpack
from framework.interop.source import Source, read_source
from framework.interop.wire import Message


class TensorReader:
    """Reads the tensors of one model; a file of external data is read once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._files: dict[str, Source] = {}

    def read(self, tensor: Message) -> np.ndarray:
        """The values of a TensorProto, read-only.

        Raises:
            FormatError: it is damaged, of a type that is not read, or its data are not in the model's folder.
        """
        what = f"the tensor {tensor.text(8)!r}"
        code, shape = tensor.integer(2), tensor.integers(1)
        if code == TEXT and 3 not in tensor:
            texts = [value.decode("utf-8", "replace") for value in tensor.blobs(6)]
            if math.prod(shape) != len(texts):
                raise self.source.error(
                    f"{what} is cut short", tensor.start, received=len(texts), allowed=shape
                )
            return np.asarray(texts, np.str_).reshape(shape)
        if code not in DTYPES or 3 in tensor:
            raise self.source.error(
                f"{what} is of a kind that is not read",
                tensor.start,
                received="a segment of a tensor" if 3 in tensor else f"data type {code}",
                allowed=f"data types {sorted(DTYPES)}",
                fix="convert the model to float32, float16 or bfloat16 weights",
            )
        dtype = DTYPES[code]
        if tensor.integer(14) == 1:
            return self._external(tensor, what, dtype, shape)
        if dtype in BITS:
            raw = tensor.span(9)
            packed = np.frombuffer(raw[1], np.uint8) if raw else np.array(tensor.integers(5), np.uint8)
            return self._packed(tensor, packed, what, dtype, shape)
        if (raw := tensor.span(9)) is not None:
            return self.source.array(raw[0], raw[1], dtype, shape, what)
        return self.source.array(
            tensor.start, memoryview(_read_typed_values(tensor, dtype).tobytes()), dtype, shape, what
        )

    def _packed(
        self, tensor: Message, packed: np.ndarray, what: str, dtype: np.dtype, shape: tuple[int, ...]
    ) -> np.ndarray:
        size = math.prod(shape)
        if not 0 <= -(-size * BITS[dtype] // 8) <= len(packed):
            raise self.source.error(
                f"{what} is cut short",
                tensor.start,
                received=f"{len(packed)} bytes",
                allowed=f"{size} values of {BITS[dtype]} bits",
            )
        values = unpack(packed, dtype, size).reshape(shape)
        values.flags.writeable = False
        return values

    def _external(self, tensor: Message, what: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        entries = {entry.text(1): entry.text(2) for entry in tensor.messages(13, "StringStringEntryProto")}
        location = entries.get("location", "")
        model = Path(self.source.name)
        folder = model.parent.resolve()
        # Another system's separators and drive letters count too: what is refused must not depend on the reader.
        foreign = location.startswith("/") or any(mark in location for mark in ("\\", ":", "\0"))
        inside = 0 < len(location) < 256 and not foreign and ".." not in location.split("/")
        target = (folder / location).resolve() if inside else folder
        # Hugging Face's cache has links to the model and to its data, whose files lie side by side elsewhere.
        beside = target.parent == model.resolve().parent
        if not inside or not (beside or folder in target.parents):
            raise self.source.error(
                f"{what} points outside of the model's folder",
                tensor.start,
                received=location[:200],
                allowed=f"a file below {folder}",
                fix="put the data file itself, not a link, beside the model, or save the model in one file",
            )
        if location not in self._files:
            if not (folder / location).is_file():
                raise self.source.error(
                    f"{what} is in a file that is not there",
                    tensor.start,
                    received=str(folder / location),
                    fix="copy the model together with its data file",
                )
            self._files[location] = read_source(folder / location)
        data = self._files[location]
        offset = _parse_decimal(entries.get("offset", "0"))
        length = _parse_decimal(entries.get("length", str(len(data.data) - offset)))
        raw = data.view(offset, length, what)
        if dtype in BITS:
            return self._packed(tensor, np.frombuffer(raw, np.uint8), what, dtype, shape)
        return data.array(offset, raw, dtype, shape, what)


def _parse_decimal(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _read_typed_values(tensor: Message, dtype: np.dtype) -> np.ndarray:
    """The values of a tensor that is written in typed fields instead of raw bytes."""
    if dtype in (np.float32, np.complex64):
        return tensor.reals(4)
    if dtype in (np.float64, np.complex128):
        return tensor.reals(10, "<f8")
    if dtype == np.int64:
        return np.array(tensor.integers(7), np.int64)
    if dtype in (np.uint32, np.uint64):
        return np.array(tensor.integers(11), np.int64).astype(dtype)
    # int32_data holds everything narrower, 16- and 8-bit floats as their bits
    bits = np.dtype(f"u{dtype.itemsize}") if dtype.kind not in "iu" else dtype
    return np.array(tensor.integers(5), np.int64).astype(bits)
