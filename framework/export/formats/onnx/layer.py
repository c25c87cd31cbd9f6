"""A Layer as an ONNX file: `export_layer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax

from framework.core.errors import InputError
from framework.export.formats.onnx.check import Draw, export_file
from framework.export.formats.onnx.model import MOST_BYTES, OPSET
from framework.export.program import ArrayDict, layer_function
from framework.export.specs import TensorSpec
from framework.nn.layer import Layer


def export_layer(
    layer: Layer,
    inputs: Mapping[str, TensorSpec],
    path: str | Path,
    outputs: Sequence[str] = (),
    *,
    constraints: Sequence[str] = (),
    opset: int = OPSET,
    metadata: Mapping[str, str] | None = None,
    draw: Draw | None = None,
    most_bytes: int = MOST_BYTES,
) -> list[Path]:
    """Write a layer in eval mode as ONNX, compared with it in ONNX Runtime before; -> the files.

    Args:
        inputs: The arguments of the call in order, with shapes that may be symbolic, such as "n" or "32*h".
        outputs: Their names; without them those of the dict that the layer returns, or output0, output1, ….
        Others: as `export_file`.

    Raises:
        InputError: there are more or fewer outputs than names. Others: as `export_file`.
    """
    fn, weights = layer_function(layer, inputs)

    def by_name(weights: ArrayDict, arrays: ArrayDict) -> ArrayDict:
        out = fn(weights, arrays)
        if isinstance(out, dict) and not outputs:
            return out
        leaves = jax.tree.leaves(out)
        names = outputs or [f"output{number}" for number in range(len(leaves))]
        if len(names) != len(leaves):
            raise InputError(
                "each output of the layer has one name",
                where=type(layer).__name__,
                received=f"{len(names)} names",
                allowed=f"{len(leaves)} outputs",
            )
        return dict(zip(names, leaves))

    return export_file(
        by_name,
        weights,
        inputs,
        path,
        constraints=constraints,
        opset=opset,
        metadata=metadata,
        draw=draw,
        most_bytes=most_bytes,
    )
