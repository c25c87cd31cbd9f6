"""Arithmetic, comparisons and casts, element by element."""

from __future__ import annotations

import math

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn
from jax.typing import DTypeLike

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Aval, Size, aval_of
from framework.export.formats.onnx.registry import Rule, primitive
from framework.export.formats.onnx.values import Value

_SAME = {
    "add": "Add",
    "add_any": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "max": "Max",
    "min": "Min",
    "exp": "Exp",
    "log": "Log",
    "tanh": "Tanh",
    "tan": "Tan",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "neg": "Neg",
    "floor": "Floor",
    "ceil": "Ceil",
    "sign": "Sign",
    "erf": "Erf",
    "logistic": "Sigmoid",
    "sin": "Sin",
    "cos": "Cos",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "eq": "Equal",
    "lt": "Less",
    "gt": "Greater",
    "le": "LessOrEqual",
    "ge": "GreaterOrEqual",
    "lt_to": "Less",
    "le_to": "LessOrEqual",
    "eq_to": "Equal",
}
_LOGIC = {"and": "And", "or": "Or", "xor": "Xor", "not": "Not"}
_LOGIC_OF_BOOLS = {"max": "Or", "min": "And", "mul": "And", "add": "Or", "ne": "Xor"}
_BITS = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor", "not": "BitwiseNot"}


def out_aval(eqn: JaxprEqn) -> ShapedArray:
    """Shape and type of the first output."""
    return aval_of(eqn.outvars[0])


def _same(name: str, op: str) -> Rule:
    def rule(c: Converter, eqn: JaxprEqn, *args: Value) -> Value:
        if args[0].dtype == np.bool_:
            if name in _LOGIC_OF_BOOLS:
                return c.elementwise(_LOGIC_OF_BOOLS[name], args, out_aval(eqn))
            if name in ("lt", "gt", "le", "ge"):
                args = tuple(convert(c, arg, np.int32) for arg in args)
        return c.elementwise(op, args, out_aval(eqn))

    return rule


for _name, _op in _SAME.items():
    primitive(_name)(_same(_name, _op))


def convert(c: Converter, value: Value, dtype: DTypeLike) -> Value:
    """The value in another type."""
    if value.array is not None:
        return Value(value.shape, np.dtype(dtype), "", value.order, value.array.astype(dtype))
    return Value(value.shape, np.dtype(dtype), c.cast(c.tensor(value), dtype), value.order)


@primitive("convert_element_type")
def _convert(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    dtype = np.dtype(eqn.params["new_dtype"])
    return x if x.dtype == dtype else convert(c, x, dtype)


@primitive("div")
def _div(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value:
    return c.elementwise("Div", (x, y), out_aval(eqn))


@primitive("rem")
def _rem(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value:
    return c.elementwise("Mod", (x, y), out_aval(eqn), fmod=1)


@primitive("ne")
def _ne(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value:
    if x.dtype == np.bool_:
        return c.elementwise("Xor", (x, y), out_aval(eqn))
    return c.elementwise("Not", [c.elementwise("Equal", (x, y), out_aval(eqn))], out_aval(eqn))


@primitive("and", "or", "xor", "not")
def _logic(c: Converter, eqn: JaxprEqn, *args: Value) -> Value:
    table = _LOGIC if args[0].dtype == np.bool_ else _BITS
    return c.elementwise(table[eqn.primitive.name], args, out_aval(eqn))


@primitive("shift_left", "shift_right_arithmetic")
def _shift(c: Converter, eqn: JaxprEqn, x: Value, bits: Value) -> Value:
    """By powers of two: ONNX shifts unsigned integers alone."""
    aval = out_aval(eqn)
    factor = c.elementwise("Pow", (c.scalar(2, x.dtype), bits), aval)
    if eqn.primitive.name == "shift_left":
        return c.elementwise("Mul", (x, factor), aval)
    rest = c.elementwise("Mod", (x, factor), aval)
    return c.elementwise("Div", (c.elementwise("Sub", (x, rest), aval), factor), aval)


@primitive("rsqrt")
def _rsqrt(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    return c.elementwise("Reciprocal", [c.elementwise("Sqrt", [x], out_aval(eqn))], out_aval(eqn))


@primitive("cbrt")
def _cbrt(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    aval = out_aval(eqn)
    root = c.elementwise("Pow", (c.elementwise("Abs", [x], aval), c.scalar(1 / 3, x.dtype)), aval)
    return c.elementwise("Mul", (c.elementwise("Sign", [x], aval), root), aval)


@primitive("square")
def _square(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    return c.elementwise("Mul", (x, x), out_aval(eqn))


@primitive("integer_pow")
def _integer_pow(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    y, aval = eqn.params["y"], out_aval(eqn)
    if y == -1:
        return c.elementwise("Reciprocal", [x], aval)
    if y == 2:
        return c.elementwise("Mul", (x, x), aval)
    return c.elementwise("Pow", (x, c.scalar(y, x.dtype)), aval)


@primitive("pow")
def _pow(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value:
    return c.elementwise("Pow", (x, y), out_aval(eqn))


@primitive("exp2")
def _exp2(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    return c.elementwise(
        "Exp", [c.elementwise("Mul", (x, c.scalar(math.log(2), x.dtype)), out_aval(eqn))], out_aval(eqn)
    )


@primitive("log1p")
def _log1p(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    """2 artanh(x / (x + 2)): the logarithm of 1 + x would lose the digits of a small x. Beyond 1 it keeps them."""
    aval = out_aval(eqn)
    ratio = c.elementwise("Div", (x, c.elementwise("Add", (x, c.scalar(2, x.dtype)), aval)), aval)
    small = c.elementwise("Mul", (c.elementwise("Atanh", [ratio], aval), c.scalar(2, x.dtype)), aval)
    large = c.elementwise("Log", [c.elementwise("Add", (x, c.scalar(1, x.dtype)), aval)], aval)
    return _where_small(c, x, small, large, aval)


@primitive("expm1")
def _expm1(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    """2 t / (1 - t) with t = tanh(x / 2): the exponential minus 1 would lose the digits of a small x."""
    aval, one = out_aval(eqn), c.scalar(1, x.dtype)
    half = c.elementwise("Tanh", [c.elementwise("Mul", (x, c.scalar(0.5, x.dtype)), aval)], aval)
    twice = c.elementwise("Add", (half, half), aval)
    small = c.elementwise("Div", (twice, c.elementwise("Sub", (one, half), aval)), aval)
    large = c.elementwise("Sub", (c.elementwise("Exp", [x], aval), one), aval)
    return _where_small(c, x, small, large, aval)


def _where_small(c: Converter, x: Value, small: Value, large: Value, aval: Aval) -> Value:
    truth = _Bool(tuple(aval.shape))
    is_small = c.elementwise("Less", (c.elementwise("Abs", [x], aval), c.scalar(0.5, x.dtype)), truth)
    return c.where(is_small, small, large, aval)


class _Bool:
    """An abstract array of booleans."""

    dtype = np.dtype(np.bool_)

    def __init__(self, shape: tuple[Size, ...]) -> None:
        self.shape = shape


@primitive("erfc")
def _erfc(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    aval = out_aval(eqn)
    return c.elementwise("Sub", (c.scalar(1, x.dtype), c.elementwise("Erf", [x], aval)), aval)


@primitive("round")
def _round(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    aval = out_aval(eqn)
    if "EVEN" in str(eqn.params["rounding_method"]).upper():
        return c.elementwise("Round", [x], aval)
    away = c.elementwise("Add", (c.elementwise("Abs", [x], aval), c.scalar(0.5, x.dtype)), aval)
    return c.elementwise(
        "Mul", (c.elementwise("Sign", [x], aval), c.elementwise("Floor", [away], aval)), aval
    )


@primitive("is_finite")
def _is_finite(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    aval = out_aval(eqn)
    tests = [c.elementwise(op, [x], aval) for op in ("IsNaN", "IsInf")]
    return c.elementwise("Not", [c.elementwise("Or", tests, aval)], aval)


@primitive("atan2")
def _atan2(c: Converter, eqn: JaxprEqn, y: Value, x: Value) -> Value:
    """2 atan(y / (r + x)), and at the negative half of the x axis pi."""
    aval, truth = out_aval(eqn), _Bool(out_aval(eqn).shape)
    squares = [c.elementwise("Mul", (part, part), aval) for part in (x, y)]
    length = c.elementwise("Sqrt", [c.elementwise("Add", squares, aval)], aval)
    # (r - x) / y where x is negative, so that no digits are lost in r + x.
    zero = c.scalar(0, x.dtype)
    left = c.elementwise("Less", (x, zero), truth)
    flat = c.elementwise("Equal", (y, zero), truth)
    safe_y = c.where(flat, c.scalar(1, x.dtype), y, aval)
    far = c.elementwise("Div", (c.elementwise("Sub", (length, x), aval), safe_y), aval)
    total = c.elementwise("Add", (length, x), aval)
    none = c.elementwise("Equal", (total, zero), truth)
    near = c.elementwise("Div", (y, c.where(none, c.scalar(1, x.dtype), total, aval)), aval)
    angle = c.elementwise("Atan", [c.where(left, far, near, aval)], aval)
    angle = c.elementwise("Add", (angle, angle), aval)
    straight = c.where(left, c.scalar(math.pi, x.dtype), zero, aval)
    return c.where(flat, straight, angle, aval)


@primitive("clamp")
def _clamp(c: Converter, eqn: JaxprEqn, low: Value, x: Value, high: Value) -> Value:
    aval = out_aval(eqn)
    if low.shape == high.shape == () and x.dtype.kind in "fi" and x.dtype.itemsize >= 4:
        return c.elementwise("Clip", (x, low, high), aval)
    return c.elementwise("Min", (c.elementwise("Max", (low, x), aval), high), aval)


@primitive("select_n")
def _select_n(c: Converter, eqn: JaxprEqn, which: Value, *cases: Value) -> Value:
    aval = out_aval(eqn)
    if which.dtype == np.bool_:
        return c.where(which, cases[1], cases[0], aval)
    result = cases[-1]
    for number, case in reversed(list(enumerate(cases[:-1]))):
        here = c.elementwise("Equal", (which, c.scalar(number, which.dtype)), _Bool(which.shape))
        result = c.where(here, case, result, aval)
    return result


@primitive(
    "stop_gradient",
    "copy",
    "copy_p",
    "optimization_barrier",
    "reduce_precision",
    "sharding_constraint",
    "pvary",
)
def _as_it_is(c: Converter, eqn: JaxprEqn, *args: Value) -> list[Value]:
    return list(args)
