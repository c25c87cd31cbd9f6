"""Variables of programs, their values in a run, and the entries that compute them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import jax
import numpy as np

from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import ShapeError, ValueNeeded
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tape import Node
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.descriptions import AttrType
from framework.paddle.static.live_descriptions import OperationDescription, TensorDescription, description_of
from framework.paddle.static.numpy_functions import apply_ufunc
from framework.paddle.static.state import recent_programs, state
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle._kernel.compiled import Compiled
    from framework.paddle.legacy_operators import Levels
    from framework.paddle.static.program import Block, Program

SIZES = (64, 96)  # what stands for an unknown size, two ways
# Operations whose results have no lengths of sequences, though they may have as many rows as their inputs.
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "amax", "amin", "any", "all", "nansum", "nanmean")
_WITHOUT_LENGTHS = frozenset(
    (*_REDUCTIONS, "argmax", "argmin", "logsumexp", "norm", "gather", "index_select")
)
COMPUTED = Node((), 1)  # the history of computed variables, which in-place methods look at
ValueT = TypeVar("ValueT")
Cast: TypeAlias = "Callable[[Compiled, Sequence[object]], Sequence[object]]"


class Element(NamedTuple):
    """A Tensor of an array, with the lengths of its sequences."""

    tensor: Tensor
    levels: Levels | None


class Values(dict[int, Tensor]):
    """id of a variable -> its value in this run.

    Attributes:
        settings: Of those that are numbers while a program is traced.
        lengths: Of those whose rows are sequences of different lengths.
        arrays: The arrays of Tensors of this run, by the ids of the variables that stand for them; None: nothing was
            written at this position.
        cast: Gives the inputs of operations the types that they compute in; None: as they are.
    """

    def __init__(self, values: Mapping[int, Tensor] | None = None) -> None:
        super().__init__(values or {})
        of_run = values if isinstance(values, Values) else None
        self.settings: dict[int, np.ndarray] = {} if of_run is None else dict(of_run.settings)
        self.cast: Cast | None = None if of_run is None else of_run.cast
        self.lengths: dict[int, Levels] = {} if of_run is None else dict(of_run.lengths)
        self.arrays: dict[int, list[Element | None]] = {}
        if of_run is not None:
            self.arrays = {key: list(elements) for key, elements in of_run.arrays.items()}


class ElementCount(int):
    """The number of elements of a variable, -1 where it is not known; called, the variable that has it in a run.

    `size` is a number of Tensors and a method of variables in Paddle; what is written for both asks for the number.
    """

    _variable: Variable

    def __new__(cls, variable: Variable) -> Self:
        sizes = variable.shape
        count = super().__new__(cls, -1 if -1 in sizes else int(np.prod(sizes)))
        count._variable = variable
        return count

    def __call__(self) -> Tensor:
        from framework.paddle.ops.attribute import numel  # operations stand above this module

        return numel(self._variable)


class Variable(Tensor):
    """A Tensor of a static program. It has no values before an Executor runs the program."""

    lod_level = 0
    is_data = False
    looked_up: weakref.ref[Program] | None = None  # clones share variables: where it was asked for last
    __array_ufunc__ = apply_ufunc

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # a list in dynamic mode only, as in Paddle
        return tuple(self._value.known)  # type: ignore[attr-defined]

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> ElementCount:  # type: ignore[override]  # an int that can be called, too
        return ElementCount(self)

    @property
    def grad_name(self) -> str:
        """The name of its gradient."""
        return f"{self.name}@GRAD"

    @property
    def desc(self) -> TensorDescription:
        return description_of(self)

    def set_sizes(self, sizes: Iterable[int]) -> None:
        """Let it have other sizes; -1 is one that is known when the program runs."""
        listed = list(sizes)
        first, other = (tuple(free if size == -1 else int(size) for size in listed) for free in SIZES)
        self.__dict__["_array"] = Symbol(first, other, self._value.dtype, self)

    @property
    def type(self) -> str:
        """What it is: "VarType.LOD_TENSOR", or what `Block.create_var` was told."""
        return self.__dict__.get("_kind", "VarType.LOD_TENSOR")

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """Its description in lines."""
        lines = [
            f"name: {self.name}",
            f"type: {self.type}",
            f"dtype: {self.dtype.name}",
            f"shape: {self.shape}",
        ]
        return "\n".join([*lines, f"persistable: {self.persistable}", f"stop_gradient: {self.stop_gradient}"])

    def numpy(self, *args: object) -> np.ndarray:
        raise ValueNeeded(self, state.defer)

    def _scalar(self, use: str) -> np.ndarray:
        return self.numpy()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-D variable")
        return self.shape[0]

    def __setitem__(self, item: object, value: object) -> None:
        raise RuntimeError(
            "In static mode, the __setitem__ (looks like: x[indices] = values) should not be used. Please use "
            "x = paddle.static.setitem(x, indices, values)"
        )

    def detach(self) -> Tensor:
        assert self.type == "VarType.LOD_TENSOR", "only variables of LOD_TENSOR can be detached"
        from framework import paddle

        result = paddle.assign(self)
        result.stop_gradient = True
        return result

    def __repr__(self) -> str:
        kind = f"LOD_TENSOR.shape{tuple(self.shape)}.dtype({self.dtype.name}).stop_gradient({self.stop_gradient})"
        return f"{'persist ' if self.persistable else ''}var {self.name} : {kind}"

    __str__ = __repr__


def new_variable(
    shape: Sequence[int], other: Sequence[int], dtype: np.dtype, name: str, stop_gradient: bool
) -> Variable:
    """A variable of this shape; `other`: the shape with the other sizes for what is not known."""
    variable = object.__new__(Variable)
    variable.__dict__["_array"] = Symbol(tuple(shape), tuple(other), dtype, variable)
    variable._name, variable.stop_gradient = name, stop_gradient
    if not stop_gradient:
        variable._node = COMPUTED
    return variable


def result_variables(
    name: str,
    shapes: Sequence[jax.ShapeDtypeStruct],
    others: Sequence[jax.ShapeDtypeStruct],
    differentiable: bool,
) -> list[Variable]:
    """The variables of an operation's results, named after it; see `new_variable`."""
    return [
        new_variable(
            a.shape,
            b.shape,
            a.dtype,
            unique_name.generate_result(name),
            not (differentiable and a.dtype in INEXACT),
        )
        for a, b in zip(shapes, others, strict=True)
    ]


def share_lod_levels(name: str, inputs: Iterable[Variable], outputs: Iterable[Variable]) -> None:
    """Let outputs with as many rows as an input with lengths have lengths, too; `name` is the operation's."""
    source = next((one for one in inputs if one.lod_level), None)
    if source is None or name in _WITHOUT_LENGTHS:
        return
    for output in outputs:
        if output.shape[:1] == source.shape[:1]:
            output.lod_level = source.lod_level


_SLOTS = ("X", "Y", "Z")  # what Paddle calls the inputs of most operators


class Op:
    """One entry of a program. `replay` computes its outputs from the values of its inputs."""

    type = ""  # the name of the operator that Paddle records
    operation = ""  # our name of it, where it runs one of our operations
    inputs: Sequence[Any] = ()
    outputs: Sequence[Variable] = ()
    computes = True  # False: it only says what was done when the program was made
    trains = False  # belongs to training: clone(for_test=True) leaves it out
    gives_lengths = False  # says itself which lengths its outputs have
    reads_values = False  # looks at values of its inputs: its program cannot be traced
    runs_by_name = False  # a description of it, with the operator's name and attributes, is enough to run it
    steps_vary = False  # has gradients only where operations run one by one
    _notes: dict[
        str, object
    ]  # attributes beside the settings: roles, scopes of names, what programs say of it

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """An entry that remembers which scope of names and which device it was recorded for."""
        op = object.__new__(cls)
        op._notes = {"op_role": 0, "op_role_var": [], "with_quant_attr": False, **state.notes}
        return op

    def replay(self, values: Values, for_test: bool) -> None:
        raise NotImplementedError

    def gradient_of(self, source: Tensor, program: Program) -> Variable | None:
        """The gradient of a loss by a variable that it comes from, where this is what computes gradients."""
        return None

    def reads(self) -> Iterable[Tensor]:
        """The variables and Tensors that it needs."""
        return [a for a in self.inputs if isinstance(a, Tensor)]

    # -- what programs ask of an operator --------------------------------------------------------------------------

    @property
    def attrs(self) -> Mapping[str, object]:
        """The settings, by name."""
        return {}

    @property
    def input_slots(self) -> Mapping[str, Sequence[Tensor]]:
        """The Tensors of each slot of the inputs."""
        names = [*_SLOTS, *(f"Input{number}" for number in range(len(_SLOTS), len(self.inputs)))]
        return {name: [t] for name, t in zip(names, self.reads(), strict=False)}

    @property
    def output_slots(self) -> Mapping[str, Sequence[Tensor]]:
        """The Tensors of each slot of the outputs."""
        return {"Out" if not number else f"Out{number}": [t] for number, t in enumerate(self.outputs)}

    @property
    def input_names(self) -> list[str]:
        """The slots of the inputs."""
        return list(self.input_slots)

    @property
    def output_names(self) -> list[str]:
        """The slots of the outputs."""
        return list(self.output_slots)

    @property
    def input_arg_names(self) -> list[str]:
        """The names of the inputs."""
        return [tensor.name for tensors in self.input_slots.values() for tensor in tensors]

    @property
    def output_arg_names(self) -> list[str]:
        """The names of the outputs."""
        return [tensor.name for tensors in self.output_slots.values() for tensor in tensors]

    def input(self, name: str) -> list[str]:
        """The names of the variables in a slot of the inputs."""
        return [tensor.name for tensor in self.input_slots[name]]

    def output(self, name: str) -> list[str]:
        """The names of the variables in a slot of the outputs."""
        return [tensor.name for tensor in self.output_slots[name]]

    @property
    def attr_names(self) -> list[str]:
        """The names of the attributes that were given."""
        return list(self.all_attrs())

    def has_attr(self, name: str) -> bool:
        """Whether this attribute was given."""
        return name in self.all_attrs()

    def attr(self, name: str) -> object:
        """The value of an attribute. Raises: RuntimeError: there is none of this name."""
        attributes = self.all_attrs()
        if name not in attributes:
            raise RuntimeError(
                f"(NotFound) Attribute {name} is not found in {self.type}: {', '.join(attributes)}."
            )
        return attributes[name]

    def attr_type(self, name: str) -> AttrType:
        """The type of an attribute. Raises: RuntimeError: there is none of this name."""
        return self.desc.attr_type(name)

    def all_attrs(self) -> dict[str, object]:
        """All attributes that were given, and what programs say of every operation."""
        return {**self._notes, **self.attrs}

    def _set_attr(self, name: str, value: object) -> None:
        """Say more of an operation. Raises: RuntimeError: it would have to compute something else."""
        if name in self.attrs and self.attrs[name] != value:
            raise RuntimeError(
                f"{self.type} was recorded with {name} = {self.attrs[name]!r}: record it anew."
            )
        self._notes[name] = value

    def _remove_attr(self, name: str) -> None:
        """Say less of an operation."""
        self._notes.pop(name, None)

    def infer_shapes(self) -> None:
        """Nothing: recorded operations have the shapes of their results."""

    @property
    def desc(self) -> OperationDescription:
        """Its description as it is now."""
        return OperationDescription(self)

    @property
    def idx(self) -> int:
        """Its number in its program; -1: it was taken out."""
        program = program_of(self.outputs[0]) if self.outputs else state.main
        return next((number for number, op in enumerate(program.ops) if op is self), -1)


def replay_all(ops: Iterable[Op], values: Values, for_test: bool) -> None:
    """Run operations one after the other. Outputs with as many rows as an input with lengths have these, too."""
    for op in ops:
        op.replay(values, for_test)
        if values.lengths:
            _share_lengths(op, values)


def _share_lengths(op: Op, values: Values) -> None:
    source = next((id(t) for t in op.reads() if id(t) in values.lengths), None)
    if source is None or op.trains or op.gives_lengths or (op.operation or op.type) in _WITHOUT_LENGTHS:
        return
    rows = values[source]._value.shape[:1]
    for output in op.outputs:
        if id(output) in values and values[id(output)]._value.shape[:1] == rows:
            values.lengths.setdefault(id(output), values.lengths[source])


def value_of(tensor: ValueT, values: Values) -> ValueT | Tensor:
    """What a variable is in this run; other things are themselves."""
    if not isinstance(tensor, Variable):
        return tensor
    value = values.get(id(tensor))
    if value is None:
        raise ShapeError(
            "a variable has no value in this run",
            where="Executor.run",
            received=tensor.name,
            fix="feed it, or run the program that computes it",
        )
    return value


def program_of(variable: Tensor) -> Program:
    """The program in which a variable was last asked for by its name, else the one that computes it, or that reads a
    parameter, else the one that is recorded into."""
    if not isinstance(variable, Variable):
        return next((program for program in recent_programs() if program.reads(variable)), state.main)
    if variable.looked_up is not None and (program := variable.looked_up()) is not None:
        return program
    return next((program for program in recent_programs() if program.holds(variable)), state.main)


def _block(tensor: Tensor) -> Block:
    """The outermost block of the program that has it, else of the one that is recorded into. Packages hand it to
    initializers: `init(param, param.block)`."""
    return program_of(tensor).global_block()


Tensor.block = property(_block)  # type: ignore[attr-defined]  # of parameters and plain Tensors, too
