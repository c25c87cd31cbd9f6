"""Python functions with control flow over Tensors, rewritten to call framework.paddle.jit.convert.

    if p:                    def true_1(): nonlocal y; y = a
        y = a        ->      def false_1(): nonlocal y; y = b
    else:                    convert.if_(p, true_1, false_1, get_1, set_1, ("y",))
        y = b

For Python values the rewritten function does what it did. `return`, `break` and `continue` in an `if` are first moved
to the ends of its branches: what follows the `if` goes into the branch that has none. Statements that cannot be moved
into a function (a `return` inside of a loop, `yield`, `del`, names declared `global`) stay as they are; a Tensor in
their condition then is an error that names the line.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import textwrap
import tokenize
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax

from framework.paddle.jit import convert
from framework.paddle.jit.dy2static.logging_utils import LOG_AllTransformer, log_transformed_code, warn
from framework.paddle.jit.exits import move_breaks, move_returns
from framework.paddle.jit.scopes import (
    assigned_names,
    can_move,
    changed_attributes,
    changed_containers,
    declared_names,
)

_CONVERT = "__oar_convert"
CONVERSION_OPTIONS = "conversion_options"  # the attribute of a function that says whether it is converted
_OURS = (
    Path(__file__).resolve().parents[2],
    Path(jax.__file__).resolve().parent,
    Path(inspect.__file__).parent,
)
BUILTIN_LIKELY_MODULES: list[types.ModuleType] = []  # their functions are not converted


@dataclass(frozen=True)
class ConversionOptions:
    """How a function is converted. `not_convert`: it stays as it is written."""

    not_convert: bool = False


def ignore_module(modules: list[types.ModuleType]) -> None:
    """Functions of these modules are not converted."""
    BUILTIN_LIKELY_MODULES.extend(modules)


def transformed(function: Callable[..., object]) -> Callable[..., object]:
    """The function with its control flow converted; the function itself where there is nothing to convert or no
    source."""
    if isinstance(function, types.MethodType):
        inner = transformed(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if not isinstance(function, types.FunctionType) or _is_left_alone(function):
        return function
    if inspect.isgeneratorfunction(function):
        warn(
            f"Your function:`{function.__name__}` doesn't support to transform to static function because it is a "
            "generator function, it will be run as-is."
        )
        return function
    made = _factory(function.__code__)
    if made is None:
        return function
    code, source = made
    log_transformed_code(LOG_AllTransformer, source, function.__name__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[_CONVERT] = types.CellType(convert)
    if any(name not in cells for name in code.co_freevars):
        return function
    closure = tuple(cells[name] for name in code.co_freevars)
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    functools.update_wrapper(result, function)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__dict__["__converted_source__"] = source
    return result


def _is_left_alone(function: types.FunctionType) -> bool:
    options = function.__dict__.get(CONVERSION_OPTIONS)
    if (options is not None and options.not_convert) or _CONVERT in function.__code__.co_freevars:
        return True
    module = function.__module__ or ""
    ignored = [one.__name__ for one in BUILTIN_LIKELY_MODULES]
    return any(module == name or module.startswith(f"{name}.") for name in ignored) or _is_library(
        function.__code__.co_filename
    )


@functools.cache
def _is_library(filename: str) -> bool:
    path = Path(filename).resolve()
    return "site-packages" in path.parts or any(folder in path.parents for folder in _OURS)


@functools.cache
def _factory(code: types.CodeType) -> tuple[types.CodeType, str] | None:
    """The code of the converted function, and its source."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (
        OSError,
        SyntaxError,
        TypeError,
        tokenize.TokenError,
    ):  # a file that changed since it was run, too
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    owner = code.co_qualname.split(".")[-2:-1]
    if owner and owner[0] != "<locals>":
        _mangle(definition, owner[0].lstrip("_"))
    transformer = _Transformer()
    definition.decorator_list = []
    definition.returns = None
    definition.args.defaults = [ast.Constant(None) for _ in definition.args.defaults]
    definition.args.kw_defaults = [d and ast.Constant(None) for d in definition.args.kw_defaults]
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    transformer.function(definition)
    if not transformer.changed:
        return None
    names = [*code.co_freevars, _CONVERT]
    outer = ast.FunctionDef(
        name="__oar_outer",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[definition],
        decorator_list=[],
    )
    module = ast.fix_missing_locations(ast.Module([outer], []))
    source = ast.unparse(definition)
    ast.increment_lineno(module, first - 1)
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE)
    made = _nested_code(_nested_code(compiled, "__oar_outer"), definition.name)
    return made, source


_FUTURE = __future__.annotations.compiler_flag


def function_code(source: str, name: str, file_name: str) -> types.CodeType | None:
    """The code of the function `name` that a source defines; None where it defines none."""
    module = compile(source, file_name, "exec")
    codes = (code for code in module.co_consts if isinstance(code, types.CodeType) and code.co_name == name)
    return next(codes, None)


def _mangle(function: ast.FunctionDef, owner: str) -> None:
    """Write private names as the class body does: self.__x is self._Owner__x."""
    for node in ast.walk(function):
        field = "attr" if isinstance(node, ast.Attribute) else "id" if isinstance(node, ast.Name) else None
        if field is not None:
            name = getattr(node, field)
            if name.startswith("__") and not name.endswith("__"):
                setattr(node, field, f"_{owner}{name}")


def _nested_code(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _name(identifier: str, store: bool = False) -> ast.Name:
    return ast.Name(identifier, ast.Store() if store else ast.Load())


def _helper(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(_CONVERT), name, ast.Load()), list(args), [])


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(_no_arguments(), body)


def _reads(statements: list[ast.stmt]) -> list[ast.expr]:
    """Functions that give the lists and dicts which these statements may change, and their attributes as pairs."""
    roots = [_loaded(root) for root in changed_containers(statements)]
    attributes = [
        ast.Tuple([_loaded(node.value), ast.Constant(node.attr)], ast.Load())
        for node in changed_attributes(statements)
    ]
    return [_lambda(expression) for expression in (*roots, *attributes)]


def _loaded(root: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(root), mode="eval").body


def _has_scoping(node: ast.AST) -> bool:
    return any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for n in ast.walk(node))


class _Transformer(ast.NodeTransformer):
    """Converts the statements and expressions of one function, and of the functions in it."""

    def __init__(self) -> None:
        self.changed = False
        self.count = 0
        self.locals: set[str] = set()  # variables that converted statements assign
        self.fixed: set[str] = set()  # names declared global or nonlocal

    def function(self, node: ast.FunctionDef) -> None:
        """Convert a function in place."""
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(node)):
            return
        outer_locals, outer_fixed = self.locals, self.fixed
        self.locals, self.fixed = set(), declared_names(node)
        body, returned = move_returns(node.body, f"__return_{self.count}")
        parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made.extend(result if isinstance(result, list) else [result])
        start: list[ast.stmt] = [
            ast.Assign([_name(n, True)], _helper("Undefined", ast.Constant(n)))
            for n in sorted(self.locals - parameters)
            if n != returned
        ]
        if returned is not None:
            start.append(ast.Assign([_name(returned, True)], ast.Constant(None)))
        node.body = [*start, *made]
        self.locals, self.fixed = outer_locals, outer_fixed

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.function(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return node

    # Statements

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        if not can_move([node], self.fixed) or _has_scoping(node.test):
            self.generic_visit(node)
            return node
        number, names = self._variables([node])
        reads = _reads([node])
        self.generic_visit(node)
        true, false = f"__true_{number}", f"__false_{number}"
        return [
            *self._access(number, names),
            self._define(true, node.body, names),
            self._define(false, node.orelse or [ast.Pass()], names),
            self._call(
                "if_", node, node.test, _name(true), _name(false), *self._handles(number, names), *reads
            ),
        ]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        body, stopped = move_breaks(node.body, f"__break_{self.count + 1}")
        movable = not node.orelse and can_move(body, self.fixed) and not _has_scoping(node.test)
        if not movable:
            self.generic_visit(node)
            return node
        node.body = body
        number, names = self._variables([node], [stopped] if stopped else [])
        reads = _reads([node])
        self.generic_visit(node)
        test, step = f"__test_{number}", f"__body_{number}"
        condition = node.test
        start: list[ast.stmt] = []
        if stopped is not None:
            start = [ast.Assign([_name(stopped, True)], ast.Constant(False))]
            condition = _helper("and_", _lambda(_helper("not_", _name(stopped))), _lambda(condition))
        return [
            *start,
            *self._access(number, names),
            self._define(test, [ast.Return(condition)], []),
            self._define(step, node.body, names),
            self._call("while_", node, _name(test), _name(step), *self._handles(number, names), *reads),
        ]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        body, stopped = move_breaks(node.body, f"__break_{self.count + 1}")
        movable = not node.orelse and can_move(
            [*body, ast.Assign([node.target], ast.Constant(0))], self.fixed
        )
        if not movable or _has_scoping(node.iter):
            self.generic_visit(node)
            return node
        node.body = body
        number, names = self._variables([node], [stopped] if stopped else [])
        reads = _reads([node])
        self.generic_visit(node)
        step, item = f"__body_{number}", f"__item_{number}"
        take = ast.Assign([node.target], _name(item))
        function = self._define(step, [take, *node.body], names)
        function.args.args = [ast.arg(item)]
        start: list[ast.stmt] = []
        if stopped is not None:
            start = [ast.Assign([_name(stopped, True)], ast.Constant(False))]
        done = ast.Constant(None) if stopped is None else _lambda(_name(stopped))
        return [
            *start,
            *self._access(number, names),
            function,
            self._call("for_", node, node.iter, _name(step), *self._handles(number, names), done, *reads),
        ]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        if _has_scoping(node):
            return node
        self.changed = True
        message = node.msg or ast.Constant(None)
        return ast.copy_location(ast.Expr(_helper("assert_", _lambda(node.test), _lambda(message))), node)

    # Expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _has_scoping(node):
            return node
        self.changed = True
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return ast.copy_location(_helper(name, *[_lambda(value) for value in node.values]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        self.changed = True
        return ast.copy_location(_helper("not_", node.operand), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _has_scoping(node):
            return node
        self.changed = True
        return ast.copy_location(_helper("choose", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        middle = node.comparators[:-1]
        if not middle or not all(isinstance(value, ast.Name | ast.Constant) for value in middle):
            return node
        self.changed = True
        sides = [node.left, *node.comparators]
        parts = [
            _lambda(ast.Compare(left, [op], [right]))
            for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ]
        return ast.copy_location(_helper("and_", *parts), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        self.changed = True
        node.func = ast.copy_location(_helper("call", node.func), node.func)
        return node

    # Parts

    def _variables(self, statements: list[ast.stmt], more: list[str] | None = None) -> tuple[int, list[str]]:
        self.changed = True
        self.count += 1
        names: list[str] = sorted(assigned_names(statements) | set(more or []))
        self.locals.update(names)
        return self.count, names

    def _define(self, name: str, body: list[ast.stmt], names: list[str]) -> ast.FunctionDef:
        head: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
        return ast.FunctionDef(name, _no_arguments(), [*head, *body], [])

    def _access(self, number: int, names: list[str]) -> list[ast.stmt]:
        """The functions that read and set the variables."""
        values = ast.Tuple([_name(n) for n in names], ast.Load())
        targets = ast.Tuple([_name(n, True) for n in names], ast.Store())
        setter = self._define(
            f"__set_{number}", [ast.Assign([targets], _name("__values"))] if names else [ast.Pass()], names
        )
        setter.args.args = [ast.arg("__values")]
        return [self._define(f"__get_{number}", [ast.Return(values)], []), setter]

    def _handles(self, number: int, names: list[str]) -> list[ast.expr]:
        return [
            _name(f"__get_{number}"),
            _name(f"__set_{number}"),
            ast.Tuple([ast.Constant(n) for n in names], ast.Load()),
        ]

    def _call(self, name: str, where: ast.AST, *args: ast.expr) -> ast.stmt:
        return ast.copy_location(ast.Expr(ast.copy_location(_helper(name, *args), where)), where)


convert.hooks.transform = transformed
