"""paddle.summary and paddle.flops: tables of a network's layers, found by running it once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.paddle import nn
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel import tape
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.hapi.static_flops import Table
from framework.paddle.jit.spec import InputSpec
from framework.paddle.nn.layer import Layer

_MIB = 1024**2


@dataclass
class _Row:
    inputs: object
    outputs: object
    parameters: int = 0
    trained: int = 0


def summary(
    net: Layer,
    input_size: Any = None,
    dtypes: Any = None,
    input: Any = None,
) -> dict[str, int]:
    """Print the layers with the shapes of their inputs and outputs and their numbers of parameters.

    Args:
        input_size: a shape, an InputSpec, or a list of them for several inputs; None or -1 for the batch is 1.
        dtypes: of the inputs, float32 by default.
        input: what to run instead: a Tensor, or a list or dict of them.

    Returns:
        `total_params` and `trainable_params`.
    """
    if input_size is None and input is None:
        raise ValueError("paddle.summary: give input_size or input")
    if input_size is None:
        parts = input.values() if isinstance(input, dict) else input
        sizes = tuple(input.shape) if isinstance(input, Tensor) else [tuple(part.shape) for part in parts]
    else:
        sizes = _sizes(input_size)
    shapes = [sizes] if isinstance(sizes, tuple) else sizes
    if input is None:
        given = [dtypes] * len(shapes) if dtypes is None or isinstance(dtypes, str) else list(dtypes)
        arguments: list[Any] = [_input(shape, kind) for shape, kind in zip(shapes, given, strict=False)]
    else:
        arguments = [input]
    rows = _rows(net, arguments)
    print(_table(rows, shapes))
    total = sum(row.parameters for row in rows.values())
    return {"total_params": total, "trainable_params": sum(row.trained for row in rows.values())}


def _sizes(size: Integers) -> Any:
    """A shape as a tuple, several as a list."""
    if isinstance(size, InputSpec):
        return _sizes(tuple(size.shape))
    if isinstance(size, int):
        return (size,)
    if isinstance(size, tuple) and all(item is None or isinstance(item, int) for item in size):
        unknown = [item for item in size if item is None or item == -1]
        if len(unknown) > 1:
            raise ValueError(f"paddle.summary: only the batch may be None or -1, received {size}")
        if any(item is not None and item != -1 and item <= 0 for item in size):
            raise ValueError(f"paddle.summary: sizes are above 0, received {size}")
        return tuple(1 if item is None or item == -1 else item for item in size)
    return [_sizes(item) for item in size]


def _input(shape: Integers, kind: object) -> Any:
    if isinstance(shape, list):
        return [_input(part, kind) for part in shape]
    values = np.random.default_rng(0).random(shape, np.float32)
    return wrap(as_array(values, types.to_numpy_or(kind, np.dtype(np.float32))))


def _rows(net: Layer, arguments: Sequence[object]) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}

    def note(layer: Layer, inputs: object, outputs: object) -> None:
        number = layer.full_name().rsplit("_", 1)[-1]
        index = int(number) if number.isdecimal() else len(rows)
        row = rows[f"{type(layer).__name__}-{index + 1}"] = _Row(_shapes(inputs), _shapes(outputs))
        for parameter in layer._parameters.values():
            if parameter is not None:
                row.parameters += math.prod(parameter.shape)
                row.trained += 0 if parameter.stop_gradient else math.prod(parameter.shape)

    single = not list(net.sublayers())
    hooks = [
        layer.register_forward_post_hook(note)
        for layer in net.sublayers(include_self=True)
        if not isinstance(layer, nn.Sequential | nn.LayerList) and (layer is not net or single)
    ]
    training = net.training
    net.eval()
    try:
        with tape.no_grad():
            net(*arguments)
    finally:
        for hook in hooks:
            hook.remove()
        if training:
            net.train()
    return rows


def _shapes(value: object) -> Any:
    if isinstance(value, list | tuple):
        return [_shapes(part) for part in value]
    return list(value.shape) if isinstance(value, Tensor) else []


def _numbers(shapes: Any) -> int:
    """How many numbers Tensors of these shapes hold."""
    if all(isinstance(part, int) for part in shapes):
        return math.prod(shapes) if shapes else 0
    return sum(_numbers(part) for part in shapes)


def _table(rows: dict[str, _Row], sizes: Sequence[Any]) -> str:
    cells = [
        (name, str(row.inputs), str(row.outputs), f"{row.parameters:,}", str(row.parameters))
        for name, row in rows.items()
    ]
    widths = [max([least, *(len(cell[i]) for cell in cells)]) for i, least in enumerate((15, 20, 20))]
    widths.append(max([15, *(len(cell[4]) for cell in cells)]))
    full = max(75, sum(widths) + 5)

    def line(parts: Sequence[str]) -> str:
        return " ".join(f"{part:^{width}}" for part, width in zip(parts, widths, strict=True))

    total = sum(row.parameters for row in rows.values())
    trained = sum(row.trained for row in rows.values())
    megabytes = [
        _numbers(list(map(list, sizes)) if sizes and isinstance(sizes[0], tuple) else list(sizes)) * 4 / _MIB,
        2 * sum(_numbers(row.outputs) for row in rows.values()) * 4 / _MIB,
        total * 4 / _MIB,
    ]
    titles = ("Input size (MB)", "Forward/backward pass size (MB)", "Params size (MB)")
    lines = ["-" * full, line(("Layer (type)", "Input Shape", "Output Shape", "Param #")), "=" * full]
    lines += [line(cell[:4]) for cell in cells]
    lines += ["=" * full, f"Total params: {total:,}", f"Trainable params: {trained:,}"]
    lines += [f"Non-trainable params: {total - trained:,}", "-" * full]
    lines += [f"{title}: {size:.2f}" for title, size in zip(titles, megabytes, strict=True)]
    return "\n".join([*lines, f"Estimated Total Size (MB): {sum(megabytes):.2f}", "-" * full, ""])


Count = Callable[[Any, Any, Any], int]


def _conv(layer: Layer, x: Tensor, y: Tensor) -> int:
    taps = math.prod(layer.weight.shape[2:])
    return y.size * int(x.shape[1] / layer._groups * taps + (layer.bias is not None))


def _adaptive_pool(layer: Layer, x: Tensor, y: Tensor) -> int:
    kernel = [a // b for a, b in zip(x.shape[2:], y.shape[2:], strict=True)]
    return (math.prod(kernel) + 1) * y.size


def _counts() -> dict[type, Count]:
    """Multiplications (with their additions) of the layers that have any."""
    convolutions = (nn.Conv1D, nn.Conv2D, nn.Conv3D)
    transposed = (nn.Conv1DTranspose, nn.Conv2DTranspose, nn.Conv3DTranspose)
    return {
        **dict.fromkeys((*convolutions, *transposed), _conv),
        **dict.fromkeys((nn.BatchNorm2D, nn.BatchNorm), lambda layer, x, y: 2 * x.size),
        **dict.fromkeys((nn.ReLU, nn.ReLU6, nn.Dropout), lambda layer, x, y: 0),
        nn.LeakyReLU: lambda layer, x, y: x.size,
        nn.Linear: lambda layer, x, y: layer.weight.shape[0] * y.size,
        **dict.fromkeys((nn.AvgPool1D, nn.AvgPool2D, nn.AvgPool3D), lambda layer, x, y: y.size),
        **dict.fromkeys((nn.AdaptiveAvgPool1D, nn.AdaptiveAvgPool2D, nn.AdaptiveAvgPool3D), _adaptive_pool),
    }


def flops(
    net: Layer,
    input_size: Sequence[int],
    custom_ops: dict[type, Count] | None = None,
    print_detail: bool = False,
) -> int:
    """Count the operations of a network for one input of `input_size`, and print the total.

    Args:
        custom_ops: layer class -> function(layer, inputs, output) that adds to `layer.total_ops`.
        print_detail: print a table of all layers.
    """
    known, custom = _counts(), custom_ops or {}
    seen: set[type] = set()
    found: dict[int, list[Any]] = {}

    def note(layer: Any, inputs: Any, outputs: Any) -> None:
        kind = type(layer)
        first = outputs[0] if isinstance(outputs, list | tuple) else outputs
        row = found.setdefault(id(layer), [0, list(inputs[0].shape), list(first.shape), 0])
        if kind in custom:
            layer.register_buffer("total_ops", wrap(as_array(np.zeros([1], np.int64))))
            custom[kind](layer, inputs, outputs)
            row[0] += int(layer.total_ops)
            del layer.total_ops
        elif kind in known:
            row[0] += abs(int(known[kind](layer, inputs[0], first)))
        row[3] = sum(math.prod(p.shape) for p in layer.parameters())

    hooks, leaves = [], []
    for name, layer in net.named_sublayers(include_self=True):
        if list(layer.children()):
            continue
        kind = type(layer)
        if kind not in seen:
            if kind in custom:
                print(f"Customize Function has been applied to {kind}")
            elif kind in known:
                print(f"{kind}'s flops has been counted")
            else:
                print(f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.")
        seen.add(kind)
        leaves.append((name, layer))
        hooks.append(layer.register_forward_post_hook(note))
    training = net.training
    net.eval()
    try:
        with tape.no_grad():
            net(_input(tuple(input_size), None))
    finally:
        for hook in hooks:
            hook.remove()
        if training:
            net.train()
    total = sum(row[0] for row in found.values())
    parameters = sum(row[3] for row in found.values())
    if print_detail:
        table = Table(("Layer Name", "Input Shape", "Output Shape", "Params", "Flops"))
        for _, layer in leaves:
            if id(layer) in found:
                operations, shape, result, count = found[id(layer)]
                table.add_row((layer.full_name(), shape, result, count, operations))
        table.print_table()
    print(f"Total Flops: {total}     Total Params: {parameters}")
    return total
