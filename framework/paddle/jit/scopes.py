"""Which names statements assign, and whether they can be moved into a function of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope: bodies of inner functions, classes and comprehensions are left out."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            continue
        stack.extend(ast.iter_child_nodes(node))


def assigned_names(statements: Iterable[ast.AST]) -> set[str]:
    """The variables that these statements set."""
    names: set[str] = set()
    for node in walk_scope(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return names


# Methods by which lists and dicts change.
_CHANGES = (
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "update",
    "setdefault",
    "popitem",
    "reverse",
)


def changed_containers(statements: Iterable[ast.AST]) -> list[ast.expr]:
    """The variables and attributes whose items these statements set, or whose size they change."""
    roots: dict[str, ast.expr] = {}
    for node in walk_scope(statements):
        target: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES
        ):
            target = node.func.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if target is not None and _is_path(target):
            roots.setdefault(ast.unparse(target), target)
    return [roots[name] for name in sorted(roots)]


def changed_attributes(statements: Iterable[ast.AST]) -> list[ast.Attribute]:
    """The attributes that these statements set."""
    targets = {
        ast.unparse(node): node
        for node in walk_scope(statements)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_path(node)
    }
    return [targets[name] for name in sorted(targets)]


def _is_path(node: ast.expr) -> bool:
    """Whether this is a variable, or an attribute of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def declared_names(function: ast.FunctionDef) -> set[str]:
    """The names that a function declares global or nonlocal."""
    return {
        name
        for node in walk_scope(function.body)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }


def can_move(statements: Iterable[ast.stmt], fixed: Set[str]) -> bool:
    """Whether the statements mean the same in a function of their own that declares its variables nonlocal."""
    statements = list(statements)
    if assigned_names(statements) & fixed:
        return False
    return not has_exit(statements) and not any(
        isinstance(node, ast.Delete | ast.Global | ast.Nonlocal | ast.NamedExpr | ast.TryStar)
        or (isinstance(node, ast.ExceptHandler) and node.name is not None)
        or (isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names))
        for node in walk_scope(statements)
    )


def has_exit(statements: Iterable[ast.AST], in_loop: bool = False) -> bool:
    """Whether a return leaves these statements, or a break or continue of a loop around them."""
    for node in statements:
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, ast.Break | ast.Continue):
            if not in_loop:
                return True
        elif not isinstance(node, _SCOPES):
            inner = in_loop or isinstance(node, ast.For | ast.While | ast.AsyncFor)
            if has_exit(ast.iter_child_nodes(node), inner):
                return True
    return False
