"""Binding of a Tree to frozen dataclasses by their type hints.

| hint | takes | gives |
|---|---|---|
| `int`, `float`, `str`, `bool`, `None` | that scalar; a float also takes an integer | the scalar |
| `Path` | text | Path |
| `Literal[...]`, an Enum class | one of the values | the value, the member |
| `tuple[T, ...]`, `list[T]` | a list | a tuple |
| `tuple[A, B]` | a list of that length | a tuple |
| `dict[str, T]` | a mapping | a dict |
| a dataclass | a mapping of its fields | an instance |
| `Annotated[T, Kind("loss")]` | `{type: Name, key: value, ...}`, or just `Name` | an instance of that dataclass |
| `A | B` | what one of them takes; the first that fits wins | what that one gives |

In `loss: Annotated[Loss, Kind("loss")]`, `Loss` is for readers and type checkers: the protocol or base class that the
component has. A component that was registered with a Layer is bound to its config dataclass.

All errors of a tree are collected and raised as one ConfigError.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from framework.config.domains import domain_packages, packages_of_domain
from framework.config.imports import import_components
from framework.config.registry import Catalog, Kind, name_of
from framework.config.tree import Tree, from_plain
from framework.core.errors import ConfigError, OarError, did_you_mean

_T = TypeVar("_T")
_FAILED = object()  # stands for a value whose error is noted
_SCALARS = {
    int: ("int", {int}),
    float: ("float", {float, int}),
    str: ("text", {str}),
    bool: ("true or false", {bool}),
    NoneType: ("null", {NoneType}),
    Path: ("a path", {str}),
}


@overload
def bind(source: Tree | dict | list, hint: type[_T], packages: Sequence[str] = (), key: str = "") -> _T: ...
@overload
def bind(source: Tree | dict | list, hint: object, packages: Sequence[str] = (), key: str = "") -> Any: ...
def bind(source: Tree | dict | list, hint: object, packages: Sequence[str] = (), key: str = "") -> Any:
    """The value that `hint` describes (a dataclass, or any hint of the table above), made from `source`.

    `packages` are searched for the names of components, see `framework.config.registry`. `key` is where `source` stands
    in its file, for messages.

    Raises:
        ConfigError: lists every unknown key, missing key, wrong type, unknown name and value that a dataclass's
            `__post_init__` refuses, each with its place and dotted key. Also for a hint that cannot be bound.
    """
    binder = _Binder(packages)
    return binder.finish(binder.value(source if isinstance(source, Tree) else from_plain(source), hint, key))


def packages_of(tree: Tree) -> tuple[str, ...]:
    """The packages that a configuration sees: those of its `domain`, and the modules that its `imports` names.

    Raises:
        ConfigError: `domain` is missing or unknown, or an import fails.
    """
    binder = _Binder(())
    if "domain" not in tree.value:
        binder.finish(binder.missing_key(tree, "domain", Literal[tuple(domain_packages())]))
    named = tree.value["domain"]
    try:
        packages = packages_of_domain(str(named.plain()))
    except ConfigError as error:
        binder.note_error(named, "domain", error)
        packages = binder.finish(())  # raises it
    return tuple(dict.fromkeys((*packages, *import_components(tree))))


def find_misfits(name: str, entries: Mapping[str, Tree], packages: Sequence[str]) -> list[str]:
    """The keys that the component `name` does not have, has for values of another kind, or takes from no other type
    (`not_inherited` of its class); none where there is no such component."""
    if not entries:
        return []
    known = [
        {
            key: hint
            for key, hint in get_type_hints(entry.config, include_extras=True).items()
            if key not in getattr(entry.config, "not_inherited", ())
        }
        for entry in Catalog(packages).find_all(name)
    ]

    def fits(key: str, tree: Tree, hints: Mapping[str, object]) -> bool:
        binder = _Binder(packages)
        return key in hints and binder.value(tree, hints[key], key) is not _FAILED

    return [
        key for key, tree in entries.items() if known and not any(fits(key, tree, hints) for hints in known)
    ]


def spell(hint: object) -> str:
    """What a hint takes, in the words of messages. Raises ConfigError for a hint that cannot be bound."""
    base, kind = unwrap(hint)
    origin, args = get_origin(base), get_args(base)
    if kind is not None:
        return f"a {kind} {{type: Name, ...}}"
    if base in _SCALARS:
        return _SCALARS[base][0]
    if choices := _choices(base):
        return " or ".join(repr(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(spell(member) for member in args)
    if (item := item_of(base)) is not None:
        return f"{'a mapping of names to' if origin is dict else 'a list of'} {spell(item)}"
    if origin is tuple and args:
        return f"a list [{', '.join(spell(arg) for arg in args)}]"
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        return f"a mapping ({base.__name__})"
    raise ConfigError(
        "a configuration cannot be bound to this type hint",
        received=repr(hint),
        allowed="the hints listed in framework/config/bind.py",
    )


def unwrap(hint: object) -> tuple[object, str | None]:
    """A hint without its `Annotated`, and the kind of component that it asks for, if any."""
    if get_origin(hint) is not Annotated:
        return (NoneType if hint is None else hint), None
    base, *marks = get_args(hint)
    return base, next((mark.name for mark in marks if isinstance(mark, Kind)), None)


def item_of(hint: object) -> object:
    """T of `tuple[T, ...]`, `list[T]` and `dict[str, T]`, else None."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is list or (origin is tuple and len(args) == 2 and args[1] is Ellipsis):
        return args[0]
    return args[1] if origin is dict and args[0] is str else None


def _choices(hint: object) -> tuple[object, ...]:
    """The values that a Literal or an Enum class takes."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return tuple(member.value for member in hint)
    return get_args(hint) if get_origin(hint) is Literal else ()


def _takes(hint: object) -> set[type]:
    """The types of `Tree.value` that can fit a hint."""
    base, kind = unwrap(hint)
    if kind is not None:
        return {str, dict}
    if base in _SCALARS:
        return _SCALARS[base][1]
    if choices := _choices(base):
        return {type(choice) for choice in choices}
    if get_origin(base) in (Union, UnionType):
        return set().union(*(_takes(member) for member in get_args(base)))
    return {list} if get_origin(base) in (list, tuple) else {dict}


def _mend_colon(key: str, tree: Tree) -> str | None:
    """What to do where YAML took `{a:1}` for a key `a:1` without a value; None where it is no such key."""
    name, colon, value = key.rpartition(":")
    if not colon or tree.value is not None or not name or not value:
        return None
    return f"write a blank after the colon: {{{name.rpartition('.')[2]}: {value}}}"


def _describe(tree: Tree) -> str:
    if isinstance(tree.value, dict):
        return f"a mapping with the keys {', '.join(tree.value)}" if tree.value else "an empty mapping"
    if isinstance(tree.value, list):
        return f"a list of {len(tree.value)} items"
    if isinstance(tree.value, bool | None):
        return {True: "true", False: "false", None: "null"}[tree.value]
    return f"{tree.value!r} ({'text' if isinstance(tree.value, str) else type(tree.value).__name__})"


def _join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


class _Binder:
    """One pass over a tree. A method that finds an error notes it and returns _FAILED."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.catalog = Catalog(packages)
        self.errors: list[ConfigError] = []

    def finish(self, value: _T) -> _T:
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            text = "\n".join(str(error) for error in self.errors)
            raise ConfigError(f"{len(self.errors)} errors in the configuration\n{text}")
        return value

    def value(self, tree: Tree, hint: object, key: str) -> object:
        try:
            allowed = spell(hint)
        except ConfigError as error:
            return self.note_error(tree, key, error)
        base, kind = unwrap(hint)
        origin = get_origin(base)
        members = get_args(base) if origin in (Union, UnionType) else ()
        if type(tree.value) not in _takes(hint):
            text = type(tree.value) in (bool, int, float) and str in (base, *members)
            fix = "put it in quotes to make it text" if text else _mend_colon(key, tree)
            return self.note(tree, key, "wrong type", received=_describe(tree), allowed=allowed, fix=fix)
        if kind is not None:
            return self.component(tree, kind, key)
        if choices := _choices(base):
            return self.choice(tree, base, choices, key)
        if members:
            return self.union(tree, members, key)
        if origin in (list, tuple, dict):
            return self.collection(tree, base, key)
        if base in _SCALARS:
            return base(tree.value) if base in (float, Path) else tree.value
        assert isinstance(base, type)  # a dataclass, as `spell` saw
        entries = tree.value
        if "type" in entries and entries["type"].value == name_of(base):  # as `dump` writes it
            entries = {name: child for name, child in entries.items() if name != "type"}
        return self.dataclass(tree, base, entries, key)

    def choice(self, tree: Tree, base: object, choices: tuple[object, ...], key: str) -> object:
        # 1 == True == 1.0, so the type is compared too
        if not any(type(choice) is type(tree.value) and choice == tree.value for choice in choices):
            return self.note(
                tree,
                key,
                "wrong value",
                received=_describe(tree),
                allowed=spell(base),
                fix=did_you_mean(str(tree.value), map(str, choices)),
            )
        return base(tree.value) if isinstance(base, type) else tree.value

    def collection(self, tree: Tree, base: object, key: str) -> object:
        item = item_of(base)
        if item is str and isinstance(tree.value, list) and all(type(one.value) is str for one in tree.value):
            return tuple(one.value for one in tree.value)  # a dictionary of characters has thousands
        if isinstance(tree.value, dict):
            items = {name: self.value(child, item, _join(key, name)) for name, child in tree.value.items()}
            return _FAILED if any(value is _FAILED for value in items.values()) else items
        hints = [item] * len(tree.value) if item is not None else get_args(base)
        if len(hints) != len(tree.value):
            return self.note(tree, key, "wrong length", received=_describe(tree), allowed=spell(base))
        values = [self.value(*pair, _join(key, i)) for i, pair in enumerate(zip(tree.value, hints))]
        return _FAILED if any(value is _FAILED for value in values) else tuple(values)

    def union(self, tree: Tree, members: tuple[object, ...], key: str) -> object:
        members = tuple(member for member in members if type(tree.value) in _takes(member))
        noted, attempts = self.errors, []
        for member in members:
            self.errors = []
            value = self.value(tree, member, key)
            attempts.append(self.errors)
            if value is not _FAILED:
                self.errors = noted
                return value
        self.errors = noted
        if len(members) > 1 and not isinstance(tree.value, dict | list):
            allowed = " or ".join(str(errors[0].allowed) for errors in attempts)
            return self.note(tree, key, "wrong value", received=_describe(tree), allowed=allowed)
        self.errors += min(attempts, key=len)  # the member that came closest
        return _FAILED

    def component(self, tree: Tree, kind: str, key: str) -> object:
        entries = tree.value if isinstance(tree.value, dict) else {"type": tree}
        named = entries.get("type")
        if named is None or not isinstance(named.value, str):
            return self.note(
                named or tree,
                _join(key, "type"),
                f"the name of the {kind} is missing" if named is None else "wrong type",
                received=_describe(named or tree),
                allowed=", ".join(self.catalog.available(kind)),
            )
        try:
            entry = self.catalog.find(kind, named.value)
        except ConfigError as error:
            return self.note_error(named, _join(key, "type"), error)
        arguments = {name: child for name, child in entries.items() if name != "type"}
        return self.dataclass(tree, entry.config, arguments, key)

    def dataclass(self, tree: Tree, cls: type, entries: dict[str, Tree], key: str) -> object:
        hints = get_type_hints(cls, include_extras=True)
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        values = {}
        for name, child in entries.items():
            if name in fields:
                values[name] = self.value(child, hints[name], _join(key, name))
            else:
                values[name] = self.unknown_key(child, name, key, fields, tree.value.get("type"))
        for name, field in fields.items():
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if required and name not in values:
                values[name] = self.missing_key(tree, _join(key, name), hints[name])
        if any(value is _FAILED for value in values.values()):
            return _FAILED
        try:
            return cls(**values)
        except (OarError, ValueError) as error:
            self.note_error(tree, f"{key or 'top level'} ({cls.__name__})", error)
            self.errors[-1].__cause__ = error
            return _FAILED

    def unknown_key(
        self, tree: Tree, name: str, key: str, allowed: Iterable[str], type_tree: Tree | None = None
    ) -> object:
        fix = _mend_colon(name, tree) or did_you_mean(name, allowed)
        if fix is None and type_tree is not None and type_tree.where.source != tree.where.source:
            fix = (
                f"if it was meant for another type: it comes from {tree.where}, the type from {type_tree.where}; "
                "`_inherited_: false` beside the type drops what the bases put there"
            )
        return self.note(
            tree,
            _join(key, name),
            "unknown key",
            received=f"{name}: {_describe(tree)}",
            allowed=", ".join(allowed) or "no keys",
            fix=fix,
        )

    def missing_key(self, tree: Tree, key: str, hint: object) -> object:
        return self.note(tree, key, "missing key", received=_describe(tree), allowed=spell(hint))

    def note_error(self, tree: Tree, key: str, error: Exception) -> object:
        """Note an error that was raised without a place."""
        if isinstance(error, OarError):
            problem = error.problem if error.where is None else f"{error.where}: {error.problem}"
            self.note(tree, key, problem, received=error.received, allowed=error.allowed, fix=error.fix)
        else:
            self.note(tree, key, str(error))
        return _FAILED

    def note(
        self,
        tree: Tree,
        key: str,
        problem: str,
        received: object = None,
        allowed: object = None,
        fix: str | None = None,
    ) -> object:
        self.errors.append(
            ConfigError(
                f"{key or 'top level'}: {problem}",
                where=tree.where,
                received=received,
                allowed=allowed,
                fix=fix,
            )
        )
        return _FAILED
