from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import jit


@pytest.mark.parametrize("pred", [True, False])
def test_cond(pred: bool):
    def fn(pred, x):
        return jit.cond(pred, lambda x: x + 1, lambda x: x * 10, x)

    expected = 4 if pred else 30
    for run in (fn, jax.jit(fn)):
        assert float(run(jnp.asarray(pred), jnp.asarray(3.0))) == expected
        assert float(run(jnp.asarray([int(pred)]), jnp.asarray(3.0))) == expected  # one element, as in Paddle


def test_cond_is_differentiable():
    grad = jax.grad(lambda x: jit.cond(x > 0, lambda x: x * x, lambda x: -x, x))
    assert float(grad(3.0)) == 6 and float(grad(-3.0)) == -1


def test_while_loop():
    def factorial(n):
        return jit.while_loop(lambda i, out: i <= n, lambda i, out: [i + 1, out * i], [1, 1])

    for run in (factorial, jax.jit(factorial)):
        i, out = run(jnp.asarray(5))
        assert (int(i), int(out)) == (6, 120)


def test_while_loop_over_one_value_and_no_turn():
    (x,) = jit.while_loop(lambda x: x < 100, lambda x: x * 3, (jnp.asarray(1),))
    assert int(x) == 243
    (x,) = jit.while_loop(lambda x: (x < 0)[None], lambda x: x * 3, (np.float32(1),))
    assert float(x) == 1
