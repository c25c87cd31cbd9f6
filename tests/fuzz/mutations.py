"""Damage to files, drawn from a seeded generator: of bytes, and of the values of JSON and YAML."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import yaml

_LENGTHS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**6, 10**30, -(2**63), 1e308, float("nan"), float("inf"), "", "x", "../x", "9" * 5000,
    "\udce9", "\x00", [], {}, [[]], [None], {"": None}, [1, "a"], "a" * 100_000,
)  # fmt: skip
_WORDS = (
    b"\xff",
    b"\xff\xfe",
    b"\x00" * 4,
    b"\xed\xb3\xa9",
    b"\r",
    b"\t",
    b"*a",
    b"&a ",
    b"!!int ",
    b"1e999",
    b"{" * 200,
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to four changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice(_BYTES)(bytearray(data), rng) if data else bytes(rng.randbytes(rng.randint(0, 64)))
    return data


def mutate_values(data: bytes, rng: random.Random) -> bytes:
    """JSON or YAML with values of other types, missing, doubled or very deep ones; now and then other bytes too."""
    if rng.random() < 0.3:
        return mutate(data, rng)
    is_json = data.lstrip()[:1] in (b"{", b"[")
    try:
        root = [json.loads(data) if is_json else yaml.safe_load(data)]
    except (ValueError, yaml.YAMLError):
        return mutate(data, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change(root, rng)
    if rng.random() < 0.03:
        root = [_deep(rng.choice((50, 150, 5000)), rng)]
    if not is_json:
        try:
            return yaml.safe_dump(root[0], allow_unicode=True, sort_keys=False).encode(
                "utf-8", "surrogatepass"
            )
        except RecursionError:
            return b"- " * 5000
    try:
        return json.dumps(root[0], ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 5000


def _change(root: list[Any], rng: random.Random) -> None:
    """Replace, remove or double one value somewhere below `root`."""
    holder: Any = root
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = rng.choice(keys)
        child = holder[key]
        if not isinstance(child, list | dict) or not child or (rng.random() < 0.3 and holder is not root):
            break
        holder = child
    action = rng.random()
    if action < 0.6 or holder is root:
        holder[key] = (
            copy.copy(rng.choice(_VALUES)) if action < 0.55 else _deep(rng.choice((20, 90, 150)), rng)
        )
    elif action < 0.75:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), copy.deepcopy(child))
    else:
        holder[rng.choice(("", "x", "type", "0", f"{key}_"))] = holder.pop(key)


def _deep(levels: int, rng: random.Random) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _flip(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _truncate(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data))])


def _length(data: bytearray, rng: random.Random) -> bytes:
    """A number as a length could be, somewhere, at the start more often."""
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    at = (
        min(rng.randrange(len(data)), rng.randrange(len(data)))
        if rng.random() < 0.8
        else rng.randrange(min(64, len(data)))
    )
    data[at : at + size] = (rng.choice(_LENGTHS) % 256**size).to_bytes(size, order)  # type: ignore[arg-type]
    return bytes(data)


def _splice(data: bytearray, rng: random.Random) -> bytes:
    """A piece of it somewhere else, in place of what is there or between."""
    start, at = rng.randrange(len(data)), rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 1 + len(data) // 4)]
    data[at : at + (len(piece) if rng.random() < 0.5 else 0)] = piece
    return bytes(data)


def _remove(data: bytearray, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 8, 1 + len(data) // 8))]
    return bytes(data)


def _insert(data: bytearray, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice(_WORDS) if rng.random() < 0.5 else rng.randbytes(rng.randint(1, 16))
    return bytes(data)


def _zero(data: bytearray, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(data)), rng.randint(1, 1 + len(data) // 8)
    data[at : at + size] = bytes(len(data[at : at + size]))
    return bytes(data)


def _digits(data: bytearray, rng: random.Random) -> bytes:
    """Another number in the place of one that is written in digits."""
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        at = rng.choice(places)
        data[at : at + 1] = rng.choice((b"-1", b"99999999999", b"1e9", b"0", b"x", b"4294967296"))
    return bytes(data)


_BYTES = (_flip, _flip, _truncate, _length, _length, _splice, _remove, _insert, _zero, _digits)
