"""xxh64, the hash of feature values: the same in every process, language and release, so that a model can be served.

Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable

from framework.core.errors import ConfigError

SEPARATOR = "\x1f"  # the unit separator of ASCII: no text file has it in a value
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def xxh64(data: bytes, seed: int = 0) -> int:
    """The 64-bit xxHash of some bytes."""
    length, offset = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed & _MASK, (seed - _P1) & _MASK]
        for offset in range(0, length - 31, 32):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, offset))]
        offset += 32
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    value = (value + length) & _MASK
    while offset + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, offset)
        value = (_rotate(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        offset += 8
    if offset + 4 <= length:
        (word,) = struct.unpack_from("<I", data, offset)
        value = (_rotate(value ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        offset += 4
    for byte in data[offset:]:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ (value >> 33)) * _P2 & _MASK
    value = (value ^ (value >> 29)) * _P3 & _MASK
    return value ^ (value >> 32)


def _fastest() -> Callable[[bytes], int]:
    """The package xxhash where it is installed: the same numbers, thirty times as fast."""
    try:
        return importlib.import_module("xxhash").xxh64_intdigest
    except ImportError:
        return xxh64


_hash = _fastest()


def hash_feature(field: str, value: str, size: int) -> int:
    """The row of a value of a field in a table of `size` rows: 2 to size - 1. Row 0 is padding, row 1 unknown.

    Raises:
        ConfigError: the table has no row for values.
    """
    if size < 3:
        raise ConfigError(
            "a table of hashed values needs rows for them",
            where="size",
            received=size,
            allowed="3 or more: row 0 is padding, row 1 stands for unknown values",
        )
    return 2 + _hash(f"{field}{SEPARATOR}{value}".encode("utf-8", "surrogatepass")) % (size - 2)
