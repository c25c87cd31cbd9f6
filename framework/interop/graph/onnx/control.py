"""ONNX control flow: If, Loop, Scan and SequenceMap. Run in Python where conditions are known, else by lax."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from framework.core.errors import ShapeError, TraceError
from framework.interop.graph.onnx.shapes import concat as concat_items
from framework.interop.graph.onnx.shapes import part, reshaped
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Dim, Item, Value, as_type, is_known, shape_of, to_jax
from framework.interop.programs.program import Program

OPERATORS: Table = {}
operator = registrar(OPERATORS)
MAX_STEPS = 1_000_000
MAX_UNROLLED = 32
MAX_IN_PYTHON = 4096
"""Trips of a loop that run in Python one by one; more run compiled where the state keeps its shapes."""


def _is_open(item: Item) -> bool:
    """Whether a value is only known when the program runs."""
    return isinstance(item, Value) and isinstance(item.data, Tracer)


def _truth(item: Item) -> bool:
    return bool(np.asarray(item.data if isinstance(item, Value) else item).reshape(()))


def _body(call: Call, name: str) -> int:
    for number, signature in enumerate(call.node.signatures):
        if signature.attribute == name:
            return number
    raise call.error(f"the body {name!r} is missing")


def _pack(items: Sequence[Item]) -> tuple[jax.Array, ...]:
    return tuple(to_jax(item) for item in items)


@operator("If", style="values")
def _if(call: Call, condition: Item) -> tuple[Item, ...]:
    branches = _body(call, "then_branch"), _body(call, "else_branch")
    if not _is_open(condition):
        return tuple(call.runner.run_body(call, branches[0 if _truth(condition) else 1], ()))
    forms: list[list[tuple[tuple[Dim, ...], str]]] = []

    def branch(number: int) -> Callable[[None], tuple[jax.Array, ...]]:
        def run(_: None) -> tuple[jax.Array, ...]:
            items = call.runner.run_body(call, number, ())
            if any(item is None or isinstance(item, list) for item in items):
                raise call.error("a branch gives sequences, and the condition is not known", TraceError)
            arrays = _pack(items)
            forms.append([(a.shape, a.dtype.name) for a in arrays])
            return arrays

        return run

    try:
        arrays = lax.cond(to_jax(condition).reshape(()), branch(branches[0]), branch(branches[1]), None)
    except TypeError as error:
        if len(forms) == 2 and forms[0] != forms[1]:
            raise call.error(
                "the branches give arrays of different shapes, and the condition is not known",
                TraceError,
                received=f"{forms[0]} and {forms[1]}",
                allowed="equal shapes, or a condition that follows from shapes and constants",
                fix="run the layer eagerly, or export the model with the condition fixed",
            ) from error
        raise
    return tuple(Value.of(array) for array in arrays)


# -- Loop ---------------------------------------------------------------------------------------------------------


@operator("Loop", style="values")
def _loop(call: Call, trips: Item, condition: Item, *state: Item) -> tuple[Item, ...]:
    body = _body(call, "body")
    carried_count = len(state)
    most = None if trips is None or _is_open(trips) else int(call.number(trips, "the number of trips"))
    is_static = not _is_open(trips) and not _is_open(condition)
    if is_static and most is not None and most > MAX_STEPS:
        most = None if condition is not None and not _always(call, body) else most
        if most is not None:
            raise call.error(
                "a loop that does not end", ShapeError, received=most, allowed=f"{MAX_STEPS:,} trips"
            )
    small = most is not None and most <= MAX_UNROLLED
    if is_static and (small or not any(_is_open(item) for item in _read(call, state))):
        if most is not None and most > MAX_IN_PYTHON:
            with contextlib.suppress(TypeError, TraceError):  # the state changes its shapes
                return _compiled(call, body, trips, condition, state, carried_count)
        result = _unrolled(call, body, most, condition, list(state), carried_count)
        if result is not None:
            return result
    return _compiled(call, body, trips, condition, state, carried_count)


def _read(call: Call, state: Sequence[Item]) -> list[Item]:
    """The state and what the body reads of the graphs around it."""
    items: list[Item] = []
    for block in call.node.blocks:
        for node in block:
            for name in node.inputs:
                try:
                    items.append(call.scope[name])
                except KeyError:
                    continue
    return [*items, *state]


def _always(call: Call, body: int) -> bool:
    """Whether the body hands its condition on as it got it."""
    signature = call.node.signatures[body]
    producers = {out: node for node in call.node.blocks[body] for out in node.outputs}
    name = signature.outputs[0]
    visited: set[str] = set()
    while name in producers and producers[name].op == "Identity" and name not in visited:
        visited.add(name)
        name = producers[name].inputs[0]
    return name == signature.inputs[1] or (name not in producers and _known_truth(call, name))


def _known_truth(call: Call, name: str) -> bool:
    try:
        value = call.scope[name]
    except KeyError:
        return False
    return is_known(value) and _truth(value)


def _unrolled(
    call: Call, body: int, most: int | None, condition: Item, state: list[Item], carried_count: int
) -> tuple[Item, ...] | None:
    """The loop in Python; None where the condition turns out to be unknown."""
    going = condition is None or _truth(condition)
    collected: list[list[Item]] = []
    axes = {i: call.axis(a, len(shape_of(state[i]))) for i, a in _appended_axes(call, body, state).items()}
    appended: dict[int, list[Item]] = {i: [state[i]] for i in axes}
    step = 0
    while going and (most is None or step < most):
        if step >= MAX_STEPS:
            raise call.error(
                "a loop that does not end", ShapeError, received=f"{step:,} trips", allowed=MAX_STEPS
            )
        for i, axis in axes.items():
            state[i] = part(state[i], axis, 0, 0)
        results = call.runner.run_body(call, body, [np.asarray(step, np.int64), np.asarray(True), *state])
        if _is_open(results[0]):
            if not _always(call, body):
                return None
        else:
            going = _truth(results[0])
        state = list(results[1 : carried_count + 1])
        for i, items in appended.items():
            items.append(state[i])
        collected.append(results[carried_count + 1 :])
        step += 1
    for i, items in appended.items():
        state[i] = concat_items(call, tuple(items), axes[i])
    scans = len(call.node.signatures[body].outputs) - carried_count - 1
    if not collected and scans:
        return (*state, *_no_rows(call, body, state, carried_count))
    stacked = [_stack(call, [row[i] for row in collected]) for i in range(scans)]
    return (*state, *stacked)


def _appended_axes(call: Call, body: int, state: Sequence[Item]) -> dict[int, int]:
    """The state that each round only makes longer, by a Concat behind it -> the axis.

    Joined once behind the loop it takes a copy; joined in every round, as many copies as there are rounds. The masks of
    100 boxes are 40 MB, and 2 GB were copied.
    """
    signature, nodes = call.node.signatures[body], call.node.blocks[body]
    inner = Program("", "", tuple(nodes), {}, (), ())
    reads = Counter(name for node in inner.walk() for name in node.inputs)
    reads.update(name for node in inner.walk() for each in node.signatures for name in each.outputs)
    reads.update(signature.outputs)
    joins = {node.outputs[0]: node for node in nodes if node.op == "Concat"}
    axes: dict[int, int] = {}
    for i, item in enumerate(state):
        before, after = signature.inputs[i + 2], signature.outputs[i + 1]
        join = joins.get(after)
        if join is None or item is None or isinstance(item, list):
            continue
        if join.inputs[0] == before and reads[before] == 1 and reads[after] == 1:
            axes[i] = int(join.attrs.get("axis", 1))
    return axes


def _no_rows(call: Call, body: int, state: list[Item], carried_count: int) -> list[Item]:
    """What a loop without rounds collects: no rows, each of the shape and type that a round would make."""

    def one_round(call: Call) -> tuple[jax.Array, ...]:
        first = [np.asarray(0, np.int64), np.asarray(True), *state]
        return _pack(runner.run_body(call, body, first)[carried_count + 1 :])

    runner = call.runner.copy_for_trace()
    try:
        rows = jax.eval_shape(lambda: one_round(call))
    except ShapeError:  # the round reads a row of an array that has none, which is why there are no rounds
        grown = replace(call, scope=_grow_empty(call, body))
        rows = jax.eval_shape(lambda: one_round(grown))
    return [np.zeros((0, *row.shape), row.dtype) for row in rows]


def _grow_empty(call: Call, body: int) -> Mapping[str, Item]:
    """The scope of the node, in which the arrays without rows of which the body reads rows have one, of zeros."""
    assert isinstance(call.scope, dict)
    scope = copy(call.scope)
    for node in call.node.blocks[body]:
        name = node.inputs[0] if node.op in ("Slice", "Gather", "GatherND") and node.inputs else ""
        item = None
        with contextlib.suppress(KeyError):  # a value of the body itself
            item = call.scope[name]
        if isinstance(item, Value | np.ndarray) and shape_of(item)[:1] == (0,):
            scope[name] = np.zeros((1, *shape_of(item)[1:]), item.dtype)
    return scope


def _stack(call: Call, items: list[Item]) -> Item:
    grown = [reshaped(call, item, [1, *shape_of(item)]) for item in items]
    return concat_items(call, tuple(grown), 0)


def _wide_state(
    call: Call,
    body: int,
    state: tuple[jax.Array, ...],
    others: Callable[[tuple], Sequence[jax.Array]],
    skip: int,
) -> tuple[jax.Array, ...]:
    """The state of a loop, in 64 bits where a round makes numbers of 64 bits of those of 32.

    `others`: all inputs of the body for this state; `skip`: its results ahead of the state.
    """
    runner = call.runner.copy_for_trace()

    def results(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        items = runner.run_body(call, body, [Value.of(array) for array in others(state)])
        return _pack(items[skip : skip + len(state)])

    for _ in state:  # each may depend on the one before
        after = jax.eval_shape(results, state)
        grown = [
            new.dtype.itemsize == 8 and new.dtype.kind == old.dtype.kind and old.dtype.itemsize == 4
            for new, old in zip(after, state, strict=True)
        ]
        if not any(grown):
            break
        with jax.enable_x64(True):
            state = tuple(
                a.astype(new.dtype) if grows else a for a, new, grows in zip(state, after, grown, strict=True)
            )
    return state


def _compiled(
    call: Call, body: int, trips: Item, condition: Item, state: Sequence[Item], carried_count: int
) -> tuple[Item, ...]:
    start = _pack(state)
    scans = len(call.node.signatures[body].outputs) - carried_count - 1
    first = jnp.asarray(True) if condition is None else to_jax(condition).reshape(()).astype(bool)
    start = _wide_state(call, body, start, lambda state: (jnp.asarray(0, jnp.int32), first, *state), 1)

    def run(step: jax.Array, going: jax.Array, carry: tuple) -> tuple[jax.Array, tuple, tuple]:
        inputs: list[Item] = [Value.of(step), Value.of(going), *(Value.of(c) for c in carry)]
        results = call.runner.run_body(call, body, inputs)
        moved = tuple(
            as_type(new, old.dtype) for new, old in zip(results[1 : carried_count + 1], carry, strict=True)
        )
        return to_jax(results[0]).reshape(()).astype(bool), moved, _pack(results[carried_count + 1 :])

    if not scans:
        limit = (
            jnp.asarray(MAX_STEPS, jnp.int32)
            if trips is None
            else to_jax(trips).reshape(()).astype(jnp.int32)
        )
        moved = jax.eval_shape(run, jnp.asarray(0, jnp.int32), first, start)[1]
        shapes = [[array.shape for array in arrays] for arrays in (start, moved)]
        if shapes[0] != shapes[1]:
            raise call.error(
                "the state of a loop changes its shapes, and how often it runs is not known",
                TraceError,
                received=f"{shapes[0]}, then {shapes[1]}",
                allowed="equal shapes in each round, or a number of trips that follows from shapes and constants",
                fix="run the layer eagerly",
            )
        _, _, final = lax.while_loop(
            lambda s: s[1] & (s[0] < limit),
            lambda s: (s[0] + 1, *run(*s)[:2]),
            (jnp.asarray(0, jnp.int32), first, start),
        )
        return tuple(Value.of(array) for array in final)
    if trips is None or _is_open(trips) or not (condition is None or _always(call, body)):
        raise call.error(
            "a loop collects results, and how often it runs is not known",
            TraceError,
            allowed="a number of trips that follows from shapes and constants, and no other condition",
            fix="run the layer eagerly",
        )
    length = int(call.number(trips, "the number of trips"))

    def step(carry: tuple, number: jax.Array) -> tuple[tuple, tuple]:
        _, moved, rows = run(number, first, carry)
        return moved, rows

    final, rows = lax.scan(step, start, jnp.arange(length, dtype=jnp.int32))
    return tuple(Value.of(array) for array in (*final, *rows))


# -- Scan ---------------------------------------------------------------------------------------------------------


@operator("Scan", style="values")
def _scan(call: Call, *items: Item) -> tuple[Item, ...]:
    body, lanes = _body(call, "body"), call.required("num_scan_inputs")
    if call.version < 9:
        return _batched_scan(call, body, lanes, items)
    carried_count = len(items) - lanes
    outputs = len(call.node.signatures[body].outputs) - carried_count
    axes = call.ints("scan_input_axes", (0,) * lanes) or ()
    backwards = call.ints("scan_input_directions", (0,) * lanes) or ()
    rows = [_lane(call, item, axis, back) for item, axis, back in zip(items[carried_count:], axes, backwards)]
    final, collected = _scan_rows(call, body, _pack(items[:carried_count]), rows)
    out_axes = call.ints("scan_output_axes", (0,) * outputs) or ()
    out_backwards = call.ints("scan_output_directions", (0,) * outputs) or ()
    results = [
        jnp.moveaxis(array[::-1] if back else array, 0, axis)
        for array, axis, back in zip(collected, out_axes, out_backwards)
    ]
    return tuple(Value.of(array) for array in (*final, *results))


def _lane(call: Call, item: Item, axis: int, backwards: int) -> jax.Array:
    array = jnp.moveaxis(to_jax(item), call.axis(axis, len(shape_of(item))), 0)
    return array[::-1] if backwards else array


def _scan_rows(
    call: Call, body: int, state: tuple[jax.Array, ...], rows: list[jax.Array]
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    carried_count = len(state)
    if all(len(row) for row in rows):
        state = _wide_state(call, body, state, lambda state: (*state, *(row[0] for row in rows)), 0)

    def step(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        results = call.runner.run_body(call, body, [Value.of(array) for array in (*carry, *row)])
        moved = (as_type(new, old.dtype) for new, old in zip(results[:carried_count], carry, strict=True))
        return tuple(moved), _pack(results[carried_count:])

    return lax.scan(step, state, tuple(rows))


def _batched_scan(call: Call, body: int, lanes: int, items: Sequence[Item]) -> tuple[Item, ...]:
    """The form of opset 8: lengths of the sequences first, and a batch before everything."""
    lengths, *rest = items
    if lengths is not None:
        raise call.error("a Scan of opset 8 with lengths", fix="convert the model to opset 9 or newer")
    carried_count = len(rest) - lanes
    arrays = _pack(rest)
    backwards = call.ints("directions", (0,) * lanes) or ()

    def one(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        rows = [row[::-1] if back else row for row, back in zip(arguments[carried_count:], backwards)]
        final, collected = _scan_rows(call, body, arguments[:carried_count], rows)
        return (*final, *collected)

    return tuple(Value.of(array) for array in jax.vmap(one)(*arrays))


@operator("SequenceMap", style="values")
def _sequence_map(call: Call, items: list, *others: Item) -> tuple[Item, ...]:
    body = _body(call, "body")
    rows = []
    for i, item in enumerate(items):
        rest = [other[i] if isinstance(other, list) else other for other in others]
        rows.append(call.runner.run_body(call, body, [item, *rest]))
    outputs = len(call.node.signatures[body].outputs)
    return tuple([row[k] for row in rows] for k in range(outputs))
