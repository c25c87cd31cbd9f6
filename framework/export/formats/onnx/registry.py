"""The tables of rules: what becomes of a primitive of jax, and of a function of ours that is one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.export.formats.onnx.values import Value


# Adds the nodes of an equation: (converter, equation, *values of its inputs) -> the values of its outputs, or None
# where it does not apply.
Rule = Callable[..., "Value | Sequence[Value] | None"]

PRIMITIVES: dict[str, Rule] = {}
FUNCTIONS: dict[str, Rule] = {}


def primitive(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of primitives."""

    def add(rule: Rule) -> Rule:
        PRIMITIVES.update(dict.fromkeys(names, rule))
        return rule

    return add


def function(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of jitted functions of the framework or of jax, by name. A function of the user that has such
    a name is converted equation by equation, and so is a call for which the rule returns None."""

    def add(rule: Rule) -> Rule:
        FUNCTIONS.update(dict.fromkeys(names, rule))
        return rule

    return add
