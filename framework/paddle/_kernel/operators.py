"""Operators of saved programs, run on Tensors one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import jax
import jax.numpy as jnp

from framework.core.errors import OarError
from framework.interop.graph.layer import apply
from framework.interop.graph.operator import Call
from framework.interop.graph.values import Item, Value, to_jax
from framework.interop.programs.program import Node
from framework.paddle._kernel.dispatch import Compiled, run
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64

Slots = dict[str, list[Tensor]]


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


def has_operator(op_type: str) -> bool:
    """Whether an operator of this name runs here."""
    from framework.interop.graph.paddle import OPERATORS

    return op_type in OPERATORS


def run_operator(
    op_type: str, slots: Slots, attrs: Mapping[str, object], outputs: Mapping[str, int]
) -> Slots:
    """The outputs of an operator of ProgramDesc, by slot.

    Args:
        slots: Its inputs.
        outputs: How many outputs each slot has.

    Raises:
        OarError: no operator that is read from programs has this name.
    """
    from framework.interop.graph.paddle import OPERATORS

    if op_type not in OPERATORS:
        raise OarError(
            "the operator is not known",
            received=op_type,
            allowed="the operators of Paddle listed in docs/graphs.md",
        )
    operator = OPERATORS[op_type]
    inputs = [(slot, tensor) for slot, tensors in slots.items() for tensor in tensors]
    names = [slot for slot, count in outputs.items() for _ in range(count)]
    node = Node(
        op_type,
        op_type,
        tuple(f"{slot}_{index}" for index, (slot, _) in enumerate(inputs)),
        tuple(f"{slot}_{index}" for index, slot in enumerate(names)),
        MappingProxyType(dict(attrs)),
        tuple(slot for slot, _ in inputs),
        tuple(names),
    )

    def results_of(arrays: Sequence[jax.Array]) -> list[Item]:
        items: list[Item] = [Value.of(array) for array in arrays]
        runner = _NodeRunner(not attrs.get("is_test", False))
        call = Call(node, 0, runner, dict(zip(node.inputs, items)))
        results = apply(operator, call, items)
        return list(results) if isinstance(results, tuple) else [results]

    tensors = [tensor for _, tensor in inputs]
    traced = [index for index, tensor in enumerate(tensors) if not tensor.stop_gradient]
    present: list[bool] = []

    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        """Only what wants a gradient is traced: an operator may read the values of its other inputs."""
        operands = [tensor.value for tensor in tensors]
        for index, array in zip(traced, arrays, strict=True):
            operands[index] = array
        items = results_of(operands)
        present[:] = [item is not None for item in items]
        return tuple(_array(item) for item in items if item is not None)

    if traced:
        values = list(run(Compiled(op_type, function), [tensors[index] for index in traced]))
    else:
        with x64():
            values = [wrap(array) for array in function()]
    by_slot: Slots = {}
    remaining = iter(values)
    for slot, there in zip(names, present):
        if there:
            by_slot.setdefault(slot, []).append(next(remaining))
    return by_slot


def _array(item: Item) -> jax.Array:
    return to_jax(item) if isinstance(item, Value) else jnp.asarray(item)
