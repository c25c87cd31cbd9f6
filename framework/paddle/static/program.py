"""Programs: operations recorded instead of run, on variables that have shapes but no values."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import jax
import numpy as np

from framework.core.errors import TraceError
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.dispatch import KEY, Compiled, execute
from framework.paddle._kernel.kernels import has_operator
from framework.paddle._kernel.mode import mode, set_recorder
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.nn.layer import create_parameter as create_parameter
from framework.paddle.nn.param_attr import AttrLike, ParamAttr
from framework.paddle.static.argument_kinds import check_call
from framework.paddle.static.initial_operations import initial_operations
from framework.paddle.static.operator import OperatorOp, SlotArguments, slots_of
from framework.paddle.static.shapes import fitting_shapes
from framework.paddle.static.state import defer_by as defer_by
from framework.paddle.static.state import state
from framework.paddle.static.test_forms import FORMS, TEST_FORMS
from framework.paddle.static.variable import (
    SIZES,
    Cast,
    Op,
    Values,
    Variable,
    new_variable,
    replay_all,
    result_variables,
    share_lod_levels,
    value_of,
)
from framework.paddle.static.variable import program_of as program_of
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.legacy_operators import Levels
    from framework.paddle.nn.initializer import Initializer
    from framework.paddle.optimizer.base import Optimizer
    from framework.paddle.regularizer import WeightDecayRegularizer


class CallOp(Op):
    """A compiled operation."""

    def __init__(
        self, compiled: Compiled, inputs: Sequence[object], outputs: Sequence[Variable], recorded: bool
    ) -> None:
        self.compiled, self.inputs, self.outputs = compiled, tuple(inputs), outputs
        self.type, self.recorded = compiled.name, recorded

    @property
    def attrs(self) -> Mapping[str, object]:
        return self.compiled.settings

    def replay(self, values: Values, for_test: bool) -> None:
        args: Sequence[object] = [value_of(a, values) for a in self.inputs]
        if values.cast is not None:
            args = values.cast(self.compiled, args)
        form = (TEST_FORMS if for_test else FORMS).get(self.type)
        enabled, mode.grad_enabled = mode.grad_enabled, self.recorded
        try:
            output = execute(self.compiled, args) if form is None else form(self.compiled.settings, args)
        finally:
            mode.grad_enabled = enabled
        results = output if isinstance(output, tuple) else (output,)
        for variable, result in zip(self.outputs, results, strict=False):
            if variable.stop_gradient and not result.stop_gradient:
                result = result.detach()
            elif result.stop_gradient and not variable.stop_gradient:
                result.stop_gradient = False  # set by the program: gradients begin here
            values[id(variable)] = result


class AssignOp(Op):
    """A variable, or a Tensor of the outside, gets the value of a variable."""

    type = "assign"

    def __init__(self, target: Tensor, source: Variable) -> None:
        self.target, self.inputs = target, (source,)
        self.trains = not isinstance(target, Variable)
        self.outputs = (target,) if isinstance(target, Variable) else ()

    def replay(self, values: Values, for_test: bool) -> None:
        value = value_of(self.inputs[0], values)
        if isinstance(self.target, Variable):
            values[id(self.target)] = value
        else:
            self.target._value = value._value


class Block:
    """The operations and variables of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.idx = 0
        self.parent_idx = self.forward_block_idx = -1

    @property
    def ops(self) -> list[Op]:
        return self.program.ops

    @property
    def vars(self) -> dict[str, Tensor]:
        return {tensor.name: tensor for tensor in self.program.list_vars()}

    def var(self, name: str) -> Tensor:
        """Raises: ValueError: there is no such variable."""
        found = self.vars.get(name)
        if found is None:
            found = self.program.find_gradient(name)
        if found is None:
            raise ValueError(f"var {name} not in this block")
        if isinstance(found, Variable):
            found.looked_up = weakref.ref(self.program)
        return found

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
        before = mode.keep_parameter, mode.find_parameter
        mode.keep_parameter, mode.find_parameter = _keep_parameter, _find
        try:
            with program_guard(self.program, self.program):
                return create_parameter(shape, dtype, name, attr)
        finally:
            mode.keep_parameter, mode.find_parameter = before

    def create_var(
        self,
        name: str | None = None,
        shape: Sequence[int] = (),
        dtype: DTypeLike = "float32",
        persistable: bool = False,
        stop_gradient: bool = True,
        **options: object,
    ) -> Variable:
        """A new variable, which an operator of `append_op` may compute."""
        name = name or unique_name.generate("_generated_var")
        kind = types.to_numpy_or(dtype, np.dtype(np.float32))
        variable = declare(name, () if shape is None else shape, kind, self.program)
        variable.persistable, variable.is_data = persistable, False
        variable.stop_gradient = stop_gradient
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
        self.program.ops.append(op)
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
        self.program.ops.insert(0, op)
        return op

    def _insert_op(self, index: int, *args: object, **kwargs: object) -> OperatorOp:
        """As `append_op`, before the operation of this index."""
        op = self.append_op(*args, **kwargs)  # type: ignore[arg-type]
        self.program.ops.insert(index, self.program.ops.pop())
        return op

    def _remove_op(self, index: int, sync: bool = True) -> None:
        """Take the operation of this index out."""
        del self.program.ops[index]

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


class AfterStep(Protocol):
    """What is done after a step of a program."""

    interval: int

    def after_step(self, program: Program) -> None: ...

    def average(self, program: Program, working: bool) -> bool: ...


class Program:
    """Recorded operations. `Executor.run` compiles and runs them."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.data: dict[str, Variable] = {}
        self.made: dict[int, Tensor] = {}  # parameters and global variables that were created for it
        self.random_seed = 0
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

    def global_block(self) -> Block:
        return Block(self)

    def block(self, index: int) -> Block:
        return Block(self)

    current_block = global_block

    @property
    def blocks(self) -> list[Block]:
        return [Block(self)]

    @property
    def num_blocks(self) -> int:
        return 1

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.data.values()
        yield from self.made.values()
        for op in self.ops:
            yield from op.reads()
            yield from op.outputs

    def holds(self, variable: Variable) -> bool:
        """Whether it is an input of this program, or one of its operations computes it."""
        if self.data.get(variable.name) is variable:
            return True
        return any(output is variable for op in reversed(self.ops) for output in op.outputs)

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
        program.compiled, program.fetched_lengths = {}, {}
        program.readers = [] if for_test else list(self.readers)
        program.for_test = self.for_test or for_test
        return program

    def _prune(self, targets: Sequence[Tensor | str]) -> Program:
        """The same without the operations, and the inputs, that none of `targets` comes from."""
        return self._prune_with_input((), targets)

    def _prune_with_input(self, feeded_var_names: Sequence[str], targets: Sequence[Tensor | str]) -> Program:
        """As `_prune`, also without what computes the variables that are fed.

        Raises:
            ValueError: a name of what is fed is no text.
        """
        if wrong := [name for name in feeded_var_names if not isinstance(name, str)]:
            raise ValueError(f"the names of fed variables can only be str, received {wrong[0]!r:.80}")
        named = {tensor.name: tensor for tensor in self.list_vars()}
        variables = [named[one] if isinstance(one, str) else one for one in targets]
        fed = {id(one): one for name in feeded_var_names if isinstance(one := named.get(name), Variable)}
        program = self.clone()
        program.ops = ancestors(self, variables, fed)
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


def ancestors(program: Program, variables: Sequence[Tensor], stops: Container[int] = ()) -> list[Op]:
    """The operations that these variables come from, in order; nothing is asked of those of the ids in `stops`."""
    needed, ops = {id(v) for v in variables}, []
    for op in reversed(program.ops):
        if any(id(output) in needed and id(output) not in stops for output in op.outputs):
            ops.append(op)
            needed.update(id(t) for t in op.reads())
    return ops[::-1]


state.main, state.startup = Program(), Program()


def _names(op: Op) -> str:
    return ", ".join(a.name if isinstance(a, Tensor) else str(a)[:20] for a in op.inputs)


class StepOp(Op):
    """An optimizer moves its parameters."""

    type = "optimizer"
    trains = True

    def __init__(self, optimizer: Optimizer, pairs: Sequence[tuple[Parameter, Variable]]) -> None:
        self.optimizer, self.pairs = optimizer, pairs
        self.inputs = [part for pair in pairs for part in pair]

    def replay(self, values: Values, for_test: bool) -> None:
        for parameter, gradient in self.pairs:
            parameter._grad = value_of(gradient, values)
        self._step()
        for parameter, _ in self.pairs:
            parameter._grad = None

    def _step(self) -> None:
        self.optimizer.step()


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
    _keep(tensor)
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


def declare(
    name: str, shape: Sequence[int | None], dtype: object, program: Program | None = None
) -> Variable:
    """A variable that is fed; None and -1 are sizes that are known when the program runs."""
    data = (program or default_main_program()).data
    sizes = [tuple(n if s is None or s == -1 else int(s) for s in shape) for n in SIZES]
    before = data.get(name)
    if before is not None and before._value.shape == sizes[0] and before.dtype == dtype:
        return before  # named again: the same input
    variable = new_variable(sizes[0], sizes[1], types.to_numpy(dtype), name, True)
    variable.is_data = True
    data[name] = variable
    return variable


def _keep(tensor: Tensor) -> None:
    """Make a Tensor one of the program that is recorded, whether an operation reads it or not."""
    default_main_program().made[id(tensor)] = tensor


def _keep_parameter(parameter: Parameter, initializer: object) -> None:
    """Make a parameter one of the programs, and say in the startup program how it began."""
    state.startup.ops.extend(initial_operations(parameter, initializer, state.startup.random_seed))
    state.startup.made[id(parameter)] = parameter
    _keep(parameter)


def _find(name: str) -> Parameter | None:
    """The parameter of the current program that has this name: layers that name one share it."""
    value = default_main_program().global_block().vars.get(name)
    return value if isinstance(value, Parameter) else None


def enable_static() -> None:
    """From here on operations are recorded into programs."""
    if not state.on:
        state.on = True
        unique_name.switch(*state.names)
        mode.watcher = _Watcher()
        set_recorder(record)
        mode.check, mode.keep_parameter, mode.find_parameter = check_call, _keep_parameter, _find


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
