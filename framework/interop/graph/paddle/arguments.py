"""What an operator of Paddle sees of its node: inputs by slot, attributes, and ONNX's operators to be made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from framework.core.errors import FormatError
from framework.interop.graph.layer import apply
from framework.interop.graph.onnx import NEWEST
from framework.interop.graph.onnx import OPERATORS as ONNX
from framework.interop.graph.operator import Call, Table
from framework.interop.graph.operator import registrar as run_registrar
from framework.interop.graph.values import Dim, Item, Value, align, shape_of, to_jax, to_value
from framework.interop.programs.program import Node
from framework.interop.weights.pdparams import DTYPES

CHANNELS_LAST = ("NHWC", "NDHWC", "NLC")
_VERSION = 18  # of the ONNX operators that Paddle's are made of


class TensorArray(list):
    """An array of tensors, which is one value; other lists are the values of one slot."""


class Arguments:
    """The inputs and attributes of a node while it runs."""

    def __init__(self, call: Call, items: Sequence[Item]) -> None:
        self.call = call
        self._slots: dict[str, list[Item]] = defaultdict(list)
        for slot, name, item in zip(call.node.input_slots, call.node.inputs, items, strict=True):
            if name:
                self._slots[slot].append(item)

    def __getitem__(self, slot: str) -> Item:
        """The input of a slot. Raises: FormatError, where there is none."""
        items = self._slots.get(slot)
        if not items:
            raise self.call.error(
                f"the input {slot!r} is missing", FormatError, received=sorted(self._slots), allowed=slot
            )
        return items[0]

    def get(self, slot: str) -> Item:
        """The input of a slot, or None."""
        items = self._slots.get(slot)
        return items[0] if items else None

    def all(self, slot: str) -> list[Item]:
        """All inputs of a slot."""
        items = self._slots.get(slot, [])
        return list(items[0]) if len(items) == 1 and isinstance(items[0], list) else list(items)

    def value(self, slot: str) -> Value:
        """The input of a slot as a jax array with its layout."""
        return to_value(self[slot])

    def array(self, slot: str) -> jax.Array:
        """The input of a slot as a jax array in the logical order."""
        return to_jax(self[slot])

    def attr(self, name: str, default: object = None) -> Any:
        """An attribute, or the default where the node has none."""
        return self.call.attr(name, default)

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An attribute that is a list of integers, or one of them."""
        value = self.attr(name, default)
        return [int(one) for one in (value if isinstance(value, list | tuple) else [value])]

    def dims(self, attribute: str, tensor: str = "", tensors: str = "") -> list[Dim]:
        """Sizes: from a list of Tensors, from one Tensor, or from the attribute, in this order."""
        if tensors and self._slots.get(tensors):
            return [dim for item in self.all(tensors) for dim in self.call.dims(item, tensors)]
        if tensor and self.get(tensor) is not None:
            return self.call.dims(self[tensor], tensor)
        return list(self.ints(attribute))

    def dtype(self, name: str = "dtype", default: np.dtype | None = None) -> np.dtype:
        """An attribute that is one of Paddle's numbers of types. Raises: FormatError."""
        code = self.attr(name, -1)
        # PIR writes None where no type is asked for, which numpy takes for float64.
        dtype = DTYPES.get(code) if isinstance(code, int) else None if code is None else np.dtype(code)
        if dtype is None and default is None:
            raise self.call.error("an unknown type", received=f"{name}={code}", allowed=sorted(DTYPES))
        return dtype if dtype is not None else default  # type: ignore[return-value]

    def onnx(self, op: str, *inputs: Item | float, outputs: int = 1, **attrs: object) -> Any:
        """The result of an ONNX operator on items and Python numbers; a tuple where it has several outputs."""
        items = [
            one if one is None or isinstance(one, Value | np.ndarray | list) else np.asarray(one)
            for one in inputs
        ]
        node = Node(
            op, self.call.node.name, tuple("" if i is None else "x" for i in items), ("y",) * outputs, attrs
        )
        call = Call(node, _VERSION, self.call.runner, self.call.scope, NEWEST)
        return apply(ONNX[op], call, items)

    def elementwise(self, function: Callable[..., jax.Array], *items: Item) -> Value:
        """A function of arrays that treats all elements alike, in the layout of its operands."""
        arrays, order = align(items)
        return Value(function(*arrays), order)

    def number_like(self, x: Item, number: float) -> np.ndarray:
        """A number in the type of `x`."""
        dtype = x.dtype if isinstance(x, Value) else np.asarray(x).dtype
        return np.asarray(number, np.int64 if dtype.kind == "O" else dtype)  # objects are symbolic sizes

    def images(self, x: Value, name: str = "data_format") -> Value:
        """`x` with its axes named [N, C, *spatial], whatever the node calls them; nothing is moved."""
        if self.attr(name, "NCHW") in CHANNELS_LAST:
            return Value(x.data, (x.order[0], x.order[-1], *x.order[1:-1]))
        return x

    def as_given(self, y: Item, name: str = "data_format") -> Item:
        """The inverse of `images`."""
        if self.attr(name, "NCHW") in CHANNELS_LAST and isinstance(y, Value):
            return Value(y.data, (y.order[0], *y.order[2:], y.order[1]))
        return y


def rank(item: Item) -> int:
    """The number of axes."""
    return len(shape_of(item))


Rule = Callable[[Arguments], Item | Mapping[str, Item]]
RuleT = TypeVar("RuleT", bound=Rule)


def registrar(table: Table) -> Callable[..., Callable[[RuleT], RuleT]]:
    """A decorator that enters rules into `table` by the names of their operators.

    A rule returns what stands in the slot `main`, or a dict by slot; a list fills the outputs of one slot in order, or
    is the array of tensors that an output stands for. `grows`: the sizes of the results depend on values.
    """

    enter_runs = run_registrar(table)

    def operator(*names: str, main: str = "Out", grows: bool = False) -> Callable[[RuleT], RuleT]:
        def enter(rule: RuleT) -> RuleT:
            def run(call: Call, *items: Item) -> tuple[Item, ...]:
                results = rule(Arguments(call, items))
                return _by_slot(call, results if isinstance(results, Mapping) else {main: results})

            enter_runs(*names, style="values", grows=grows)(run)
            return rule

        return enter

    return operator


def _by_slot(call: Call, results: Mapping[str, Item]) -> tuple[Item, ...]:
    """The results in the order of the node's outputs. An output that no rule makes keeps what had its name before:
    Paddle lists running statistics among the outputs of batch_norm."""
    used: dict[str, int] = defaultdict(int)
    placed: list[Item] = []
    for slot, name in zip(call.node.output_slots, call.node.outputs, strict=True):
        item = results.get(slot)
        if item is None:
            placed.append(call.scope[name] if name in call.node.inputs else None)
        elif isinstance(item, TensorArray):
            placed.append(item)
        elif isinstance(item, list) and len(item) > 1 and call.node.output_slots.count(slot) == 1:
            placed.append(item)  # PIR hands a list over whole
        elif isinstance(item, list):
            placed.append(item[used[slot]])
            used[slot] += 1
        else:
            placed.append(item)
    return tuple(placed)
