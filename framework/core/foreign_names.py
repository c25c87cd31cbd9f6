"""Names and keywords that Paddle and torch programs use and the core has not, each with the line to write.

Everything that answers for an unknown name (layers, parameters, optimizers, arrays, `framework`, `framework.nn` and
its functionals) looks here last, so normal access pays nothing. What is raised is an AttributeError too: `hasattr`
and `getattr(x, name, default)` behave as for any name that is not there. The tables stand in foreign_names.txt.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from framework.core.errors import ForeignNameError, nearest

Hints = Mapping[str, str]


def _read_tables() -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = tables.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            names, hint = line.split(": ", 1)
            hint = re.sub(r"<(\w+)>", lambda phrase: tables["phrases"][phrase[1]], hint)
            section.update({name: hint.replace("{name}", name) for name in names.split()})
    return tables


TABLES: Mapping[str, Hints] = _read_tables()
"""What to write, by what was asked for the name: "layer", "array", …; "nn" and "functional" are names of modules."""
NO_TAPE = TABLES["phrases"]["no_tape"]
LAYER_KEYWORDS = TABLES["argument of a layer"]
OPTIMIZER_KEYWORDS = TABLES["argument of an optimizer"]


def foreign_name(owner: str, name: str, table: str) -> ForeignNameError | None:
    """The error for a name of another framework, or None when the table does not know it."""
    hint = TABLES[table].get(name)
    return None if hint is None else ForeignNameError(f"{owner} has no {name!r}", fix=hint)


def find_layer_hint(name: str, known: Iterable[str]) -> str | None:
    """What to write for a class of torch: its spelling `Conv2d`, `ConvTranspose2d` is `Conv2D`, `Conv2DTranspose`."""
    names = set(known)
    spelled = re.sub(r"(\d)d$", r"\1D", re.sub(r"^(Lazy)?ConvTranspose(\d)d$", r"Conv\2DTranspose", name))
    if spelled != name and spelled in names:
        return f"nn.{spelled}"
    return TABLES["nn"].get(name)


def find_functional_hint(name: str, known: Iterable[str]) -> str | None:
    """What to write for a function of torch, or for one of Paddle that changes its argument, such as `relu_`."""
    if name.endswith("_") and name[:-1] in set(known):
        return f"x = functional.{name[:-1]}(x): arrays do not change in place"
    return TABLES["functional"].get(name)


def module_error(
    module: str,
    name: str,
    known: Iterable[str],
    find: Callable[[str, Iterable[str]], str | None] | None = None,
) -> AttributeError:
    """The error of a module's `__getattr__`: with the line to write, or with the nearest name that it has. Without
    `find` the line is that of the table of the module."""
    public = [word for word in known if not word.startswith("_")]
    if hint := find(name, public) if find else TABLES[module].get(name):
        return ForeignNameError(f"module {module!r} has no {name!r}", fix=hint)
    close = nearest(name, public)
    return AttributeError(
        f"module {module!r} has no attribute {name!r}" + (f"; did you mean {close!r}?" if close else "")
    )


def constructor_arguments(cls: type) -> dict[str, inspect.Parameter]:
    """What a class takes, by name. Pythons differ in what `inspect.signature` says of a class that inherits both
    `__new__` and `__init__`; here it is `__init__`, or the `__signature__` that the class sets."""
    if getattr(cls, "__signature__", None) is not None:
        return dict(inspect.signature(cls).parameters)
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])  # without self


class _ArrayHint:
    """An attribute that an array has not; reading and setting it say what to write."""

    def __init__(self, name: str, hint: str) -> None:
        self.name, self.hint = name, hint

    def __get__(self, array: object, owner: object = None) -> object:
        raise ForeignNameError(f"an array has no {self.name!r}", fix=self.hint)

    __set__ = __get__


def install_array_hints() -> None:
    """Give `jax.Array` the hints for names that it has not: `loss.backward()` says what to write instead of naming a
    class inside jaxlib. They are attributes that raise AttributeError, so code that asks for such a name gets the
    answer that it got before."""
    import jax

    for name, hint in TABLES["array"].items():
        if not hasattr(jax.Array, name):
            setattr(jax.Array, name, _ArrayHint(name, hint))
