"""What is written from dataclasses: YAML text of a bound configuration, and a listing of what it takes."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from framework.config.bind import item_of, spell, unwrap
from framework.config.registry import Catalog, name_of
from framework.config.tree import parse, write
from framework.core.errors import ConfigError
from framework.core.types import JSON

_SCALARS = (bool, int, float, str)  # no subclasses, such as numpy's float64


def dump(value: object) -> str:
    """YAML text of a bound dataclass, or of a tuple or dict of them; binding it again gives an equal value.

    Every field is written, defaults too, and `type: Name` for every registered class. A Path is written with forward
    slashes. Raises ConfigError for a value that a configuration cannot hold, such as an array.
    """
    return write(_plain(value, ""))


def schema(hint: object, packages: Sequence[str] = ()) -> str:
    """One line a key of what a dataclass (or another hint) takes: name, type, default; nested keys are indented.

    Where a component is taken, the names that the packages offer are listed; the keys of one of them are listed by
    `schema(find(kind, name, packages).config)`.
    """
    return "\n".join(_listing(hint, Catalog(packages), "", ())) + "\n"


def _plain(value: object, key: str) -> JSON:
    if value is None or (isinstance(value, bool | int | float | str) and type(value) in _SCALARS):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = name_of(type(value))
        plain: dict[str, JSON] = {} if name is None else {"type": name}
        for field in dataclasses.fields(value):
            if field.init:
                plain[field.name] = _plain(getattr(value, field.name), f"{key}.{field.name}".lstrip("."))
        return plain
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, Mapping):
        return {name: _plain(item, f"{key}.{name}".lstrip(".")) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item, f"{key}.{index}".lstrip(".")) for index, item in enumerate(value)]
    raise ConfigError(
        "a configuration cannot hold this value",
        where=key or "top level",
        received=f"a value of type {type(value).__name__}",
        allowed="dataclasses, tuples, dicts, Enum, Path, null, bool, int, float and str",
    )


def _listing(hint: object, catalog: Catalog, indent: str, parents: tuple[type, ...]) -> list[str]:
    """Lines of what stands below a hint; a dataclass among its own `parents` is not listed again."""
    base, kind = unwrap(hint)
    if kind is not None:
        return [f"{indent}type: {' | '.join(catalog.available(kind)) or '(none registered)'}"]
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        if base in parents:
            return []
        lines, hints = _summary(base, indent), get_type_hints(base, include_extras=True)
        for field in dataclasses.fields(base):
            if field.init:
                lines.append(f"{indent}{field.name}: {spell(hints[field.name])} {_default(field)}")
                lines += _listing(hints[field.name], catalog, indent + "  ", (*parents, base))
        return lines
    item, origin = item_of(base), get_origin(base)
    members = [item] if item is not None else get_args(base) if origin in (tuple, Union, UnionType) else []
    return [line for member in members for line in _listing(member, catalog, indent, parents)]


def _summary(cls: type, indent: str) -> list[str]:
    doc = cls.__doc__ or ""
    if not doc or doc.startswith(f"{cls.__name__}("):  # the text that @dataclass makes up
        return []
    return [f"{indent}# {doc.strip().splitlines()[0]}"]


def _default(field: dataclasses.Field) -> str:
    if field.default is not dataclasses.MISSING:
        return f"= {write(_plain(field.default, field.name), flow=True)}"
    if field.default_factory is not dataclasses.MISSING:
        return f"= {write(_plain(field.default_factory(), field.name), flow=True)}"
    return "(required)"


def plain(config: object) -> JSON:
    """A bound dataclass as the plain data that binds back to it."""
    return parse(dump(config), "plain").plain()
