"""Paddle's control flow and arrays of tensors, in the form that `bodies` gives them.

It runs in Python where conditions are known, else in the program. An array of tensors is a list; a loop whose number of
rounds follows from constants and shapes collects what it appends as rows of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from framework.core.errors import FormatError, ShapeError, TraceError
from framework.interop.graph.onnx import OPERATORS as ONNX
from framework.interop.graph.operator import Call, Operator, Table
from framework.interop.graph.operator import registrar as run_registrar
from framework.interop.graph.paddle.arguments import Arguments, TensorArray, rank, registrar
from framework.interop.graph.values import Dim, Item, Value, as_type, shape_of, to_jax
from framework.interop.programs.program import Node, Signature

OPERATORS: Table = {}
operator = registrar(OPERATORS)
control = run_registrar(OPERATORS)
MAX_ROUNDS = 1_000_000
MAX_IN_PYTHON = 4096  # rounds, after which a loop goes on as a compiled one
MAX_UNROLLED = 32  # rounds of a loop in a program
MAX_ITEMS = 100_000  # of an array of tensors

OPERATORS["if"] = Operator("if", ONNX["If"].run, "values")


def _is_open(item: Item) -> bool:
    """Whether a value is only known when the program runs."""
    if isinstance(item, list):
        return isinstance(item, Growing) or any(_is_open(one) for one in item)
    return isinstance(item, Value) and isinstance(item.data, Tracer)


def _truth(call: Call, item: Item) -> bool:
    if item is None or isinstance(item, list):
        raise call.error("the condition must be a tensor", FormatError)
    return bool(np.asarray(item.data if isinstance(item, Value) else item).reshape(()))


def _condition(call: Call, item: Item) -> jax.Array:
    return jnp.asarray(_truth(call, item)) if not _is_open(item) else to_jax(item).reshape(()).astype(bool)


# -- conditions -----------------------------------------------------------------------------------------------------


@control("conditional_block", style="values")
def _conditional(call: Call, condition: Item, *before: Item) -> tuple[Item, ...]:
    """What the block writes where the condition holds, else what was there before.

    In a program the block runs where the condition holds alone; what it did not write is zeros then, which
    `select_input` does not take. Results that are known while the program is traced stay known.
    """
    if not call.attr("is_scalar_condition", True):  # whether the tensor has elements
        condition = np.asarray(all(dim != 0 for dim in shape_of(condition)))
    if not _is_open(condition):
        return tuple(call.runner.run_body(call, 0, ()) if _truth(call, condition) else before)
    constants: dict[int, np.ndarray] = {}

    def run(_: None) -> tuple[jax.Array, ...]:
        items = call.runner.run_body(call, 0, ())
        if any(item is None or isinstance(item, list) for item in items):
            raise call.error(
                "a block gives arrays of tensors, and the condition is not known",
                TraceError,
                fix="run the layer eagerly",
            )
        constants.update({at: item for at, item in enumerate(items) if isinstance(item, np.ndarray)})
        return tuple(to_jax(item) for item in items)

    shapes = jax.eval_shape(run, None)
    other = [
        jnp.zeros(form.shape, form.dtype) if item is None else as_type(item, form.dtype)
        for form, item in zip(shapes, before, strict=True)
    ]
    for form, array in zip(shapes, other):
        _check_form(call, form.shape, array.shape)
    arrays = lax.cond(_condition(call, condition), run, lambda _: tuple(other), None)
    return tuple(
        constants[at] if at in constants and before[at] is None else Value.of(array)
        for at, array in enumerate(arrays)
    )


@operator("select_input")
def _select(a: Arguments) -> Item:
    items, mask = a.all("X"), a["Mask"]
    if not _is_open(mask):
        at = int(a.call.number(mask, "Mask"))
        if not 0 <= at < len(items) or items[at] is None:
            raise a.call.error("the branch that is selected gave nothing", ShapeError, received=at)
        return items[at]
    there = [item for item in items if item is not None]
    if len(there) == 1 or all(item is there[0] for item in there):
        return there[0]
    if any(isinstance(item, list) for item in there):
        raise a.call.error("branches give arrays of tensors, and the condition is not known", TraceError)
    arrays = [to_jax(item) for item in there]
    for array in arrays[1:]:
        _check_form(a.call, array.shape, arrays[0].shape)
    return Value.of(lax.select_n(jnp.broadcast_to(a.array("Mask").reshape(()), arrays[0].shape), *arrays))


def _check_form(call: Call, shape: Sequence[Dim], other: Sequence[Dim]) -> None:
    if tuple(shape) != tuple(other):
        raise call.error(
            "the branches give arrays of different shapes, and the condition is not known",
            TraceError,
            received=f"{tuple(shape)} and {tuple(other)}",
            allowed="equal shapes, or a condition that follows from shapes and constants",
            fix="run the layer eagerly, as framework.inference.Config(model, params) does",
        )


# -- loops ----------------------------------------------------------------------------------------------------------


@control("while", style="values")
def _while(call: Call, condition: Item, *state: Item) -> tuple[Item, ...]:
    if not _is_open(condition):
        if not any(_is_open(item) for item in _read(call, state)):
            return _in_python(call, condition, state)
        rounds = _count_rounds(call, condition, state)
        if rounds is not None:
            few = rounds <= MAX_UNROLLED
            return _in_python(call, condition, state) if few else _Compiled(call, state).repeat(rounds)
    return _Compiled(call, state).run_while(condition)


def _read(call: Call, state: Sequence[Item]) -> list[Item]:
    """The state, and what the body reads of the graphs around it."""
    results: list[Item] = list(state)
    for node in call.node.blocks[0]:
        for name in node.inputs:
            try:
                results.append(call.scope[name])
            except KeyError:
                continue
    return results


def _in_python(call: Call, condition: Item, state: Sequence[Item]) -> tuple[Item, ...]:
    items, rounds = list(state), 0
    while _truth(call, condition):
        if rounds >= MAX_IN_PYTHON and not any(isinstance(item, list) for item in items):
            return _Compiled(call, items).run_while(condition)
        if rounds >= MAX_ITEMS:
            raise call.error("a loop that does not end", ShapeError, received=f"{rounds:,} rounds")
        condition, *items = call.runner.run_body(call, 0, items)
        rounds += 1
    return tuple(items)


def _count_rounds(call: Call, condition: Item, state: Sequence[Item]) -> int | None:
    """How often the loop runs, where that follows from known values: only what the condition needs is run."""
    body, signature = call.node.blocks[0], call.node.signatures[0]
    feedback = dict(zip(signature.inputs, signature.outputs[1:]))
    needed: set[str] = {signature.outputs[0]}
    needed_slots: set[int] = set()
    while True:
        size = len(needed) + len(needed_slots)
        for number in range(len(body) - 1, -1, -1):
            if needed & set(body[number].outputs):
                needed_slots.add(number)
                needed |= set(body[number].inputs)
        needed |= {feedback[name] for name in needed if name in feedback}
        if len(needed) + len(needed_slots) == size:
            break
    nodes = tuple(body[number] for number in sorted(needed_slots))
    defined = {name for node in nodes for name in node.outputs}
    used = [at for at, name in enumerate(signature.inputs) if name in needed]
    outside = [name for node in nodes for name in node.inputs if name not in defined | set(signature.inputs)]
    values_of = [state[at] for at in used] + [call.scope[name] for name in outside]
    if any(node.blocks for node in nodes) or any(
        _is_open(item) or isinstance(item, list) for item in values_of
    ):
        return None
    inner = Signature(
        "body",
        tuple(signature.inputs[at] for at in used),
        (signature.outputs[0], *(signature.outputs[at + 1] for at in used)),
    )
    slice_call = replace(call, node=replace(call.node, blocks=(nodes,), signatures=(inner,)))
    items, rounds = [state[at] for at in used], 0
    while not _is_open(condition) and _truth(call, condition):
        if rounds >= MAX_ITEMS:
            return None
        condition, *items = call.runner.run_body(slice_call, 0, items)
        rounds += 1
    return None if _is_open(condition) else rounds


class Growing(TensorArray):
    """An array of tensors in a loop of a program: the items from before it, and what this round appends."""

    def __init__(self, items: Sequence[Item], start: jax.Array | None, added: Sequence[Item] = ()) -> None:
        super().__init__(items)
        self._start, self.added, self._ends = start, list(added), list[jax.Array]()

    def length(self) -> Item:
        """[1]: how many there are. Writing at exactly this value appends."""
        if self._start is None:
            return Value.of(jnp.asarray([len(self)], jnp.int32))
        end = Value.of((self._start + len(self.added)).reshape(1))
        self._ends.append(end.data)
        return end

    def with_item(self, index: Item, item: Item) -> Growing | None:
        """With one more; None where the place is not the end, or the number of rounds is not known."""
        if not isinstance(index, Value) or not any(index.data is end for end in self._ends):
            return None
        return Growing(self, self._start, [*self.added, item])


class Rows(TensorArray):
    """An array of tensors whose items are the rows of one array."""

    def __init__(self, rows: jax.Array) -> None:
        super().__init__(Value.of(rows[at]) for at in range(rows.shape[0]))
        self.rows = rows


class _Compiled:
    """A loop as one operation of the program."""

    def __init__(self, call: Call, state: Sequence[Item]) -> None:
        self.call, self.state, self.signature = call, state, call.node.signatures[0]
        self.arrays = [at for at, item in enumerate(state) if not isinstance(item, list)]
        self.lists = [at for at, item in enumerate(state) if isinstance(item, list)]
        self._appended = dict.fromkeys(self.lists, 1)  # items in a round

    def round(
        self, carry: Sequence[jax.Array], number: jax.Array | None
    ) -> tuple[jax.Array, list[jax.Array], list[list[jax.Array]]]:
        """(whether it goes on, the next state, what each array of tensors got)."""
        items: list[Item] = list(self.state)
        for at, array in zip(self.arrays, carry, strict=True):
            items[at] = Value.of(array)
        for at in self.lists:
            base: list = self.state[at]  # type: ignore[assignment]
            start = None if number is None else len(base) + number * self._appended[at]
            items[at] = Growing(base, start)
        going, *results = self.call.runner.run_body(self.call, 0, items)
        moved = [results[at] for at in self.arrays]
        if any(item is None or isinstance(item, list) for item in moved):
            raise self.call.error("a loop gives nothing for a value of its state", ShapeError)
        rows = []
        for at in self.lists:
            grown = results[at]
            rows.append([to_jax(item) for item in grown.added] if isinstance(grown, Growing) else [])
        return _condition(self.call, going), [to_jax(item) for item in moved], rows

    def _start(self, counts: bool) -> list[jax.Array]:
        """The state that goes in. What the body writes before it reads it may have any shape, or nothing, before."""
        carry = [jnp.zeros(()) if self.state[at] is None else to_jax(self.state[at]) for at in self.arrays]
        number = jnp.asarray(0, jnp.int32) if counts else None
        live = _read_before_written(self.call.node)
        sizes: list[int] = []

        def trial(arrays: list[jax.Array]) -> list[jax.Array]:
            _, moved, rows = self.round(arrays, number)
            sizes[:] = [len(row) for row in rows]
            return moved

        after = jax.eval_shape(trial, carry)
        self._appended = dict(zip(self.lists, sizes))
        for index, (at, form) in enumerate(zip(self.arrays, after)):
            if form.shape == carry[index].shape:
                continue
            name = self.signature.inputs[at]
            if name in live:
                raise self.call.error(
                    "a loop changes the shape of a value",
                    TraceError,
                    received=f"{name}: {carry[index].shape}, then {form.shape}",
                    allowed="equal shapes, or a number of rounds up to "
                    f"{MAX_UNROLLED} that follows from shapes and constants",
                    fix="run the layer eagerly, as framework.inference.Config(model, params) does",
                )
            carry[index] = jnp.zeros(form.shape, form.dtype)
        return carry

    def _cast(self, moved: Sequence[jax.Array], carry: Sequence[jax.Array]) -> list[jax.Array]:
        return [as_type(Value.of(new), old.dtype) for new, old in zip(moved, carry, strict=True)]

    def _results(self, carry: Sequence[jax.Array], lists: dict[int, list]) -> tuple[Item, ...]:
        arrays = {at: Value.of(array) for at, array in zip(self.arrays, carry)}
        return tuple(arrays[at] if at in arrays else lists[at] for at in range(len(self.state)))

    def run_while(self, condition: Item) -> tuple[Item, ...]:
        carry = self._start(False)
        _, going, final = lax.while_loop(
            lambda s: s[1] & (s[0] < MAX_ROUNDS),
            lambda s: (s[0] + 1, *self._step(s[2])),
            (jnp.asarray(0, jnp.int32), _condition(self.call, condition), carry),
        )
        del going
        return self._results(final, {at: self.state[at] for at in self.lists})  # type: ignore[misc]

    def _step(self, carry: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        going, moved, _ = self.round(carry, None)
        return going, self._cast(moved, carry)

    def repeat(self, rounds: int) -> tuple[Item, ...]:
        """A known number of rounds; what arrays of tensors get becomes rows."""
        carry = self._start(True)

        def step(carry: list[jax.Array], number: jax.Array) -> tuple[list[jax.Array], list[list[jax.Array]]]:
            _, moved, rows = self.round(carry, number)
            return self._cast(moved, carry), rows

        final, rows = lax.scan(step, carry, jnp.arange(rounds, dtype=jnp.int32))
        lists: dict[int, list] = {}
        for at, added in zip(self.lists, rows):
            base: list = self.state[at]  # type: ignore[assignment]
            if not base and len(added) == 1:
                lists[at] = Rows(added[0])
            else:
                rest = (Value.of(row[i]) for i in range(rounds) for row in added)
                lists[at] = TensorArray([*base, *rest])
        return self._results(final, lists)


def _read_before_written(node: Node) -> set[str]:
    """The names of a body's state that it reads, or hands on, as they came in."""
    signature, written, live = node.signatures[0], set(), set()
    for each in node.blocks[0]:
        inner = {name for one in _within(each) for name in one.inputs}
        inner |= {name for one in _within(each) for s in one.signatures for name in s.outputs}
        live |= inner - written
        written |= set(each.outputs)
    live |= set(signature.outputs) - written
    return live & set(signature.inputs)


def _within(node: Node) -> list[Node]:
    return [node, *(one for block in node.blocks for inner in block for one in _within(inner))]


# -- arrays of tensors ----------------------------------------------------------------------------------------------


@operator("create_array", "create_array_like")
def _create_array(a: Arguments) -> dict[str, Item]:
    del a
    return {"Out": TensorArray()}


def _items(a: Arguments, slot: str) -> list:
    items = a[slot]
    if not isinstance(items, list):
        raise a.call.error("an array of tensors is needed", ShapeError, received="a tensor")
    return items


@operator("write_to_array")
def _write(a: Arguments) -> Item:
    items, x, index = _items(a, "Array"), a["X"], a["I"]
    if isinstance(items, Growing):
        grown = items.with_item(index, x)
        if grown is None:
            raise a.call.error(
                "a loop writes into an array of tensors, and how often it runs, or where it writes, is not known",
                TraceError,
                allowed="appending, in a loop whose number of rounds follows from shapes and constants",
                fix="run the layer eagerly, as framework.inference.Config(model, params) does",
            )
        return grown
    at = int(a.call.number(index, "the place in the array"))
    if not 0 <= at < MAX_ITEMS:
        raise a.call.error(
            "the index of the array is out of range", ShapeError, received=at, allowed=f"0 to {MAX_ITEMS}"
        )
    return TensorArray([*items[:at], *[None] * (at - len(items)), x, *items[at + 1 :]])


@operator("lod_array_length")
def _length(a: Arguments) -> Item:
    items = _items(a, "X")
    return items.length() if isinstance(items, Growing) else np.array([len(items)], np.int64)


@operator("read_from_array")
def _read_array(a: Arguments) -> Item:
    items, index = _items(a, "X"), a["I"]
    if isinstance(items, Growing):
        raise a.call.error("a loop reads an array of tensors that it writes", TraceError)
    if _is_open(index):
        rows = items.rows if isinstance(items, Rows) else jnp.stack([to_jax(item) for item in items])
        return Value.of(jnp.take(rows, a.array("I").reshape(()), axis=0))
    at = int(a.call.number(index, "the place in the array"))
    if not 0 <= at < len(items) or items[at] is None:
        raise a.call.error(
            "the index of the array is out of range", ShapeError, received=at, allowed=f"below {len(items)}"
        )
    return items[at]


@operator("tensor_array_to_tensor")
def _join(a: Arguments) -> dict[str, Item]:
    items, axis = _items(a, "X"), int(a.attr("axis", 0))
    if not items or any(item is None for item in items) or isinstance(items, Growing):
        raise a.call.error("an array of tensors with nothing in it", ShapeError, received=len(items))
    stacks = bool(a.attr("use_stack", False))
    sizes = [1 if stacks else shape_of(item)[axis] for item in items]
    axis %= rank(items[0]) + stacks
    if isinstance(items, Rows) and stacks:
        return {"Out": Value.of(jnp.moveaxis(items.rows, 0, axis)), "OutIndex": np.asarray(sizes, np.int32)}
    if stacks:
        items = [a.onnx("Unsqueeze", item, np.array([axis], np.int64)) for item in items]
    index = [size for size in sizes if isinstance(size, int)]
    return {"Out": a.onnx("Concat", *items, axis=axis), "OutIndex": np.asarray(index, np.int32)}
