"""Programs and their descriptions: `Program.desc`, and the program that a description, or its bytes, says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import OarError
from framework.paddle._kernel.kernels import has_operator
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle._kernel.watch import unwatched
from framework.paddle.static.descriptions import BlockDesc, OpDesc, VarDesc
from framework.paddle.static.live_descriptions import (
    RECORDED,
    OperationDescription,
    TensorDescription,
    description_of,
)
from framework.paddle.static.program_description import ProgramDesc
from framework.paddle.static.variable import Op, Values

if TYPE_CHECKING:
    from framework.paddle.static.program import Block, Program

_ENDS, _TENSORS = ("feed", "fetch"), ("VarType.LOD_TENSOR", "VarType.SELECTED_ROWS")


class DescribedOp(Op):
    """An operation that is known by its description alone, so that it cannot run."""

    def __init__(
        self, description: OpDesc, slots: tuple[Mapping[str, list[Tensor]], Mapping[str, list[Tensor]]]
    ) -> None:
        self.type, (self._inputs, self._outputs) = description.type(), slots
        self._attrs = description.get_attr_map()
        self.inputs = [tensor for tensors in self._inputs.values() for tensor in tensors]
        self.outputs = [tensor for tensors in self._outputs.values() for tensor in tensors]  # type: ignore[assignment]

    @property
    def attrs(self) -> Mapping[str, object]:
        return self._attrs

    @property
    def input_slots(self) -> Mapping[str, list[Tensor]]:
        return self._inputs

    @property
    def output_slots(self) -> Mapping[str, list[Tensor]]:
        return self._outputs

    def replay(self, values: Values, for_test: bool) -> None:
        if self.type in _ENDS:
            return  # Executor.run feeds and fetches itself
        raise OarError(
            "an operation of a described program cannot run",
            where=self.type,
            received=str(self._attrs.get(RECORDED, "an operator that is not here")),
            allowed="operators that append_op takes",
            fix="save programs that run with paddle.static.save_inference_model",
        )


def describe(program: Program, description: ProgramDesc) -> ProgramDesc:
    """Bring a program's description up to date; operators and variables that were added to it stay."""
    while description.num_blocks() < program.num_blocks:
        description.append_block(description.block(0))
    for block in program.blocks:
        _describe_block(block, description.block(block.idx))
    return description


def _describe_block(block: Block, description: BlockDesc) -> None:
    description.set_parent_idx(block.parent_idx)
    description._set_forward_block_idx(block.forward_block_idx)
    tensors = {name: description_of(tensor) for name, tensor in block.vars.items()} if block.idx == 0 else {}
    added = {n: v for n, v in description.variables.items() if not isinstance(v, TensorDescription)}
    description.variables = {**added, **tensors}
    appended = [one for one in description.operators if not isinstance(one, OperationDescription)]
    description.operators = [*(op.desc for op in block.ops), *appended]
    for operator in description.operators:
        operator._block = description


def take_added_operators(description: ProgramDesc) -> BlockDesc:
    """Take from a program's description the operators that were added to it and can run, and the variables."""
    block, added = description.block(0), BlockDesc(description, 0, -1)
    for operator in block.operators:
        if not isinstance(operator, OperationDescription) and has_operator(operator.type()):
            added.operators.append(operator)
    block.operators = [one for one in block.operators if all(one is not other for other in added.operators)]
    added.variables = {n: v for n, v in block.variables.items() if not isinstance(v, TensorDescription)}
    for name in added.variables:
        block._remove_var(name)
    return added


def add_described(program: Program, description: BlockDesc) -> None:
    """Add the variables and operators of a description to a program."""
    block = program.global_block()
    names = set(block.vars)
    for variable in description.all_vars():
        if variable.name() not in names and variable.type() in _TENSORS:
            _add_variable(program, variable)
    tensors = block.vars
    for operator in description.operators:
        _add_operator(program, operator, tensors)


def _add_variable(program: Program, variable: VarDesc) -> None:
    name, shape, kind = variable.name(), variable.shape(), variable.dtype()
    if variable.persistable() and -1 not in shape:
        with unwatched():
            zeros = as_array(np.zeros(shape, kind.numpy), kind.numpy)
            tensor = (
                Parameter(zeros, name=name, trainable=not variable.stop_gradient())
                if variable.is_parameter()
                else wrap(zeros)
            )
        tensor.name, tensor.persistable = name, True
        program.made[id(tensor)] = tensor
        return
    block = program.global_block()
    one = block.create_var(name, shape, kind, variable.persistable(), variable.stop_gradient())
    one.lod_level = variable.lod_level()


def _add_operator(program: Program, operator: OpDesc, tensors: Mapping[str, Tensor]) -> None:
    inputs, outputs = (
        {slot: [tensors[name] for name in names if name in tensors] for slot, names in slots.items()}
        for slots in (operator.inputs(), operator.outputs())
    )
    attributes = operator.get_attr_map()
    if RECORDED in attributes or operator.type() in _ENDS or not has_operator(operator.type()):
        program.ops.append(DescribedOp(operator, (inputs, outputs)))
        return
    program.global_block().append_op(operator.type(), inputs, outputs, attributes)
