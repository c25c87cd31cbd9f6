"""Programs: operations recorded instead of run, on variables that have shapes but no values."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import jax
import numpy as np

from framework.core.errors import TraceError
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dispatch import KEY, Compiled
from framework.paddle._kernel.mode import mode, set_recorder
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.nn.layer import create_parameter as create_parameter
from framework.paddle.static.argument_kinds import check_call
from framework.paddle.static.block import Block as Block
from framework.paddle.static.block import Frame, find_parameter, keep, keep_parameter
from framework.paddle.static.block import declare as declare
from framework.paddle.static.described_program import add_described, describe, take_added_operators
from framework.paddle.static.initial_operations import Beginning, restoring
from framework.paddle.static.program_description import ProgramDesc
from framework.paddle.static.recorded_operations import AssignOp as AssignOp
from framework.paddle.static.recorded_operations import CallOp as CallOp
from framework.paddle.static.recorded_operations import StepOp as StepOp
from framework.paddle.static.shapes import fitting_shapes
from framework.paddle.static.state import defer_by as defer_by
from framework.paddle.static.state import state
from framework.paddle.static.variable import (
    Cast,
    Op,
    Values,
    Variable,
    replay_all,
    result_variables,
    share_lod_levels,
)
from framework.paddle.static.variable import program_of as program_of
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.legacy_operators import Levels
    from framework.paddle.optimizer.base import Optimizer


class AfterStep(Protocol):
    """What is done after a step of a program."""

    interval: int

    def after_step(self, program: Program) -> None: ...

    def average(self, program: Program, working: bool) -> bool: ...


PruneTarget: TypeAlias = "Tensor | Op | str"


class Program:
    """Recorded operations. `Executor.run` compiles and runs them."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.data: dict[str, Variable] = {}
        self.made: dict[int, Tensor] = {}  # parameters and global variables that were created for it
        self.beginnings: dict[int, Beginning] = {}  # of a startup program, by the id of what begins
        self.frames = [Frame(-1)]
        self.current_block_idx = self._seed = 0
        self._description: ProgramDesc | None = None
        self.for_test = False
        self.compiled: dict[object, list[Any]] = {}
        self.fetched_lengths: dict[object, Sequence[Levels]] = {}  # of compiled programs, by their keys
        self.cast: Cast | None = None  # of the inputs of operations, to 16 bits
        self.server_run: AfterStep | None = None  # of a program for parameter servers
        self.readers: list[Callable[[], Mapping[str, Any]]] = []  # what it is fed with besides, a batch a run
        state.programs.append(weakref.ref(self, state.programs.remove))

    def global_seed(self, seed: int = 0) -> None:
        from framework.paddle._kernel.random import seed as set_seed

        set_seed(seed)

    @property
    def random_seed(self) -> int:
        """What random operations begin with; 0: the global stream."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise ValueError(
                f"Program.random_seed's input seed must be an integer, but received {type(seed)}."
            )
        self._seed = seed

    # -- blocks ----------------------------------------------------------------------------------------------------

    def global_block(self) -> Block:
        return Block(self)

    def block(self, index: int) -> Block:
        """A block. Raises: IndexError: there are not so many."""
        return self.blocks[index]

    def current_block(self) -> Block:
        """The block that is recorded into."""
        return Block(self, self.current_block_idx)

    @property
    def blocks(self) -> list[Block]:
        return [Block(self, number) for number in range(len(self.frames))]

    @property
    def num_blocks(self) -> int:
        return len(self.frames)

    def ops_of(self, index: int) -> list[Op]:
        """The operations of a block."""
        return self.ops if index == self.current_block_idx else self.frames[index].ops

    def _create_block(self, parent_idx: int | None = None) -> Block:
        """A new block within the current one, or another, which is recorded into from here on."""
        self.frames.append(Frame(self.current_block_idx if parent_idx is None else parent_idx))
        self._enter_block(len(self.frames) - 1)
        return self.current_block()

    def _rollback(self) -> None:
        """Record into the block around the current one again."""
        self._enter_block(self.frames[self.current_block_idx].parent)

    def _roll_to_global_block(self) -> None:
        self._enter_block(0)

    def _enter_block(self, index: int) -> None:
        self.frames[self.current_block_idx].ops = self.ops
        self.current_block_idx, self.ops = index, self.frames[index].ops

    # -- descriptions ----------------------------------------------------------------------------------------------

    @property
    def desc(self) -> ProgramDesc:
        """Its description as it is now."""
        if self._description is None:
            self._description = ProgramDesc()
        return describe(self, self._description)

    def _sync_with_cpp(self) -> None:
        """Take operators that were added to the description, where they can run here."""
        added = take_added_operators(self.desc)
        add_described(self, added)

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """The program that the bytes of a `.pdmodel` describe. Operators run as those of `append_op`, with parameters
        of zeros before their values are loaded; operations that functions of Python recorded cannot run.

        Raises:
            ValueError: they are no ProgramDesc.
        """
        description = ProgramDesc()
        description.parse_from_string(binary_str)
        program = Program()
        add_described(program, description.block(0))
        return program

    def _copy_param_info_from(self, other: Program) -> None:
        """Nothing: clones have the parameters themselves. Raises: TypeError: `other` is no program."""
        if not isinstance(other, Program):
            raise TypeError(
                "Function Program._copy_param_info_from() needs to pass in a source Program, but received "
                f"{type(other)}"
            )

    _copy_dist_param_info_from = _copy_data_info_from = _copy_param_info_from

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.data.values()
        yield from self.made.values()
        for op in self.ops if len(self.frames) == 1 else [op for block in self.blocks for op in block.ops]:
            yield from op.reads()
            yield from op.outputs

    def holds(self, variable: Variable) -> bool:
        """Whether it is an input of this program, or one of its operations computes it."""
        if self.data.get(variable.name) is variable:
            return True
        return any(output is variable for op in reversed(self.ops) for output in op.outputs)

    def reads(self, tensor: Tensor) -> bool:
        """Whether one of its operations reads a parameter or another Tensor."""
        return any(operand is tensor for op in self.ops for operand in op.reads())

    def list_vars(self) -> Iterator[Tensor]:
        """All variables and parameters, each once."""
        yield from {id(t): t for t in self._tensors()}.values()

    def all_parameters(self) -> list[Parameter]:
        return [t for t in self.list_vars() if isinstance(t, Parameter)]

    def find_gradient(self, name: str) -> Variable | None:
        """The gradient of a variable of the last loss that has gradients ("x@GRAD"); None: there is none."""
        if not name.endswith("@GRAD"):
            return None
        source = {tensor.name: tensor for tensor in self.list_vars()}.get(name.removesuffix("@GRAD"))
        if source is None:
            return None
        gradients = (op.gradient_of(source, self) for op in reversed(self.ops))
        return next((one for one in gradients if one is not None), None)

    def optimizers(self) -> list[Optimizer]:
        """The optimizers that train by this program."""
        return [op.optimizer for op in self.ops if isinstance(op, StepOp)]

    def state_dict(self, mode: str = "all", scope: object = None) -> dict[str, Tensor]:
        """Parameters and other persistent Tensors (`param`), the state of optimizers (`opt`), or both."""
        if mode not in ("param", "opt", "all"):
            raise ValueError(f"mode is param, opt or all, received {mode!r}")
        tensors: dict[str, Tensor] = {}
        if mode != "opt":
            tensors.update(
                {t.name: t for t in self.list_vars() if t.persistable and not isinstance(t, Variable)}
            )
        if mode != "param":
            for optimizer in self.optimizers():
                tensors.update({n: t for n, t in optimizer.state_dict().items() if isinstance(t, Tensor)})
        return tensors

    def set_state_dict(self, state_dict: Mapping[str, object], scope: object = None) -> None:
        """Take values by name."""
        for name, tensor in self.state_dict().items():
            if name in state_dict:
                tensor._value = as_array(state_dict[name], tensor.dtype)

    def clone(self, for_test: bool = False) -> Program:
        """The same operations; `for_test` without training, dropout and moving statistics."""
        program = copy.copy(self)
        program.ops = [op for op in self.ops if not (for_test and op.trains)]
        program.data, program.made = dict(self.data), dict(self.made)
        program.beginnings = dict(self.beginnings)
        program.frames = [replace(frame, ops=list(frame.ops)) for frame in self.frames]
        program.compiled, program.fetched_lengths, program._description = {}, {}, None
        program.readers = [] if for_test else list(self.readers)
        program.for_test = self.for_test or for_test
        return program

    def _prune(self, targets: PruneTarget | Sequence[PruneTarget]) -> Program:
        """The same without the operations, and the inputs, that none of `targets` comes from: variables, their names
        and operations. Raises: ValueError: a target is something else."""
        return self._prune_with_input((), targets)

    def _prune_with_input(
        self, feeded_var_names: Sequence[str], targets: PruneTarget | Sequence[PruneTarget]
    ) -> Program:
        """As `_prune`, also without what computes the variables that are fed.

        Raises:
            ValueError: a name of what is fed is no text, or a target is something else than `_prune` takes.
        """
        listed = list(targets) if isinstance(targets, list | tuple) else [targets]
        if others := [one for one in listed if not isinstance(one, Tensor | Op | str)]:
            raise ValueError(
                "All targets of Program._prune_with_input() can only be Variable or Operator, but received "
                f"{type(others[0])}."
            )
        if wrong := [name for name in feeded_var_names if not isinstance(name, str)]:
            raise ValueError(f"the names of fed variables can only be str, received {wrong[0]!r:.80}")
        named = {tensor.name: tensor for tensor in self.list_vars()}
        ops = [one for one in listed if isinstance(one, Op)]
        variables = [
            named[one] if isinstance(one, str) else one for one in listed if isinstance(one, Tensor | str)
        ]
        fed = {id(one): one for name in feeded_var_names if isinstance(one := named.get(name), Variable)}
        program = self.clone()
        program.ops = ancestors(self, variables, fed, ops)
        needed = {id(tensor) for op in program.ops for tensor in op.reads()} | {id(one) for one in variables}
        data = self.data | {one.name: one for one in fed.values()}
        program.data = {name: one for name, one in data.items() if id(one) in needed}
        program.made = {key: one for key, one in self.made.items() if key in needed}
        return program

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        lines = [f"  {', '.join(o.name for o in op.outputs)} = {op.type}({_names(op)})" for op in self.ops]
        return "\n".join(["program {", *lines, "}"])

    __str__ = __repr__ = to_string

    def replay(self, values: Values) -> None:
        """Run all operations on the tape."""
        values.cast = self.cast
        replay_all(self.ops, values, self.for_test)


def ancestors(
    program: Program, variables: Sequence[Tensor], stops: Container[int] = (), targets: Sequence[Op] = ()
) -> list[Op]:
    """The operations that these variables, and the operations of `targets`, come from, in order with these; nothing is
    asked of those variables of the ids in `stops`."""
    needed, ops = {id(v) for v in variables}, []
    last = {id(op) for op in targets}
    for op in reversed(program.ops):
        if id(op) in last or any(id(o) in needed and id(o) not in stops for o in op.outputs):
            ops.append(op)
            needed.update(id(t) for t in op.reads())
    return ops[::-1]


state.main, state.startup = Program(), Program()


def _names(op: Op) -> str:
    return ", ".join(a.name if isinstance(a, Tensor) else str(a)[:20] for a in op.inputs)


def default_main_program() -> Program:
    """The program that is recorded into."""
    return state.main


def switch_main_program(program: Program) -> Program:
    """Record into another program; returns the one before."""
    before, state.main = state.main, program
    return before


def switch_startup_program(program: Program) -> Program:
    """Let another program be the one that sets parameters up; returns the one before."""
    before, state.startup = state.startup, program
    return before


def create_global_var(
    shape: Any,
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Tensor:
    """A Tensor of one value that stays between runs."""
    from framework.paddle._kernel.watch import unwatched

    with unwatched():
        tensor = wrap(as_array(np.full(tuple(shape), value), types.to_numpy(dtype)))
    tensor.name, tensor.persistable = name or unique_name.generate("global_var"), persistable
    keep(tensor)
    state.startup.beginnings[id(tensor)] = restoring(tensor)
    return tensor


def default_startup_program() -> Program:
    """Parameters have their first values as soon as they are made: this program says how, and computes nothing."""
    return state.startup


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Record into this program within the block."""
    if not isinstance(main_program, Program):
        raise TypeError(f"program_guard takes a Program, received {type(main_program).__name__}")
    before = state.main, state.startup
    state.main, state.startup = main_program, startup_program or state.startup
    try:
        yield
    finally:
        state.main, state.startup = before


class _Watcher:
    """Turns setting a Tensor's value to a variable into an entry of the program."""

    def read_value(self, tensor: Tensor, value: jax.Array) -> jax.Array:
        return value

    def set_value(self, tensor: Tensor, value: object, new: bool) -> bool:
        if not isinstance(value, Symbol) or value.variable is tensor:
            return True
        if new:
            raise TraceError(
                "a variable of a static program cannot become another Tensor without an operation"
            )
        default_main_program().ops.append(AssignOp(tensor, value.variable))
        if isinstance(tensor, Variable):
            tensor.__dict__["_array"] = Symbol(value.shape, value.other, value.dtype, tensor)
        return False

    def touch_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        return

    def touch_zero(self, tensor: Tensor, reads: bool) -> None:
        return


def record(compiled: Compiled, args: Sequence[object]) -> Variable | tuple[Variable, ...]:
    """What operations do in static mode: nothing but find the shapes of their results and append themselves."""
    inputs: list[object] = [
        a
        if a is None or a is KEY or isinstance(a, Tensor | bool | int | float | complex)
        else wrap(as_array(a))
        for a in args
    ]
    shapes, others, multiple = fitting_shapes(compiled, inputs)
    wanted = mode.grad_enabled and compiled.differentiable
    wanted = wanted and any(isinstance(a, Tensor) and not a.stop_gradient for a in inputs)
    outputs = result_variables(compiled.name, shapes, others, wanted)
    share_lod_levels(compiled.name, [a for a in inputs if isinstance(a, Variable)], outputs)
    default_main_program().ops.append(CallOp(compiled, inputs, outputs, mode.grad_enabled))
    return tuple(outputs) if multiple else outputs[0]


def enable_static() -> None:
    """From here on operations are recorded into programs."""
    if not state.on:
        state.on = True
        unique_name.switch(*state.names)
        mode.watcher = _Watcher()
        set_recorder(record)
        mode.check, mode.keep_parameter, mode.find_parameter = check_call, keep_parameter, find_parameter


def disable_static(place: object = None) -> None:
    """Back to running operations at once. Names of parameters are counted anew, and those in use are free again."""
    if state.on:
        state.on = False
        state.names = unique_name.switch()
        set_recorder(None)
        mode.watcher = mode.check = mode.keep_parameter = mode.find_parameter = None


def in_dynamic_mode() -> bool:
    """Whether operations run at once."""
    return not state.on


class _VariableOrTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor if in_dynamic_mode() else Variable | Parameter)


class PublicVariable(Variable, metaclass=_VariableOrTensor):
    """paddle.static.Variable: in dynamic mode every Tensor is an instance of it, as in Paddle, whose programs of both
    modes ask so."""


@contextlib.contextmanager
def recorded_apart() -> Iterator[list[Op]]:
    """Within the block operations go into a list of their own."""
    program = default_main_program()
    before, program.ops = program.ops, []
    try:
        yield program.ops
    finally:
        program.ops = before
