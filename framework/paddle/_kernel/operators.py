"""Operators of saved programs and of older ones, run on Tensors one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import OarError
from framework.core.rng import rng_scope
from framework.interop.graph.layer import apply
from framework.interop.graph.operator import Call, Operator
from framework.interop.graph.values import Item, Value, to_jax
from framework.interop.programs.program import Node
from framework.interop.weights.pdparams import DTYPES
from framework.paddle._kernel.dispatch import KEY, Compiled, run
from framework.paddle._kernel.dtypes import dtype as Dtype
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.settings import freeze
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.legacy_operators import (
    WITHOUT_GRADIENTS,
    Levels,
    Operands,
    Output,
    Ragged,
    find_legacy_operator,
)

Slots = dict[str, list[Tensor]]
Lengths = Mapping[str, Sequence[Levels | None]]
Values = list[tuple[str, jax.Array | np.ndarray]]
_RANDOM = frozenset({"dropout"})  # draw numbers where they are not run for a test
_INDEX_TYPES = {
    **{(name, "Indices"): "int64" for name in ("argsort", "top_k", "top_k_v2")},
    ("shape", "Out"): "int32",
}
_NO_LENGTHS: Lengths = MappingProxyType({})
_COMPILED = 256  # operators kept with their settings
_KEY_BYTES = 1 << 20  # of inputs without a gradient, which are constants of a compiled operator


class _NodeRunner:
    """What runs one node: it has no bodies and no buffers."""

    def __init__(self, training: bool) -> None:
        self.training = training

    def run_body(self, call: Call, body: int, inputs: Sequence[Item]) -> list[Item]:
        raise OarError("an operator with a body cannot run alone", where=call.node.op)

    def copy_for_trace(self) -> _NodeRunner:
        return self

    def set_buffer(self, name: str, value: jax.Array) -> None:
        """Running statistics are outputs here."""


@dataclass(eq=False)
class _Run:
    """One operator with its settings and the inputs that want no gradient.

    Attributes:
        inputs: The slot of each input.
        outputs: The slot of each output.
        present: After a run: the slot of each output that there is, in order.
        levels: After a run: the lengths of the outputs that have some.
    """

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attrs: Mapping[str, object]
    lengths: Lengths
    present: list[str] = field(default_factory=list)
    levels: dict[str, Levels] = field(default_factory=dict)

    def __call__(self, operands: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        rule = find_legacy_operator(self.op_type)
        if rule is None:
            values = self._run_node(operands)
        else:
            with jax.numpy_dtype_promotion("standard"):
                values = self._by_slot(rule(self._operands(operands)))
        self.present = [slot for slot, _ in values]
        return tuple(jnp.asarray(array) for _, array in values)

    def _operands(self, operands: Sequence[jax.Array]) -> Operands:
        slots: dict[str, list[jax.Array]] = {}
        for slot, array in zip(self.inputs, operands, strict=True):
            slots.setdefault(slot, []).append(array)
        return Operands(self.op_type, slots, self.lengths, self.attrs)

    def _by_slot(self, results: Mapping[str, Output | list[Output]]) -> Values:
        values: Values = []
        for slot, result in results.items():
            for one in result if isinstance(result, list) else [result]:
                if isinstance(one, Ragged):
                    self.levels[slot] = one.levels
                array = one.array if isinstance(one, Ragged) else one
                if array is not None:
                    values.append((slot, array))
        return values

    def _run_node(self, operands: Sequence[jax.Array]) -> Values:
        node = Node(
            self.op_type,
            self.op_type,
            tuple(f"{slot}_{index}" for index, slot in enumerate(self.inputs)),
            tuple(f"{slot}_{index}" for index, slot in enumerate(self.outputs)),
            MappingProxyType(dict(self.attrs)),
            tuple(self.inputs),
            tuple(self.outputs),
        )
        items: list[Item] = [Value.of(array) for array in operands]
        runner = _NodeRunner(not self.attrs.get("is_test", False))
        call = Call(node, 0, runner, dict(zip(node.inputs, items)))
        results = apply(_graph_operators()[self.op_type], call, items)
        listed = list(results) if isinstance(results, tuple) else [results]
        arrays = [(slot, _array(item)) for slot, item in zip(self.outputs, listed) if item is not None]
        return [(slot, self._with_index_type(slot, array)) for slot, array in arrays]

    def _with_index_type(self, slot: str, array: jax.Array) -> jax.Array:
        """Positions and sizes in the type that the operator gives them in; graphs count in 32 bits."""
        kind = _INDEX_TYPES.get((self.op_type, slot))
        if self.op_type in ("arg_max", "arg_min"):
            kind = DTYPES.get(cast("int", self.attrs.get("dtype", -1)), np.dtype("int64")).name
        return array if kind is None else array.astype(kind)


def run_operator(
    op_type: str,
    slots: Slots,
    attrs: Mapping[str, object],
    outputs: Mapping[str, int],
    lengths: Lengths = _NO_LENGTHS,
    output_lengths: dict[str, Levels] | None = None,
) -> Slots:
    """The outputs of an operator of ProgramDesc, by slot.

    Args:
        slots: Its inputs.
        outputs: How many outputs each slot has.
        lengths: Of the sequences of the inputs, by slot in the order of its Tensors.
        output_lengths: Takes those of the outputs, by slot.

    Raises:
        OarError: no operator that is read from programs, and none of older ones, has this name.
    """
    if not is_operator(op_type):
        raise OarError(
            "the operator is not known",
            received=op_type,
            allowed="the operators of Paddle listed in docs/graphs.md",
        )
    attrs = {name: value.numpy if isinstance(value, Dtype) else value for name, value in attrs.items()}
    draws = op_type in _RANDOM and not attrs.get("is_test", False)
    tensors = [tensor for listed in slots.values() for tensor in listed]
    names = [slot for slot, listed in slots.items() for _ in listed]
    operation = _Run(
        op_type, names, [slot for slot, count in outputs.items() for _ in range(count)], attrs, lengths
    )
    traced = [index for index, tensor in enumerate(tensors) if not tensor.stop_gradient]
    if op_type in WITHOUT_GRADIENTS:
        traced = []
    if traced:
        operation, compiled = _compiled(operation, tensors, traced, draws)
        values = list(run(compiled, [*(tensors[index] for index in traced), *([KEY] if draws else [])]))
    else:
        with x64(), rng_scope(jnp.asarray(default_generator.next_key())) if draws else nullcontext():
            values = [wrap(array) for array in operation([tensor._value for tensor in tensors])]
    if output_lengths is not None:
        output_lengths.update(operation.levels)
    by_slot: Slots = {}
    for slot, value in zip(operation.present, values, strict=True):
        by_slot.setdefault(slot, []).append(value)
    return by_slot


def is_operator(op_type: str) -> bool:
    """Whether `run_operator` knows an operator."""
    return find_legacy_operator(op_type) is not None or op_type in _graph_operators()


def result_sizes_vary(op_type: str) -> bool:
    """Whether the sizes of an operator's results depend on values."""
    operator = None if find_legacy_operator(op_type) else _graph_operators().get(op_type)
    return operator is not None and operator.grows


def _graph_operators() -> Mapping[str, Operator]:
    from framework.interop.graph.paddle import OPERATORS  # many modules; few programs call operators

    return OPERATORS


_programs: dict[object, tuple[_Run, Compiled]] = {}


def _compiled(
    operation: _Run, tensors: Sequence[Tensor], traced: Sequence[int], draws: bool
) -> tuple[_Run, Compiled]:
    """The operation as a compiled one of its traced inputs, and of a random key where it `draws`; kept for the next
    call that differs in these alone.

    Only what wants a gradient is traced: an operator may read the values of its other inputs.
    """
    constants = [None if index in traced else tensor._value for index, tensor in enumerate(tensors)]
    key = _key(operation, constants)
    if key is not None and key in _programs:
        return _programs[key]

    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        operands = list(constants)
        for index, array in zip(traced, arrays, strict=False):
            operands[index] = array
        with rng_scope(arrays[-1]) if draws else nullcontext():
            return operation(operands)  # type: ignore[arg-type]

    entry = operation, Compiled(operation.op_type, function)
    if key is not None:
        if len(_programs) >= _COMPILED:
            _programs.pop(next(iter(_programs)))
        _programs[key] = entry
    return entry


def _key(operation: _Run, constants: Sequence[jax.Array | None]) -> object:
    """What tells operations apart; None where it would be long, or a constant belongs to a trace."""
    if any(isinstance(one, Tracer) for one in constants):
        return None
    arrays = [None if one is None else np.asarray(one) for one in constants]
    if sum(0 if array is None else array.nbytes for array in arrays) > _KEY_BYTES:
        return None
    values = [None if array is None else (array.shape, array.dtype.name, array.tobytes()) for array in arrays]
    slots = (tuple(operation.inputs), tuple(operation.outputs))
    settings = (operation.op_type, freeze(dict(operation.attrs)), repr(operation.lengths))
    try:
        hash(settings)
    except TypeError:  # a setting that is no number, text or list of them
        return None
    return settings, slots, tuple(values)


def _array(item: Item) -> jax.Array:
    return to_jax(item) if isinstance(item, Value) else jnp.asarray(item)
