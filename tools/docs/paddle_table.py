"""The tables of docs/paddle_api.md: every public name of paddlepaddle 2.6.2, and whether `framework.paddle` has it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.paddle._kernel.missing import reason
from framework.paddle._kernel.refused import RefusedType, refused_rows

SURFACE = Path(__file__).with_name("paddle_surface.txt")
Parameter = tuple[str, str | None]  # name (with its stars) and default as text


@dataclass(frozen=True)
class Name:
    """A public name of Paddle: `parameters` as Python writes them, or "-" where there are none to compare."""

    module: str
    name: str
    kind: str
    parameters: str

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}"


def names() -> list[Name]:
    """All rows of paddle_surface.txt."""
    lines = SURFACE.read_text("utf-8").splitlines()
    return [Name(*line.split(" ", 3)) for line in lines if line and not line.startswith("#")]


def find(name: Name) -> Any:
    """What stands under a name here.

    Raises:
        AttributeError: nothing does.
    """
    owner: Any = importlib.import_module("framework.paddle")
    for attribute in name.full.split(".")[1:]:
        owner = getattr(owner, attribute)
    return owner


def _parameters(text: str) -> list[Parameter]:
    plain_text = re.sub(r"=\s*<[^>]*>", "=...", text)  # a default that is an object
    function = ast.parse(f"def f{plain_text}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + [ast.unparse(d) for d in args.defaults]
    parameters: list[Parameter] = [(p.arg, d) for p, d in zip(plain, defaults, strict=True)]
    parameters += [
        (p.arg, ast.unparse(d) if d else None) for p, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    return [(name, default) for name, default in parameters if name not in ("self", "cls")]


def differs(name: Name, value: Any) -> str:
    """How the parameters differ from Paddle's: "" where each stands at its place with its default."""
    if not name.parameters.startswith("("):
        return ""
    try:
        signature = inspect.signature(value.__init__ if inspect.isclass(value) else value)
    except (TypeError, ValueError):
        return ""
    ours = {n: p for n, p in signature.parameters.items() if n not in ("self", "cls")}
    if any(p.kind is p.VAR_KEYWORD for p in ours.values()):
        return ""
    theirs = _parameters(name.parameters)
    missing = [n for n, _ in theirs if n not in ours]
    if missing:
        return "without " + ", ".join(missing)
    order = [n for n in ours if n in dict(theirs)]
    if order != [n for n, _ in theirs]:
        return "in the order " + ", ".join(order)
    return ", ".join(
        f"{n} is {'needed' if ours[n].default is inspect.Parameter.empty else repr(ours[n].default)}"
        for n, default in theirs
        if default != "..." and _another(default, ours[n].default)
    )


def _another(default: str | None, ours: Any) -> bool:
    if default is None or ours is inspect.Parameter.empty:
        return default is not None
    try:
        value = ast.literal_eval(default)
        return (tuple(value) if isinstance(value, list) else value) != ours  # settings are never changed
    except (ValueError, SyntaxError):  # a class or an object of Paddle's
        return False


def _refuses(value: Any) -> bool:
    """Whether a function is there so that its import works, and raises when it is called."""
    return isinstance(value, RefusedType) or (
        inspect.isfunction(value) and value.__annotations__.get("return") == "NoReturn"
    )


@dataclass(frozen=True)
class Row:
    """A name and what is to be said of it: `missing` is the reason why it is not there, or ""."""

    name: Name
    missing: str
    differs: str


def rows() -> Iterator[Row]:
    """All names, compared.

    Raises:
        KeyError: a name is neither there nor has a reason in framework/paddle/_kernel/missing.py.
    """
    for name in names():
        try:
            value = find(name)
        except (AttributeError, ImportError):
            why = reason(name.full)
            if why is None:
                raise KeyError(name.full) from None
            yield Row(name, why, "")
        else:
            if _refuses(value):
                yield Row(name, reason(name.full) or "raises an error that says what to do instead", "")
            else:
                yield Row(name, "", differs(name, value))


def counts_table() -> str:
    """One line a module: how many names there are, are here, take Paddle's parameters."""
    modules: dict[str, list[Row]] = {}
    for row in rows():
        modules.setdefault(row.name.module, []).append(row)
    lines = ["| module | names | here | with Paddle's parameters and defaults |", "| --- | --- | --- | --- |"]
    for module, members in modules.items():
        here = [row for row in members if not row.missing]
        lines.append(f"| `{module}` | {len(members)} | {len(here)} | {sum(not r.differs for r in here)} |")
    return "\n".join(lines) + "\n"


def missing_table() -> str:
    """What is not here, with the reason and what to do."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows():
        if row.missing:
            groups.setdefault((row.name.module, row.missing), []).append(f"`{row.name.name}`")
    lines = ["| module | names | why, and what to do |", "| --- | --- | --- |"]
    lines += [
        f"| `{module}` | {', '.join(found)} | {_cell(why)} |" for (module, why), found in groups.items()
    ]
    return "\n".join(lines) + "\n"


def refused_table() -> str:
    """What is there for imports and raises when it is called, with what to do."""
    lines = ["| module | names | why, and what to do |", "| --- | --- | --- |"]
    for module, names_there, fix in refused_rows():
        lines.append(f"| `{module}` | {', '.join(f'`{name}`' for name in names_there)} | {_cell(fix)} |")
    return "\n".join(lines) + "\n"


def differences_table() -> str:
    """What is here with other parameters."""
    lines = ["| name | parameters |", "| --- | --- |"]
    lines += [f"| `{row.name.full}` | {_cell(row.differs)} |" for row in rows() if row.differs]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
