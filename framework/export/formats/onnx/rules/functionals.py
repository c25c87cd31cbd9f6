"""Functions of framework.nn.functional, and of jax.nn and jax.numpy, that are one operator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn, Literal

from framework.export.formats.onnx.convert import Converter, closed
from framework.export.formats.onnx.graph import Size, is_symbolic
from framework.export.formats.onnx.registry import PRIMITIVES, Rule, function
from framework.export.formats.onnx.rules.contraction import pads_attribute, transposed_geometry, unless_ones
from framework.export.formats.onnx.rules.elementwise import out_aval
from framework.export.formats.onnx.rules.reduction import argument, whole
from framework.export.formats.onnx.rules.windows import pool
from framework.export.formats.onnx.values import Value, constant, same
from framework.nn.functional.lowering import settings_of


def inner(eqn: JaxprEqn) -> list[JaxprEqn]:
    """The equations of a jitted function."""
    return closed(eqn.params["jaxpr"])[0].eqns


def equations(eqn: JaxprEqn, name: str) -> Iterator[JaxprEqn]:
    """Those equations of a jitted function, and of what it calls, that are this primitive."""
    for nested in inner(eqn):
        if nested.primitive.name == name:
            yield nested
        elif "jaxpr" in nested.params and nested.primitive.name in ("jit", "pjit"):
            yield from equations(nested, name)


def literal(eqn: JaxprEqn, name: str) -> float | None:
    """The number in the first equation of this primitive, where one of its operands is one."""
    for equation in equations(eqn, name):
        for atom in equation.invars:
            if isinstance(atom, Literal):
                return float(atom.val)  # type: ignore[arg-type]
    return None


def described(eqn: JaxprEqn, operation: str) -> dict[str, Any] | None:
    """What `lowering.describe` says of the function."""
    for nested in inner(eqn):
        settings = settings_of(str(nested.source_info.name_stack), operation)
        if settings is not None:
            return settings
    return None


# -- activations ------------------------------------------------------------------------------------------------------


def _one(op: str) -> Rule:
    def rule(c: Converter, eqn: JaxprEqn, *args: Value) -> Value | None:
        if len(args) != 1 or args[0].dtype.kind != "f":
            return None
        return c.elementwise(op, args, out_aval(eqn))

    return rule


for _name, _op in {
    "relu": "Relu",
    "hardswish": "HardSwish",
    "hard_silu": "HardSwish",
    "hard_swish": "HardSwish",
    "mish": "Mish",
    "softsign": "Softsign",
    "soft_sign": "Softsign",
}.items():
    function(_name)(_one(_op))


@function("hardsigmoid")
def _hardsigmoid(c: Converter, eqn: JaxprEqn, x: Value) -> Value | None:
    slope, offset = literal(eqn, "mul"), literal(eqn, "add")
    if slope is None or offset is None:
        return None
    return c.elementwise("HardSigmoid", [x], out_aval(eqn), alpha=slope, beta=offset)


@function("leaky_relu")
def _leaky_relu(c: Converter, eqn: JaxprEqn, x: Value, *rest: Value) -> Value | None:
    slope = literal(eqn, "mul") if not rest else float(rest[0].elements) if rest[0].is_constant else None
    return None if slope is None else c.elementwise("LeakyRelu", [x], out_aval(eqn), alpha=slope)


@function("prelu")
def _prelu(c: Converter, eqn: JaxprEqn, x: Value, weight: Value) -> Value:
    x = whole(c, eqn, x)
    slope = c.reshape_value(weight, [*[1] * (len(x.shape) - 1), weight.shape[0] if weight.shape else 1])
    return c.value(c.graph.add("PRelu", c.tensor(x), c.arrange(slope, x.order)), out_aval(eqn), x.order)


@function("gelu")
def _gelu(c: Converter, eqn: JaxprEqn, x: Value, *rest: Value) -> Value | None:
    """In the form that runtimes know as one operator; opset 20 has it, and ours is 18 and up."""
    if rest or next(equations(eqn, "erf"), None) is None or x.dtype.kind != "f":
        return None
    aval = out_aval(eqn)
    erf = c.elementwise("Erf", [c.elementwise("Div", (x, c.scalar(math.sqrt(2), x.dtype)), aval)], aval)
    erf = c.elementwise("Mul", (x, c.elementwise("Add", (erf, c.scalar(1, x.dtype)), aval)), aval)
    return c.elementwise("Mul", (erf, c.scalar(0.5, x.dtype)), aval)


@function("clip")
def _clip(c: Converter, eqn: JaxprEqn, *args: Value) -> Value | None:
    if len(args) != 3 or any(arg.shape or arg.dtype != args[0].dtype for arg in args[1:]):
        return None
    if args[0].dtype.kind not in "fi" or args[0].dtype.itemsize < 4:
        return None
    return c.elementwise("Clip", args, out_aval(eqn))


@function("floor_divide")
def _floor_divide(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value | None:
    aval = out_aval(eqn)
    if x.dtype != y.dtype:
        return None
    if x.dtype.kind == "f":
        return c.elementwise("Floor", [c.elementwise("Div", (x, y), aval)], aval)
    rest = c.elementwise("Mod", (x, y), aval)
    return c.elementwise("Div", (c.elementwise("Sub", (x, rest), aval), y), aval)


@function("remainder")
def _remainder(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value | None:
    alike = x.dtype == y.dtype and x.dtype.kind in "iu"
    return c.elementwise("Mod", (x, y), out_aval(eqn)) if alike else None


@function("argmax_last")
def _argmax_last(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    x = whole(c, eqn, x)
    return argument(c, x, len(x.shape) - 1, "ArgMax", out_aval(eqn))


# -- products ---------------------------------------------------------------------------------------------------------


@function("_linear")
def _linear(c: Converter, eqn: JaxprEqn, x: Value, weight: Value, *bias: Value) -> Value | None:
    if x.dtype != np.float32:
        return None
    x, weight, aval = whole(c, eqn, x), whole(c, eqn, weight, 1), out_aval(eqn)
    if len(x.shape) == 2 and bias:
        return c.value(c.graph.add("Gemm", c.plain(x), c.plain(weight), c.plain(bias[0])), aval)
    name = c.graph.add("MatMul", c.plain(x), c.plain(weight))
    if bias:
        name = c.graph.add("Add", name, c.plain(bias[0]))
    return c.value(name, aval)


@function("_conv2d")
def _conv2d(c: Converter, eqn: JaxprEqn, x: Value, weight: Value, *bias: Value) -> Value | None:
    """The convolution with its bias as its third input."""
    jaxpr = closed(eqn.params["jaxpr"])[0]
    conv = next(equations(eqn, "conv_general_dilated"), None)
    if conv is None or conv not in jaxpr.eqns or conv.invars[0] is not jaxpr.invars[0]:
        return None
    order = (2, 3, 1, 0)
    kernel = Value(
        tuple(weight.shape[axis] for axis in order),
        weight.dtype,
        weight.name,
        tuple(weight.order[axis] for axis in order),
        weight.array,
    )
    result = PRIMITIVES["conv_general_dilated"](c, conv, x, kernel)
    if bias and isinstance(result, Value):
        c.graph.nodes[-1].inputs.append(c.plain(bias[0]))
    return result  # type: ignore[return-value]


@function("_conv2d_transpose")
def _conv2d_transpose(c: Converter, eqn: JaxprEqn, x: Value, weight: Value, *bias: Value) -> Value | None:
    """With the weight as it is: [in, out / groups, kh, kw]."""
    conv = next(equations(eqn, "conv_general_dilated"), None)
    kernel = weight.shape[2:]
    strides, dilation, groups = kernel, [1, 1], 1  # as of windows that do not overlap
    pads, extra = [(0, 0), (0, 0)], [0, 0]
    if conv is not None:
        strides, dilation = conv.params["lhs_dilation"], conv.params["rhs_dilation"]
        groups = conv.params["feature_group_count"]
        geometry = transposed_geometry(kernel, dilation, conv.params["padding"])
        if geometry is None:
            return None
        pads, extra = geometry
    x = whole(c, eqn, x)
    name = c.graph.add(
        "ConvTranspose",
        c.place(x, (0, 3, 1, 2), x.shape),
        c.plain(weight),
        *(c.plain(one) for one in bias),
        kernel_shape=list(kernel),
        strides=unless_ones(strides),
        pads=pads_attribute(pads),
        dilations=unless_ones(dilation),
        output_padding=list(extra) if any(extra) else None,
        group=groups if groups > 1 else None,
    )
    return c.value(name, out_aval(eqn), (0, 2, 3, 1))


# -- pooling and norms ------------------------------------------------------------------------------------------------


@function("_avg_pool2d")
def _avg_pool2d(c: Converter, eqn: JaxprEqn, x: Value) -> Value | None:
    windows = list(equations(eqn, "reduce_window_sum"))
    pads = [window.params["padding"] for window in windows]
    if not windows or x.dtype.kind != "f" or any(is_symbolic(n) for p in pads for edge in p for n in edge):
        return None
    if len(windows) == 1:
        # The other window of an exclusive mean may be a constant; then padding counts.
        plain = not any(n for edge in pads[0] for n in edge)
        return pool(c, windows[0], whole(c, eqn, x), mean=True) if plain else None
    return pool(c, windows[0], whole(c, eqn, x), mean=True, exclusive=True) if pads[0] == pads[1] else None


@function("_layer_norm")
def _layer_norm(c: Converter, eqn: JaxprEqn, x: Value, *affine: Value) -> Value | None:
    sums = next(equations(eqn, "reduce_sum"), None)
    if (
        sums is None
        or x.dtype != np.float32
        or any(is_symbolic(x.shape[axis]) for axis in sums.params["axes"])
    ):
        return None
    epsilon = _epsilon(eqn)
    names = closed(eqn.params["jaxpr"])[0].debug_info.arg_names or ()
    if epsilon is None or len(names) != 1 + len(affine):
        return None
    x, axes = whole(c, eqn, x), sums.params["axes"]
    shape = [x.shape[axis] for axis in axes]
    affine_of = dict(zip(names[1:], affine))
    weight = affine_of.get("weight", constant(np.ones(shape, np.float32)))
    inputs = [c.plain(c.reshape_value(weight, shape) if len(shape) > 1 else weight)]
    if "bias" in affine_of:
        inputs.append(
            c.plain(c.reshape_value(affine_of["bias"], shape) if len(shape) > 1 else affine_of["bias"])
        )
    name = c.graph.add("LayerNormalization", c.plain(x), *inputs, axis=-len(shape), epsilon=epsilon)
    return c.value(name, out_aval(eqn))


def _epsilon(eqn: JaxprEqn) -> float | None:
    """The number that is added before the root."""
    roots = next(equations(eqn, "rsqrt"), None)
    for equation in equations(eqn, "add"):
        if roots is not None and equation.outvars[0] is roots.invars[0]:
            return next((float(a.val) for a in equation.invars if isinstance(a, Literal)), None)  # type: ignore[arg-type]
    return None


# -- resizing ---------------------------------------------------------------------------------------------------------


@function("_interpolate")
def _interpolate(c: Converter, eqn: JaxprEqn, x: Value) -> Value | None:
    settings, aval = described(eqn, "interpolate"), out_aval(eqn)
    if settings is None or x.dtype.kind != "f":
        return None
    x, axes = whole(c, eqn, x), settings["axes"]
    kinds = {(axis["kind"], axis["corners"], axis["mode"]) for axis in axes}
    if len(kinds) != 1:
        return None
    ((kind, corners, mode),) = kinds
    rank = len(x.shape)
    channels_first = (0, *range(2, rank), 1)
    stored = [0, rank - 1, *range(1, rank - 1)]
    name = c.arrange(x, channels_first)
    where = "align_corners" if corners else "asymmetric" if kind == "nearest" or mode == 1 else "half_pixel"
    if kind == "cubic" and not corners:
        where = "half_pixel"
    if where == "half_pixel" and any(_may_be_one(aval.shape[axis["axis"]]) for axis in axes):
        where = "pytorch_half_pixel"
    attributes = {
        "mode": kind,
        "coordinate_transformation_mode": where,
        "nearest_mode": "floor" if kind == "nearest" else None,
        "cubic_coeff_a": -0.75 if kind == "cubic" else None,
    }
    ratios = {axis["axis"]: axis["ratio"] for axis in axes}
    factors = {axis: _factor(x.shape[axis], aval.shape[axis]) for axis in stored}
    if not corners and all(
        factor is not None and (ratios.get(axis) is None or abs(ratios[axis] * factor - 1) < 1e-6)
        for axis, factor in factors.items()
    ):
        scales = c.graph.constant(np.array([factors[axis] for axis in stored], np.float32))
        return c.value(c.graph.add("Resize", name, "", scales, **attributes), aval, channels_first)
    if not corners and any(
        ratio is not None and not _follows(ratio, x.shape[axis], aval.shape[axis])
        for axis, ratio in ratios.items()
    ):
        return None  # a scale that is not that of the sizes
    sizes = [aval.shape[axis] for axis in stored]
    return c.value(
        c.graph.add("Resize", name, "", "", c.graph.sizes(sizes), **attributes), aval, channels_first
    )


def _may_be_one(size: Size) -> bool:
    try:
        return not size > 1
    except Exception:  # jax cannot decide it
        return True


def _factor(size: Size, out: Size) -> float | None:
    """The whole number of which `out` is a multiple of `size`, or the part that is exact."""
    if same(size, out):
        return 1.0
    if isinstance(size, int) and isinstance(out, int):
        return float(out // size) if out % size == 0 else None
    return next((float(k) for k in (2, 3, 4, 5, 6, 8, 16, 32) if same(out, size * k)), None)


def _follows(ratio: float, size: Size, out: Size) -> bool:
    """Whether a ratio is that of the sizes, as float32 has it."""
    if ratio == 0:
        return same(out, 1)
    if isinstance(size, int) and isinstance(out, int):
        return out == 1 or ratio == float(np.float32(size) / np.float32(out))
    return same(size, out * round(ratio)) if ratio >= 1 else same(out, size * round(1 / ratio))
