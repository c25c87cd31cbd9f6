"""Updates of large tables by the rows that were met (nn.ShardedEmbedding), beside the optimizer of all else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from framework.core.errors import ConfigError
from framework.nn.functional.tables import Slots, hash_words, update_rows
from framework.nn.layer import Layer
from framework.nn.lookups import RowGradients, table_layers
from framework.nn.sharded_embedding import ShardedEmbedding
from framework.nn.table_options import CountFilterEntry, ProbabilityEntry, ShowClickEntry, TableOptions
from framework.optimizer.rules import AdagradRule, AdamRule, RowwiseAdagradRule, Rule, SGDRule

SEEN, COUNT = "seen", "count"
"""State of a table beside that of its rule: how often the ids of each row were met, and the steps done."""


@dataclass(frozen=True)
class TableGroup:
    """What is done to the rows of one table; `rate` multiplies the learning rate."""

    options: TableOptions
    rate: float = 1.0

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
        return self.options.count_ids or self.options.entry is not None

    @property
    def timed(self) -> bool:
        """Whether the state has `count`."""
        return self.rule.timed or isinstance(self.options.entry, ProbabilityEntry)


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
        options, attr = cast(ShardedEmbedding, layer).table_options, layer._parameters["weight"].attr
        if isinstance(options.entry, ShowClickEntry):
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
            groups[name] = TableGroup(options, rate)
    return groups


def init_tables(params: Mapping[str, jax.Array], groups: TableGroups) -> TableStates:
    """The state before the first step: for each table arrays that lie as its rows do, and `count`."""
    states: TableStates = {}
    for name, group in groups.items():
        shape, state = params[name].shape, states.setdefault(name, {})
        for slot, made in group.rule.slots().items():
            if not made.power:
                state[slot] = jnp.full(shape[:-1] if made.rowwise else shape, made.fill, jnp.float32)
        if group.counted:
            state[SEEN] = jnp.zeros(shape[:-1], jnp.int32)
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
        tables[name], after[name] = _update_table(params[name], states[name], grads[name], lr, group, mesh)
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
        own = {name: value for name, value in slots.items() if name != SEEN}
        moved, new = rule.update(wide, gradient, rate, {**own, **(time if rule.timed else {})})
        new = {name: new[name] for name in own}
        if SEEN not in slots:
            return moved, new
        met = sums[:, features].astype(jnp.int32)
        seen, admitted = _admit(options, slots[SEEN], met, time.get(COUNT), numbers)
        moved = jnp.where(admitted[:, None], moved, wide)
        for name, value in own.items():
            new[name] = jnp.where(admitted.reshape(-1, *[1] * (value.ndim - 1)), new[name], value)
        return moved, {**new, SEEN: seen}

    values = grads.values.astype(jnp.float32)
    if SEEN in state:  # the number of ids is summed as a gradient is
        values = jnp.concatenate([values, jnp.ones((len(values), 1), jnp.float32)], axis=1)
    slots = {name: value for name, value in state.items() if name != COUNT}
    table, slots = update_rows(table, slots, grads.rows, values, apply, mesh)
    return table, {**slots, **{name: value + 1 for name, value in time.items()}}


def _admit(
    options: TableOptions, seen: jax.Array, met: jax.Array, count: jax.Array | None, numbers: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The new counts of rows, and which of them are trained."""
    entry = options.entry
    if isinstance(entry, CountFilterEntry):
        total = seen + met
        return total, total >= entry.count_filter
    if isinstance(entry, ProbabilityEntry):
        assert count is not None
        # Drawn from the number of the row and the step: the same on any number of devices.
        drawn = hash_words(numbers, jnp.broadcast_to(count.astype(jnp.uint32), numbers.shape), seed=7)
        admitted = (seen > 0) | (drawn < jnp.uint32(min(int(entry.probability * 2**32), 2**32 - 1)))
        return jnp.where(admitted, seen + met, 0), admitted
    return seen + met, jnp.ones(len(seen), bool)
