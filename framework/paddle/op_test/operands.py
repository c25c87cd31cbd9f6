"""The inputs of a test as Tensors, and the arguments of the function that stands for its operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from framework.paddle._kernel.kernels import setting
from framework.paddle._kernel.operators import Slots
from framework.paddle._kernel.signatures import Signature
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.bfloat16_bits import to_operand
from framework.paddle.legacy_operators import Levels

_DEFAULT_ONLY = ("name", "dtype", "out", "output")  # Paddle's tests leave these parameters at their defaults


def as_numpy(value: object) -> np.ndarray:
    """The array of an entry of `inputs` or `outputs`, which may be a pair with the lengths of its sequences."""
    return np.asarray(value[0] if isinstance(value, tuple) else value)


def named_arrays(slot: str, entry: object) -> list[tuple[str, np.ndarray]]:
    """(name, array) of what stands in a slot: an array, or a list of pairs with names."""
    if not isinstance(entry, list):
        return [(slot, as_numpy(entry))]
    if entry and not (isinstance(entry[0], tuple | list) and isinstance(entry[0][0], str)):
        return [(slot, as_numpy(entry[0] if len(entry) == 1 else entry))]
    return [(name, as_numpy(value)) for name, value in entry]


def levels_of(entry: object) -> list[Levels | None]:
    """The lengths of the sequences of each array of `named_arrays`; None where it has none."""
    if not isinstance(entry, list):
        return [_levels(entry)]
    if entry and not (isinstance(entry[0], tuple | list) and isinstance(entry[0][0], str)):
        return [_levels(entry[0]) if len(entry) == 1 else None]
    return [_levels(value) for _, value in entry]


def _levels(value: object) -> Levels | None:
    return value[1] if isinstance(value, tuple) and len(value) == 2 and value[1] else None


def make_operands(
    inputs: Mapping[str, object], gradients: Collection[str] = (), cast: str | None = None
) -> tuple[Slots, dict[str, Tensor]]:
    """(Tensors by slot, Tensors by name); those named in `gradients`, or in their slot, want a gradient."""
    slots: Slots = {}
    named: dict[str, Tensor] = {}
    for slot, entry in inputs.items():
        slots[slot] = []
        for name, array in named_arrays(slot, entry):
            tensor = to_operand(array, cast)
            tensor.stop_gradient = not (name in gradients or slot in gradients)
            slots[slot].append(tensor)
            named[name] = tensor
        if len(slots[slot]) == 1:
            named.setdefault(slot, slots[slot][0])
    return slots, named


def bind(
    function: Callable[..., object], signature: Signature | None, slots: Slots, attrs: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """The arguments of `function`: inputs and settings in the order of the signature, as Paddle's tests pass them."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in positional]
    if signature is None:
        return _bind_by_name(parameters, slots, attrs)
    operands: list[object] = [_single(slots.get(name)) for name in signature.inputs]
    if not parameters:
        return [operand for operand in operands if operand is not inspect.Parameter.empty], {}
    values = operands + [_setting(names, slots, attrs) for names in signature.settings]
    arguments: list[object] = []
    for index, parameter in enumerate(parameters):
        value = values[index] if index < len(values) else inspect.Parameter.empty
        if parameter.name in _DEFAULT_ONLY or value is inspect.Parameter.empty:
            value = None if parameter.default is inspect.Parameter.empty else parameter.default
        arguments.append(value)
    return arguments, {}


def _bind_by_name(
    parameters: Sequence[inspect.Parameter], slots: Slots, attrs: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Inputs in their order, settings by name: for an operator that Paddle 2.6.2 does not have."""
    names = [parameter.name for parameter in parameters[len(slots) :]]
    typed = {name.partition("_")[2]: value for name, value in attrs.items()}  # fp32_values, int64_values
    return [_single(operands) for operands in slots.values()], {
        name: attrs.get(name, typed.get(name)) for name in names if name in attrs or name in typed
    }


def _single(operands: list[Tensor] | None) -> object:
    if not operands:
        return inspect.Parameter.empty
    return operands[0] if len(operands) == 1 else operands


def _setting(names: tuple[str, ...], slots: Slots, attrs: Mapping[str, object]) -> object:
    for name in names[1:]:
        if slots.get(name):
            return _single(slots[name])
    value = attrs.get(names[0])
    if value is None:
        return _single(slots.get(names[0]))
    return setting(value, names[0])
