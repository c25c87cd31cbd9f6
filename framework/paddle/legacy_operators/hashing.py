"""Hashes of rows of integers. Source: paddle/fluid/operators/hash_op.h; XXH64 of github.com/Cyan4973/xxHash."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import Operands, Outputs, Ragged, Table, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)
_MASK = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _round(state: int, lane: int) -> int:
    return _rotate((state + lane * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _stripes(data: bytes, seed: int) -> int:
    """The state after all blocks of 32 bytes."""
    p1, p2 = _PRIMES[:2]
    states = [(seed + p1 + p2) & _MASK, (seed + p2) & _MASK, seed, (seed - p1) & _MASK]
    for start in range(0, len(data) - 31, 32):
        lanes = [int.from_bytes(data[start + 8 * lane : start + 8 * lane + 8], "little") for lane in range(4)]
        states = [_round(state, lane) for state, lane in zip(states, lanes, strict=True)]
    value = sum(_rotate(state, bits) for state, bits in zip(states, (1, 7, 12, 18))) & _MASK
    for state in states:
        value = ((value ^ _round(0, state)) * p1 + _PRIMES[3]) & _MASK
    return value


def xxh64(data: bytes, seed: int) -> int:
    """The 64 bits of XXH64."""
    p1, p2, p3, p4, p5 = _PRIMES
    value = _stripes(data, seed) if len(data) >= 32 else (seed + p5) & _MASK
    value = (value + len(data)) & _MASK
    rest = data[len(data) // 32 * 32 :]
    while len(rest) >= 8:
        value = (_rotate(value ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4) & _MASK
        rest = rest[8:]
    if len(rest) >= 4:
        value = (_rotate(value ^ int.from_bytes(rest[:4], "little") * p1 & _MASK, 23) * p2 + p3) & _MASK
        rest = rest[4:]
    for byte in rest:
        value = _rotate(value ^ byte * p5 & _MASK, 11) * p1 & _MASK
    value = (value ^ value >> 33) * p2 & _MASK
    value = (value ^ value >> 29) * p3 & _MASK
    return value ^ value >> 32


@operator("hash")
def _hash(a: Operands) -> Outputs:
    """[rows, num_hash, 1]: the hash of each row under the seeds 0, 1, ... modulo `mod_by`."""
    rows, divisor = a.host("X"), int(a.attr("mod_by", 100000))
    values = [
        [xxh64(row.tobytes(), seed) % divisor for seed in range(a.attr("num_hash", 1))]
        for row in rows.reshape(-1, rows.shape[-1])
    ]
    out = np.array(values, np.int64).reshape(*rows.shape[:-1], -1, 1)
    levels = a.lod("X")
    return {"Out": out if levels is None else Ragged(jnp.asarray(out), levels)}
