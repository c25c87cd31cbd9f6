"""Matching of queries and objects: the least sum, padding, more objects than queries, costs by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from detection.assigners.hungarian import MatchingCosts, match, matching_costs


def test_least_sum_not_the_greedy_choice() -> None:
    costs = jnp.asarray([[[1.0, 2.0], [2.0, 9.0], [8.0, 8.0]]])
    found = jax.jit(match)(costs, jnp.ones((1, 2), bool))
    np.testing.assert_array_equal(found.query, [[1, 0]])
    assert found.matched.all()


def test_padding_anywhere_is_left_out() -> None:
    costs = jnp.asarray([[[-9.0, 1.0], [-9.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    found = match(costs, jnp.asarray([[False, True], [False, False]]))
    np.testing.assert_array_equal(found.matched, [[False, True], [False, False]])
    np.testing.assert_array_equal(found.query, [[0, 1], [0, 0]])


def test_more_objects_than_queries() -> None:
    found = match(jnp.asarray([[[3.0, 1.0, 2.0]]]), jnp.ones((1, 3), bool))
    np.testing.assert_array_equal(found.matched, [[False, True, False]])


def test_costs_that_are_no_numbers_do_not_stop_it() -> None:
    assert match(jnp.full((1, 2, 1), jnp.nan), jnp.ones((1, 1), bool)).matched.all()


def test_costs_by_hand() -> None:
    """A perfect box costs only its class, -2 in giou; p = 0.5 costs 0.25 * 0.25 * log 2 less three times that."""
    box = jnp.asarray([[0.5, 0.5, 0.2, 0.2]])
    costs = matching_costs(box, jnp.zeros((1, 3)), box, jnp.asarray([1]), MatchingCosts())
    label = 2 * (0.25 - 0.75) * 0.25 * np.log(2)
    np.testing.assert_allclose(costs, [[label - 2]], rtol=1e-5)
    away = jnp.asarray([[0.9, 0.5, 0.2, 0.2]])  # 0.4 right of it: no overlap, hull three boxes wide
    costs = matching_costs(away, jnp.zeros((1, 3)), box, jnp.asarray([1]), MatchingCosts())
    np.testing.assert_allclose(costs, [[label + 5 * 0.4 + 2 / 3]], rtol=1e-5)


def test_no_gradient_passes() -> None:
    valid = jnp.ones((1, 1), bool)
    grad = jax.grad(lambda c: c.sum() + match(c, valid).query.sum().astype(jnp.float32))(jnp.ones((1, 2, 1)))
    np.testing.assert_array_equal(grad, np.ones((1, 2, 1)))
