"""What a layer consists of: output shapes, parameters and operations of its sublayers, without computing anything."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.core.rng import rng_scope
from framework.core.types import PyTree
from framework.nn.common import Linear
from framework.nn.conv import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from framework.nn.functional_core import State, abstract
from framework.nn.layer import Layer

_CONV, _TRANSPOSED = (Conv1D, Conv2D, Conv3D), (Conv1DTranspose, Conv2DTranspose, Conv3DTranspose)

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

    def __getitem__(self, name: str) -> int:
        """Paddle's entries: "total_params" and "trainable_params"."""
        entries = {"total_params": self.params, "trainable_params": self.trainable_params}
        return entries[name]

    def __str__(self) -> str:
        table = [("layer", "type", "output", "params", "FLOPs")]
        for row in self.rows:
            shapes = " ".join(str(list(shape)) for shape in row.shapes) or "not called"
            table.append((row.name or "(itself)", row.kind, shapes, f"{row.params:,}", f"{row.flops:,}"))
        lines = format_table(table)
        total = f"{self.params:,} parameters, {self.trainable_params:,} of them trained; {self.flops:,} FLOPs"
        return "\n".join([*lines, total])


def format_table(table: Sequence[tuple[str, ...]], left: int = 3) -> list[str]:
    """Lines of aligned columns, the first `left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(*table)]
    return [
        "  ".join([*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])])
        for row in table
    ]


Sizes = Sequence[int | None] | Sequence[Sequence[int | None]]
DTypes = str | Sequence[str] | None
Note = Callable[[str, Layer, tuple[jax.Array, ...], PyTree], None]


def summary(
    net: Layer, input_size: Sizes | None = None, dtypes: DTypes = None, input: PyTree = None
) -> Summary:
    """Print what `net` consists of, and return it: a Summary, which also has Paddle's two entries by name.

    Nothing is computed, so a network of any size is summarised at once.

    Args:
        input_size: [N, H, W, C] or whatever the network takes, channels-last; a list of sizes for several inputs. The
            batch may be None or -1, which is 1.
        dtypes: of the inputs, float32 by default: one for all, or one for each.
        input: the inputs themselves instead: an array, or a list or dict of arrays.

    Raises:
        ShapeError: a size is not a positive number, there are not as many dtypes as sizes, or the network does not take
            the input; sizes that look channels-first are named.
    """
    found = summarize(net, input_size, dtypes, input)
    print(found)
    return found


def summarize(
    layer: Layer, input_size: Sizes | None = None, dtypes: DTypes = None, input: PyTree = None
) -> Summary:
    """`summary` without printing."""
    seen: dict[str, tuple[tuple[Shape, ...], int]] = {}

    def note(name: str, sublayer: Layer, args: tuple, out: object) -> None:
        shapes = output_shapes(out)
        seen[name] = shapes, seen.get(name, ((), 0))[1] + _flops(sublayer, args, shapes)

    run_abstractly(layer, "summary", input_size, dtypes, input, note)
    rows = []
    for name, sublayer in layer.named_sublayers(include_self=True):
        own = list(sublayer._parameters.values())
        if own or not sublayer._sub_layers:
            outputs, flops = seen.get(name, ((), 0))
            params = sum(parameter.size for parameter in own)
            trained = sum(parameter.size for parameter in own if parameter.trainable)
            rows.append(LayerSummary(name, type(sublayer).__name__, outputs, params, trained, flops))
    return Summary(tuple(rows))


def run_abstractly(
    layer: Layer,
    where: str,
    input_size: Sizes | None,
    dtypes: DTypes,
    input: PyTree,
    note: Note,
    training: bool | None = None,
) -> None:
    """Call `layer` without computing anything; `note(name, sublayer, args, output)` is called behind every sublayer.

    `training` is the mode of all sublayers of the call, None that which each of them has.
    """
    inputs, shapes = _inputs(where, input_size, dtypes, input)
    graphdef, params, buffers = abstract(layer)

    def run(params: State, buffers: State, args: tuple, kwargs: dict[str, jax.Array]) -> None:
        bound = graphdef.bind(params, buffers)  # hooks and the mode go on this copy, which ends with the call
        if training is not None:
            bound.train(training)
        for name, sublayer in bound.named_sublayers(include_self=True):
            sublayer.register_forward_post_hook(functools.partial(note, name))
        with rng_scope(jax.random.key(0)):
            bound(*args, **kwargs)

    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    try:
        jax.eval_shape(run, params, buffers, args, kwargs)
    except (ShapeError, TypeError) as error:
        looks_first = [s for s in shapes if len(s) == 4 and s[1] <= 4 < min(s[2:])]
        if not looks_first:
            raise
        moved = tuple(looks_first[0][axis] for axis in (0, 2, 3, 1))
        raise ShapeError(
            f"{type(layer).__name__} does not take this input",
            where=where,
            received=f"{looks_first[0]}, which looks channels-first",
            allowed="channels-last sizes",
            fix=f"write {moved}",
        ) from error


def _inputs(
    where: str, input_size: Sizes | None, dtypes: DTypes, given: PyTree
) -> tuple[list[jax.ShapeDtypeStruct] | dict[str, jax.ShapeDtypeStruct], list[Shape]]:
    """The inputs as shapes and dtypes, in a list or by name, and the shapes alone."""
    if given is not None:
        arrays = given if isinstance(given, (dict, list, tuple)) else [given]
        made = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), arrays)
        return made, [tuple(leaf.shape) for leaf in jax.tree.leaves(made)]
    several: list[Any] = (
        [] if input_size is None else list(input_size) if _several(input_size) else [input_size]
    )
    shapes = [[1 if n in (None, -1) and not axis else n for axis, n in enumerate(size)] for size in several]
    words = (
        ["float32" if dtypes is None else dtypes] * len(shapes)
        if dtypes is None or isinstance(dtypes, str)
        else list(dtypes)
    )
    sizes = [size for shape in shapes for size in shape]
    if (
        not shapes
        or len(words) != len(shapes)
        or not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes)
    ):
        raise ShapeError(
            "no shape to run the layer on",
            where=where,
            received=f"input_size={input_size}, dtypes={dtypes}",
            allowed="positive sizes such as (1, 224, 224, 3), and one dtype for all inputs or for each",
        )
    made = [jax.ShapeDtypeStruct(tuple(map(int, s)), np.dtype(d)) for s, d in zip(shapes, words, strict=True)]  # type: ignore[arg-type]
    return made, [struct.shape for struct in made]


def output_shapes(out: object) -> tuple[Shape, ...]:
    """The shapes of the arrays that a layer returned."""
    leaves = jax.tree.leaves(out)
    return tuple(tuple(leaf.shape) for leaf in leaves if isinstance(leaf, (jax.Array, np.ndarray)))


def _several(shape: Sequence[object]) -> bool:
    return len(shape) > 0 and not isinstance(shape[0], (int, np.integer, str, type(None)))


def _flops(layer: Layer, args: tuple[jax.Array, ...], outputs: tuple[Shape, ...]) -> int:
    if isinstance(layer, Linear):
        return 2 * math.prod(outputs[0]) * layer.in_features
    if isinstance(layer, _CONV):  # each output is a sum over the kernel and the channels of its group
        return 2 * math.prod(outputs[0]) * math.prod(layer._parameters["weight"].shape[1:])
    if isinstance(layer, _TRANSPOSED):  # each input is spread over the kernel and the channels of its group
        return 2 * math.prod(args[0].shape) * math.prod(layer._parameters["weight"].shape[1:])
    return 0
