"""Blocks of programs, and what is declared in them: inputs and parameters."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from framework.core.rng import seeded_initializers
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.kernels import has_operator
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn.layer import create_parameter
from framework.paddle.nn.param_attr import AttrLike, ParamAttr
from framework.paddle.static.descriptions import BlockDesc
from framework.paddle.static.initial_operations import Beginning, initial_operations, restoring
from framework.paddle.static.operator import OperatorOp, SlotArguments, slots_of
from framework.paddle.static.state import state
from framework.paddle.static.variable import SIZES, Op, Variable, new_variable
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.nn.initializer import Initializer
    from framework.paddle.regularizer import WeightDecayRegularizer
    from framework.paddle.static.program import Program


@dataclass
class Frame:
    """The operations of a block while another one is recorded into, and the blocks around it."""

    parent: int
    forward: int = -1
    ops: list[Op] = field(default_factory=list)


class Block:
    """The operations and variables of a program."""

    def __init__(self, program: Program, idx: int = 0) -> None:
        self.program, self.idx = program, idx

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and (other.program, other.idx) == (self.program, self.idx)

    def __hash__(self) -> int:
        return hash((id(self.program), self.idx))

    @property
    def parent_idx(self) -> int:
        """The block around it; -1: there is none."""
        return self.program.frames[self.idx].parent

    @property
    def forward_block_idx(self) -> int:
        """The block that this one computes gradients of; -1: there is none."""
        return self.program.frames[self.idx].forward

    backward_block_idx = -1

    def _set_forward_block_idx(self, idx: int) -> None:
        self.program.frames[self.idx].forward = idx

    @property
    def ops(self) -> list[Op]:
        return self.program.ops_of(self.idx)

    @property
    def desc(self) -> BlockDesc:
        """Its description as it is now."""
        return self.program.desc.block(self.idx)

    def _sync_with_cpp(self) -> None:
        self.program._sync_with_cpp()

    @property
    def vars(self) -> dict[str, Tensor]:
        return {tensor.name: tensor for tensor in self.program.list_vars()}

    def var(self, name: str) -> Tensor:
        """Raises: ValueError: there is no such variable."""
        tensor = self.vars.get(name)
        if tensor is None:
            tensor = self.program.find_gradient(name)
        if tensor is None:
            raise ValueError(f"var {name} not in this block")
        if isinstance(tensor, Variable):
            tensor.looked_up = weakref.ref(self.program)
        return tensor

    def has_var(self, name: str) -> bool:
        return name in self.vars or self.program.find_gradient(name) is not None

    def all_parameters(self) -> list[Parameter]:
        return self.program.all_parameters()

    def create_parameter(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        name: str | None = None,
        attr: AttrLike = None,
        initializer: Initializer | None = None,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        **options: object,
    ) -> Tensor | None:
        """A new parameter of the program; `initializer`, `regularizer` and `trainable` hold without an `attr`."""
        if attr is None:
            attr = ParamAttr(name, initializer, regularizer=regularizer, trainable=trainable)
        before, programs = (mode.keep_parameter, mode.find_parameter), (state.main, state.startup)
        mode.keep_parameter, mode.find_parameter = keep_parameter, find_parameter
        state.main = state.startup = self.program
        try:
            return create_parameter(shape, dtype, name, attr)
        finally:
            mode.keep_parameter, mode.find_parameter = before
            state.main, state.startup = programs

    def create_var(
        self,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        persistable: bool = False,
        stop_gradient: bool = True,
        type: str = "VarType.LOD_TENSOR",
        **options: object,
    ) -> Variable:
        """A variable that an operator of `append_op` may compute: that of this name, else a new one.

        Raises:
            ValueError: there is one of this name with another shape or another type of elements.
        """
        kind = None if dtype is None else types.to_numpy(dtype)
        present = None if name is None else self.vars.get(name)
        if isinstance(present, Variable):
            _check_same(present, shape, kind)
            return present
        name = name or unique_name.generate("_generated_var")
        variable = declare(name, shape or (), kind or np.dtype(np.float32), self.program)
        variable.persistable, variable.is_data = persistable, False
        variable.stop_gradient = stop_gradient
        if type != "VarType.LOD_TENSOR":
            variable.__dict__["_kind"] = type
        return variable

    def append_op(
        self,
        type: str | None = None,
        inputs: SlotArguments | None = None,
        outputs: SlotArguments | None = None,
        attrs: Mapping[str, object] | None = None,
        stop_gradient: bool = False,
        **options: object,
    ) -> OperatorOp:
        """Append an operator of Paddle by its name, with its inputs and outputs by slot.

        Raises:
            ValueError: no operator is named, or there is none of this name.
        """
        op = self._operator(type, inputs, outputs, attrs, stop_gradient)
        self.ops.append(op)
        return op

    def _prepend_op(
        self,
        type: str | None = None,
        inputs: SlotArguments | None = None,
        outputs: SlotArguments | None = None,
        attrs: Mapping[str, object] | None = None,
        **options: object,
    ) -> OperatorOp:
        """As `append_op`, before all others."""
        op = self._operator(type, inputs, outputs, attrs, False)
        self.ops.insert(0, op)
        return op

    def _insert_op(self, index: int, *args: object, **kwargs: object) -> OperatorOp:
        """As `append_op`, before the operation of this index."""
        op = self.append_op(*args, **kwargs)  # type: ignore[arg-type]
        self.ops.insert(index, self.ops.pop())
        return op

    def _remove_op(self, index: int, sync: bool = True) -> None:
        """Take the operation of this index out."""
        del self.ops[index]

    def _operator(
        self,
        op_type: str | None,
        inputs: SlotArguments | None,
        outputs: SlotArguments | None,
        attrs: Mapping[str, object] | None,
        stop_gradient: bool,
    ) -> OperatorOp:
        if op_type is None:
            raise ValueError("`type` to initialized an Operator can not be None.")
        if not has_operator(op_type):
            raise ValueError(f'Operator "{op_type}" has not been registered.')
        op = OperatorOp(op_type, slots_of(inputs, self.var), slots_of(outputs, self.var), attrs or {})
        for output in op.outputs if stop_gradient else ():
            output.stop_gradient = True
        return op


def declare(
    name: str, shape: Sequence[int | None], dtype: object, program: Program | None = None
) -> Variable:
    """A variable that is fed; None and -1 are sizes that are known when the program runs."""
    data = (program or state.main).data
    sizes = [tuple(n if s is None or s == -1 else int(s) for s in shape) for n in SIZES]
    before = data.get(name)
    if before is not None and before._value.shape == sizes[0] and before.dtype == dtype:
        return before  # named again: the same input
    variable = new_variable(sizes[0], sizes[1], types.to_numpy(dtype), name, True)
    variable.is_data = True
    data[name] = variable
    return variable


def keep(tensor: Tensor) -> None:
    """Make a Tensor one of the program that is recorded, whether an operation reads it or not."""
    state.main.made[id(tensor)] = tensor


def keep_parameter(parameter: Parameter, initializer: object) -> None:
    """Make a parameter one of the programs, and say in the startup program how it began."""
    seed = state.startup.random_seed
    state.startup.ops.extend(initial_operations(parameter, initializer, seed))
    state.startup.made[id(parameter)] = parameter
    if callable(initializer) and not seed:
        beginning = Beginning(partial(initializer, parameter))
    else:
        if callable(initializer):  # each operation of the program begins with its seed
            with seeded_initializers(seed):
                initializer(parameter)
        beginning = restoring(parameter)
    state.startup.beginnings[id(parameter)] = beginning
    keep(parameter)


def find_parameter(name: str) -> Parameter | None:
    """The parameter of the current program that has this name: layers that name one share it."""
    value = state.main.global_block().vars.get(name)
    return value if isinstance(value, Parameter) else None


def _check_same(variable: Variable, shape: Sequence[int] | None, kind: np.dtype | None) -> None:
    """Raises: ValueError, where a variable is declared again with another shape or another type of elements."""
    before = variable.dtype.name
    for what, received, previous in (
        ("shape", None if shape is None else tuple(shape), tuple(variable.shape)),
        ("data type", None if kind is None else types.of_numpy(kind).name, before),
    ):
        if received is not None and received != previous:
            raise ValueError(
                f"Variable '{variable.name}' has been created before. The previous {what} is {previous}, the new "
                f"{what} is {received}. They are not matched."
            )
