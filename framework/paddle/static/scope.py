"""Scopes: where programs find Tensors by name. Tensors hold their own values here, so a scope has none to keep."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.program import Program, default_main_program, programs


def _recent_programs() -> Iterator[Program]:
    """The program that is recorded into, then the others, the newest first."""
    yield default_main_program()
    yield from filter(None, [reference() for reference in reversed(programs)])


class ScopeVariable:
    """A variable of a scope."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def get_tensor(self) -> Tensor:
        """Its Tensor, which `set` changes."""
        return self._tensor


class Scope:
    """Finds the Tensors of programs by name: of the current one, then of those made last."""

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of this name; None: no program has one."""
        programs = (program.global_block().vars for program in _recent_programs())
        return next((ScopeVariable(tensors[name]) for tensors in programs if name in tensors), None)

    var = find_var


_scope = Scope()


def global_scope() -> Scope:
    """The scope of all programs."""
    return _scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Accepted: Tensors hold their own values, a scope has nothing to keep apart."""
    yield
