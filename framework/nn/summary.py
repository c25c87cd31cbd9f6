"""What a layer consists of: output shapes, parameters and operations of its sublayers, without computing anything."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.core.rng import rng_scope
from framework.nn.common import Linear
from framework.nn.conv import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D
from framework.nn.functional_core import State, abstract
from framework.nn.layer import Layer

_CONV, _TRANSPOSED = (Conv1D, Conv2D, Conv3D), (Conv1DTranspose, Conv2DTranspose)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LayerSummary:
    """One sublayer.

    Attributes:
        shapes: Of the arrays that its last call returned.
        params: Numbers in its own parameters, those of its sublayers not counted.
        flops: Of all its calls: two for each multiplication with a weight of a convolution or Linear, else 0.
    """

    name: str
    kind: str
    shapes: tuple[Shape, ...]
    params: int
    trainable_params: int
    flops: int


@dataclass(frozen=True)
class Summary:
    """The sublayers that have parameters or no sublayers of their own, in the order of registration."""

    rows: tuple[LayerSummary, ...]

    @property
    def params(self) -> int:
        return sum(row.params for row in self.rows)

    @property
    def trainable_params(self) -> int:
        return sum(row.trainable_params for row in self.rows)

    @property
    def flops(self) -> int:
        """For the whole input, so proportional to its batch size."""
        return sum(row.flops for row in self.rows)

    def __str__(self) -> str:
        table = [("layer", "type", "output", "params", "FLOPs")]
        for row in self.rows:
            shapes = " ".join(str(list(shape)) for shape in row.shapes) or "not called"
            table.append((row.name or "(itself)", row.kind, shapes, f"{row.params:,}", f"{row.flops:,}"))
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [
            "  ".join([*(c.ljust(w) for c, w in zip(r[:3], widths)), *map(str.rjust, r[3:], widths[3:])])
            for r in table
        ]
        total = f"{self.params:,} parameters, {self.trainable_params:,} of them trained; {self.flops:,} FLOPs"
        return "\n".join([*lines, total])


def summary(
    layer: Layer, input_shape: Sequence[int] | Sequence[Sequence[int]], dtype: str | Sequence[str] = "float32"
) -> Summary:
    """What `layer` consists of for an input of this shape; `print` it for a table. Nothing is computed.

    Args:
        input_shape: [N, H, W, C] or whatever the layer takes; a list of shapes for several inputs.
        dtype: Of the inputs: one for all, or one for each.

    Raises:
        ShapeError: a size is not a positive number, or there are not as many dtypes as shapes.
    """
    shapes: list[Any] = list(input_shape) if _several(input_shape) else [input_shape]
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    sizes = [size for shape in shapes for size in shape]
    if len(dtypes) != len(shapes) or not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
        raise ShapeError(
            "no shape to run the layer on",
            where="summary",
            received=f"input_shape={input_shape}, dtype={dtype}",
            allowed="positive sizes such as (1, 224, 224, 3), and one dtype for all inputs or for each",
        )
    inputs = [jax.ShapeDtypeStruct(tuple(s), np.dtype(d)) for s, d in zip(shapes, dtypes, strict=True)]
    graphdef, params, buffers = abstract(layer)
    seen: dict[str, tuple[tuple[Shape, ...], int]] = {}

    def note(name: str, sublayer: Layer, args: tuple, out: object) -> None:
        shapes = tuple(
            tuple(leaf.shape) for leaf in jax.tree.leaves(out) if isinstance(leaf, (jax.Array, np.ndarray))
        )
        seen[name] = shapes, seen.get(name, ((), 0))[1] + _flops(sublayer, args, shapes)

    def run(params: State, buffers: State, *args: jax.Array) -> None:
        bound = graphdef.bind(params, buffers)  # hooks go on this copy, which ends with the call
        for name, sublayer in bound.named_sublayers(include_self=True):
            sublayer.register_forward_post_hook(functools.partial(note, name))
        with rng_scope(jax.random.key(0)):
            bound(*args)

    jax.eval_shape(run, params, buffers, *inputs)
    rows = []
    for name, sublayer in layer.named_sublayers(include_self=True):
        own = list(sublayer._parameters.values())
        if own or not sublayer._sub_layers:
            outputs, flops = seen.get(name, ((), 0))
            params = sum(parameter.size for parameter in own)
            trained = sum(parameter.size for parameter in own if parameter.trainable)
            rows.append(LayerSummary(name, type(sublayer).__name__, outputs, params, trained, flops))
    return Summary(tuple(rows))


def _several(shape: Sequence[Any]) -> bool:
    return len(shape) > 0 and not isinstance(shape[0], (int, np.integer, str, type(None)))


def _flops(layer: Layer, args: tuple[Any, ...], outputs: tuple[Shape, ...]) -> int:
    if isinstance(layer, Linear):
        return 2 * math.prod(outputs[0]) * layer.in_features
    if isinstance(layer, _CONV):  # each output is a sum over the kernel and the channels of its group
        return 2 * math.prod(outputs[0]) * math.prod(layer._parameters["weight"].shape[1:])
    if isinstance(layer, _TRANSPOSED):  # each input is spread over the kernel and the channels of its group
        return 2 * math.prod(args[0].shape) * math.prod(layer._parameters["weight"].shape[1:])
    return 0
