"""paddle.utils.gast: syntax trees of Python, as `ast` has them; Paddle's own classes are those of Python 3."""

from __future__ import annotations

import ast
from typing import TypeVar

from framework.paddle._kernel.modules import complete as _complete

NodeT = TypeVar("NodeT", bound=ast.AST)


def gast_to_ast(node: NodeT) -> NodeT:
    """The tree itself."""
    return node


ast_to_gast = gast_to_ast


def __getattr__(name: str) -> object:
    return getattr(ast, name)


_complete(__name__)
