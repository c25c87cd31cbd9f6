"""Decoder of the protobuf wire format, without schema and without the protobuf package.

A `Message` splits its bytes into fields once; nested messages are split when they are asked for, and the bytes of
tensors stay views of the file. The readers of `.onnx` and `.pdmodel` know the field numbers.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import numpy as np

from framework.core.errors import FormatError
from framework.interop.source import Source

_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5
_SIZE = {_FIXED64: 8, _FIXED32: 4}
_WIRE_NAMES = {
    _VARINT: "a varint",
    _FIXED64: "8 bytes",
    _LEN: "a length-delimited value",
    _FIXED32: "4 bytes",
}


def varint(source: Source, at: int, end: int) -> tuple[int, int]:
    """The unsigned integer at `at` and the position after it."""
    value = shift = 0
    data = source.data
    start = at
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    problem = "a varint is longer than 10 bytes" if shift >= 70 else "the message ends inside a varint"
    raise source.error(f"not protobuf: {problem}", start)


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


class Message:
    """The fields of one protobuf message in `source.data[start:end]`; `kind` names it in errors.

    Getters take a field number. A singular field that occurs several times has its last value, as protobuf demands.
    Integers are read as int64 (int32, int64, bool and enum fields; none of the formats here uses zigzag).
    """

    __slots__ = ("_fields", "end", "kind", "source", "start")

    def __init__(self, source: Source, kind: str, start: int = 0, end: int | None = None) -> None:
        end = len(source.data) if end is None else end
        self.source, self.kind, self.start, self.end = source, kind, start, end
        self._fields: dict[int, list[tuple[int, int, int]]] = {}  # number -> (wire type, start | value, end)
        at = start
        while at < end:
            key, after = varint(source, at, end)
            number, wire = key >> 3, key & 7
            if number == 0 or wire not in _WIRE_NAMES:
                raise self._error("not protobuf: a field has no valid key", at, received=f"key {key}")
            if wire == _VARINT:
                value, at = varint(source, after, end)
                entry = (wire, value, at)
            else:
                size, begin = (_SIZE[wire], after) if wire != _LEN else varint(source, after, end)
                if size > end - begin:
                    raise self._error(
                        f"field {number} runs over the end of the message",
                        begin,
                        received=f"a declared size of {size} bytes",
                        allowed=f"at most {end - begin} bytes",
                    )
                at = begin + size
                entry = (wire, begin, at)
            self._fields.setdefault(number, []).append(entry)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    @property
    def numbers(self) -> frozenset[int]:
        """The field numbers present."""
        return frozenset(self._fields)

    def _error(self, problem: str, at: int, received: object = None, allowed: object = None) -> FormatError:
        return self.source.error(f"{self.kind}: {problem}", at, received=received, allowed=allowed)

    def _entries(self, number: int, *wires: int) -> list[tuple[int, int, int]]:
        entries = self._fields.get(number, [])
        for wire, _, _ in entries:
            if wire not in wires:
                raise self._error(
                    f"field {number} has the wrong wire type",
                    self.start,
                    received=_WIRE_NAMES[wire],
                    allowed=" or ".join(_WIRE_NAMES[w] for w in wires),
                )
        return entries

    def integer(self, number: int, default: int = 0) -> int:
        entries = self._entries(number, _VARINT)
        return _to_signed(entries[-1][1]) if entries else default

    def integers(self, number: int) -> tuple[int, ...]:
        """A repeated integer field, packed or not."""
        values = []
        for wire, start, end in self._entries(number, _VARINT, _LEN):
            if wire == _VARINT:
                values.append(_to_signed(start))
                continue
            while start < end:
                value, start = varint(self.source, start, end)
                values.append(_to_signed(value))
        return tuple(values)

    def reals(self, number: int, dtype: str = "<f4") -> np.ndarray:
        """A repeated float (`<f4`) or double (`<f8`) field, packed or not; one packed run is a view of the file."""
        code = np.dtype(dtype)
        runs = []
        for _, start, end in self._entries(number, _LEN, _FIXED32 if code.itemsize == 4 else _FIXED64):
            if (end - start) % code.itemsize:
                raise self._error(
                    f"field {number} holds no whole number of values",
                    start,
                    received=f"{end - start} bytes",
                    allowed=f"a multiple of {code.itemsize}",
                )
            if end > start:
                runs.append(np.frombuffer(self.source.data[start:end], code))
        if not runs:
            return np.empty(0, code)
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def real(self, number: int, dtype: str = "<f4") -> float | None:
        values = self.reals(number, dtype)
        return values[-1].item() if len(values) else None

    def span(self, number: int) -> tuple[int, memoryview] | None:
        """Position and view of a bytes field, or None when it is absent."""
        entries = self._entries(number, _LEN)
        return (entries[-1][1], self.source.data[entries[-1][1] : entries[-1][2]]) if entries else None

    def blobs(self, number: int) -> list[bytes]:
        return [bytes(self.source.data[start:end]) for _, start, end in self._entries(number, _LEN)]

    def texts(self, number: int) -> tuple[str, ...]:
        texts = []
        for _, start, end in self._entries(number, _LEN):
            try:
                texts.append(str(self.source.data[start:end], "utf-8"))
            except UnicodeDecodeError:
                raise self._error(f"field {number} is not UTF-8 text", start) from None
        return tuple(texts)

    def text(self, number: int, default: str = "") -> str:
        texts = self.texts(number)
        return texts[-1] if texts else default

    def messages(self, number: int, kind: str) -> list[Message]:
        return [Message(self.source, kind, start, end) for _, start, end in self._entries(number, _LEN)]

    def message(self, number: int, kind: str) -> Message | None:
        entries = self._entries(number, _LEN)
        return Message(self.source, kind, entries[-1][1], entries[-1][2]) if entries else None
