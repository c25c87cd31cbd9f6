"""The classes and data types of arguments that Paddle takes in static mode, where its functions check them; in dynamic
mode its kernels decide. argument_kinds.txt lists them (tools/docs/paddle_checks.py makes it from Paddle 2.6.2).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.tensor import Tensor

_CLASSES: Mapping[str, type] = {
    "Variable": Tensor,
    "ndarray": np.ndarray,
    "None": type(None),
    **{kind.__name__: kind for kind in (int, float, bool, str, list, tuple, complex, dict)},
}
# Layers pass on what the user gave; the rest of this package calls its functions with what it made itself.
_OURS, _PASSES_ON = "framework.paddle.", ("framework.paddle.nn.", "framework.paddle.nn.functional")


_DECORATORS = "framework.paddle._kernel.settings"
_REDUCTIONS = ("none", "mean", "sum", "batchmean")


class Kind(NamedTuple):
    """What an argument may be; None: anything. `names_type`: it is the name of a data type."""

    parameter: str
    classes: tuple[str, ...] | None
    types: tuple[str, ...] | None
    names_type: bool


def check_call(function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse a user's call of a public function with arguments that Paddle refuses in static mode.

    Raises:
        ArgumentTypeError: an argument is of another class or data type.
    """
    listed = _listed().get(id(function))
    if listed is None or _is_inner(_caller(sys._getframe(2))):
        return
    name, kinds, parameters = listed
    arguments = dict(zip(parameters, args, strict=False)) | dict(kwargs)
    if not isinstance(arguments.get("reduction", 0), int) and arguments["reduction"] not in _REDUCTIONS:
        return  # losses refuse that first, by a ValueError
    for kind in kinds:
        if kind.parameter in arguments:
            _check(name, kind, arguments[kind.parameter])


def _caller(frame: FrameType | None) -> str:
    """The module of the call, decorators aside."""
    while frame is not None and frame.f_globals.get("__name__") == _DECORATORS:
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")


def _is_inner(module: str) -> bool:
    first, second = _PASSES_ON
    return module.startswith(_OURS) and (not module.startswith(first) or module.startswith(second))


def _check(name: str, kind: Kind, value: object) -> None:
    if kind.names_type:
        if value is not None and _type_name(value) not in (kind.types or ()):
            raise _refused(name, kind, "data types", kind.types or (), repr(value))
        return
    if kind.classes is not None and not isinstance(value, tuple(_CLASSES[c] for c in kind.classes)):
        raise _refused(name, kind, "classes", kind.classes, f"{type(value).__name__} {value!r:.60}")
    if kind.types is not None and isinstance(value, Tensor) and value.dtype.name not in kind.types:
        raise _refused(name, kind, "data types", kind.types, value.dtype.name)


def _type_name(value: object) -> str:
    try:
        return types.of_numpy(types.to_numpy(value)).name  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def _refused(name: str, kind: Kind, what: str, allowed: Sequence[str], received: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"'{kind.parameter}' of paddle.{name} is not of the {what} that it takes in static mode",
        received=received,
        allowed=", ".join(allowed),
        fix="cast it by paddle.cast, or give a variable of paddle.static.data",
    )


@functools.cache
def _listed() -> dict[int, tuple[str, tuple[Kind, ...], tuple[str, ...]]]:
    """id of a function -> its name, what its arguments may be, and its parameters."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    kinds: dict[str, list[Kind]] = {}
    for line in text.splitlines()[1:]:
        name, parameter, classes, allowed = line.split(" ")
        names_type = classes == "dtype"
        columns = [None if c in ("*", "dtype") else tuple(c.split(",")) for c in (classes, allowed)]
        kinds.setdefault(name, []).append(Kind(parameter, columns[0], columns[1], names_type))
    listed = {}
    for name, of_name in kinds.items():
        function = _public(name)
        if function is not None:
            parameters = tuple(inspect.signature(function).parameters)
            for form in _forms(function):  # the check may stand within another decorator
                listed[id(form)] = (name, tuple(of_name), parameters)
    return listed


def _forms(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """A function and those that its decorators wrap."""
    form: Callable[..., object] | None = function
    while form is not None:
        yield form
        form = getattr(form, "__wrapped__", None)


def _public(name: str) -> Callable[..., object] | None:
    home, _, short = f"framework.paddle.{name}".rpartition(".")
    try:
        return getattr(importlib.import_module(home), short, None)
    except ImportError:
        return None
