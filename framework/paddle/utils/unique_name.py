"""Names with counters: `linear_0`, `linear_1`, …"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator

Counters = defaultdict[str, int]
_counters: Counters = defaultdict(int)
_prefix = ""
_taken: set[str] = set()  # names that ParamAttr gave


def generate(key: str) -> str:
    """`key` with the number of times that it was asked for."""
    number = _counters[key]
    _counters[key] += 1
    return f"{_prefix}{key}_{number}"


def claim(name: str) -> None:
    """Give a parameter a name of the user's.

    Raises:
        ValueError: another parameter has it.
    """
    if name in _taken:
        raise ValueError(
            f"the parameter name {name!r} is taken: ParamAttr(name=…) gives each parameter its own"
        )
    _taken.add(name)


def switch(
    new_generator: Counters | None = None, new_para_name_checker: set[str] | None = None
) -> tuple[Counters, set[str]]:
    """Start counting anew, or go on with these counters and names in use; returns the ones before."""
    global _counters, _taken
    before = _counters, _taken
    _counters = defaultdict(int) if new_generator is None else new_generator
    _taken = set() if new_para_name_checker is None else new_para_name_checker
    return before


@contextlib.contextmanager
def guard(new_generator: str | bytes | Counters | None = None) -> Iterator[None]:
    """Count from 0 within the block; a text goes before all names."""
    global _prefix
    prefix = new_generator.decode() if isinstance(new_generator, bytes) else new_generator
    before, text = switch(prefix if isinstance(prefix, defaultdict) else None), _prefix
    _prefix = prefix if isinstance(prefix, str) else ""
    try:
        yield
    finally:
        switch(*before)
        _prefix = text
