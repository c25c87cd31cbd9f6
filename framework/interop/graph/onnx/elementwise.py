"""ONNX operators that work element by element, in whatever layout their operands have."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer, max_dim, min_dim

from framework.core.errors import TraceError
from framework.interop.graph.layer import apply
from framework.interop.graph.onnx.number_text import format_numbers, parse_numbers
from framework.interop.graph.operator import Call, Operator, Run, Table, registrar
from framework.interop.graph.values import Array, Item, Static, Value, device_type, is_known, is_text
from framework.interop.programs.onnx_types import BITS, DTYPES, TEXT
from framework.nn import functional as F
from framework.nn.functional.slopes import arctan

OPERATORS: Table = {}
operator = registrar(OPERATORS)
elementwise = functools.partial(operator, style="elementwise", folds=True)


def namespace(*arrays: Array | None) -> ModuleType:
    """numpy where all arrays are known, else jax.numpy."""
    return np if is_known(*arrays) else jnp


def is_float(x: Array) -> bool:
    """Whether the elements are floating-point, 8 and 16 bits included."""
    return x.dtype.kind == "f" or (x.dtype.kind == "V" and jnp.issubdtype(x.dtype, jnp.floating))


def is_integer(x: Array) -> bool:
    """Whether the elements are integers; sizes that may be symbolic are."""
    return x.dtype.kind in "iuO" or (x.dtype.kind == "V" and jnp.issubdtype(x.dtype, jnp.integer))


def to_type(x: Array, dtype: np.dtype | type) -> Array:
    """x in another type, in 32 bits where jax keeps it."""
    return x.astype(dtype) if is_known(x) else x.astype(device_type(dtype))


# -- functions of one or two operands that numpy and jax share --------------------------------------------------------

_SHARED = {
    **{
        "Abs": "abs",
        "Acos": "arccos",
        "Acosh": "arccosh",
        "Add": "add",
        "And": "logical_and",
        "Asin": "arcsin",
    },
    **{"Asinh": "arcsinh", "Atanh": "arctanh", "BitwiseAnd": "bitwise_and"},
    **{"BitwiseNot": "bitwise_not", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "Cos": "cos"},
    **{
        "Cosh": "cosh",
        "Equal": "equal",
        "Exp": "exp",
        "Greater": "greater",
        "GreaterOrEqual": "greater_equal",
    },
    **{"IsNaN": "isnan", "Less": "less", "LessOrEqual": "less_equal", "Log": "log", "Mul": "multiply"},
    **{
        "Neg": "negative",
        "Not": "logical_not",
        "Or": "logical_or",
        "Sign": "sign",
        "Sin": "sin",
        "Sinh": "sinh",
    },
    **{
        "Sqrt": "sqrt",
        "Sub": "subtract",
        "Tan": "tan",
        "Tanh": "tanh",
        "Where": "where",
        "Xor": "logical_xor",
    },
}
WEIGHTED = ("Add", "Mul", "Sub")
COMPARISONS = {
    "Equal": "__eq__",
    "Greater": "__gt__",
    "GreaterOrEqual": "__ge__",
    "Less": "__lt__",
    "LessOrEqual": "__le__",
}


def _shared(name: str) -> Run:
    def run(call: Call, *arrays: Array) -> Array:
        return getattr(namespace(*arrays), name)(*arrays)

    return run


for _name, _function in _SHARED.items():
    elementwise(_name, weights=(0, 1) if _name in WEIGHTED else ())(_shared(_function))


def _one(function: Callable[[jax.Array], jax.Array]) -> Run:
    return lambda call, x: function(x)


# Activations are of the core; they get jax arrays.
for _names, _activation in {
    "Relu": F.relu,
    "Sigmoid": F.sigmoid,
    "Softplus": lambda x: F.softplus(x, threshold=math.inf),
    "Softsign": F.softsign,
    "Mish": F.mish,
    "HardSwish": F.hardswish,
}.items():
    operator(_names, style="elementwise")(_one(_activation))


@operator("Identity", style="values")
def _identity(call: Call, x: Item) -> Item:
    return x


@elementwise("Erf")
def _erf(call: Call, x: Array) -> Array:
    return lax.erf(jnp.asarray(x))


@elementwise("Atan")
def _atan(call: Call, x: Array) -> Array:
    return np.arctan(x) if is_known(x) else arctan(jnp.asarray(x))


@elementwise("Floor", "Ceil")
def _whole(call: Call, x: Array) -> Array:
    if x.dtype == object:
        return x
    return getattr(namespace(x), call.node.op.lower())(x)


@elementwise("Round")
def _round(call: Call, x: Array) -> Array:
    return namespace(x).round(x)


@elementwise("Reciprocal")
def _reciprocal(call: Call, x: Array) -> Array:
    return (1 / x).astype(x.dtype)


@elementwise("Div", weights=(0, 1))
def _div(call: Call, x: Array, y: Array) -> Array:
    if is_integer(x) and is_integer(y):
        if object in (x.dtype, y.dtype) or jnp.issubdtype(x.dtype, jnp.unsignedinteger):
            return x // y
        if is_known(x, y):
            quotient = np.abs(x) // np.abs(y)  # towards zero
            return (np.sign(x) * np.sign(y) * quotient).astype(x.dtype)
        return lax.div(*jnp.broadcast_arrays(x, y))
    return (x / y).astype(x.dtype)


@elementwise("Mod")
def _mod(call: Call, x: Array, y: Array) -> Array:
    return namespace(x, y).fmod(x, y) if call.attr("fmod") else x % y


@elementwise("Pow", weights=(0,))
def _pow(call: Call, x: Array, y: Array) -> Array:
    if is_known(x, y):
        return np.power(x, y).astype(x.dtype)
    if np.ndim(y) == 0 and not isinstance(y, Tracer) and float(y) == 2.0:
        return x * x
    if is_float(x):
        return jnp.power(x, y.astype(x.dtype))
    return jnp.power(x.astype(y.dtype), y).astype(x.dtype)


@elementwise("BitShift")
def _bit_shift(call: Call, x: Array, y: Array) -> Array:
    xp = namespace(x, y)
    return xp.left_shift(x, y) if call.required("direction") == "LEFT" else xp.right_shift(x, y)


@elementwise("IsInf")
def _is_inf(call: Call, x: Array) -> Array:
    xp = namespace(x)
    positive, negative = call.attr("detect_positive", 1), call.attr("detect_negative", 1)
    return (xp.isinf(x) & (x > 0) & bool(positive)) | (xp.isinf(x) & (x < 0) & bool(negative))


def _many(name: str) -> Run:
    def run(call: Call, *arrays: Array) -> Array:
        return functools.reduce(getattr(namespace(*arrays), name), arrays)

    return run


def _extreme(name: str, index: int) -> Run:
    plain = _many(name)

    def run(call: Call, *arrays: Array) -> Array:
        if any(a.dtype == object for a in arrays):
            function = (max_dim, min_dim)[index]
            return functools.reduce(np.frompyfunc(function, 2, 1), arrays)
        return plain(call, *arrays)

    return run


elementwise("Max")(_extreme("maximum", 0))
elementwise("Min")(_extreme("minimum", 1))
elementwise("Sum")(_many("add"))


@elementwise("Mean")
def _mean(call: Call, *arrays: Array) -> Array:
    return _many("add")(call, *arrays) / len(arrays)


# -- with bounds, types and parameters ----------------------------------------------------------------------------


@elementwise("Clip")
def _clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    low = call.attr("min") if low is None else low
    high = call.attr("max") if high is None else high
    if x.dtype == object:
        low = None if low is None or (all(dim >= 0 for dim in x.ravel()) and int(low) <= 1) else low
        x = x if low is None else np.asarray(np.frompyfunc(max_dim, 2, 1)(x, low), object)
        if high is None or int(high) >= 2**31 - 1:
            return x
        return np.asarray(np.frompyfunc(min_dim, 2, 1)(x, high), object)
    xp = namespace(x, low, high)
    x = x if low is None else xp.maximum(x, xp.asarray(low, x.dtype))
    return x if high is None else xp.minimum(x, xp.asarray(high, x.dtype))


def cast(call: Call, x: Array, dtype: np.dtype) -> Array:
    """x in the type, as ONNX's Cast rounds it: 8-bit floats saturate unless `saturate` is 0."""
    if x.dtype == object:
        return x
    if not is_known(x) and is_float(x) and dtype.name.endswith("fnuz"):
        # These types have no -0; XLA makes NaN of what is rounded to it.
        x = x.astype(jnp.float32)
        x = jnp.where(jnp.abs(x) <= float(jnp.finfo(dtype).smallest_subnormal) / 2, 0, x)
    if dtype.itemsize == 1 and is_float(np.empty(0, dtype)) and call.attr("saturate", 1):
        top = float(jnp.finfo(dtype).max)
        wide = x.astype(np.float32)
        xp = namespace(x)
        # Infinity saturates too; in the types that have no other overflow, it and NaN keep their meaning.
        wide = xp.where(xp.isnan(wide), wide, xp.clip(wide, -top, top))
        return to_type(wide, dtype)
    if dtype.kind in "iu" and is_float(x) and is_known(x):
        return x.astype(np.float64).astype(np.int64).astype(dtype) if dtype.kind == "i" else x.astype(dtype)
    if dtype in BITS and is_float(x):
        return x.astype(np.int32).astype(dtype)  # the lowest bits; jax would saturate
    if dtype.kind in "iu" and dtype.itemsize < 4 and is_float(x):
        # The lowest bits, as a processor gives them; jax would saturate.
        return jnp.where(jnp.abs(x) < 2.0**31, x, 0).astype(jnp.int32).astype(dtype)
    return to_type(x, dtype)


def element_type(call: Call, code: int) -> np.dtype:
    """The dtype of a number of TensorProto.DataType. Raises: FormatError."""
    if code not in DTYPES:
        raise call.error("a type of elements that is not known", received=code, allowed=sorted(DTYPES))
    return DTYPES[code]


def _cast_numbers(call: Call, x: Array) -> Array:
    return cast(call, x, element_type(call, call.required("to")))


_CAST = Operator("Cast", _cast_numbers, style="elementwise", folds=True)


@operator("Cast", style="values")
def _cast(call: Call, x: Item) -> Item:
    if isinstance(x, np.ndarray) and is_text(x):
        return (
            x
            if call.required("to") == TEXT
            else parse_numbers(call, x, element_type(call, call.required("to")))
        )
    return format_numbers(call, x) if call.required("to") == TEXT else apply(_CAST, call, [x])


@elementwise("CastLike", static=(1,))
def _cast_like(call: Call, x: Array, like: Static | Value) -> Array:
    return cast(call, x, np.dtype(np.int64) if like.dtype == object else like.dtype)


@elementwise("BitCast")
def _bit_cast(call: Call, x: Array) -> Array:
    dtype = element_type(call, call.required("to"))
    if is_known(x):
        return x.view(dtype)
    x = x.astype(jnp.uint8) if x.dtype == bool else x
    if dtype.kind == "b":
        return x.astype(bool)
    if dtype.itemsize != x.dtype.itemsize:
        raise call.error("values of 64 bits have 32 here", TraceError, received=dtype)
    return lax.bitcast_convert_type(x, dtype)


@operator("PRelu", style="elementwise", weights=(1,))
def _prelu(call: Call, x: jax.Array, slope: jax.Array) -> jax.Array:
    return jnp.where(x < 0, x * slope, x)


@operator("LeakyRelu", style="elementwise")
def _leaky_relu(call: Call, x: jax.Array) -> jax.Array:
    return F.leaky_relu(x, call.attr("alpha", 0.01))


@operator("Elu", style="elementwise")
def _elu(call: Call, x: jax.Array) -> jax.Array:
    return F.elu(x, call.attr("alpha", 1.0))


@operator("Celu", style="elementwise")
def _celu(call: Call, x: jax.Array) -> jax.Array:
    return F.celu(x, call.attr("alpha", 1.0))


@operator("Selu", style="elementwise")
def _selu(call: Call, x: jax.Array) -> jax.Array:
    return F.selu(x, call.attr("gamma", 1.0507009873554805), call.attr("alpha", 1.6732632423543772))


@operator("HardSigmoid", style="elementwise")
def _hard_sigmoid(call: Call, x: jax.Array) -> jax.Array:
    return F.hardsigmoid(x, call.attr("alpha", 0.2), call.attr("beta", 0.5))


@operator("ThresholdedRelu", style="elementwise")
def _thresholded_relu(call: Call, x: jax.Array) -> jax.Array:
    return jnp.where(x > call.attr("alpha", 1.0), x, 0)  # of NaN 0, where Paddle's has NaN


@operator("Gelu", style="elementwise")
def _gelu(call: Call, x: jax.Array) -> jax.Array:
    return F.gelu(x, call.attr("approximate", "none") == "tanh")


@operator("Swish", style="elementwise")
def _swish(call: Call, x: jax.Array) -> jax.Array:
    return x * F.sigmoid(x * call.attr("alpha", 1.0))


@operator("SwiGLU", style="elementwise")
def _swiglu(call: Call, x: jax.Array, gate: jax.Array) -> jax.Array:
    return x * F.sigmoid(x * call.attr("alpha", 1.0)) * gate


@operator("Shrink", style="elementwise")
def _shrink(call: Call, x: jax.Array) -> jax.Array:
    bias, edge = call.attr("bias", 0.0), call.attr("lambd", 0.5)
    return jnp.where(x < -edge, x + bias, jnp.where(x > edge, x - bias, 0)).astype(x.dtype)


@operator("Dropout", style="elementwise", static=(1, 2))
def _dropout(
    call: Call, x: jax.Array, ratio: Item = None, training: Item = None
) -> tuple[jax.Array, jax.Array]:
    share = float(call.attr("ratio", 0.5) if ratio is None else call.number(ratio, "the ratio"))
    mask = jnp.ones(x.shape, bool)
    if call.runner.training and share > 0:
        return F.dropout(x, share), mask
    if training is not None and bool(call.number(training, "training_mode")) and share > 0:
        raise call.error("a Dropout that always drops", fix="export the model in its inference mode")
    return x, mask
