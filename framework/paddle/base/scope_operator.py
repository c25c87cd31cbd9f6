"""`paddle.base.core.Operator`: an operator that reads its inputs in a scope by name and writes its outputs there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from framework.paddle._kernel.kernels import run_by_name
from framework.paddle._kernel.operators import Lengths, Slots
from framework.paddle._kernel.selected_rows import SelectedRows
from framework.paddle._kernel.signatures import Signature, find_signature
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.bfloat16_bits import convert_float_to_uint16, to_operand
from framework.paddle.base.dygraph.base import guard
from framework.paddle.base.operator_prototypes import prototypes
from framework.paddle.legacy_operators import Levels
from framework.paddle.static.description_format import read_operator
from framework.paddle.static.scope import Scope, ScopeVariable

_ROWS_ALONE = ("scale", "share_data", "assign", "clip", "sqrt", "square", "cast", "shape")
_SIGNATURES = {  # of operators without a kernel whose slots begin with small letters
    "beam_search": Signature(
        ("pre_ids", "pre_scores", "ids", "scores"), (), ("selected_ids", "selected_scores", "parent_idx")
    )
}
_ROWS_CHANGE = ("ftrl",)  # a row without a gradient stays, though its rule would move it


class Operator:
    """An operator by its name: `Operator("sgd", Param="w", Grad="g", LearningRate="lr", ParamOut="w").run(scope, None)`

    Names with capitals are slots, which name variables of the scope; others are settings. Rows of gradients become
    whole arrays, but for what works on each number.
    """

    def __init__(self, type: str, **kwargs: object) -> None:
        self._type = type
        signature = _SIGNATURES.get(type) or find_signature(type)
        slots = () if signature is None else (*signature.inputs, *signature.outputs)
        self._inputs: dict[str, list[str]] = {}
        self._outputs: dict[str, list[str]] = {}
        self._settings: dict[str, object] = {}
        for name, value in kwargs.items():
            if not name[0].isupper() and name not in slots:
                self._settings[name] = value
                continue
            names = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
            is_output = _is_output(name, signature)
            (self._outputs if is_output else self._inputs)[name] = names

    @classmethod
    def create(cls, protobin: bytes) -> Operator:
        """The operator of a serialized OpDesc.

        Raises:
            ValueError: the bytes are no OpDesc.
            RuntimeError: Paddle 2.6.2 has no such operator.
        """
        description = read_operator(protobin)
        if description.type() not in prototypes():
            raise RuntimeError(f"(NotFound) Operator ({description.type()}) is not registered.")
        operator = cls(description.type())
        operator._inputs, operator._outputs = description.inputs(), description.outputs()
        operator._settings = {name: description.attr(name) for name in description.attr_names()}
        return operator

    def type(self) -> str:
        """The operator ("matmul_v2")."""
        return self._type

    def inputs(self) -> dict[str, list[str]]:
        """The names of its variables by the slots of its inputs."""
        return {slot: list(names) for slot, names in self._inputs.items()}

    def outputs(self) -> dict[str, list[str]]:
        """The names of its variables by the slots of its outputs."""
        return {slot: list(names) for slot, names in self._outputs.items()}

    def input_vars(self) -> list[str]:
        """The names of all inputs."""
        return [name for names in self._inputs.values() for name in names]

    def output_vars(self) -> list[str]:
        """The names of all outputs."""
        return [name for names in self._outputs.values() for name in names]

    def no_intermediate_outputs(self) -> list[str]:
        """The names of the outputs that are no intermediate results."""
        line = prototypes().get(self._type)
        inner = {one.name for one in (() if line is None else line.outputs) if "intermediate" in one.flags}
        return [name for slot, names in self._outputs.items() if slot not in inner for name in names]

    def support_gpu(self) -> bool:
        """True: XLA computes every operation on every device."""
        return True

    def __str__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{slot}[{', '.join(names)}]" for slot, names in sorted(slots.items()))
            for slots in (self._inputs, self._outputs)
        )
        return f"Op({self._type}), inputs:{{{inputs}}}, outputs:{{{outputs}}}."

    def run(self, scope: Scope, place: object) -> None:
        """Run it on the values of the scope. Raises: OarError, where no operator has this name."""
        variables = {slot: [scope.var(name) for name in names] for slot, names in self._inputs.items()}
        selected = [
            one.get_selected_rows() for slot in variables.values() for one in slot if one.is_selected_rows()
        ]
        alone = self._type in _ROWS_ALONE
        height = max((rows.dense().shape[0] for rows in selected), default=0)
        slots: Slots = {
            slot: [to_operand(_values(one, alone, height)) for one in listed]
            for slot, listed in variables.items()
        }
        with guard():
            before = {
                slot: _host(listed[0]) for slot, listed in slots.items() if listed
            }  # kernels update in place
            lengths = {slot: [_levels(one) for one in listed] for slot, listed in variables.items()}
            levels: dict[str, Levels] = {}
            results = {
                slot: [_host(one) for one in listed]
                for slot, listed in self._run(slots, lengths, levels).items()
            }
        for slot, names in self._outputs.items():
            for name, values in zip(names, results.get(slot, ())):
                start = before.get(slot.removesuffix("Out"))
                if selected and start is not None and self._changes_rows_only():
                    values = _restored(values, _written_before(scope.var(name), start), selected[0].rows())
                _write(scope.var(name), values, selected, alone, place)
                if slot in levels:
                    scope.var(name).get_tensor().set_recursive_sequence_lengths(levels[slot])

    def _changes_rows_only(self) -> bool:
        return bool(self._settings.get("lazy_mode")) or self._type in _ROWS_CHANGE

    def _run(self, slots: Slots, lengths: Lengths, levels: dict[str, Levels]) -> Slots:
        """The outputs; `levels` takes the lengths of those that have some."""
        counts = {slot: len(names) for slot, names in self._outputs.items()}
        if not any(one for listed in lengths.values() for one in listed):
            return run_by_name(self._type, slots, self._settings, counts)
        return run_by_name(self._type, slots, self._settings, counts, lengths, levels)


def create_op(
    scope: Scope, op_type: str, inputs: object, outputs: object, attrs: Mapping[str, object]
) -> Operator:
    """An Operator of the variables that have the names of its slots."""
    names = {slot: slot for entries in (inputs, outputs) for slot in cast("Mapping[str, object]", entries)}
    return Operator(op_type, **names, **attrs)


def _is_output(slot: str, signature: Signature | None) -> bool:
    if signature is not None and (slot in signature.outputs or slot in signature.inputs):
        return slot in signature.outputs
    return slot.endswith("Out")


def _values(variable: ScopeVariable, alone: bool, height: int) -> np.ndarray:
    """The values of a variable; rows as a whole array of so many rows, unless the operator takes rows alone."""
    if not variable.is_selected_rows():
        return np.asarray(variable.get_tensor())
    rows = variable.get_selected_rows()
    if alone:
        return np.asarray(rows.get_tensor())
    whole = rows.dense()
    return np.concatenate([whole, np.zeros((height - len(whole), *whole.shape[1:]), whole.dtype)])


def _levels(variable: ScopeVariable) -> Levels | None:
    """The lengths of its sequences; None: it has none."""
    return None if variable.is_selected_rows() else variable.get_tensor().recursive_sequence_lengths() or None


def _host(tensor: Tensor) -> np.ndarray:
    """The values on the host; bfloat16 in uint16, as tests have it."""
    if tensor.dtype.name == "bfloat16":
        return convert_float_to_uint16(tensor.astype("float32").numpy())
    return tensor.numpy()


def _written_before(variable: ScopeVariable, start: np.ndarray) -> np.ndarray:
    """What an output holds already, or the input that it follows."""
    if variable.is_selected_rows():
        return start
    array = np.asarray(variable.get_tensor())
    return array if array.shape == start.shape else start


def _restored(values: np.ndarray, before: np.ndarray, rows: list[int]) -> np.ndarray:
    if values.shape != before.shape or values.ndim == 0 or (rows and len(values) <= max(rows)):
        return values
    out = before.copy()
    out[rows] = values[rows]
    return out


def _write(
    variable: ScopeVariable, values: np.ndarray, selected: list[SelectedRows], alone: bool, place: object
) -> None:
    """Into the rows of the variable where it has some: its own, or else those of the inputs."""
    if not variable.is_selected_rows():
        variable.get_tensor().set(values, place)
        return
    target = variable.get_selected_rows()
    if not target.rows() and selected:
        target.set_rows(
            selected[0].rows() if alone else sorted({row for one in selected for row in one.rows()})
        )
        target.set_height(selected[0].height())
    inside = not alone and bool(target.rows()) and len(values) > max(target.rows())
    target.get_tensor().set(values[target.rows()] if inside else values, place)
