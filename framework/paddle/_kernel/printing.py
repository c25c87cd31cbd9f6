"""How Tensors print: `repr`, `str` and `paddle.set_printoptions`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jax.core import Tracer

from framework.paddle._kernel.tensor import Parameter, Tensor


@dataclass
class PrintSettings:
    """`precision` digits after the point; more than `threshold` elements are summarised to `edgeitems` at each end of
    an axis; `linewidth` columns; `sci_mode` writes 1.5e+00."""

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    sci_mode: bool = False
    linewidth: int = 80


options = PrintSettings()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    sci_mode: bool | None = None,
    linewidth: int | None = None,
) -> None:
    """Change how Tensors print; None leaves an option as it is."""
    given = dict(
        precision=precision, threshold=threshold, edgeitems=edgeitems, sci_mode=sci_mode, linewidth=linewidth
    )
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)


def _number(value: np.generic | np.ndarray) -> str:
    if value.dtype.kind == "f":
        number = float(value)
        if options.sci_mode:
            return f"{number:.{options.precision}e}"
        if math.isnan(number):
            return "nan"
        if math.isinf(number) or number == math.ceil(number):
            return f"{number:.0f}."
        return f"{number:.{options.precision}f}"
    return str(value.item())


def _shown(values: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    for axis, size in enumerate(values.shape):
        if size > 2 * options.edgeitems:
            ends = [*range(options.edgeitems), *range(size - options.edgeitems, size)]
            values = values.take(ends, axis)
    return values


class _Layout:
    """Elements padded to one width; `signed` leaves a column for the minus, in front of -0. too, as Paddle does."""

    def __init__(self, values: np.ndarray, summary: bool) -> None:
        self.summary = summary
        shown = _shown(values) if summary else values
        self.width = max((len(_number(value)) for value in shown.reshape(-1)), default=0)
        self.signed = values.dtype != bool and bool((shown < 0).any())  # complex numbers: by the real part

    def item(self, value: np.generic) -> str:
        text = _number(value)
        if self.signed and not np.less(value, 0) and len(text) < self.width:
            text = " " + text
        return text.ljust(self.width)

    def text(self, values: np.ndarray, indent: int) -> str:
        if values.ndim == 0:
            return _number(values[()])
        if values.size == 0:
            return "[]"
        cut = self.summary and values.shape[0] > 2 * options.edgeitems
        edge = options.edgeitems
        if values.ndim == 1:
            items = [self.item(v) for v in ((*values[:edge], *values[-edge:]) if cut else values)]
            if cut:
                items.insert(edge, "...")
            count = max(1, (options.linewidth - indent + 1) // (self.width + 2))
            lines = [", ".join(items[i : i + count]) for i in range(0, len(items), count)]
            return "[" + (",\n" + " " * indent).join(lines) + "]"
        parts = [self.text(v, indent + 1) for v in ((*values[:edge], *values[-edge:]) if cut else values)]
        if cut:
            parts.insert(edge, "...")
        return "[" + ("," + "\n" * (values.ndim - 1) + " " * indent).join(parts) + "]"


def text_of(values: np.ndarray, indent: int = 8) -> str:
    """The numbers of an array in brackets; lines after the first are indented."""
    if values.dtype.name in ("bfloat16", "float16"):
        values = values.astype(np.float32)
    return _Layout(values, values.size > options.threshold).text(values, indent)


def tensor_text(tensor: Tensor) -> str:
    """What `repr` and `str` of a Tensor give."""
    value = tensor._value
    head = (
        f"Tensor(shape={tensor.shape}, dtype={tensor.dtype.name}, place={tensor.place}, "
        f"stop_gradient={tensor.stop_gradient},\n       "
    )
    if isinstance(tensor, Parameter):
        head = "Parameter containing:\n" + head
    numbers = "values known when the compiled function runs" if isinstance(value, Tracer) else None
    return f"{head}{numbers or text_of(np.asarray(value))})"


Tensor.__repr__ = Tensor.__str__ = tensor_text  # type: ignore[method-assign]
