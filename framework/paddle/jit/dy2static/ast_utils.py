"""paddle.jit.dy2static.ast_utils: syntax trees as source and as functions."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Callable

from framework import paddle
from framework.paddle.jit.ast_transform import function_code

# How operators of comparison are written.
_COMPARISONS: dict[type[ast.AST], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}


def ast_to_source_code(ast_node: ast.AST) -> str:
    """The source of a tree, with a line end. Raises TypeError: it is no tree."""
    if not isinstance(ast_node, ast.AST):
        raise TypeError(f"Type of ast_root should be gast.AST or ast.AST, but received {type(ast_node)}.")
    return ast.unparse(ast.fix_missing_locations(ast_node)) + "\n"


def ast_to_func(
    ast_root: ast.AST, dyfunc: Callable[..., object], delete_on_exit: bool = True
) -> tuple[Callable[..., object], str]:
    """The function of a tree, in the module of `dyfunc` whose name it has, and the name of its source.

    Raises:
        TypeError: it is no tree.
        ValueError: it defines no function of this name.
    """
    file_name = f"<converted {dyfunc.__name__}>"
    code = function_code(ast_to_source_code(ast_root), dyfunc.__name__, file_name)
    if code is None:
        raise ValueError(f"Function: {dyfunc.__name__} doesn't exist in the Module transformed from AST.")
    names, defaults = vars(sys.modules[dyfunc.__module__]), getattr(dyfunc, "__defaults__", None)
    return types.FunctionType(code, names, code.co_name, defaults), file_name


def cmpop_node_to_str(node: ast.AST) -> str:
    """How an operator of comparison is written. Raises KeyError: it is none."""
    return _COMPARISONS[type(node)]


def is_dygraph_api(node: ast.Call) -> bool:
    """Whether a call names a function of `paddle.base.dygraph`."""
    assert isinstance(node, ast.Call), "Input non-Call node for is_dygraph_api"
    function = node.func
    while isinstance(function, ast.Call):
        function = function.func
    names = {"paddle": paddle, "base": paddle.base, "dygraph": paddle.base.dygraph}
    value: object = None
    for depth, name in enumerate(ast.unparse(function).split(".")):
        value = names.get(name) if depth == 0 else getattr(value, name, None)
    module = inspect.getmodule(value)
    return module is not None and module.__name__.startswith("framework.paddle.base.dygraph")
