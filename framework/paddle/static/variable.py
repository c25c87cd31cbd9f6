"""Variables of programs, their values in a run, and the entries that compute them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np

from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import ShapeError, ValueNeeded
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tape import Node
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.description import VariableDescription
from framework.paddle.static.numpy_functions import apply_ufunc
from framework.paddle.static.state import state
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.static.program import Block, Program

SIZES = (64, 96)  # what stands for an unknown size, two ways
COMPUTED = Node((), 1)  # the history of computed variables, which in-place methods look at
ValueT = TypeVar("ValueT")


class Values(dict[int, Tensor]):
    """id of a variable -> its value in this run. `settings`: of those that are numbers while a program is traced."""

    def __init__(self, values: Mapping[int, Tensor] | None = None) -> None:
        super().__init__(values or {})
        self.settings: dict[int, np.ndarray] = dict(values.settings) if isinstance(values, Values) else {}


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
    def size(self) -> int:
        sizes = self._value.known  # type: ignore[attr-defined]
        return -1 if -1 in sizes else int(np.prod(sizes))

    @property
    def block(self) -> Block:
        return program_of(self).global_block()

    @property
    def grad_name(self) -> str:
        """The name of its gradient."""
        return f"{self.name}@GRAD"

    @property
    def desc(self) -> VariableDescription:
        return VariableDescription(self)

    def numpy(self, *args: object) -> np.ndarray:
        raise ValueNeeded(self, state.defer)

    def _scalar(self, use: str) -> np.ndarray:
        return self.numpy()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-D variable")
        return self.shape[0]

    def detach(self) -> Tensor:
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


class Op:
    """One entry of a program. `replay` computes its outputs from the values of its inputs."""

    type = ""
    inputs: Sequence[Any] = ()
    outputs: Sequence[Variable] = ()
    trains = False  # belongs to training: clone(for_test=True) leaves it out
    looks_at_values = False  # its results have as many rows as values say

    def replay(self, values: Values, for_test: bool) -> None:
        raise NotImplementedError

    def reads(self) -> Iterable[Tensor]:
        """The variables and Tensors that it needs."""
        return [a for a in self.inputs if isinstance(a, Tensor)]


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
    """The program in which a variable was last asked for by its name, else the one that is recorded into."""
    reference = variable.looked_up if isinstance(variable, Variable) else None
    return (reference and reference()) or state.main
