"""paddle.base.default_scope_funcs: a stack of scopes in each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from framework.paddle.static.scope import Scope, ScopeVariable


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack = [Scope()]


_scopes = _Scopes()


def get_cur_scope() -> Scope:
    """The innermost scope of this thread."""
    return _scopes.stack[-1]


def enter_local_scope() -> None:
    """Begin a scope inside the innermost one."""
    _scopes.stack.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """End the innermost scope."""
    _scopes.stack.pop()


def var(name: str) -> ScopeVariable:
    """The variable of this name, a new one in the innermost scope where there is none."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVariable | None:
    """The variable of this name in the innermost scope or one around it; None: there is none."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], object]) -> None:
    """Call a function within a scope of its own."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
