"""An ONNX graph without its weights: small enough to come with the package, and made whole where the weights are.

The weights lie in a file beside it, by sorted names, as ONNX's external data, so that writing it needs no package of
ONNX.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from framework.core.disk import disk_errors
from framework.core.errors import FormatError
from framework.export.formats.onnx.model import import_onnx

if TYPE_CHECKING:
    import onnx

ALIGNMENT = 64  # bytes, so that a runtime that maps the file reads whole lines of the cache


def _byte_ranges(weights: Mapping[str, np.ndarray]) -> dict[str, tuple[int, int]]:
    """(offset, length) in bytes of each weight in the file of data."""
    ranges, end = {}, 0
    for name in sorted(weights):
        start = -(-end // ALIGNMENT) * ALIGNMENT
        end = start + weights[name].nbytes
        ranges[name] = start, weights[name].nbytes
    return ranges


def without_weights(model: onnx.ModelProto, weights: Mapping[str, np.ndarray], data: str) -> bytes:
    """The file of a model whose weights are in the file `data` beside it; see `write_whole`. `model` is changed.

    Raises:
        FormatError: a constant of the name of a weight is another array, so it cannot be taken from the weights.
    """
    onnx = import_onnx()
    ranges = _byte_ranges(weights)
    for tensor in model.graph.initializer:
        weight = weights.get(tensor.name)
        if weight is None:
            continue
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype != weight.dtype or not np.array_equal(array, weight, equal_nan=True):
            raise FormatError(
                "a constant of the graph is not the weight of its name",
                where=tensor.name,
                received=f"{array.dtype} {list(array.shape)}",
                allowed="weights as they are: fold normalisations before",
            )
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        offset, length = ranges[tensor.name]
        for key, value in (("location", data), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
    return model.SerializeToString(deterministic=True)


def write_whole(graph: bytes, weights: Mapping[str, np.ndarray], path: Path) -> list[Path]:
    """Write a graph that `without_weights` gave, and its weights beside it. -> the files.

    Args:
        weights: Of the names, shapes and dtypes that it was made with.
        path: Its name with ".data" is the name that the graph was made with.

    Raises:
        DiskError: the disk is full, or may not be written to.
    """
    data = path.with_name(path.name + ".data")
    with disk_errors(path, sum(array.nbytes for array in weights.values())):
        with data.open("wb") as file:
            for name, (offset, _) in _byte_ranges(weights).items():
                file.seek(offset)
                file.write(np.ascontiguousarray(weights[name]).tobytes())
        path.write_bytes(graph)
    return [data, path]
