"""Sums over large images in two steps: LiteRT adds one number after the other in float32, and a mean of 57,600 of them,
as in squeeze-and-excitation at 960 pixels, is off by a thousandth."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from framework.export.formats.tflite.loops import walk_operations
from framework.export.formats.tflite.packages import Converter
from framework.export.formats.tflite.types import Module, Operation

_REDUCTIONS = ("tfl.mean", "tfl.sum")
_MOST = 1024  # numbers that are added one after the other


def split_sums(converter: Converter, module: Module) -> None:
    """Reduce the last of several axes first, where together they have more than `_MOST` positions."""
    for operation in list(walk_operations(module.operation)):
        if operation.name in _REDUCTIONS:
            _split(converter.ir, operation)


def _split(mlir: ModuleType, operation: Operation) -> None:
    value, axes_value = list(operation.operands)
    defining = getattr(axes_value.owner, "operation", None)
    if defining is None or "value" not in defining.attributes:
        return  # axes that are computed
    shape = list(mlir.RankedTensorType(value.type).shape)
    axes = sorted(
        axis % len(shape) for axis in map(int, mlir.DenseIntElementsAttr(defining.attributes["value"]))
    )
    count = 1
    for axis in axes:
        count *= shape[axis]
    if len(axes) < 2 or count <= _MOST:
        return
    shape[axes[-1]] = 1
    integer = mlir.IntegerType.get_signless(32)
    last_axis = mlir.DenseElementsAttr.get(np.array([axes[-1]], np.int32))
    point = mlir.InsertionPoint(operation)
    constant = mlir.Operation.create(
        "arith.constant",
        results=[mlir.RankedTensorType.get([1], integer)],
        attributes={"value": last_axis},
        ip=point,
    )
    first = mlir.Operation.create(
        operation.name,
        results=[mlir.RankedTensorType.get(shape, mlir.RankedTensorType(value.type).element_type)],
        operands=[value, constant.results[0]],
        attributes={"keep_dims": mlir.BoolAttr.get(True)},
        ip=point,
    )
    operation.operands[0] = first.results[0]
