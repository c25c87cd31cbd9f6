"""Encoder of the protobuf wire format, without schema and without the protobuf package: what `wire.py` reads.

A message is the bytes of its fields one after the other; the writers of a format know the field numbers.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """An integer; negative ones as 64 bits in two's complement, as protobuf writes int32, int64 and enums."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """A field of int32, int64, bool or an enum."""
    return varint(number << 3 | _VARINT) + varint(int(value))


def float_field(number: int, value: float) -> bytes:
    """A field of 32 bits; a number beyond float32 becomes infinite."""
    try:
        data = struct.pack("<f", value)
    except OverflowError:
        data = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return varint(number << 3 | _FIXED32) + data


def double_field(number: int, value: float) -> bytes:
    """A field of 64 bits."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A field of bytes, text or a message that was encoded before."""
    data = value.encode("utf-8") if isinstance(value, str) else value
    return varint(number << 3 | _LEN) + varint(len(data)) + data
