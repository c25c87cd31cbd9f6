"""The `.pdmodel` of a program: its operations as operators that Paddle 2.6.2 runs too."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static import network_forms
from framework.paddle.static.descriptions import BlockDesc
from framework.paddle.static.live_descriptions import description_of
from framework.paddle.static.operator_forms import write_operation
from framework.paddle.static.operator_writer import NoOperator, OperatorWriter
from framework.paddle.static.program_description import ProgramDesc
from framework.paddle.static.variable import Op, Variable

if TYPE_CHECKING:
    from framework.paddle.static.program import Program

__all__ = ["network_forms", "program_file"]  # its import gives the layers of networks their forms
log = logging.getLogger("oar")
_VALUES = {"float32": "fp32_values", "int32": "int32_values", "int64": "int64_values", "bool": "bool_values"}
_MOST_VALUES = 1 << 20  # of a constant, in the text of a program


def program_file(program: Program) -> bytes:
    """The bytes of a `.pdmodel`. What trains a program stands in none: `minimize` adds it to the loaded one. Operations
    without an operator of Paddle are described, and do not run; a warning names them."""
    description = ProgramDesc()
    block = description.block(0)
    operations = [op for op in program.ops if op.computes and not op.trains]
    tensors = [*program.data.values(), *program.made.values()]
    for op in operations:
        tensors += [*op.reads(), *op.outputs]
    block.variables = {tensor.name: description_of(tensor) for tensor in tensors}
    writer = OperatorWriter(block, program.for_test)
    described = _write_constants(writer, tensors)
    for op in operations:
        if not _write(writer, op):
            block.operators.append(op.desc)
            if not op.runs_by_name:
                described.append(op.operation or op.type)
    if described or len(program.frames) > 1:
        log.warning(
            "the saved program describes operations that do not run when it is loaded: %s; "
            "paddle.static.save_inference_model writes programs of all operations",
            ", ".join(sorted(set(described))) or "the bodies of control flow",
        )
    return description.serialize_to_string()


def _write(writer: OperatorWriter, op: Op) -> bool:
    """Append an operation; False, with the block as it was, where there are no operators for it."""
    block: BlockDesc = writer.block
    operators, variables = len(block.operators), dict(block.variables)
    try:
        write_operation(writer, op)
    except NoOperator:
        del block.operators[operators:]
        block.variables = variables
        return False
    return True


def _write_constants(writer: OperatorWriter, tensors: list[Tensor]) -> list[str]:
    """Append the values of Tensors that no file of parameters has; -> the names of those that are too large."""
    large: list[str] = []
    constants = {t.name: t for t in tensors if not isinstance(t, Variable) and not t.persistable}
    for name, tensor in constants.items():
        values = np.asarray(tensor.numpy())
        slot = _VALUES.get(tensor.dtype.name)
        if slot is None or values.size > _MOST_VALUES:
            large.append(name)
            continue
        listed = {slot: values.ravel().tolist()}
        writer.append(
            "assign_value", {}, {"Out": name}, shape=list(values.shape), dtype=int(tensor.dtype), **listed
        )
    return large
