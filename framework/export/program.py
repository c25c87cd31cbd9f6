"""Lower a pure function to a portable program: StableHLO for several platforms, with symbolic sizes.

The weights are arguments, so a program is some tens of kilobytes and one file of weights serves programs of several
precisions. Both forms of an operation that is written differently on a CPU (framework/nn/functional/lowering.py) are
in the program; each platform compiles its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

from framework.core.dtypes import Precision, precision_scope
from framework.core.errors import ShapeError, TraceError
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
        np.dtype(self.dtype)
        if not all(isinstance(n, str) or n > 0 for n in self.shape):
            raise ShapeError(
                "an input size is positive or symbolic", received=self.shape, allowed='1, "n", "32*h"'
            )


def lower_program(
    fn: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    weights: Mapping[str, Any],
    inputs: Mapping[str, TensorSpec],
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
) -> export.Exported:
    """`fn(weights, inputs) -> outputs`, flat dicts by name, as one program for all `platforms`.

    Raises:
        TraceError: the function branches on a value or does something that cannot be exported.
    """
    scope = export.SymbolicScope()
    arguments = {
        name: jax.ShapeDtypeStruct(
            export.symbolic_shape(",".join(map(str, spec.shape)), scope=scope), np.dtype(spec.dtype)
        )
        for name, spec in inputs.items()
    }
    shapes = {name: jax.ShapeDtypeStruct(np.shape(w), w.dtype) for name, w in weights.items()}
    with (
        platform_scope("any" if len(platforms) > 1 else _written_for(platforms[0])),
        precision_scope(precision),
    ):
        try:
            return export.export(jax.jit(fn), platforms=platforms)(shapes, arguments)
        except jax.errors.ConcretizationTypeError as error:
            raise TraceError(
                "the model cannot be exported: Python asked for the value of an array",
                received=str(error).splitlines()[0],
                allowed="operations on arrays; branches on shapes and on plain Python attributes",
                fix="use framework.jit.cond / while_loop, or decide before the call",
            ) from error


def _written_for(platform: str) -> Any:
    return "cpu" if platform == "cpu" else "other"


def lower_layer(
    layer: Layer,
    inputs: Mapping[str, TensorSpec],
    before: Callable[[dict[str, Any]], tuple] | None = None,
    after: Callable[[Any], dict[str, Any]] | None = None,
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
    method: str = "__call__",
) -> tuple[export.Exported, dict[str, np.ndarray]]:
    """Export a layer in eval mode, by its call or another `method`; returns (program, weights).

    `before(inputs)` gives the positional arguments of the layer (default: the inputs in order) and `after(out)` the
    named outputs (default: {"output": out}); both become part of the program.
    """
    graphdef, params, buffers = functional_core.split(layer.eval())

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        args = before(inputs) if before else tuple(inputs.values())
        out, _ = functional_core.apply(
            graphdef,
            {n: weights[n] for n in params},
            {n: weights[n] for n in buffers},
            None,
            *args,
            method=method,
        )
        return after(out) if after else {"output": out}

    weights = {name: np.asarray(value) for name, value in {**params, **buffers}.items()}
    return lower_program(fn, weights, inputs, platforms, precision), weights
