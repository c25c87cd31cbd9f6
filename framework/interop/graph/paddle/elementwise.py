"""Paddle's operators that treat all elements alike, and comparisons, casts and numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, rank, registrar
from framework.interop.graph.values import Item, Value, to_jax
from framework.nn import functional as F
from framework.nn.functional.slopes import arctan

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def operands(a: Arguments) -> tuple[Item, Item]:
    """X and Y in one rank: the axes of Y begin at `axis` of X, or are the last ones (-1)."""
    x, y = a["X"], a["Y"]
    axis, missing = int(a.attr("axis", -1)), rank(x) - rank(y)
    behind = missing - axis if axis >= 0 else 0
    if behind > 0 and rank(y):
        y = a.onnx("Unsqueeze", y, np.arange(rank(y), rank(y) + behind))
    return x, y


def _binary(op: str) -> Callable[[Arguments], Item]:
    return lambda a: a.onnx(op, *operands(a))


for _name, _op in {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "maximum": "Max",
    "minimum": "Min",
    "elementwise_pow": "Pow",
    "equal": "Equal",
    "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less_than": "Less",
    "less_equal": "LessOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
}.items():
    operator(_name)(_binary(_op))


@operator("not_equal")
def _not_equal(a: Arguments) -> Item:
    return a.onnx("Not", a.onnx("Equal", *operands(a)))


@operator("elementwise_floordiv")
def _floor_divide(a: Arguments) -> Item:
    x, y = operands(a)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return np.asarray(x // y)  # sizes, which may be symbolic
    return a.elementwise(jnp.floor_divide, x, y)


@operator("elementwise_mod")
def _remainder(a: Arguments) -> Item:
    x, y = operands(a)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return np.asarray(x % y)
    return a.elementwise(jnp.remainder, x, y)


_UNARY: dict[str, Callable[..., jax.Array]] = {
    "relu": F.relu,
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "log": jnp.log,
    "log2": jnp.log2,
    "log10": jnp.log10,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": jax.lax.rsqrt,
    "square": jnp.square,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jax.lax.round,  # halves go away from zero
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": arctan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "erf": jax.lax.erf,
    "reciprocal": jnp.reciprocal,
    "softsign": F.softsign,
    "silu": F.silu,
    "logsigmoid": F.log_sigmoid,
    "tanh_shrink": F.tanhshrink,
    "isnan_v2": jnp.isnan,
    "isinf_v2": jnp.isinf,
    "isfinite_v2": jnp.isfinite,
    "logical_not": jnp.logical_not,
    "bitwise_not": jnp.bitwise_not,
}


def _unary(function: Callable[..., jax.Array], **named: tuple[str, object]) -> Callable[[Arguments], Item]:
    """The rule of a function of one array; `named` are its keywords: (attribute, default)."""

    def rule(a: Arguments) -> Item:
        settings = {keyword: a.attr(name, default) for keyword, (name, default) in named.items()}
        return a.elementwise(functools.partial(function, **settings), a["X"])

    return rule


for _name, _function in _UNARY.items():
    operator(_name)(_unary(_function))
operator("abs")(lambda a: a.onnx("Abs", a["X"]))
operator("sign")(lambda a: a.onnx("Sign", a["X"]))
operator("leaky_relu")(_unary(F.leaky_relu, negative_slope=("alpha", 0.02)))
operator("elu")(_unary(F.elu, alpha=("alpha", 1.0)))
operator("celu")(_unary(F.celu, alpha=("alpha", 1.0)))
operator("selu")(_unary(F.selu, scale=("scale", 1.0507009873554805), alpha=("alpha", 1.6732632423543772)))
operator("gelu")(_unary(F.gelu, approximate=("approximate", False)))
operator("mish")(_unary(F.mish))
operator("softplus")(_unary(F.softplus, beta=("beta", 1.0), threshold=("threshold", 20.0)))
operator("soft_relu")(_unary(F.softplus))
operator("hard_shrink")(_unary(F.hardshrink, threshold=("threshold", 0.5)))
operator("softshrink")(_unary(F.softshrink, threshold=("lambda", 0.5)))
operator("thresholded_relu")(_unary(F.thresholded_relu, threshold=("threshold", 1.0)))


@operator("swish")
def _swish(a: Arguments) -> Item:
    beta = a.attr("beta", 1.0)
    return a.elementwise(lambda x: x * jax.nn.sigmoid(x * beta) if beta != 1 else F.silu(x), a["X"])


@operator("relu6")
def _relu6(a: Arguments) -> Item:
    top = a.attr("threshold", 6.0)
    return a.elementwise(lambda x: F.relu6(x) if top == 6 else jnp.clip(x, 0, top), a["X"])


@operator("brelu", "hard_tanh")
def _brelu(a: Arguments) -> Item:
    low, high = a.attr("t_min", 0.0), a.attr("t_max", 24.0)
    return a.elementwise(lambda x: jnp.clip(x, low, high), a["X"])


@operator("hard_swish")
def _hard_swish(a: Arguments) -> Item:
    top, scale, offset = a.attr("threshold", 6.0), a.attr("scale", 6.0), a.attr("offset", 3.0)
    if (top, scale, offset) == (6, 6, 3):
        return a.elementwise(F.hardswish, a["X"])
    return a.elementwise(lambda x: x * jnp.clip(x + offset, 0, top) / scale, a["X"])


@operator("hard_sigmoid")
def _hard_sigmoid(a: Arguments) -> Item:
    slope, offset = a.attr("slope", 0.2), a.attr("offset", 0.5)
    return a.elementwise(lambda x: F.hardsigmoid(x, slope, offset), a["X"])


@operator("prelu")
def _prelu(a: Arguments) -> Item:
    """`mode`: one slope for all, one for each channel, or one for each element of a sample."""
    x, slope = a.value("X"), a.array("Alpha")
    if a.attr("mode", "all") == "channel":
        last = a.attr("data_format", "NCHW") == "NHWC"
        slope = slope.reshape([-1] if last else [1, -1, *[1] * (x.ndim - 2)])
    elif a.attr("mode", "all") == "all":
        slope = slope.reshape([1] * x.ndim)
    else:
        slope = slope.reshape(1, *x.shape[1:])
    return a.elementwise(lambda x, s: jnp.where(x > 0, x, x * s), x, Value.of(slope))


@operator("scale")
def _scale(a: Arguments) -> Item:
    x, scale, bias = a["X"], a.get("ScaleTensor"), float(a.attr("bias", 0.0))
    factor: Item = a.number_like(x, a.attr("scale", 1.0))
    if isinstance(scale, np.ndarray):
        factor = a.number_like(x, scale.ravel()[0])
    elif scale is not None:
        dtype = x.dtype if isinstance(x, Value) else factor.dtype
        factor = Value.of(to_jax(scale).reshape(()).astype(jax.dtypes.canonicalize_dtype(dtype)))
    shift = a.number_like(x, bias)
    if a.attr("bias_after_scale", True):
        y = x if scale is None and a.attr("scale", 1.0) == 1 else a.onnx("Mul", x, factor)
        return a.onnx("Add", y, shift) if bias else y
    return a.onnx("Mul", a.onnx("Add", x, shift), factor)


@operator("pow")
def _pow(a: Arguments) -> Item:
    power = a.get("FactorTensor")
    return a.onnx("Pow", a["X"], a.number_like(a["X"], a.attr("factor", 1.0)) if power is None else power)


@operator("clip")
def _clip(a: Arguments) -> Item:
    x = a["X"]
    dtype = x.dtype if isinstance(x, Value) else np.asarray(x).dtype
    low, high = a.get("Min"), a.get("Max")
    low = (
        a.number_like(x, _finite(a.attr("min", -math.inf), dtype, False))
        if low is None
        else a.onnx("Squeeze", low)
    )
    high = (
        a.number_like(x, _finite(a.attr("max", math.inf), dtype, True))
        if high is None
        else a.onnx("Squeeze", high)
    )
    return a.onnx("Min", a.onnx("Max", x, low), high)


def _finite(bound: float, dtype: np.dtype, top: bool) -> float:
    """A bound in the range of a type: Paddle writes the largest float32 for none."""
    if dtype.kind not in "iu":
        return bound
    info = np.iinfo(dtype)
    return min(bound, info.max) if top else max(bound, info.min)


@operator("cast")
def _cast(a: Arguments) -> Item:
    x, dtype = a["X"], a.dtype("out_dtype")
    if isinstance(x, np.ndarray):
        return x if x.dtype.kind == "O" else x.astype(dtype)
    return a.elementwise(lambda v: v.astype(jax.dtypes.canonicalize_dtype(dtype)), x)


@operator("where")
def _where(a: Arguments) -> Item:
    return a.onnx("Where", a["Condition"], a["X"], a["Y"])


@operator("sum")
def _sum(a: Arguments) -> Item:
    return functools.reduce(lambda x, y: a.onnx("Add", x, y), a.all("X"))


@operator("dropout", main="Out")
def _dropout(a: Arguments) -> Item:
    rate_input = a.get("Rate")
    rate = a.attr("dropout_prob", 0.5) if rate_input is None else a.call.number(rate_input, "the rate")
    mode = a.attr("dropout_implementation", "downgrade_in_infer")
    if a.call.runner.training and rate:
        name = "upscale_in_train" if mode == "upscale_in_train" else "downscale_in_infer"
        return a.elementwise(lambda x: F.dropout(x, rate, training=True, mode=name), a["X"])
    return a["X"] if mode == "upscale_in_train" else a.onnx("Mul", a["X"], a.number_like(a["X"], 1 - rate))


operator("combine")(lambda a: a.all("X"))


@operator("take_apart")
def _take_apart(a: Arguments) -> list[Item]:
    return a.all("X")


@operator("take_one")
def _take_one(a: Arguments) -> Item:
    return a.all("X")[int(a.attr("at", 0))]


operator("assign", "share_data", "memcpy", "memcpy_d2h", "memcpy_h2d")(lambda a: a["X"])


@operator("increment")
def _increment(a: Arguments) -> Item:
    return a.onnx("Add", a["X"], a.number_like(a["X"], a.attr("step", 1.0)))
