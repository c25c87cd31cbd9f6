from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from detection.layers.linear_assignment import FORBIDDEN, assign_rows

assign = jax.jit(assign_rows)


def test_the_least_sum_and_not_each_row_s_least() -> None:
    costs = jnp.asarray([[1.0, 2.0, 9.0], [1.0, 9.0, 9.0], [0.0, 0.0, 0.0]])
    assert assign(costs, 2).tolist() == [1, 0, -1]
    assert assign(costs, 3).tolist() == [1, 0, 2]
    assert assign(costs, 0).tolist() == [-1, -1, -1]
    assert assign(jnp.full((1, 1), 5.0), 1).tolist() == [0]


def test_forbidden_columns_are_the_last_way() -> None:
    costs = jnp.asarray([[FORBIDDEN, 700.0, FORBIDDEN], [FORBIDDEN, -1.0, FORBIDDEN]])
    found = assign(costs, 2).tolist()
    assert 1 in found and len(set(found)) == 2
    # What is not a number ends the search too.
    found = assign(jnp.asarray([[np.nan, np.inf], [np.nan, 3.0]]), 2).tolist()
    assert found == [0, 1]


def test_random_costs_as_scipy_does() -> None:
    draw = np.random.default_rng(0)
    costs = np.round(4 * draw.random((40, 12, 15))) * 100 - draw.random((40, 12, 1))
    costs = costs.astype(np.float32)
    rows = draw.integers(0, 13, 40).astype(np.int32)
    found = np.asarray(jax.vmap(assign)(costs, rows))
    for cost, number, columns in zip(costs, rows, found, strict=True):
        best = cost[linear_sum_assignment(cost[:number])].sum()
        assert len(set(columns[:number])) == number and (columns[number:] == -1).all()
        np.testing.assert_allclose(
            cost[np.arange(number), columns[:number]].sum(), best, rtol=1e-5, atol=1e-4
        )
