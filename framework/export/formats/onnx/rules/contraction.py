"""Convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Size, is_symbolic
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.elementwise import out_aval
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.rules.shapes import pad_value
from framework.export.formats.onnx.values import Value, inverse

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def pads_attribute(pads: Sequence[tuple[int, int]]) -> list[int] | None:
    """What is before all axes and then behind all of them, as ONNX has it; None where there is nothing."""
    flat = [low for low, _ in pads] + [high for _, high in pads]
    return flat if any(flat) else None


def unless_ones(numbers: Sequence[int]) -> list[int] | None:
    """Strides and dilations, None where they are the default."""
    return list(numbers) if any(n != 1 for n in numbers) else None


@primitive("conv_general_dilated")
def _conv(c: Converter, eqn: JaxprEqn, x: Value, kernel: Value) -> Value | None:
    p = eqn.params
    numbers, pads = p["dimension_numbers"], list(p["padding"])
    if p["batch_group_count"] != 1:
        return None
    weight = c.place(kernel, numbers.rhs_spec, eqn.invars[1].aval.shape)  # type: ignore[attr-defined]
    sizes = [eqn.invars[1].aval.shape[axis] for axis in numbers.rhs_spec[2:]]  # type: ignore[attr-defined]
    if any(d != 1 for d in p["lhs_dilation"]):
        return _transposed(c, eqn, x, kernel, sizes)
    x = whole(c, eqn, x)
    if any(is_symbolic(n) or n < 0 for pair in pads for n in pair):
        edges: list[tuple[Size, Size]] = [(0, 0)] * len(x.shape)
        for axis, pair in zip(numbers.lhs_spec[2:], pads):
            edges[axis] = pair
        x, pads = pad_value(c, x, edges), [(0, 0)] * len(pads)
    name = c.graph.add(
        "Conv",
        c.arrange(x, inverse(numbers.lhs_spec)),
        weight,
        kernel_shape=sizes,
        strides=unless_ones(p["window_strides"]),
        pads=pads_attribute(pads),
        dilations=unless_ones(p["rhs_dilation"]),
        group=p["feature_group_count"] if p["feature_group_count"] > 1 else None,
    )
    return c.value(name, out_aval(eqn), inverse(numbers.out_spec))


def _transposed(c: Converter, eqn: JaxprEqn, x: Value, kernel: Value, sizes: list[int]) -> Value | None:
    """A convolution over an input with zeros in between is a transposed one with the kernel turned around."""
    p = eqn.params
    numbers, groups = p["dimension_numbers"], p["feature_group_count"]
    if kernel.array is None or any(s != 1 for s in p["window_strides"]):
        return None
    weight = kernel.elements.transpose(numbers.rhs_spec)  # [out, in / groups, ...]
    weight = np.flip(weight, tuple(range(2, weight.ndim)))
    out, per_group = weight.shape[:2]
    weight = weight.reshape(groups, out // groups, per_group, *sizes).swapaxes(1, 2)
    weight = np.ascontiguousarray(weight.reshape(groups * per_group, out // groups, *sizes))
    geometry = transposed_geometry(sizes, p["rhs_dilation"], p["padding"])
    if geometry is None:
        return None
    pads, extra = geometry
    name = c.graph.add(
        "ConvTranspose",
        c.place(x, numbers.lhs_spec, eqn.invars[0].aval.shape),  # type: ignore[attr-defined]
        c.graph.constant(weight),
        kernel_shape=sizes,
        strides=unless_ones(p["lhs_dilation"]),
        pads=pads_attribute(pads),
        dilations=unless_ones(p["rhs_dilation"]),
        output_padding=list(extra) if any(extra) else None,
        group=groups if groups > 1 else None,
    )
    return c.value(name, out_aval(eqn), inverse(numbers.out_spec))


def transposed_geometry(
    kernel: Sequence[int], dilation: Sequence[int], edges: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[int]] | None:
    """(pads, output_padding) of the transposed convolution whose spread input is padded by `edges`."""
    reach = [(k - 1) * d for k, d in zip(kernel, dilation)]
    pads = [(r - low, r - high) for r, (low, high) in zip(reach, edges)]
    if any(low < 0 for low, _ in pads):
        return None
    return [(low, max(high, 0)) for low, high in pads], [max(-high, 0) for _, high in pads]


@primitive("dot_general")
def _dot(c: Converter, eqn: JaxprEqn, x: Value, y: Value) -> Value:
    (x_sum, y_sum), (x_batch, y_batch) = eqn.params["dimension_numbers"]
    x, y, aval = whole(c, eqn, x), whole(c, eqn, y, 1), out_aval(eqn)
    x_free = [axis for axis in range(len(x.shape)) if axis not in (*x_sum, *x_batch)]
    y_free = [axis for axis in range(len(y.shape)) if axis not in (*y_sum, *y_batch)]
    if not x_batch and len(x_sum) == len(y_free) == 1 and len(y.shape) == 2 and x_free:
        left = c.place(x, [*x_free, *x_sum], x.shape)
        return c.value(c.graph.add("MatMul", left, c.place(y, [*y_sum, *y_free], y.shape)), aval)
    if not x_batch and len(y_sum) == len(x_free) == 1 and len(x.shape) == 2 and len(y_free) > 1:
        # [k, m] with [..., k, ...]: the other way round, and the axis of x_free comes last.
        right = c.place(y, [*y_free, *y_sum], y.shape)
        name = c.graph.add("MatMul", right, c.place(x, [*x_sum, *x_free], x.shape))
        return c.value(name, aval, (len(y_free), *range(len(y_free))))
    if len(x_free) == len(y_free) == len(x_sum) == 1:
        as_it_is = ([*x_batch, *x_free, *x_sum], [*y_batch, *y_sum, *y_free])
        swapped = ([*y_batch, *y_free, *y_sum], [*x_batch, *x_sum, *x_free])
        many = len(x_batch)
        if _moves(y, swapped[0]) + _moves(x, swapped[1]) < _moves(x, as_it_is[0]) + _moves(y, as_it_is[1]):
            names = c.place(y, swapped[0], y.shape), c.place(x, swapped[1], x.shape)
            return c.value(c.graph.add("MatMul", *names), aval, (*range(many), many + 1, many))
        names = c.place(x, as_it_is[0], x.shape), c.place(y, as_it_is[1], y.shape)
        return c.value(c.graph.add("MatMul", *names), aval)
    x_letters, y_letters, letters = [""] * len(x.shape), [""] * len(y.shape), iter(_LETTERS)
    for i, j in (*zip(x_batch, y_batch), *zip(x_sum, y_sum)):
        x_letters[i] = y_letters[j] = next(letters)
    for i in x_free:
        x_letters[i] = next(letters)
    for j in y_free:
        y_letters[j] = next(letters)
    out = [x_letters[i] for i in (*x_batch, *x_free)] + [y_letters[j] for j in y_free]
    left, right = ("".join(part) for part in (_stored(x_letters, x), _stored(y_letters, y)))
    equation = f"{left},{right}->{''.join(out)}"
    return c.value(c.graph.add("Einsum", c.tensor(x), c.tensor(y), equation=equation), aval)


def _moves(value: Value, axes: Sequence[int]) -> bool:
    """Whether a tensor has to be transposed to have these axes one after the other."""
    return not value.is_constant and value.order != inverse(axes)


def _stored(letters: list[str], value: Value) -> list[str]:
    return [letters[axis] for axis in inverse(value.order)]
