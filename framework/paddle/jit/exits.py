"""Moving `return`, `break` and `continue` to the ends of branches."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from framework.paddle.jit.scopes import has_exit

Exit = Callable[[ast.stmt], list[ast.stmt] | None]


def move_returns(body: list[ast.stmt], variable: str) -> tuple[list[ast.stmt], str | None]:
    """The body of a function with one return at its end; the variable is None where nothing had to be moved."""

    def leave(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Return):
            return None
        value = statement.value or ast.Constant(None)
        target = ast.Name(variable, ast.Store())
        return [ast.copy_location(ast.Assign([target], value), statement)]

    if not any(isinstance(s, ast.If) and _branch_leaves(s, leave) for s in body):
        return body, None
    moved = _moved(body, leave)
    return [*moved, ast.Return(ast.Name(variable, ast.Load()))], variable


def move_breaks(body: list[ast.stmt], variable: str) -> tuple[list[ast.stmt], str | None]:
    """The body of a loop without break (which sets `variable`) and continue; None where there is no break."""
    used = False

    def leave(statement: ast.stmt) -> list[ast.stmt] | None:
        nonlocal used
        if isinstance(statement, ast.Continue):
            return [ast.copy_location(ast.Pass(), statement)]
        if isinstance(statement, ast.Break):
            used = True
            target = ast.Name(variable, ast.Store())
            return [ast.copy_location(ast.Assign([target], ast.Constant(True)), statement)]
        return None

    moved = _moved(body, leave)
    return moved, variable if used else None


def _branch_leaves(statement: ast.stmt, leave: Exit) -> bool:
    """Whether an exit stands in the branches of an if, or of ifs in it."""
    if leave(statement) is not None:
        return True
    return isinstance(statement, ast.If) and any(
        _branch_leaves(s, leave) for s in [*statement.body, *statement.orelse]
    )


def _moved(body: list[ast.stmt], leave: Exit) -> list[ast.stmt]:
    """`body` where exits are the last statements: what follows an if with an exit goes into its branches."""
    made: list[ast.stmt] = []
    for index, statement in enumerate(body):
        left = leave(statement)
        if left is not None:
            return [*made, *left]
        if isinstance(statement, ast.If) and _branch_leaves(statement, leave):
            rest = body[index + 1 :]
            if _weight(rest) > 400:  # twice in each branch would become long
                made.append(statement)
                continue
            branch = copy.copy(statement)
            branch.body = _moved([*statement.body, *_rest_of(statement.body, rest, leave)], leave)
            branch.orelse = _moved([*statement.orelse, *_rest_of(statement.orelse, rest, leave)], leave)
            return [*made, branch]
        made.append(statement)
    return made


def _rest_of(branch: list[ast.stmt], rest: list[ast.stmt], leave: Exit) -> list[ast.stmt]:
    """What follows a branch: nothing where it always leaves."""
    return [] if _always_leaves(branch, leave) else copy.deepcopy(rest)


def _always_leaves(body: list[ast.stmt], leave: Exit) -> bool:
    if not body:
        return False
    last = body[-1]
    if leave(last) is not None or isinstance(last, ast.Raise):
        return True
    return (
        isinstance(last, ast.If) and _always_leaves(last.body, leave) and _always_leaves(last.orelse, leave)
    )


def _weight(body: list[ast.stmt]) -> int:
    return sum(1 for statement in body for _ in ast.walk(statement)) if has_exit(body) else 0
