"""Which arguments Paddle takes in static mode: writes framework/paddle/static/argument_kinds.txt from an installed
paddlepaddle 2.6.2, whose functions check their arguments there.

    python tools/docs/paddle_checks.py framework/paddle/static/argument_kinds.txt

It reads the sources of the real Paddle, so it runs in an environment of its own, without Oar. A line is

    function parameter classes types

`classes` are what an argument may be and `types` its data types, `*` where all are taken. `dtype` in place of classes
says that the argument names a data type. A check under a condition counts only where the condition is the mode.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

HOMES = (
    *("", "nn.functional", "linalg", "fft", "signal", "vision.ops", "geometric", "incubate", "metric"),
    *("incubate.nn.functional", "static", "static.nn", "nn.utils", "text"),
)
_MODES = ("in_dynamic_mode", "in_dynamic_or_pir_mode", "in_pir_mode")
_CHECKS = ("check_variable_and_dtype", "check_type", "check_dtype")
_CLASSES = {"np.ndarray": "ndarray", "type(None)": "None"} | {
    name: name for name in ("int", "float", "bool", "str", "list", "tuple", "Variable", "complex", "dict")
}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_HALF_TO_DOUBLE = ("float16", "float32", "float64")
_SINGLE = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_ELEMENTWISE = (*_FLOATS, "int32", "int64", "bool")
_WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
# Functions whose checks stand in a helper that several share, or under a condition that does not change them:
# (names, parameters, data types).
SHARED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("add subtract multiply divide maximum", "x y", (*_ELEMENTWISE, *_COMPLEX)),
    ("floor_divide remainder mod floor_mod minimum fmax fmin heaviside", "x y", _ELEMENTWISE),
    ("logical_and logical_or logical_xor", "x y", (*_WHOLE[:1], *_WHOLE[2:], *_FLOATS, *_COMPLEX)),
    ("logical_not", "x", (*_WHOLE[:1], *_WHOLE[2:], *_FLOATS, *_COMPLEX)),
    ("bitwise_and bitwise_or bitwise_xor", "x y", _WHOLE),
    ("bitwise_not", "x", _WHOLE),
    ("matmul", "x y", ("int8", *_FLOATS, *_COMPLEX)),
    ("gcd", "x y", ("int32", "int64")),
    ("cumsum", "x", (*_FLOATS, "int32", "int64")),
    ("cumprod", "x", (*_COMPLEX, *_FLOATS, "int32", "int64")),
    ("cummax cummin", "x", ("float32", "float64", "int32", "int64")),
    ("logcumsumexp", "x", _FLOATS),
    ("take_along_axis put_along_axis", "indices", ("int32", "int64")),
    ("unsqueeze", "x", (*_FLOATS, *_COMPLEX, "bool", "int8", "int16", "int32", "int64")),
    ("squeeze", "x", (*_FLOATS, *_COMPLEX, "bool", "int8", "int32", "int64")),
    ("nn.functional.conv1d nn.functional.conv1d_transpose", "x", ("float16", "float32", "float64")),
    ("nn.functional.adaptive_avg_pool1d", "x", ("float16", "float32", "float64")),
    ("nn.functional.adaptive_max_pool1d nn.functional.max_pool1d", "x", ("float32", "float64")),
    ("nn.functional.grid_sample", "x grid", ("float32", "float64")),
    ("nn.functional.nll_loss", "input", ("float32", "float64")),
    ("nn.functional.nll_loss", "label", ("int64",)),
    ("fft.irfft fft.hfft fft.irfft2 fft.hfft2 fft.irfftn fft.hfftn", "x", _COMPLEX),
    ("fft.rfft fft.ihfft fft.rfft2 fft.ihfft2 fft.rfftn fft.ihfftn", "x", (*_WHOLE[1:], *_HALF_TO_DOUBLE)),
    (
        "fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn",
        "x",
        (*_WHOLE[1:], *_HALF_TO_DOUBLE, *_COMPLEX),
    ),
    ("diff", "x", ("float16", *_SINGLE, "bool", "int32", "int64")),
    ("repeat_interleave", "x", (*_SINGLE, "int32", "int64")),
    ("take_along_axis", "arr", (*_FLOATS, "int32", "int64", "uint8")),
    ("tile", "x", (*_FLOATS, "bool", "int32", "int64")),
    ("prod", "x", (*_FLOATS, "int32", "int64")),
    ("nn.functional.dropout", "x", _FLOATS),
    ("polygamma linalg.inv", "x", _SINGLE),
    ("linalg.pinv", "x", (*_SINGLE, *_COMPLEX)),
    ("nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d", "x", _SINGLE),
    ("nn.functional.normalize nn.functional.pixel_shuffle", "x", ("float16", *_SINGLE)),
    ("nn.functional.pad", "x", (*_FLOATS, "int32", "int64", *_COMPLEX)),
    ("nn.functional.kl_div", "input label", _SINGLE),
    ("nn.functional.affine_grid", "theta", _SINGLE),
    ("nn.functional.gaussian_nll_loss", "variance", _SINGLE),
    ("nn.functional.cross_entropy", "label", (*_SINGLE, "uint8", "int8", "int16", "int32", "int64")),
    ("nn.functional.margin_cross_entropy", "label", ("int32", "int64")),
    ("nn.functional.ctc_loss", "log_probs", _SINGLE),
    ("nn.functional.ctc_loss", "labels", ("int32",)),
    ("nn.functional.ctc_loss", "input_lengths label_lengths", ("int64",)),
    ("nn.functional.rnnt_loss", "input", _SINGLE),
    ("nn.functional.rnnt_loss", "label input_lengths label_lengths", ("int32",)),
    ("vision.ops.generate_proposals", "scores bbox_deltas anchors variances", ("float32",)),
    ("vision.ops.generate_proposals", "img_size", _SINGLE),
    ("vision.ops.distribute_fpn_proposals", "fpn_rois", _SINGLE),
    ("geometric.send_uv geometric.send_ue_recv", "x y", ("float16", *_SINGLE, "int32", "int64")),
)
# The same of classes, and of arguments that name a data type: (names, parameters, classes, data types).
SHARED_CLASSES: tuple[tuple[str, str, str, str], ...] = (
    ("rand randn standard_normal randint", "shape", "list,tuple,Variable", "*"),
    ("normal", "shape", "list,tuple,Variable,None", "*"),
    ("rand randn standard_normal uniform", "dtype", "dtype", "float16,bfloat16,float32,float64"),
    ("all any nanmean", "axis", "int,list,tuple,None", "*"),
    ("sum mean", "axis", "int,list,tuple,None,Variable", "*"),
    ("flip", "axis", "int,list,tuple", "*"),
    ("diff nn.functional.normalize", "axis", "int", "*"),
    ("nn.functional.normalize", "p", "float,int", "*"),
    ("tile", "repeat_times", "list,tuple,Variable", "*"),
    ("gather", "axis", "*", "int32,int64"),
    ("nn.functional.affine_grid", "out_shape", "*", "int32"),
    ("clip", "min max", "float,int,Variable,None", "float16,float32,float64,int32,bfloat16"),
    ("lerp", "weight", "*", "float16,bfloat16,float32,float64"),
    ("trace", "x", "*", "int32,int64,float16,float32,float64"),
    ("diag_embed", "input", "*", "int32,int64,float16,float32,float64"),
    ("diagonal", "x", "*", "bool,int32,int64,float16,bfloat16,float32,float64"),
    ("where", "x y", "*", "float16,bfloat16,float32,float64,int32,int64"),
    ("equal", "y", "*", "bool,float16,bfloat16,float32,float64,uint8,int8,int16,int32,int64"),
    ("linspace logspace", "num", "int,Variable", "int32"),
    ("linspace logspace", "start stop", "int,float,Variable", "float16,bfloat16,float32,float64,int32,int64"),
    ("logspace", "base", "int,float,Variable", "float32,float64,int32,int64"),
    ("linspace arange", "dtype", "dtype", "float16,bfloat16,float32,float64,int32,int64"),
    ("logspace prod", "dtype", "dtype", "float16,bfloat16,float32,float64,int32,int64"),
    ("randperm", "dtype", "dtype", "float32,float64,int32,int64"),
    ("eye", "dtype", "dtype", "float16,float32,float64,int32,int64"),
    ("randint", "dtype", "dtype", "int32,int64"),
    ("randint_like", "dtype", "dtype", "bool,float16,float32,float64,int32,int64"),
    ("empty_like", "dtype", "dtype", "bool,float16,bfloat16,float32,float64,int32,int64"),
    ("empty", "dtype", "dtype", "bool,float16,float32,float64,int32,int64,complex64,complex128"),
    ("full_like", "dtype", "dtype", "bool,float16,bfloat16,float32,float64,int16,int32,int64"),
    ("cast", "dtype", "dtype", "bool,float16,bfloat16,float32,float64,int8,int16,int32,int64,uint8"),
    ("bincount", "weights", "Variable,None", "int32,int64,float32,float64"),
    (
        "nn.functional.binary_cross_entropy_with_logits",
        "weight pos_weight",
        "Variable,None",
        "float32,float64",
    ),
    ("nn.functional.cross_entropy", "weight", "Variable,None", "float32,float64"),
    ("nn.functional.multi_label_soft_margin_loss", "weight", "Variable,None", "float32,float64"),
    ("nn.functional.multi_margin_loss", "weight", "Variable,None", "float32,float64"),
    ("nn.functional.sigmoid_focal_loss", "normalizer", "Variable,None", "float32,float64"),
    ("nn.functional.hsigmoid_loss", "bias", "Variable,None", "float32,float64"),
    ("nn.functional.hsigmoid_loss", "path_table path_code", "Variable,None", "int64"),
    ("nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d", "return_mask", "bool", "*"),
    ("nn.functional.adaptive_max_pool3d", "return_mask", "bool", "*"),
)
Row = tuple[list[str] | None, list[str] | None]


def find_functions() -> dict[types.FunctionType, str]:
    """Paddle's public functions and their shortest names, without `paddle.`"""
    names: dict[types.FunctionType, str] = {}
    for home in HOMES:
        module = importlib.import_module(f"paddle.{home}".rstrip("."))
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name, None)
            if isinstance(value, types.FunctionType) and not name.startswith("_"):
                function = inspect.unwrap(value)
                if isinstance(function, types.FunctionType):
                    names.setdefault(function, f"{home}.{name}".lstrip("."))
    return names


def name_of(node: ast.expr) -> str:
    """The last name of what is called: `check_type` of `data_feeder.check_type(…)`."""
    called = node.func if isinstance(node, ast.Call) else node
    return (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )


def assigned_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement sets, or one within it."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def find_checks(body: Sequence[ast.stmt], assigned: dict[str, ast.expr | None]) -> Iterator[ast.Call]:
    """The checks that always run in static mode, before their argument is set anew."""
    for statement in body:
        if isinstance(statement, ast.If):
            test = statement.test
            if name_of(test) in _MODES:
                yield from find_checks(statement.orelse, assigned)
                continue
            if isinstance(test, ast.UnaryOp) and name_of(test.operand) in _MODES:
                yield from find_checks(statement.body, assigned)
                continue
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and name_of(call) in _CHECKS and name_of(call.args[0]) not in assigned:
            yield call
        for name in assigned_names(statement):
            assigned[name] = statement.value if isinstance(statement, ast.Assign) else None


def classes_of(node: ast.expr) -> list[str] | None:
    """The classes of an expression such as `(int, Variable)`; None: not known here."""
    if isinstance(node, ast.Tuple):
        listed = [classes_of(item) for item in node.elts if "pir" not in ast.unparse(item)]
        return None if None in listed else [name for names in listed for name in names or ()]
    name = _CLASSES.get(ast.unparse(node))
    return None if name is None else [name]


def types_of(node: ast.expr) -> list[str] | None:
    """The data types of a literal; None: not known here."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    names = [value] if isinstance(value, str) else list(value)
    return list(dict.fromkeys("bfloat16" if name == "uint16" else name for name in names))


def read_check(call: ast.Call, constants: dict[str, ast.expr | None]) -> tuple[str, Row] | None:
    """The parameter that a check is about, and what it may be."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    subject, allowed = arguments[0], arguments[2]
    if isinstance(allowed, ast.Name):
        allowed = constants.get(allowed.id) or allowed
    of_type = isinstance(subject, ast.Attribute) and subject.attr == "dtype"
    if isinstance(subject, ast.Attribute) and of_type:
        subject = subject.value
    if not isinstance(subject, ast.Name):
        return None
    if name_of(call) == "check_type":
        return subject.id, (classes_of(allowed), None)
    if name_of(call) == "check_dtype":
        return subject.id, (None if of_type else ["dtype"], types_of(allowed))
    return subject.id, (["Variable"], types_of(allowed))


def rows_of(function: types.FunctionType) -> dict[str, Row]:
    """What each parameter of a function may be."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    rows: dict[str, Row] = {}
    if not isinstance(definition, ast.FunctionDef):
        return rows
    parameters = [a.arg for a in (*definition.args.args, *definition.args.kwonlyargs)]
    assigned: dict[str, ast.expr | None] = {}
    for call in find_checks(definition.body, assigned):
        check = read_check(call, assigned)
        if check is not None and check[0] in parameters and any(check[1]):
            before = rows.get(check[0], (None, None))
            rows[check[0]] = (both(before[0], check[1][0]), both(before[1], check[1][1]))
    return rows


def both(first: list[str] | None, second: list[str] | None) -> list[str] | None:
    """What two checks allow together."""
    if first is None or second is None:
        return second if first is None else first
    return [name for name in first if name in second]


def main(path: Path) -> None:
    """Write the table."""
    lines = set()
    for function, name in find_functions().items():
        for parameter, row in rows_of(function).items():
            lines.add(" ".join([name, parameter, *(",".join(column) if column else "*" for column in row)]))
    for names, parameters, allowed in SHARED:
        for name in names.split():
            lines |= {f"{name} {parameter} Variable {','.join(allowed)}" for parameter in parameters.split()}
    for names, parameters, classes, allowed_types in SHARED_CLASSES:
        for name in names.split():
            lines |= {f"{name} {parameter} {classes} {allowed_types}" for parameter in parameters.split()}
    path.write_text(
        "# Made by tools/docs/paddle_checks.py.\n" + "\n".join(sorted(lines)) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
