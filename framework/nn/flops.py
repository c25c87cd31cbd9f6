"""The operations of a layer as `paddle.flops` counts them: a multiplication and its addition are one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax

from framework.nn.common import Linear
from framework.nn.conv import _Conv
from framework.nn.layer import Layer
from framework.nn.leaf_layers import (
    AdaptiveAvgPool1D,
    AdaptiveAvgPool2D,
    AdaptiveAvgPool3D,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    LeakyReLU,
)
from framework.nn.norm import BatchNorm
from framework.nn.summary import DTypes, Shape, Sizes, format_table, output_shapes, run_abstractly

Count = Callable[[Any, tuple[jax.Array, ...], jax.Array], int | None]  # of any class of layers


def _conv(layer: _Conv, x: tuple[jax.Array, ...], y: jax.Array) -> int:
    taps = math.prod(layer.kernel_size) * layer.in_channels // layer.groups
    return y.size * (taps + ("bias" in layer._parameters))


def _adaptive(layer: Layer, x: tuple[jax.Array, ...], y: jax.Array) -> int:
    window = [size // out for size, out in zip(x[0].shape[1:-1], y.shape[1:-1])]
    return y.size * (math.prod(window) + 1)


_COUNTS: dict[type[Layer], Count] = {
    _Conv: _conv,
    BatchNorm: lambda layer, x, y: 2 * x[0].size,
    LeakyReLU: lambda layer, x, y: x[0].size,
    Linear: lambda layer, x, y: layer.in_features * y.size,
    **dict.fromkeys((AvgPool1D, AvgPool2D, AvgPool3D), lambda layer, x, y: y.size),
    **dict.fromkeys((AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D), _adaptive),
}


def flops(
    net: Layer,
    input_size: Sizes,
    custom_ops: Mapping[type[Layer], Count] | None = None,
    print_detail: bool = False,
    dtypes: DTypes = None,
) -> int:
    """The operations of `net` in inference, counted as Paddle counts them; nothing is computed.

    Convolutions and Linear count one for each multiplication, convolutions one for each bias too; batch normalisation
    counts two for each value, LeakyReLU and average pooling one; other layers, and functions called in a `forward`,
    nothing. `summary(net, size).flops` has two for each multiplication.

    Args:
        input_size: channels-last, such as [1, 224, 224, 3]; a list of sizes for several inputs.
        custom_ops: layer class to `count(layer, inputs, output)`, which returns the operations of one call, or adds
            them to `layer.total_ops` as in Paddle. Arrays have shapes only.
        print_detail: print a line for each sublayer.
        dtypes: of the inputs, float32 by default.

    Raises:
        ShapeError: see `summary`.
    """
    counts = {**_COUNTS, **(custom_ops or {})}
    found: dict[str, tuple[str, tuple[Shape, ...], tuple[Shape, ...], int]] = {}

    def note(name: str, layer: Layer, x: tuple[jax.Array, ...], y: jax.Array) -> None:
        if layer._sub_layers and type(layer) not in counts:
            return
        count = next((counts[cls] for cls in type(layer).__mro__ if cls in counts), None)
        layer.__dict__["total_ops"] = 0  # of a copy that lives for this call
        given = 0 if count is None else count(layer, x, y)
        total = int(layer.__dict__["total_ops"] if given is None else given)
        before = found[name][3] if name in found else 0
        found[name] = type(layer).__name__, output_shapes(x), output_shapes(y), before + total

    run_abstractly(net, "flops", input_size, dtypes, None, note, training=False)
    total = sum(row[3] for row in found.values())
    if print_detail:
        table = [("layer", "type", "input", "output", "params", "FLOPs")]
        layers = dict(net.named_sublayers(include_self=True))
        for name, (kind, before, after, count) in found.items():
            params = sum(parameter.size for parameter in layers[name].parameters())
            taken, given = (" ".join(str(list(shape)) for shape in part) for part in (before, after))
            table.append((name or "(itself)", kind, taken, given, f"{params:,}", f"{count:,}"))
        size = sum(parameter.size for parameter in net.parameters())
        print("\n".join([*format_table(table, 4), f"{total:,} FLOPs, {size:,} parameters"]))
    return total
