"""Fields of entries that were read from JSON, each of the type it has to be.

Files of annotations have up to millions of entries, so these are plain functions of the entry; `where` names it in
messages: the file, and which of its entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeGuard, TypeVar, overload

from framework.core.errors import InputError
from framework.core.types import JSON

D = TypeVar("D")


class _Required:
    """Stands in for a default where a field has none."""


_REQUIRED = _Required()
_LIMIT = 1e300  # also of whole numbers: a float holds it, and so does what is computed of it


@overload
def read_text(entry: Mapping[str, object], name: str, where: object) -> str: ...
@overload
def read_text(entry: Mapping[str, object], name: str, where: object, default: D) -> str | D: ...
def read_text(entry: Mapping[str, object], name: str, where: object, default: object = _REQUIRED) -> object:
    """A text that is not empty; `default` where the field is missing or null.

    Raises:
        InputError: it is missing, or something else.
    """
    value = entry.get(name)
    if isinstance(value, str) and value:
        return value
    return _stand_in(entry, name, where, default, "a text that is not empty")


@overload
def read_integer(entry: Mapping[str, object], name: str, where: object) -> int: ...
@overload
def read_integer(entry: Mapping[str, object], name: str, where: object, default: D) -> int | D: ...
def read_integer(
    entry: Mapping[str, object], name: str, where: object, default: object = _REQUIRED
) -> object:
    """A whole number; `default` where the field is missing or null. Raises: InputError as `read_text`."""
    value = entry.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and is_number(value):
        return value
    return _stand_in(entry, name, where, default, "a whole number")


@overload
def read_number(entry: Mapping[str, object], name: str, where: object) -> float: ...
@overload
def read_number(entry: Mapping[str, object], name: str, where: object, default: D) -> float | D: ...
def read_number(entry: Mapping[str, object], name: str, where: object, default: object = _REQUIRED) -> object:
    """A finite number; `default` where the field is missing or null. Raises: InputError as `read_text`."""
    value = entry.get(name)
    return value if is_number(value) else _stand_in(entry, name, where, default, "a finite number")


def read_flag(entry: Mapping[str, object], name: str, where: object) -> bool:
    """0, 1, true or false; False where the field is missing or null. Raises: InputError."""
    value = entry.get(name)
    if isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    return _stand_in(entry, name, where, False, "0 or 1")


@overload
def read_list(entry: Mapping[str, object], name: str, where: object) -> list[JSON]: ...
@overload
def read_list(entry: Mapping[str, object], name: str, where: object, default: D) -> list[JSON] | D: ...
def read_list(entry: Mapping[str, object], name: str, where: object, default: object = _REQUIRED) -> object:
    """A list of whatever; `default` where the field is missing or null. Raises: InputError as `read_text`."""
    value = entry.get(name)
    return value if isinstance(value, list) else _stand_in(entry, name, where, default, "a list")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number that arithmetic in floats can hold; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LIMIT < value < _LIMIT


def shorten(value: object) -> str:
    """What a message shows of a value."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _stand_in(
    entry: Mapping[str, object], name: str, where: object, default: D | _Required, allowed: str
) -> D:
    if not isinstance(default, _Required) and entry.get(name) is None:
        return default
    _raise_misfit(entry, name, where, allowed)


def _raise_misfit(entry: Mapping[str, object], name: str, where: object, allowed: str) -> NoReturn:
    missing = name not in entry
    raise InputError(
        f"the field {name!r} is {'missing' if missing else 'of the wrong type'}",
        where=where,
        received=f"an entry with {', '.join(map(repr, list(entry)[:8])) or 'no field'}"
        if missing
        else shorten(entry[name]),
        allowed=allowed,
    )
