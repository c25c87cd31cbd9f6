"""paddle.base.core.Property: named numbers and texts that are written as bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar, cast

T = TypeVar("T", float, int, str)


class Property:
    """Values in the order in which they were set; each has a name, a kind and may be a list."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, object]] = {}

    def size(self) -> int:
        """The number of values."""
        return len(self._entries)

    def _set(self, name: str, kind: type[T], value: T | Sequence[T], several: bool) -> None:
        converted = [kind(one) for one in cast("Sequence[T]", value)] if several else kind(cast("T", value))
        self._entries[name] = (f"{kind.__name__}{'s' * several}", converted)

    def _get(self, key: str | int, kind: str) -> object:
        entries = list(self._entries.values())
        entry = self._entries.get(key) if isinstance(key, str) else entries[key]
        if entry is None or entry[0] != kind:
            raise ValueError(f"the property {key!r} is {entry[0] if entry else 'not set'}, not a {kind}")
        return entry[1]

    def set_float(self, name: str, value: float) -> None:
        """Set a number."""
        self._set(name, float, value, False)

    def set_floats(self, name: str, value: Sequence[float]) -> None:
        """Set numbers."""
        self._set(name, float, value, True)

    def set_int(self, name: str, value: int) -> None:
        """Set an integer."""
        self._set(name, int, value, False)

    def set_ints(self, name: str, value: Sequence[int]) -> None:
        """Set integers."""
        self._set(name, int, value, True)

    def set_string(self, name: str, value: str) -> None:
        """Set a text."""
        self._set(name, str, value, False)

    def set_strings(self, name: str, value: Sequence[str]) -> None:
        """Set texts."""
        self._set(name, str, value, True)

    def get_float(self, key: str | int) -> float:
        """A number by its name or its index. Raises ValueError: it is of another kind, or not set."""
        return cast("float", self._get(key, "float"))

    def serialize_to_string(self) -> bytes:
        """All values as bytes."""
        return json.dumps(self._entries).encode()

    def parse_from_string(self, data: bytes) -> None:
        """Take the values of `serialize_to_string`."""
        self._entries = {name: (kind, value) for name, (kind, value) in json.loads(data).items()}
