"""Which layers stay in float32: those whose rounding is felt most, as few as a score needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.compress.calibrate import model_runner
from framework.compress.insert import insert_qdq
from framework.compress.layers import QuantizableLayer, head_outputs
from framework.compress.ranges import Range
from framework.export.formats.onnx.check import NamedArrays

if TYPE_CHECKING:
    import onnx


def layer_noise(
    model: onnx.ModelProto,
    layers: Sequence[QuantizableLayer],
    ranges: Mapping[str, Range],
    feeds: Iterable[NamedArrays],
    bits: int = 8,
) -> dict[str, float]:
    """How much each layer, alone in int8, changes the outputs of the last layers: the norm of the difference over that
    of the output, the mean over outputs and examples."""
    feeds, heads = list(feeds), head_outputs(model, layers)
    run = model_runner(model, heads)
    wanted = [run(feed) for feed in feeds]
    found = {}
    for layer in layers:
        others = {one.name for one in layers if one is not layer}
        alone = model_runner(insert_qdq(model, layers, ranges, others, bits), heads)
        noise = [
            relative_error(right[name], got[name])
            for right, got in zip(wanted, map(alone, feeds))
            for name in heads
        ]
        found[layer.name] = float(np.mean(noise))
    return found


def relative_error(wanted: np.ndarray, got: np.ndarray) -> float:
    """The norm of the difference over that of `wanted`."""
    scale = float(np.linalg.norm(wanted.astype(np.float64)))
    return float(np.linalg.norm((wanted - got).astype(np.float64))) / max(scale, 1e-12)


def leave_in_float(
    noise: Mapping[str, float], holds: Callable[[frozenset[str]], bool]
) -> frozenset[str] | None:
    """The layers that stay in float32 so that `holds(layers)`: the noisiest, as few as a search by halves finds; None
    where it holds with none of them in int8.

    Args:
        noise: That of every layer.
        holds: Whether the score of the model is good enough when these layers stay in float32. It is not with none.
    """
    ranked = sorted(noise, key=lambda name: (-noise[name], name))

    def enough(count: int) -> bool:
        return holds(frozenset(ranked[:count]))

    least, most = 0, 1  # not enough with `least`; the first is what is most often enough, so it is not far
    while most < len(ranked) and not enough(most):
        least, most = most, 2 * most
    if most >= len(ranked):  # with all in float32 there is nothing to ask
        most = len(ranked) - 1
        if most <= least or not enough(most):
            return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return frozenset(ranked[:most])
