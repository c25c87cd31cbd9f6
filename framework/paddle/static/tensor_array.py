"""Arrays of variables. As long as all positions are constants such an array is a list of variables; else it is a list
of the run, which operations write to and read from, and its program runs operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import SupportsIndex, overload

import numpy as np

from framework.core.errors import TraceError
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.static.control import variable_like
from framework.paddle.static.program import (
    Op,
    Values,
    Variable,
    default_main_program,
)
from framework.paddle.static.variable import COMPUTED, SIZES, Element, new_variable, value_of
from framework.paddle.utils import unique_name


class TensorArray(list[Tensor]):
    """An array of variables of a static program.

    Attributes:
        dtype: Of its variables.
        variable: What stands for it in programs where it is a list of the run; None: it is this list.
    """

    def __init__(self, tensors: Sequence[Tensor] = (), dtype: object = None) -> None:
        super().__init__(tensors)
        self.dtype = dtype
        self.variable: Variable | None = None
        self._last = tensors[-1] if tensors else None
        self._block = default_main_program().ops

    def is_of_run(self, position: int | None) -> bool:
        """Whether this position (None: it is not known) is read or written when the program runs: also in a block
        other than the array's, which runs any number of times."""
        return self.variable is not None or position is None or self._block is not default_main_program().ops

    def put(self, position: int, tensor: Tensor) -> None:
        """Write at a constant position."""
        self[position : position + 1] = [tensor]
        self._last = tensor

    def append_write(self, tensor: Tensor, position: Tensor) -> None:
        """Append what writes a variable."""
        variable = self._of_run()
        self._last = tensor
        _append(WriteOp(self, variable, [tensor, position], [variable]))

    def append_read(self, position: Tensor) -> Variable:
        """Append what reads a variable, of the shape of the one that was written last.

        Raises:
            TraceError: none was written before.
        """
        variable = self._of_run()
        if self._last is None:
            raise TraceError(
                "the array has no variables yet, so the shape of what is read is not known",
                where="array_read",
                fix="write to it before it is read",
            )
        out = variable_like(self._last, "array_read")
        if mode.grad_enabled and out._value.dtype in INEXACT:
            out.stop_gradient, out._node = (
                False,
                COMPUTED,
            )  # what another iteration writes may want a gradient
        _append(ReadOp(self, variable, [position], [out]))
        return out

    def append_length(self) -> Variable:
        """Append what counts the variables."""
        name = unique_name.generate("array_length.tmp")
        out = new_variable((1,), (1,), np.dtype(np.int64), name, True)
        _append(LengthOp(self, self._of_run(), [], [out]))
        return out

    def append_join(self, axis: int, stacks: bool) -> tuple[Variable, Variable]:
        """Append what joins the variables along an axis, or stacks them, and gives their sizes at it.

        Raises:
            TraceError: none was written before.
        """
        variable = self._of_run()
        if self._last is None:
            raise TraceError("the array has no variables yet", where="tensor_array_to_tensor")
        like = variable_like(self._last, "tensor_array_to_tensor")
        shapes = [list(like._value.shape), list(like._value.other)]
        for shape, size in zip(shapes, SIZES, strict=True):
            if stacks:
                shape.insert(axis % (len(shape) + 1), size)
            else:
                shape[axis] = size
        differentiable = mode.grad_enabled and like._value.dtype in INEXACT
        out = new_variable(shapes[0], shapes[1], like._value.dtype, like.name, not differentiable)
        name = unique_name.generate("tensor_array_to_tensor.tmp")
        sizes = new_variable(SIZES[:1], SIZES[1:], np.dtype(np.int32), name, True)
        _append(JoinOp(self, variable, axis, stacks, [out, sizes]))
        return out, sizes

    def _of_run(self) -> Variable:
        """The variable that stands for it from here on."""
        if self.variable is None:
            name = unique_name.generate("array")
            self.variable = new_variable((), (), np.dtype(np.float32), name, False)
        return self.variable

    def constants(self) -> list[Tensor]:
        """The variables that were written at constant positions."""
        return list(super().__iter__())

    def _require_list(self) -> None:
        """Raises: TraceError: its variables are those of a run."""
        if self.variable is not None:
            raise TraceError(
                "which variables an array has is only known when the program runs",
                received=self.variable.name,
                fix="read it by array_read or tensor_array_to_tensor",
            )

    def __iter__(self) -> Iterator[Tensor]:
        self._require_list()
        return super().__iter__()

    def __len__(self) -> int:
        self._require_list()
        return super().__len__()

    @overload
    def __getitem__(self, item: SupportsIndex) -> Tensor: ...
    @overload
    def __getitem__(self, item: slice) -> list[Tensor]: ...
    def __getitem__(self, item: SupportsIndex | slice) -> Tensor | list[Tensor]:
        self._require_list()
        return super().__getitem__(item)


def _append(op: Op) -> None:
    default_main_program().ops.append(op)


class ArrayOp(Op):
    """An operation on an array of the run."""

    reads_values = True
    gives_lengths = True

    def __init__(
        self, array: TensorArray, variable: Variable, inputs: Sequence[Tensor], outputs: Sequence[Variable]
    ) -> None:
        self.array, self.variable, self.outputs = array, variable, outputs
        self.operands = inputs
        self.inputs = [*inputs, variable, *array.constants()]
        self.recorded = mode.grad_enabled

    def elements(self, values: Values) -> list[Element | None]:
        """The array in this run, which begins with what was written at constant positions."""
        key = id(self.variable)
        if key not in values.arrays:
            values.arrays[key] = [element_of(one, values) for one in self.array.constants()]
        return values.arrays[key]


def element_of(tensor: Tensor, values: Values) -> Element:
    """What a variable is in this run, as an element of an array."""
    return Element(value_of(tensor, values), values.lengths.get(id(tensor)))


def _index(position: Tensor, values: Values) -> int:
    return int(value_of(position, values).numpy().item())


class WriteOp(ArrayOp):
    """Writes a variable behind the last one or over another one; positions between stay empty."""

    type = "write_to_array"

    def replay(self, values: Values, for_test: bool) -> None:
        tensor, position = self.operands
        elements, index = self.elements(values), _index(position, values)
        elements.extend([None] * (index + 1 - len(elements)))
        elements[index] = element_of(tensor, values)


class ReadOp(ArrayOp):
    """Reads a variable."""

    type = "read_from_array"

    def replay(self, values: Values, for_test: bool) -> None:
        elements, index = self.elements(values), _index(self.operands[0], values)
        element = elements[index] if 0 <= index < len(elements) else None
        if element is None:
            raise ShapeError(
                "nothing was written at this position of the array",
                where="array_read",
                received=f"{index} of {len(elements)}",
            )
        (out,) = self.outputs
        values[id(out)] = element.tensor if self.recorded else element.tensor.detach()
        values.lengths.pop(id(out), None)
        if element.levels:
            values.lengths[id(out)] = element.levels


class LengthOp(ArrayOp):
    """Counts the variables."""

    type = "lod_array_length"

    def replay(self, values: Values, for_test: bool) -> None:
        count = np.array([len(self.elements(values))], np.int64)
        values[id(self.outputs[0])] = wrap(as_array(count))


class JoinOp(ArrayOp):
    """Joins the variables along an axis, or stacks them at a new one."""

    type = "tensor_array_to_tensor"

    def __init__(
        self, array: TensorArray, variable: Variable, axis: int, stacks: bool, outputs: Sequence[Variable]
    ) -> None:
        super().__init__(array, variable, [], outputs)
        self.axis, self.stacks = axis, stacks

    def replay(self, values: Values, for_test: bool) -> None:
        from framework import paddle

        tensors = [one.tensor for one in self.elements(values) if one is not None]
        enabled, mode.grad_enabled = mode.grad_enabled, self.recorded
        try:
            joined = (paddle.stack if self.stacks else paddle.concat)(tensors, self.axis)
        finally:
            mode.grad_enabled = enabled
        sizes = np.array([1 if self.stacks else one.shape[self.axis] for one in tensors], np.int32)
        for variable, result in zip(self.outputs, (joined, wrap(as_array(sizes))), strict=True):
            values[id(variable)] = result
