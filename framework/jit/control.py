"""Control flow on values that are only known when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

T = TypeVar("T")  # a pytree of arrays
Ts = TypeVarTuple("Ts")


def cond(pred: ArrayLike, true_fn: Callable[[*Ts], T], false_fn: Callable[[*Ts], T], *operands: *Ts) -> T:
    """`true_fn(*operands)` where `pred` (a scalar) is true, else `false_fn(*operands)`.

    Both must return the same structure, shapes and dtypes.
    """
    return lax.cond(jnp.asarray(pred, bool).reshape(()), true_fn, false_fn, *operands)


def while_loop(
    cond_fn: Callable[..., Any], body: Callable[..., Any], loop_vars: list[Any] | tuple
) -> list[Any]:
    """Run `loop_vars = body(*loop_vars)` as long as `cond_fn(*loop_vars)` is true; shapes stay the same.

    As `paddle.static.nn.while_loop`. Reverse-mode gradients need a loop of fixed length: use jax.lax.scan there.
    """

    def step(values: tuple) -> tuple:
        out = body(*values)
        return tuple(out) if isinstance(out, (list, tuple)) else (out,)

    def more(values: tuple) -> Any:
        return jnp.asarray(cond_fn(*values), bool).reshape(())

    return list(lax.while_loop(more, step, tuple(jnp.asarray(v) for v in loop_vars)))
