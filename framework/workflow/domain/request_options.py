"""Options of a predictor as a request of a client names them: names, types and what a client may decide are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import TypeVar, Union, get_args, get_origin, get_type_hints

from framework.config import bind, from_plain
from framework.core.errors import ConfigError, did_you_mean
from framework.core.types import JSON

O = TypeVar("O")  # noqa: E741
_TRUE, _FALSE = ("true", "1", "yes", "on", "t", "y"), ("false", "0", "no", "off", "f", "n")


def truth_value(value: JSON) -> bool | None:
    """What clients write for true and false: in JSON, in a query or a form, and as pydantic's servers take it; None of
    others."""
    if isinstance(value, str):
        return True if value.lower() in _TRUE else False if value.lower() in _FALSE else None
    return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None


def request_fields(cls: type) -> dict[str, dataclasses.Field[object]]:
    """The options that a request may give, under every spelling: those that stand on the command line, but for what
    names files or models, or says how much runs at once (`option(..., request=False)`)."""
    spellings: dict[str, dataclasses.Field[object]] = {}
    for field in dataclasses.fields(cls):
        if field.init and field.metadata.get("flag", True) and field.metadata.get("request", True):
            spellings |= dict.fromkeys((field.name, *field.metadata.get("aliases", ())), field)
    return spellings


def request_options(cls: type, named: Mapping[str, JSON], where: object) -> dict[str, object]:
    """The options of `named` by the names of their fields, of the fields' types. A text stands for a number or a switch
    too, as in the query of an address; several values of one are apart by commas; null was not given. A whole number
    may have a fraction of zero: JSON has one kind of numbers, and not every language writes them without.

    Raises:
        ConfigError: an option that there is not, or that no request may give, or a value of another type.
    """
    fields, hints = request_fields(cls), get_type_hints(cls)
    values: dict[str, object] = {}
    for name, value in named.items():
        if value is None:
            continue
        if name not in fields:
            all_names = {field.name for field in dataclasses.fields(cls)}
            raise ConfigError(
                "this option is the server's, not a request's" if name in all_names else "unknown option",
                where=where,
                received=str(name)[:100],
                allowed=", ".join(sorted({field.name for field in fields.values()})) or "no options",
                fix=did_you_mean(name, fields),
            )
        field = fields[name]
        kinds = _kinds(hints[field.name])
        plain = _from_text(value, kinds) if isinstance(value, str) else value
        if kinds == [bool] and (truth := truth_value(value)) is not None:
            plain = truth
        if int in kinds and float not in kinds and isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        hint = Union[tuple(kinds)] if len(kinds) > 1 else kinds[0]  # type: ignore[valid-type]  # noqa: UP007
        values[field.name] = bind(from_plain(plain, str(where)), hint, key=name)
    return values


def _kinds(hint: object) -> list[object]:
    """The types of a hint without None, a sequence as a tuple."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [member for member in members if member is not NoneType]
    return [tuple[get_args(kind)[0], ...] if get_origin(kind) is Sequence else kind for kind in kinds]


def _from_text(text: str, kinds: Sequence[object]) -> JSON:
    """What a text says of an option of these types; the text itself where it says nothing that they take."""
    if bool in kinds and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    for kind in kinds:
        if kind in (int, float):
            try:
                return int(text) if kind is int else float(text)
            except ValueError:
                continue
        if get_origin(kind) is tuple and str not in kinds:
            item = get_args(kind)[0]
            return [_from_text(one.strip(), [item]) for one in text.split(",")]
    return text
