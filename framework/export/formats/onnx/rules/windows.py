"""Reductions over windows: pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jax.extend.core import JaxprEqn
from jax.typing import DTypeLike

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import is_symbolic
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.contraction import pads_attribute, unless_ones
from framework.export.formats.onnx.rules.elementwise import convert, out_aval
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.rules.shapes import pad_value
from framework.export.formats.onnx.values import Value, inverse


@primitive("reduce_window_max", "reduce_window_sum", "reduce_window_min")
def _window(c: Converter, eqn: JaxprEqn, x: Value) -> Value | None:
    p, x, kind = eqn.params, whole(c, eqn, x), eqn.primitive.name
    dilated = any(n != 1 for n in (*p["base_dilation"], *p["window_dilation"]))
    if dilated and (kind == "reduce_window_sum" or any(n != 1 for n in p["base_dilation"])):
        return None
    if x.dtype.kind != "f":
        if kind == "reduce_window_sum":
            return None
        wide = pool(c, eqn, convert(c, x, np.float32))
        return None if wide is None else convert(c, wide, x.dtype)
    return pool(c, eqn, x)


def pool(c: Converter, eqn: JaxprEqn, x: Value, mean: bool = False, exclusive: bool = False) -> Value | None:
    """MaxPool or AveragePool over the axes that have windows.

    Args:
        mean: Of a sum: leave it divided by the number of taps, or with `exclusive` by those within the input.
    """
    p, kind = eqn.params, eqn.primitive.name
    window, strides, pads = p["window_dimensions"], p["window_strides"], list(p["padding"])
    spatial = [i for i in range(len(window)) if window[i] != 1 or strides[i] != 1 or pads[i] != (0, 0)]
    others = [i for i in range(len(window)) if i not in spatial]
    if any(is_symbolic(n) or n < 0 for i in spatial for n in pads[i]):
        filler = _neutral(kind, x.dtype)
        x = pad_value(c, x, pads, c.graph.constant(filler))
        pads = [(0, 0)] * len(pads)
    while len(others) < 2:  # a batch and channels of 1
        x = c.reshape_value(x, [1, *x.shape])
        window, strides, pads = (1, *window), (1, *strides), [(0, 0), *pads]
        spatial, others = [i + 1 for i in spatial], [0, *(i + 1 for i in others)]
    if not spatial:
        return c.value(c.tensor(x), out_aval(eqn), x.order)
    while len(others) > 2:
        spatial = sorted([*spatial, others.pop(1)])
    axes = [*others, *spatial]
    x_order = _near(x, axes)
    name = c.arrange(x, x_order)
    if kind == "reduce_window_min":
        name = c.graph.add("Neg", name)
    positions = [inverse(x_order)[i] for i in range(2, len(axes))]
    taps = [window[i] for i in positions]
    around = [pads[i] for i in positions]
    attributes: dict[str, object] = {
        "kernel_shape": taps,
        "strides": unless_ones([strides[i] for i in positions]),
        "pads": pads_attribute(around),
    }
    if kind == "reduce_window_sum":
        count = 0 if exclusive else 1
        name = c.graph.add(
            "AveragePool", name, count_include_pad=count if any(map(any, around)) else None, **attributes
        )
        if not mean:
            name = c.graph.add("Mul", name, c.graph.constant(np.asarray(math.prod(taps), x.dtype)))
    else:
        dilation = [p["window_dilation"][i - (len(window) - len(p["window_dilation"]))] for i in positions]
        name = c.graph.add("MaxPool", name, dilations=unless_ones(dilation), **attributes)
        name = c.graph.add("Neg", name) if kind == "reduce_window_min" else name
    aval = out_aval(eqn)
    extra = len(window) - len(aval.shape)
    shape = (1,) * extra + tuple(aval.shape)
    return c.reshape_value(Value(shape, np.dtype(aval.dtype), name, x_order), aval.shape)


def _near(x: Value, axes: Sequence[int]) -> tuple[int, ...]:
    """An order with the first two of `axes` first; that of the value, if it is one."""
    if set(axes[2:]) == set(inverse(x.order)[2:]):
        return x.order
    return inverse(axes)


def _neutral(kind: str, dtype: DTypeLike) -> np.ndarray:
    return np.asarray({"max": -np.inf, "min": np.inf, "sum": 0}[kind.rpartition("_")[2]], dtype)
