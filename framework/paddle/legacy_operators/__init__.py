"""Operators that Paddle's older programs and its tests run by name, with no public function of today's Paddle and no
part in an inference program: sequences with lengths, recurrences, updates of parameters, metrics, targets of detectors.

`find_legacy_operator(name)` gives the function that runs one: `Operands` to outputs by slot.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import import_module

from framework.paddle.legacy_operators.operands import (
    LengthsError,
    Levels,
    Operands,
    Output,
    Outputs,
    Ragged,
    Rule,
    Table,
)

__all__ = [
    "WITHOUT_GRADIENTS",
    "LengthsError",
    "Levels",
    "Operands",
    "Output",
    "Outputs",
    "Ragged",
    "Rule",
    "find_legacy_operator",
    "operator_names",
]


WITHOUT_GRADIENTS = frozenset({"beam_search", "beam_search_decode"})
"""Operators that look at the values of all inputs; no gradient goes through them, as in Paddle."""

_MODULES = (
    *("arrays", "assignment", "beams", "detection", "fusion", "hashing", "losses", "matching", "metrics"),
    *("recurrent", "sequence", "trees", "updates"),
)


@functools.cache
def _operators() -> Table:
    modules = (import_module(f"{__name__}.{name}") for name in _MODULES)  # few programs run them
    return {name: rule for module in modules for name, rule in module.OPERATORS.items()}


def operator_names() -> Iterable[str]:
    """The names of all operators."""
    return _operators()


def find_legacy_operator(name: str) -> Rule | None:
    """The function that runs an operator; None where there is none."""
    return _operators().get(name)
