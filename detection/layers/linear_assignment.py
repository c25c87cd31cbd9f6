"""The matching of least cost in fixed shapes: it runs in the exported program.

Source: the Hungarian method with potentials, one shortest augmenting path a row; Jonker and Volgenant,
    https://doi.org/10.1007/BF02278710
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

FORBIDDEN = 1e9
"""A cost that is paid only where there is no other way."""


class _Search(NamedTuple):
    """A tree of least reduced costs that grows from one row until it reaches a free column."""

    column: jax.Array
    """[] the column that was reached last"""
    done: jax.Array
    """[C + 1] bool"""
    distance: jax.Array
    """[C + 1]"""
    before: jax.Array
    """[C + 1] the column from which each was reached"""
    row_price: jax.Array
    column_price: jax.Array


def assign_rows(costs: jax.Array, rows: jax.Array) -> jax.Array:
    """The columns [R] int32 of the first `rows` rows, no column twice, at the least sum; -1 for the other rows.

    Args:
        costs: [R, C] float32, R <= C. What is not a number, or more than FORBIDDEN, costs FORBIDDEN.
        rows: [] int32.
    """
    count, columns = costs.shape
    costs = jnp.where(costs < FORBIDDEN, costs, FORBIDDEN)
    costs = jnp.pad(costs, ((0, 1), (0, 1)), constant_values=FORBIDDEN)
    nothing = count  # the row of a free column; column `columns` is where every search starts

    def grow(owner: jax.Array, search: _Search) -> _Search:
        done = search.done.at[search.column].set(True)
        row = owner[search.column]
        reduced = costs[row] - search.row_price[row] - search.column_price
        better = ~done & (reduced < search.distance)
        distance = jnp.where(better, reduced, search.distance)
        before = jnp.where(better, search.column, search.before)
        column = jnp.where(done, jnp.inf, distance).argmin().astype(jnp.int32)
        step = distance[column]
        paid = jnp.where(done, step, 0)
        return _Search(
            column,
            done,
            jnp.where(done, distance, distance - step),
            before,
            search.row_price.at[owner].add(paid),
            search.column_price - paid,
        )

    def add_row(
        row: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        owner, row_price, column_price = state
        owner = owner.at[columns].set(row)
        start = jnp.asarray(columns, jnp.int32)
        far = jnp.full(columns + 1, jnp.inf)
        search = _Search(start, far < 0, far, jnp.full(columns + 1, start), row_price, column_price)
        search = lax.while_loop(lambda s: owner[s.column] != nothing, lambda s: grow(owner, s), search)

        def shift(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            owner, column = state
            before = search.before[column]
            return owner.at[column].set(owner[before]), before

        owner, _ = lax.while_loop(lambda s: s[1] != columns, shift, (owner, search.column))
        return owner, search.row_price, search.column_price

    owner = jnp.full(columns + 1, nothing, jnp.int32)
    state = (owner, jnp.zeros(count + 1), jnp.zeros(columns + 1))
    owner, _, _ = lax.fori_loop(0, rows, add_row, state)
    assigned = (
        jnp.full(count + 1, -1, jnp.int32).at[owner[:columns]].set(jnp.arange(columns, dtype=jnp.int32))
    )
    return assigned[:count]
