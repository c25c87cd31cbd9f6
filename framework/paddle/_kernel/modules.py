"""Where Paddle keeps its names: `paddle.nn.layer.activation.ReLU` is `paddle.nn.ReLU`, `paddle.base.Program` that of
`paddle.static`. The table modules.txt (tools/docs/paddle_modules.py makes it from Paddle 2.6.2) says what each of
Paddle's modules holds; modules that are not files here are made from it when they are imported.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from framework.paddle._kernel.missing import reason
from framework.paddle._kernel.private_names import PRIVATE
from framework.paddle._kernel.refused import refused, refused_in
from framework.paddle._kernel.tensor import Tensor

_ROOT = "framework."


@dataclass(frozen=True)
class Contents:
    """What one of Paddle's modules holds.

    Attributes:
        public: The full public name of each name that it has from elsewhere.
        listed: Its `__all__`; empty where it has none.
    """

    public: dict[str, str] = field(default_factory=dict)
    listed: tuple[str, ...] = ()


@functools.cache
def _lines() -> dict[str, str]:
    text = Path(__file__).with_name("modules.txt").read_text(encoding="utf-8")
    rows = (line.partition(" | ") for line in text.splitlines() if not line.startswith("#"))
    return {module: columns for module, _, columns in rows}


@functools.cache
def contents(module: str) -> Contents | None:
    """What Paddle's module `module` ("paddle.nn.layer") holds; None where Paddle has no such module."""
    columns = _lines().get(module)
    if columns is None:
        return None
    public: dict[str, str] = {}
    listed: tuple[str, ...] = ()
    for column in filter(None, columns.split(" | ")):
        home, _, names = column.partition(": ")
        if home == "*":
            listed = tuple(names.split())
            continue
        for entry in names.split():
            name, _, other = entry.partition("=")
            public[name] = f"{home}.{other or name}"
    return Contents(public | PRIVATE.get(module, {}), listed)


def resolver(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module of the Paddle room: submodules, names that Paddle has there from elsewhere, and
    `__all__`, without the names that are not here.

    Args:
        module: Its `__name__`, "framework.paddle.nn".
    """
    full = module.removeprefix(_ROOT)

    def __getattr__(name: str) -> object:
        held = contents(full) or Contents()
        if name == "__all__" and held.listed:
            return [item for item in held.listed if _has(sys.modules[module], item)]
        if name.startswith("__"):
            raise AttributeError(f"{full}.{name}")
        if (refusal := refused(f"{full}.{name}")) is not None:
            return refusal
        if name in held.public:
            return find(held.public[name])
        absent = name in held.listed and reason(f"{full}.{name}")  # a function of the name of its module
        if f"{full}.{name}" in _lines() and not absent:
            return _imported(f"{full}.{name}")
        raise AttributeError(_absent(f"{full}.{name}"))

    return __getattr__


def find(name: str) -> object:
    """What a full public name means here ("paddle.nn.ReLU", "paddle.Tensor.fill_"). Raises AttributeError: it is not
    here."""
    module, _, attribute = name.rpartition(".")
    return getattr(Tensor if module == "paddle.Tensor" else _imported(module), attribute)


def _imported(full: str) -> ModuleType:
    """A module by its name in Paddle. Raises AttributeError: it is not here."""
    try:
        return importlib.import_module(_ROOT + full)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(f"{_ROOT}paddle"):
            raise  # a package that is not installed
        raise AttributeError(_absent(full)) from error


def complete(name: str) -> None:
    """Let a module of this room, a file, give the rest of what Paddle's has: names and modules from elsewhere.

    Args:
        name: Its `__name__`.
    """
    module = sys.modules[name]
    full = name.removeprefix(_ROOT)
    if "__getattr__" not in vars(module):
        module.__dict__["__getattr__"] = resolver(name)
    if "__path__" not in vars(module) and any(line.startswith(f"{full}.") for line in _lines()):
        module.__dict__["__path__"] = []  # a package in Paddle


def _absent(name: str) -> str:
    return f"{name}: {reason(name) or 'no such name; docs/paddle_api.md lists all that are here'}"


def _has(module: ModuleType, name: str) -> bool:
    try:
        getattr(module, name)
    except AttributeError:
        return False
    return True


class TableFinder:
    """Finds the modules below framework.paddle that Paddle has and that are not files here.

    A module of which nothing is here is found, too: programs import it beside what they use, and what they take from it
    says why it is not here.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of such a module; None: it is none."""
        full = name.removeprefix(_ROOT)
        if not name.startswith("framework.paddle.") or full not in _lines():
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        return ModuleType(
            spec.name, f"{spec.name.removeprefix(_ROOT)}: names of Paddle that stand elsewhere here."
        )

    def exec_module(self, module: ModuleType) -> None:
        """Put the names into the module that are here: programs read its `__dict__`."""
        full = module.__name__.removeprefix(_ROOT)
        package, _, child = module.__name__.rpartition(".")
        if not isinstance(vars(sys.modules[package]).get(child, module), ModuleType):
            sys.modules[package].__class__ = _Package
        held = contents(full) or Contents()
        module.__dict__.update(_present(held.public))
        module.__dict__.update(refused_in(full))
        module.__dict__.update(_from_package(module.__name__))
        if held.listed:
            module.__dict__["__all__"] = [name for name in held.listed if name in module.__dict__]
        module.__dict__["__getattr__"] = resolver(module.__name__)


class _Package(ModuleType):
    """A package with a function or an object of the name of one of its modules, as `paddle.distributed.fleet.fleet`
    is: the import of the module leaves it, as in Paddle."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType) or isinstance(vars(self).get(name, value), ModuleType):
            super().__setattr__(name, value)


def _present(public: dict[str, str]) -> Iterator[tuple[str, object]]:
    for name, full in public.items():
        try:
            yield name, find(full)
        except AttributeError:
            continue  # `resolver` gives the reason when it is asked for


def _from_package(name: str) -> Iterator[tuple[str, object]]:
    """What Paddle defines in this module, and what is defined in the package of it here."""
    package = name.rpartition(".")[0]
    held, full = contents(package.removeprefix(_ROOT)), name.removeprefix(_ROOT)
    for attribute, home in held.public.items() if held else ():
        if home == f"{full}.{attribute}" and attribute in vars(sys.modules[package]):
            yield attribute, vars(sys.modules[package])[attribute]


def install() -> None:
    """Let the modules of the table be imported. Called again, it changes nothing."""
    if not any(isinstance(finder, TableFinder) for finder in sys.meta_path):
        sys.meta_path.append(TableFinder())  # type: ignore[arg-type]
