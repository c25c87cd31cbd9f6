"""The names that a configuration can ask for, and where their classes are.

    @register("loss")                                # holds no arrays: the frozen dataclass is the component itself
    @dataclass(frozen=True)
    class DiceLoss: ...

    @register("model", config=PPLiteSegConfig)       # holds arrays: a Layer and the frozen dataclass it is built from
    class PPLiteSeg(Layer): ...

The name is the class name. A configuration is bound to the dataclass; `build(config)` makes the Layer that was
registered with it, so a parent builds its child with `build(config.backbone, in_channels=3)` and never looks up a name.

Names are found by discovery in a tuple of packages (a domain's: the domain, zoo, framework), searched with their
submodules. What is not registered yet is found by reading sources: only the file that holds the class is imported. So
asking for one model does not import the zoo, and listing all names imports nothing. In one such tuple a name is unique
within its kind; two domains, which never see one another, may use the same name.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from framework.config.domains import domain_packages
from framework.core.errors import ConfigError, did_you_mean

# A pipeline is a kind because recognising the text of a page takes two or three exported models and no model, task or
# postprocess
# can own the others.
KINDS = (
    "model",
    "backbone",
    "task",
    "loss",
    "metric",
    "dataset",
    "transform",
    "postprocess",
    "optimizer",
    "schedule",
    "pipeline",
    "callback",
    "reward",
)
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True)
class Kind:
    """Marks a field that takes a registered component: `loss: Annotated[Loss, Kind("loss")]`."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise ConfigError(
                "unknown kind of component",
                received=repr(self.name),
                allowed=", ".join(KINDS),
                fix=did_you_mean(self.name, KINDS),
            )


@dataclass(frozen=True)
class Entry:
    """A registered component: `config` is the dataclass that is bound, `layer` the class that `build` makes of it."""

    kind: str
    name: str
    config: type
    layer: type | None = None

    @property
    def place(self) -> str:
        cls = self.layer or self.config
        return f"{cls.__module__}.{cls.__qualname__}"

    @property
    def module(self) -> str:
        return (self.layer or self.config).__module__


# By (kind, place): the only mutable state of this package. Iterated over a copy, as another thread may be importing.
_entries: dict[tuple[str, str], Entry] = {}


def register(kind: str, *, config: type | None = None) -> Callable[[_Class], _Class]:
    """Class decorator that makes a class known under its own name; it stands above `@dataclass(frozen=True)`.

    A class that is defined again at the same place (a notebook cell, a reload) takes the place of the old one.
    Raises ConfigError for an unknown kind, a class or config that is not a frozen dataclass or has a field `type`, a
    name that its top-level package already uses in this kind, a config that another class is built from.
    """
    Kind(kind)

    def add(cls: _Class) -> _Class:
        layer = cls if config is not None else None
        entry = Entry(kind, cls.__name__, config or cls, layer)
        _check_dataclass(entry)
        for other in tuple(_entries.values()):
            if other.place == entry.place:
                continue
            same_package = other.module.partition(".")[0] == entry.module.partition(".")[0]
            if (other.kind, other.name) == (entry.kind, entry.name) and same_package:
                raise _duplicate(kind, entry.name, [other.place, entry.place])
            if other.config is entry.config:
                raise ConfigError(
                    f"{entry.config.__name__} is already the config of another class",
                    where=entry.place,
                    received=f"a config that builds {other.place}",
                    allowed="one config class for one Layer",
                )
        _entries[kind, entry.place] = entry
        return cls

    return add


def _check_dataclass(entry: Entry) -> None:
    params = vars(entry.config).get("__dataclass_params__")
    if params is None or not params.frozen:
        raise ConfigError(
            f"{entry.config.__name__} is not a frozen dataclass",
            where=entry.place,
            fix="put @register above @dataclass(frozen=True), or name the Layer's dataclass with config=...",
        )
    if "type" in entry.config.__dataclass_fields__:
        raise ConfigError(
            f"{entry.config.__name__} has a field `type`, the key that names the component",
            where=entry.place,
            fix="rename the field",
        )


def build(config: object, *args: object, **kwargs: object) -> Any:
    """The Layer registered with the class of `config`, built as `Layer(config, *args, **kwargs)`."""
    for entry in tuple(_entries.values()):
        if entry.config is type(config) and entry.layer is not None:
            return entry.layer(config, *args, **kwargs)
    raise ConfigError(
        "no class is registered that is built from this",
        received=type(config).__name__,
        allowed="an instance of a dataclass named in @register(kind, config=...)",
    )


def name_of(cls: type) -> str | None:
    """The name under which a dataclass is bound, or None."""
    return next((entry.name for entry in tuple(_entries.values()) if entry.config is cls), None)


def find(kind: str, name: str, packages: Sequence[str]) -> Entry:
    """The component of this name in the packages; imports at most the module that holds it.

    Raises ConfigError for an unknown name, with the known ones and the nearest.
    """
    return Catalog(packages).find(kind, name)


def available(kind: str, packages: Sequence[str]) -> dict[str, str]:
    """Name to module of all components of a kind in the packages, sorted; nothing is imported.

    Raises ConfigError, naming both places, when two modules use one name.
    """
    return Catalog(packages).available(kind)


class Catalog:
    """What some packages register, read once from their sources."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = tuple(packages)
        # A domain inside of another package is seen by its own configurations alone.
        self._hidden = tuple(p for p in domain_packages().values() if p not in self.packages)

    def find(self, kind: str, name: str) -> Entry:
        Kind(kind)
        found = self._registered(kind, name)
        if not found:
            header = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
            for module, (path, source) in self._sources.items():
                if header.search(source) and any(row[:2] == (kind, name) for row in _scan(source, path)):
                    importlib.import_module(module)
            found = self._registered(kind, name)
        if len(found) > 1:
            raise _duplicate(kind, name, [entry.place for entry in found])
        if found:
            return found[0]
        names = self.available(kind)
        raise ConfigError(
            f"unknown {kind}",
            received=repr(name),
            allowed=", ".join(names)
            or f"none: no {kind} is registered in {', '.join(self.packages) or 'no package'}",
            fix=did_you_mean(name, names),
        )

    def find_all(self, name: str) -> list[Entry]:
        """The components of this name, of whatever kind; at most one of each."""
        header = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
        rows = [
            row
            for path, source in self._sources.values()
            if header.search(source)
            for row in _scan(source, path)
        ]
        known = [
            entry.kind
            for entry in tuple(_entries.values())
            if entry.name == name and self._holds(entry.module)
        ]
        kinds = {*known, *(kind for kind, found, _ in rows if found == name)}
        return [self.find(kind, name) for kind in sorted(kinds)]

    def available(self, kind: str) -> dict[str, str]:
        Kind(kind)
        modules, places = {}, {}
        for module, (path, source) in self._sources.items():
            for found_kind, name, line in _scan(source, path):
                if found_kind == kind:
                    place = f"{module} ({path}:{line})"
                    if name in modules:
                        raise _duplicate(kind, name, [places[name], place])
                    modules[name], places[name] = module, place
        for entry in tuple(_entries.values()):  # classes of a notebook or a script have no source to scan
            if entry.kind == kind and self._holds(entry.module):
                modules.setdefault(entry.name, entry.module)
        return dict(sorted(modules.items()))

    def _registered(self, kind: str, name: str) -> list[Entry]:
        return [
            e for e in tuple(_entries.values()) if (e.kind, e.name) == (kind, name) and self._holds(e.module)
        ]

    def _holds(self, module: str) -> bool:
        return _is_in(module, self.packages) and not _is_in(module, self._hidden)

    @cached_property
    def _sources(self) -> dict[str, tuple[Path, str]]:
        """Module name to path and text of every source file in the packages that registers something."""
        sources = {}
        for package in self.packages:
            for root, path in _files(package):
                status = path.stat()
                if source := _registering(path, status.st_mtime_ns, status.st_size):
                    parts = path.relative_to(root).with_suffix("").parts if root != path else ()
                    if parts and parts[-1] == "__init__":
                        parts = parts[:-1]
                    if self._holds(module := ".".join((package, *parts))):
                        sources[module] = (path, source)
        return sources


def _is_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def _files(package: str) -> Iterator[tuple[Path, Path]]:
    """Pairs (root, source file) of a package, or twice the file of a plain module; the package is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # `__main__` has no spec
        return
    except ModuleNotFoundError:  # the parent of a dotted name
        spec = None
    if spec is None:
        raise ConfigError("unknown package", received=repr(package), allowed="an importable package")
    for location in spec.submodule_search_locations or ():
        yield from ((Path(location), path) for path in sorted(Path(location).rglob("*.py")))
    if spec.submodule_search_locations is None and spec.origin and spec.origin.endswith(".py"):
        yield Path(spec.origin), Path(spec.origin)


@cache
def _registering(path: Path, modified: int, size: int) -> str:
    """The text of a source file of this state if it may register something, else nothing."""
    source = path.read_text(encoding="utf-8")
    return source if "register(" in source else ""


@cache
def _scan(source: str, path: Path) -> tuple[tuple[str, str, int], ...]:
    """(kind, class name, line) of every top-level class under a `@register("kind", ...)`."""
    rows = []
    for node in ast.parse(source, filename=str(path)).body:
        for call in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            if not (isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant)):
                continue
            function = call.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if called == "register" and isinstance(node, ast.ClassDef):
                rows.append((str(call.args[0].value), node.name, node.lineno))
    return tuple(rows)


def _duplicate(kind: str, name: str, places: list[str]) -> ConfigError:
    return ConfigError(
        f"the {kind} {name!r} is registered twice",
        received=" and ".join(places),
        allowed="one class for a name within its kind",
        fix="rename one of them",
    )
