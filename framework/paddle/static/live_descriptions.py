"""Descriptions of what stands in a program: reading one asks the variable or operation, writing one changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.dtypes import dtype
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.static.descriptions import AttrType, BlockDesc, OpDesc, VarDesc, attribute_type

if TYPE_CHECKING:
    from framework.paddle.static.variable import Op


RECORDED = "recorded_function"  # attribute of an operation that a function of Python recorded: its name


class TensorDescription(VarDesc):
    """A variable, parameter or other Tensor of a program."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor.name)
        self._tensor = tensor

    def name(self) -> str:
        return self._tensor.name

    def shape(self) -> list[int]:
        return list(self._tensor.shape)

    get_shape = shape

    def shapes(self) -> list[list[int]]:
        return [self.shape()]

    def set_shape(self, shape: Sequence[int]) -> None:
        """Let a variable have other sizes; -1 is one that is known when the program runs."""
        value = self._tensor._value
        if isinstance(value, Symbol):
            value.variable.set_sizes(shape)

    def dtype(self) -> dtype:
        return self._tensor.dtype

    def dtypes(self) -> list[dtype]:
        return [self.dtype()]

    def lod_level(self) -> int:
        return getattr(self._tensor, "lod_level", 0)

    def lod_levels(self) -> list[int]:
        return [self.lod_level()]

    def persistable(self) -> bool:
        return bool(self._tensor.persistable)

    def set_persistable(self, value: bool) -> None:
        self._tensor.persistable = value

    def is_parameter(self) -> bool:
        return isinstance(self._tensor, Parameter)

    def stop_gradient(self) -> bool:
        return bool(self._tensor.stop_gradient)

    def set_stop_gradient(self, value: bool) -> None:
        self._tensor.stop_gradient = value


class OperationDescription(OpDesc):
    """An operation of a program; its slots cannot be written, as operations read the variables themselves."""

    def __init__(self, operation: Op) -> None:
        super().__init__()
        self._operation = operation
        self._type = operation.type
        self._inputs = {slot: [t.name for t in tensors] for slot, tensors in operation.input_slots.items()}
        self._outputs = {slot: [t.name for t in tensors] for slot, tensors in operation.output_slots.items()}
        self.attributes = _described(operation.all_attrs())
        if not operation.runs_by_name:
            self.attributes[RECORDED] = AttrType.STRING, operation.type

    def set_attribute(self, name: str, kind: AttrType, value: object) -> None:
        super().set_attribute(name, kind, value)
        self._operation._set_attr(name, value)

    def remove_attr(self, name: str) -> None:
        super().remove_attr(name)
        self._operation._remove_attr(name)

    def infer_var_type(self, block: BlockDesc) -> None:
        """Give the outputs of an operator their shapes and types anew."""
        self._operation.infer_shapes()

    infer_shape = infer_var_type


def description_of(tensor: Tensor) -> TensorDescription:
    """The description of a Tensor of a program, always the same one."""
    description = tensor.__dict__.get("_description")
    if description is None:
        description = tensor.__dict__["_description"] = TensorDescription(tensor)
    return description


def _described(attributes: dict[str, object]) -> dict[str, tuple[AttrType, object]]:
    """The attributes that files have: numbers, texts and lists of them."""
    entries: dict[str, tuple[AttrType, object]] = {}
    for name, value in attributes.items():
        plain = int(value) if isinstance(value, dtype) else value
        if isinstance(plain, np.ndarray | np.generic):
            plain = plain.tolist()
        plain = list(plain) if isinstance(plain, tuple) else plain
        try:
            entries[name] = attribute_type(plain), plain
        except TypeError:
            continue  # None, a function or a structure: no attribute of a file
    return entries
