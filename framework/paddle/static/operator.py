"""Operators by their names, as `Block.append_op` appends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import jax
import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.kernels import run_by_name
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.operators import result_sizes_vary
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.legacy_operators import (
    WITHOUT_GRADIENTS,
    LengthsError,
    Levels,
    find_legacy_operator,
)
from framework.paddle.static.state import state
from framework.paddle.static.variable import COMPUTED, SIZES, Op, Values, Variable, value_of

Slots: TypeAlias = Mapping[str, Sequence[Tensor]]
SlotArguments: TypeAlias = "Mapping[str, Tensor | str | Sequence[Tensor | str] | None]"


def slots_of(arguments: SlotArguments | None, variable: Callable[[str], Tensor]) -> dict[str, list[Tensor]]:
    """The Tensors of each slot, which may be named; `variable` finds a name."""
    slots: dict[str, list[Tensor]] = {}
    for slot, entry in (arguments or {}).items():
        entries = [entry] if isinstance(entry, Tensor | str) else entry
        of_run = getattr(entry, "variable", None)  # of an array that the program fills
        if isinstance(of_run, Variable):
            entries = [of_run]
        if entries:
            slots[slot] = [variable(one) if isinstance(one, str) else one for one in entries]
    return slots


class OperatorOp(Op):
    """An operator of saved programs with its inputs and outputs by slot ("X", "Out")."""

    runs_by_name = True

    def __init__(self, op_type: str, inputs: Slots, outputs: Slots, attrs: Mapping[str, object]) -> None:
        self.type, self._inputs, self._outputs = op_type, inputs, outputs
        self._attrs = {name: _plain(value) for name, value in attrs.items() if value is not None}
        self.inputs = [tensor for tensors in inputs.values() for tensor in tensors]
        self.outputs = [t for tensors in outputs.values() for t in tensors if isinstance(t, Variable)]
        self.recorded = mode.grad_enabled
        self.gives_lengths = find_legacy_operator(op_type) is not None
        self.reads_values = result_sizes_vary(op_type)  # results have as many rows as values say
        if self.outputs:
            self._take_shapes()

    @property
    def input_slots(self) -> Slots:
        return self._inputs

    @property
    def output_slots(self) -> Slots:
        return self._outputs

    @property
    def attrs(self) -> Mapping[str, object]:
        return self._attrs

    def _set_attr(self, name: str, value: object) -> None:
        """Run with another attribute from here on."""
        self._attrs[name] = _plain(value)
        state.changes += 1

    def _remove_attr(self, name: str) -> None:
        """Run without an attribute from here on."""
        super()._remove_attr(name)
        if self._attrs.pop(name, None) is not None:
            state.changes += 1

    def infer_shapes(self) -> None:
        """Give the outputs their shapes and types anew."""
        if self.outputs:
            self._take_shapes()

    def _results(
        self, slots: dict[str, list[Tensor]], values: Values | None = None
    ) -> dict[str, list[Tensor]]:
        """Its outputs; with the lengths of sequences that `values` has, which takes those of the outputs."""
        counts = {slot: len(tensors) for slot, tensors in self.output_slots.items()}
        if values is None or not values.lengths:
            return run_by_name(self.type, slots, self.attrs, counts)
        lengths = {
            slot: [levels for tensor in tensors for _, levels in _operands_of(tensor, values)]
            for slot, tensors in self.input_slots.items()
        }
        output_lengths: dict[str, Levels] = {}
        results = run_by_name(self.type, slots, self.attrs, counts, lengths, output_lengths)
        for slot, levels in output_lengths.items():
            for target in self.output_slots.get(slot, ()):
                values.lengths[id(target)] = levels
        return results

    def replay(self, values: Values, for_test: bool) -> None:
        enabled, mode.grad_enabled = mode.grad_enabled, self.recorded
        try:
            slots = {
                slot: [value for tensor in tensors for value, _ in _operands_of(tensor, values)]
                for slot, tensors in self.input_slots.items()
            }
            results = self._results(slots, values)
        finally:
            mode.grad_enabled = enabled
        for slot, tensors in self.output_slots.items():
            for target, result in zip(tensors, results.get(slot, ())):
                if isinstance(target, Variable):
                    values[id(target)] = result.detach() if target.stop_gradient else result
                else:
                    target._value = result._value

    def _take_shapes(self) -> None:
        """Give the outputs the shapes and types that the operator computes; where it needs values or lengths for them,
        they stay as they were declared."""
        try:
            first, second = self._evaluated(False), self._evaluated(True)
        except (jax.errors.JAXTypeError, LengthsError) as error:
            self.reads_values = self.reads_values or not isinstance(error, LengthsError)
            self._take_history(self.outputs)
            return
        computed = [output for output in self.outputs if id(output) in first]
        for output in computed:
            one, other = first[id(output)], second[id(output)]
            shape, other_shape = one.shape, other.shape
            if self.reads_values and one.shape:  # a compiled program has all rows that there could be
                shape, other_shape = ((size, *one.shape[1:]) for size in SIZES)
            output.__dict__["_array"] = Symbol(shape, other_shape, one.dtype, output)
        self._take_history(computed)

    def _take_history(self, outputs: Sequence[Variable]) -> None:
        """Let outputs want a gradient where an input does."""
        differentiable = mode.grad_enabled and any(not t.stop_gradient for t in self.inputs)
        differentiable = differentiable and self.type not in WITHOUT_GRADIENTS
        for output in outputs if differentiable else ():
            if output._value.dtype in INEXACT:
                output.stop_gradient, output._node = False, COMPUTED

    def _evaluated(self, other: bool) -> dict[int, jax.ShapeDtypeStruct]:
        """The shape of each output, by its id; see `new_variable` for `other`."""
        order: list[int] = []

        def run(arrays: Sequence[jax.Array]) -> list[jax.Array]:
            remaining = iter(arrays)
            slots = {slot: [wrap(next(remaining)) for _ in ts] for slot, ts in self.input_slots.items()}
            results = self._results(slots)
            pairs = [
                (target, result)
                for slot, targets in self.output_slots.items()
                for target, result in zip(targets, results.get(slot, ()))
            ]
            order[:] = [id(target) for target, _ in pairs]
            return [result._value for _, result in pairs]

        with x64(), recorder_scope(None):
            shapes = jax.eval_shape(run, [_spec(tensor, other) for tensor in self.inputs])
        return dict(zip(order, shapes, strict=True))


def _operands_of(tensor: Tensor, values: Values) -> list[tuple[Tensor, Levels | None]]:
    """What an input is in this run, with its lengths: all Tensors of an array."""
    if id(tensor) not in values.arrays:
        return [(value_of(tensor, values), values.lengths.get(id(tensor)))]
    return [(one.tensor, one.levels) for one in values.arrays[id(tensor)] if one is not None]


def _spec(tensor: Tensor, other: bool) -> jax.ShapeDtypeStruct:
    value = tensor._value
    shape = value.other if other and isinstance(value, Symbol) else value.shape
    return jax.ShapeDtypeStruct(shape, value.dtype)


def _plain(value: object) -> object:
    """An attribute as programs in files have it: types of elements as their numbers."""
    if isinstance(value, types.dtype):
        return int(value)
    if isinstance(value, np.dtype):
        return int(types.of_numpy(value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
