"""Lower a pure function to a portable program: StableHLO for several platforms, with symbolic sizes.

The weights are arguments, so a program is some tens of kilobytes and one file of weights serves programs of several
precisions. Both forms of an operation that is written differently on a CPU (framework/nn/functional/lowering.py) are
in the program; each platform compiles its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

from framework.core.dtypes import Precision, precision_scope
from framework.core.errors import ShapeError
from framework.core.trace import explain_trace_errors
from framework.nn import functional_core
from framework.nn.functional.lowering import platform_scope
from framework.nn.layer import Layer

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True)
class TensorSpec:
    """Shape and dtype of one input; a string is a symbolic size such as "n" or "32*h"."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        try:
            np.dtype(self.dtype)
        except TypeError:
            raise ShapeError(
                "unknown dtype of an input",
                received=repr(self.dtype),
                allowed="float32, int32, uint8, bool, …",
            ) from None
        try:
            if not all(isinstance(n, str) or (isinstance(n, int) and n > 0) for n in self.shape):
                raise ValueError("a size is neither a positive number nor a name")
            export.symbolic_shape(",".join(map(str, self.shape)))
        except ValueError as error:
            raise ShapeError(
                "an input size is positive or symbolic",
                received=f"{self.shape}: {str(error).splitlines()[0]}",
                allowed='1, "n", "32*h"',
            ) from None


_MULTIPLE = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)")


def size_fits(size: int, dim: Any, sizes: dict[str, int]) -> bool:
    """Whether an array may have `size` where a program or a spec declares `dim`.

    A number is itself; "n" and "32*h" are any positive size and any positive multiple, the same for the same name:
    `sizes` collects what the names stand for. Other expressions ("2*h + 1") are left to jax, which checks them all.
    """
    if isinstance(dim, int):
        return size == dim
    found = _MULTIPLE.fullmatch(str(dim).replace(" ", ""))
    if size <= 0 or not found:
        return size > 0
    factor = int(found[1] or 1)
    return size % factor == 0 and sizes.setdefault(found[2], size // factor) == size // factor


def lower_program(
    fn: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    weights: Mapping[str, Any],
    inputs: Mapping[str, TensorSpec],
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
    constraints: Sequence[str] = (),
) -> export.Exported:
    """`fn(weights, inputs) -> outputs`, flat dicts by name, as one program for all `platforms`.

    `constraints` such as "w >= 16" say what holds for the symbolic sizes; the caller has to keep to them.

    Raises:
        TraceError: the function branches on a value, or on a size that is symbolic; it names the line.
    """
    try:
        scope = export.SymbolicScope(tuple(constraints))
    except ValueError as error:
        raise ShapeError(
            "not a constraint on symbolic sizes",
            received=f"{list(constraints)}: {str(error).splitlines()[0]}",
            allowed='"w >= 16", "mod(h, 32) == 0"',
        ) from None
    arguments = {
        name: jax.ShapeDtypeStruct(
            export.symbolic_shape(",".join(map(str, spec.shape)), scope=scope), np.dtype(spec.dtype)
        )
        for name, spec in inputs.items()
    }
    shapes = {name: jax.ShapeDtypeStruct(np.shape(w), w.dtype) for name, w in weights.items()}

    # A function of its own: jit would reuse the trace of `fn` that another precision or platform left.
    def fresh(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return fn(weights, inputs)

    with (
        platform_scope("any" if len(platforms) > 1 else "cpu" if "cpu" in platforms else "other"),
        precision_scope(precision),
        explain_trace_errors(),
    ):
        return export.export(jax.jit(fresh), platforms=platforms)(shapes, arguments)


def lower_layer(
    layer: Layer,
    inputs: Mapping[str, TensorSpec],
    before: Callable[[dict[str, Any]], tuple] | None = None,
    after: Callable[[Any], dict[str, Any]] | None = None,
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
    method: str = "__call__",
    constraints: Sequence[str] = (),
) -> tuple[export.Exported, dict[str, np.ndarray]]:
    """Export a layer in eval mode, by its call or another `method`; returns (program, weights).

    The layer itself stays in the mode it was in.

    `before(inputs)` gives the positional arguments of the layer (default: the inputs in order) and `after(out)` the
    named outputs (default: {"output": out}); both become part of the program.

    Kernels of convolutions (`Layer.conv_kernels`) are HWIO in `weights` and not OIHW: that is what a convolution reads,
    and weights, being arguments, would be transposed in every call (CPU time of PP-YOLOE+ s: 112 to 105 ms, of
    PicoDet-s: 10.9 to 8.6).
    """
    modes = [(sublayer, sublayer.training) for sublayer in layer.sublayers(include_self=True)]
    try:
        graphdef, params, buffers = functional_core.split(layer.eval())
    finally:
        for sublayer, training in modes:
            sublayer.training = training
    named = layer.named_sublayers(include_self=True)
    kernels = {f"{name}.{own}".lstrip(".") for name, sublayer in named for own in sublayer.conv_kernels}
    order = tuple(inputs)  # jit hands a dict over in the order of its sorted names

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        args = before(inputs) if before else tuple(inputs[name] for name in order)
        out, _ = functional_core.apply(
            graphdef,
            {n: weights[n].transpose(3, 2, 0, 1) if n in kernels else weights[n] for n in params},
            {n: weights[n] for n in buffers},
            None,
            *args,
            method=method,
        )
        return after(out) if after else {"output": out}

    weights = {name: np.asarray(value) for name, value in {**params, **buffers}.items()}
    weights |= {name: np.ascontiguousarray(weights[name].transpose(2, 3, 1, 0)) for name in kernels}
    return lower_program(fn, weights, inputs, platforms, precision, constraints), weights
