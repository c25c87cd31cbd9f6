"""Rows of large tables: numbers of rows from ids, lookups and updates that touch only the rows that are met.

A table is [rows, features] on one device. Over the n devices of a mesh it is [ceil(rows / n), n, features], of which
each device has [:, i]: rows are dealt out cyclically, so that frequent ids, which often have low numbers, are spread.
Each device asks for every row that its ids name once, and the owners answer: two exchanges (`all_to_all`) for a lookup,
two for an update. A row of -1 is none: zeros, and no update.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

T = TypeVar("T")  # a pytree of arrays

BUCKETS = 2048
"""Tables of 2**31 rows or more: a row is `slot * BUCKETS + bucket`, and 32 bits hold each."""
LARGE = 2**31

Rows = tuple[jax.Array, ...]
"""int32 [M] each: (row,), or (slot, bucket) of a table of `LARGE` rows or more."""
Slots = dict[str, jax.Array]
ApplyRule = Callable[[jax.Array, jax.Array, Slots, jax.Array], tuple[jax.Array, Slots]]
"""(rows [K, D], their summed gradients, the state of these rows, their numbers, uint32) -> new rows and state."""


# -- from ids to rows ---------------------------------------------------------------------------------------------


def split_ids(ids: np.ndarray) -> np.ndarray:
    """64-bit ids [...] as two words, uint32 [..., 2], the low one first: what `wide_ids` of a table takes."""
    wide = np.asarray(ids).astype(np.int64, copy=False)
    words = wide.astype(np.uint64)
    return np.stack([words & 0xFFFFFFFF, words >> np.uint64(32)], axis=-1).astype(np.uint32)


def hash_words(low: jax.Array, high: jax.Array, seed: int = 0) -> jax.Array:
    """32 bits of a hash of 64-bit ids: the finaliser of MurmurHash3 over both words. Arrays are uint32."""
    mixed = _finalise(low ^ jnp.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF))
    return _finalise(mixed ^ (high * jnp.uint32(0xC2B2AE3D) + jnp.uint32(0x27D4EB2F)))


def _finalise(h: jax.Array) -> jax.Array:
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def hashed_rows(low: jax.Array, high: jax.Array, rows: int, seed: int = 0) -> Rows:
    """Any id to one of `rows` rows; the same for any number of devices."""
    first = hash_words(low, high, 2 * seed)
    if rows < LARGE:
        return ((first % jnp.uint32(rows)).astype(jnp.int32),)
    second = hash_words(low, high, 2 * seed + 1)
    slot = second % jnp.uint32(rows // BUCKETS)
    return slot.astype(jnp.int32), (first % jnp.uint32(BUCKETS)).astype(jnp.int32)


def exact_rows(low: jax.Array, high: jax.Array, rows: int) -> Rows:
    """An id is its row; one outside of [0, rows) has none."""
    if rows < LARGE:
        inside = (high == 0) & (low < jnp.uint32(rows))
        return (jnp.where(inside, low, jnp.uint32(0xFFFFFFFF)).astype(jnp.int32),)
    shift = int(math.log2(BUCKETS))
    slot = (high << (32 - shift)) | (low >> shift)
    inside = (high < jnp.uint32(1 << (shift - 1))) & (slot < jnp.uint32(-(-rows // BUCKETS)))
    bucket = (low % jnp.uint32(BUCKETS)).astype(jnp.int32)
    last = (rows - 1) % BUCKETS
    inside &= (slot < jnp.uint32((rows - 1) // BUCKETS)) | (bucket <= last)
    return jnp.where(inside, slot, jnp.uint32(0xFFFFFFFF)).astype(jnp.int32), bucket


# -- where rows lie -----------------------------------------------------------------------------------------------


def table_shape(rows: int, devices: int) -> tuple[int, int]:
    """The leading axes of a table that is dealt out to so many devices."""
    return -(-rows // devices), devices


def deal_rows(table: np.ndarray, devices: int) -> np.ndarray:
    """[rows, ...] -> [ceil(rows / devices), devices, ...]; what is added is zero."""
    lines, _ = table_shape(len(table), devices)
    spare = lines * devices - len(table)
    if spare:
        table = np.concatenate([table, np.zeros((spare, *table.shape[1:]), table.dtype)])
    return table.reshape(lines, devices, *table.shape[1:])


def collect_rows(table: np.ndarray, rows: int) -> np.ndarray:
    """The opposite of `deal_rows`."""
    return table.reshape(-1, *table.shape[2:])[:rows]


def _locate(rows: Rows, devices: int) -> tuple[jax.Array, jax.Array]:
    """The device of each row, `devices` where there is none, and its number there."""
    none = rows[0] < 0
    if len(rows) == 1:
        owner, local = rows[0] % devices, rows[0] // devices
    else:
        owner, local = rows[1] % devices, rows[0] * (BUCKETS // devices) + rows[1] // devices
    return jnp.where(none, devices, owner), jnp.where(none, 0, local)


class _Plan(NamedTuple):
    """Ids of one device in the order of their owners: distinct rows have the numbers 0, 1, … within their owner."""

    owner: jax.Array  # [m]
    local: jax.Array
    order: jax.Array
    number: jax.Array
    most: jax.Array  # [] distinct rows of the owner that has most


def _plan(rows: Rows, devices: int) -> _Plan:
    owner, local = _locate(rows, devices)
    owner, local, order = lax.sort((owner, local, jnp.arange(len(owner), dtype=jnp.int32)), num_keys=2)
    distinct = jnp.cumsum(_changes(owner) | _changes(local), dtype=jnp.int32) - 1
    starts = jnp.searchsorted(owner, jnp.arange(devices + 1, dtype=jnp.int32))
    before = jnp.append(distinct, distinct[-1] + 1)[starts]
    return _Plan(owner, local, order, distinct - before[owner], jnp.max(before[1:] - before[:-1]))


def _changes(values: jax.Array) -> jax.Array:
    """Where a sorted array has a value for the first time."""
    return jnp.append(jnp.array([True]), values[1:] != values[:-1])


def _capacity(ids: int, devices: int) -> int:
    """Rows that one device asks another for, in the exchange that nearly always suffices."""
    return min(ids, math.ceil(1.5 * ids / devices) + 8)


def _flat(block: jax.Array) -> jax.Array:
    """[lines, 1, …] of one device -> [lines, …]."""
    return block.reshape(block.shape[0], *block.shape[2:])


def _pad(array: jax.Array, multiple: int, value: int) -> jax.Array:
    spare = -len(array) % multiple
    return jnp.pad(array, [(0, spare)] + [(0, 0)] * (array.ndim - 1), constant_values=value)


def _exchange(array: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    return lax.all_to_all(array, axes, 0, 0, tiled=True)


# -- lookup -------------------------------------------------------------------------------------------------------


def lookup_rows(table: jax.Array, rows: Rows, mesh: Mesh | None = None) -> jax.Array:
    """The rows of a table, [M, features]; zeros where there is none.

    Args:
        table: [rows, features], or dealt out over `mesh`.
    """
    if table.ndim == 2:
        row = _single(rows)
        vectors = jnp.take(table, jnp.maximum(row, 0), axis=0, mode="clip")
        return jnp.where((row >= 0)[:, None], vectors, jnp.zeros((), table.dtype))
    devices, count = table.shape[1], len(rows[0])
    if mesh is None:
        owner, local = _locate(rows, devices)
        return table.at[local, owner].get(mode="fill", fill_value=0)
    axes = tuple(mesh.axis_names)
    run = jax.shard_map(
        functools.partial(_fetch, devices=devices, axes=axes),
        mesh=mesh,
        in_specs=(PartitionSpec(None, axes), PartitionSpec(axes)),
        out_specs=PartitionSpec(axes),
        check_vma=False,
    )
    return run(table, tuple(_pad(one, devices, -1) for one in rows))[:count]


def _single(rows: Rows) -> jax.Array:
    """Numbers of rows in a table that one device has whole."""
    if len(rows) == 1:
        return rows[0]
    return jnp.where(rows[0] < 0, -1, rows[0] * BUCKETS + rows[1])


def _fetch(block: jax.Array, rows: Rows, *, devices: int, axes: tuple[str, ...]) -> jax.Array:
    block, count = _flat(block), len(rows[0])
    plan = _plan(rows, devices)

    def fetch(capacity: int) -> jax.Array:
        requests = jnp.full((devices, capacity), len(block), jnp.int32)
        requests = _exchange(requests.at[plan.owner, plan.number].set(plan.local, mode="drop"), axes)
        answer = _exchange(block.at[requests].get(mode="fill", fill_value=0), axes)
        position = jnp.where(plan.owner < devices, plan.owner * capacity + plan.number, devices * capacity)
        position = jnp.zeros_like(position).at[plan.order].set(position, unique_indices=True)
        flat = answer.reshape(devices * capacity, -1)
        return flat.at[position].get(mode="fill", fill_value=0)

    return _with_capacity(plan, count, devices, axes, fetch)


def _with_capacity(
    plan: _Plan, count: int, devices: int, axes: tuple[str, ...], run: Callable[[int], T]
) -> T:
    """`run` with buffers for an even share of the rows; with buffers for all of them where any device has more for one
    owner. Nothing is ever left out."""
    usual = _capacity(count, devices)
    if usual == count:
        return run(count)
    many = lax.pmax(plan.most, axes) > usual
    return lax.cond(many, lambda: run(count), lambda: run(usual))


# -- update -------------------------------------------------------------------------------------------------------


def update_rows(
    table: jax.Array, state: Slots, rows: Rows, grads: jax.Array, apply: ApplyRule, mesh: Mesh | None = None
) -> tuple[jax.Array, Slots]:
    """Update the rows that are met, each once with the sum of its gradients; all others stay.

    Args:
        table: [rows, features], or dealt out over `mesh`. Donate it, and it is changed in its own memory.
        state: Arrays that lie as the table does: a number ([rows]) or a vector ([rows, features]) of each row.
        grads: [M, …], one for each of `rows`.
    """
    if table.ndim == 2:
        row = _single(rows)
        row = jnp.where(row < 0, len(table), row)
        return _update_local(table, state, row, (), grads, apply, lambda local: local)
    assert mesh is not None, "a table that is dealt out is updated over its mesh"
    devices, axes = table.shape[1], tuple(mesh.axis_names)
    dealt, even = PartitionSpec(None, axes), PartitionSpec(axes)
    run = jax.shard_map(
        functools.partial(_push, apply=apply, devices=devices, axes=axes),
        mesh=mesh,
        in_specs=(dealt, dealt, even, even),
        out_specs=(dealt, dealt),
        check_vma=False,
    )
    return run(table, state, tuple(_pad(one, devices, -1) for one in rows), _pad(grads, devices, 0))


def _push(
    table: jax.Array,
    state: Slots,
    rows: Rows,
    grads: jax.Array,
    *,
    apply: ApplyRule,
    devices: int,
    axes: tuple[str, ...],
) -> tuple[jax.Array, Slots]:
    plan, count = _plan(rows, devices), len(rows[0])
    here = lax.axis_index(axes).astype(jnp.uint32)

    def push(
        tables: tuple[jax.Array, Slots], capacity: int, skip: jax.Array | bool
    ) -> tuple[jax.Array, Slots]:
        owner = jnp.where(skip, devices, plan.owner)
        named = jnp.full((devices, capacity), len(table), jnp.int32)
        named = _exchange(named.at[owner, plan.number].set(plan.local, mode="drop"), axes)
        sums = jnp.zeros((devices, capacity, grads.shape[1]), grads.dtype)
        sums = _exchange(sums.at[owner, plan.number].add(grads[plan.order], mode="drop"), axes)
        sums = sums.reshape(-1, grads.shape[1])
        return _update_local(
            *tables, named.reshape(-1), (0,), sums, apply, lambda local: local * jnp.uint32(devices) + here
        )

    tables = table, state
    usual = _capacity(count, devices)
    many = lax.pmax(plan.most, axes) > usual
    tables = push(tables, usual, many)
    if usual < count:  # a loop of one turn at most, which may work in place
        tables, _ = lax.while_loop(
            lambda carry: carry[1],
            lambda carry: (push(carry[0], count, False), jnp.array(False)),
            (tables, many),
        )
    return tables


def _update_local(
    table: jax.Array,
    state: Slots,
    rows: jax.Array,
    device: tuple[int, ...],
    grads: jax.Array,
    apply: ApplyRule,
    globally: Callable[[jax.Array], jax.Array],
) -> tuple[jax.Array, Slots]:
    """`rows` [K] may repeat; `len(table)` is none. `globally` gives the numbers of rows in the whole table.

    Args:
        device: Behind the row in the arrays: (0,) of a share [lines, 1, ...]. A reshape in place of it costs a copy of
            the whole share at every step, as XLA chooses another layout for it.
    """
    count = len(rows)
    ordered, order = lax.sort((rows, jnp.arange(count, dtype=jnp.int32)), num_keys=1)
    number = jnp.cumsum(_changes(ordered), dtype=jnp.int32) - 1
    sums = jax.ops.segment_sum(grads[order], number, count, indices_are_sorted=True)
    none = jnp.int32(len(table))
    distinct = jnp.full(count, none).at[number].set(ordered)
    # Numbers behind the table are dropped; they differ, so that the scatter may take all for distinct.
    distinct = jnp.where(distinct < none, distinct, none + jnp.arange(count, dtype=jnp.int32))

    def read(array: jax.Array) -> jax.Array:
        return array.at[(distinct, *device)].get(mode="fill", fill_value=0)

    def write(array: jax.Array, value: jax.Array) -> jax.Array:
        index = (distinct, *device)
        return array.at[index].set(value.astype(array.dtype), mode="drop", unique_indices=True)

    numbers = globally(distinct.astype(jnp.uint32))
    new, slots = apply(read(table), sums, {name: read(value) for name, value in state.items()}, numbers)
    return write(table, new), {name: write(value, slots[name]) for name, value in state.items()}
