"""Updates of large tables by the rows that were met (nn.ShardedEmbedding), beside the optimizer of all else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jax.sharding import Mesh

from framework.core.errors import ConfigError
from framework.nn.functional.tables import Slots, hash_words, update_rows
from framework.nn.host_embedding import HostEmbedding, pull_rows
from framework.nn.host_table import HostTable
from framework.nn.layer import Layer
from framework.nn.lookups import RowGradients, table_layers
from framework.nn.sharded_embedding import ShardedEmbedding
from framework.nn.table_options import CountFilterEntry, ProbabilityEntry, ShowClickEntry, TableOptions
from framework.optimizer.rules import AdagradRule, AdamRule, RowwiseAdagradRule, Rule, SGDRule

MET, COUNT = "seen", "count"
"""State of a table beside that of its rule: how often the ids of each row were met, and the steps done."""


@dataclass(frozen=True)
class TableGroup:
    """What is done to the rows of one table; `rate` multiplies the learning rate, `store` has the rows that are in the
    memory of the host."""

    options: TableOptions
    rate: float = 1.0
    store: HostTable | None = None

    @property
    def rule(self) -> Rule:
        """The rule for one row."""
        options = self.options
        fine, coarse = options.epsilon if options.epsilon is not None else 1e-8, options.epsilon
        if options.optimizer == "sgd":
            return SGDRule()
        if options.optimizer == "adam":
            return AdamRule(*options.betas, fine)
        if options.optimizer == "adagrad":
            return AdagradRule(1e-6 if coarse is None else coarse, options.initial_accumulator)
        return RowwiseAdagradRule(fine, options.initial_accumulator)

    @property
    def counted(self) -> bool:
        """Whether the state has `seen`."""
        return self.store is None and (self.options.count_ids or self.options.entry is not None)

    @property
    def timed(self) -> bool:
        """Whether the state has `count`."""
        return self.rule.timed or (self.counted and isinstance(self.options.entry, ProbabilityEntry))


TableGroups = Mapping[str, TableGroup]
TableStates = dict[str, Slots]


def table_groups(
    model: Layer, frozen: Iterable[str] = (), lr_multipliers: Mapping[str, float] | None = None
) -> dict[str, TableGroup]:
    """The tables of `model` that are trained, by the names of their weights.

    Raises:
        ConfigError: a table in the memory of devices has an entry by shows and clicks.
    """
    groups = {}
    for name, layer in table_layers(model).items():
        layer = cast("ShardedEmbedding | HostEmbedding", layer)
        options, attr = layer.table_options, layer._parameters[name.rpartition(".")[2]].attr
        store = layer.store if isinstance(layer, HostEmbedding) else None
        if store is None and isinstance(options.entry, ShowClickEntry):
            raise ConfigError(
                "only a table in the memory of the host has scores of shows and clicks",
                where=name,
                received=repr(options.entry),
                allowed="CountFilterEntry or ProbabilityEntry",
                fix="nn.HostEmbedding",
            )
        rate = attr.learning_rate
        for pattern, factor in (lr_multipliers or {}).items():
            rate *= factor if re.search(pattern, name) else 1.0
        if attr.trainable and rate != 0 and not any(re.search(pattern, name) for pattern in frozen):
            groups[name] = TableGroup(options, rate, store)
    return groups


def init_tables(params: Mapping[str, jax.Array], groups: TableGroups) -> TableStates:
    """The state before the first step: for each table arrays that lie as its rows do, and `count`."""
    states: TableStates = {}
    for name, group in groups.items():
        shape, state = params[name].shape, states.setdefault(name, {})
        for slot, kind in group.rule.slots().items():
            if not kind.power and group.store is None:
                state[slot] = jnp.full(shape[:-1] if kind.rowwise else shape, kind.fill, jnp.float32)
        if group.counted:
            state[MET] = jnp.zeros(shape[:-1], jnp.int32)
        if group.timed:
            state[COUNT] = jnp.zeros((), jnp.int32)
    return states


def update_tables(
    params: Mapping[str, jax.Array],
    states: TableStates,
    grads: Mapping[str, RowGradients],
    lr: jax.Array | float,
    groups: TableGroups,
    mesh: Mesh | None = None,
) -> tuple[dict[str, jax.Array], TableStates]:
    """One step of all tables, pure: the new tables and states. Rows that were not met stay as they are."""
    tables, after = {}, {}
    for name, group in groups.items():
        if name not in grads:  # no lookup in this step
            tables[name], after[name] = params[name], states[name]
            continue
        if group.store is None:
            updated = _update_table(params[name], states[name], grads[name], lr, group, mesh)
        else:
            updated = _update_host(params[name], states[name], grads[name], lr, group, group.store)
        tables[name], after[name] = updated
    return tables, after


def _update_table(
    table: jax.Array,
    state: Slots,
    grads: RowGradients,
    lr: jax.Array | float,
    group: TableGroup,
    mesh: Mesh | None,
) -> tuple[jax.Array, Slots]:
    options, rule = group.options, group.rule
    rate = jnp.float32(lr if options.learning_rate is None else options.learning_rate) * group.rate
    time = {COUNT: state[COUNT]} if COUNT in state else {}
    features = table.shape[-1]

    def apply(rows: jax.Array, sums: jax.Array, slots: Slots, numbers: jax.Array) -> tuple[jax.Array, Slots]:
        wide, gradient = rows.astype(jnp.float32), sums[:, :features]
        if options.weight_decay:
            gradient = gradient + options.weight_decay * wide
        state_of_rule = {name: value for name, value in slots.items() if name != MET}
        moved, new = rule.update(wide, gradient, rate, {**state_of_rule, **(time if rule.timed else {})})
        new = {name: new[name] for name in state_of_rule}
        if MET not in slots:
            return moved, new
        met = sums[:, features].astype(jnp.int32)
        counts, admitted = _admit(options, slots[MET], met, time.get(COUNT), numbers)
        moved = jnp.where(admitted[:, None], moved, wide)
        for name, value in state_of_rule.items():
            new[name] = jnp.where(admitted.reshape(-1, *[1] * (value.ndim - 1)), new[name], value)
        return moved, {**new, MET: counts}

    values = grads.values.astype(jnp.float32)
    if MET in state:  # the number of ids is summed as a gradient is
        values = jnp.concatenate([values, jnp.ones((len(values), 1), jnp.float32)], axis=1)
    slots = {name: value for name, value in state.items() if name != COUNT}
    table, slots = update_rows(table, slots, grads.rows, values, apply, mesh)
    return table, {**slots, **{name: value + 1 for name, value in time.items()}}


def _update_host(
    version: jax.Array,
    state: Slots,
    grads: RowGradients,
    lr: jax.Array | float,
    group: TableGroup,
    store: HostTable,
) -> tuple[jax.Array, Slots]:
    """The rows of a batch as a small table: pulled, updated as a table on the device is, and pushed back."""
    features, rule = store.features, group.rule
    pulled, index = pull_rows(store, version, grads.rows)
    slots, column = dict(state), features
    for slot, kind in rule.slots().items():
        if kind.rowwise:
            slots[slot], column = pulled[:, column], column + 1
        elif not kind.power:
            slots[slot], column = pulled[:, column : column + features], column + features
    # Of a row that is not live the first number alone is trained.
    live = pulled[:, -1:]
    values = jnp.concatenate([grads.values[:, :1], grads.values[:, 1:] * live[index]], axis=1)
    vectors, slots = _update_table(
        pulled[:, :features], slots, RowGradients((index,), values), lr, group, None
    )
    time = {COUNT: slots.pop(COUNT)} if COUNT in slots else {}
    rows = jnp.concatenate(
        [vectors, *(one.reshape(len(vectors), -1) for one in slots.values()), live], axis=1
    )
    after = jax.ShapeDtypeStruct(version.shape, version.dtype)
    version = io_callback(store.push_words, after, version, *grads.rows, rows)
    return version, time


def _admit(
    options: TableOptions, before: jax.Array, met: jax.Array, count: jax.Array | None, numbers: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The new counts of rows, and which of them are trained."""
    entry = options.entry
    if isinstance(entry, CountFilterEntry):
        total = before + met
        return total, total >= entry.count_filter
    if isinstance(entry, ProbabilityEntry):
        assert count is not None
        # Drawn from the number of the row and the step: the same on any number of devices.
        drawn = hash_words(numbers, jnp.broadcast_to(count.astype(jnp.uint32), numbers.shape), seed=7)
        admitted = (before > 0) | (drawn < jnp.uint32(min(int(entry.probability * 2**32), 2**32 - 1)))
        return jnp.where(admitted, before + met, 0), admitted
    return before + met, jnp.ones(len(before), bool)
