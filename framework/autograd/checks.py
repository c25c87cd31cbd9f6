"""What can be differentiated, and errors in the user's terms where it cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.typing import ArrayLike

from framework.core.errors import ShapeError, TraceError


def check_function(function: object, where: str) -> None:
    """Refuse an array where a function is needed: Paddle passes computed tensors, whose history lies on a tape."""
    if not callable(function):
        raise ShapeError(
            "what is differentiated is a function: there is no tape that knows how an array was computed",
            where=where,
            received=type(function).__name__,
            allowed="a function of arrays",
            fix=f"write y = f(x) as a function and call {where}(f, …)",
        )


def check_inputs(tree: object, where: str) -> Any:
    """The arrays of `tree` as jax arrays, all of them float or complex; Python floats are arrays of one value."""

    def check(leaf: ArrayLike) -> jax.Array:
        dtype = leaf.dtype if isinstance(leaf, (jax.Array, np.ndarray, np.generic)) else np.dtype(type(leaf))
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise ShapeError(
                "a derivative with respect to integers does not exist",
                where=where,
                received=f"an argument of {dtype}",
                allowed="float or complex arrays",
                fix="convert it, x.astype('float32'), or leave it out of argnums",
            )
        return jnp.asarray(leaf)

    return jax.tree.map(check, tree)


def check_loss(value: ArrayLike, where: str) -> jax.Array:
    """The loss: one real number."""
    value = jnp.asarray(value)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        complex_one = jnp.iscomplexobj(value)
        raise ShapeError(
            "the function to differentiate returns one real number",
            where=where,
            received=f"{value.dtype} of shape {value.shape}",
            allowed="a float of shape ()",
            fix="take its real part or its absolute square"
            if complex_one
            else "reduce it with .mean() or .sum(), or use jacobian",
        )
    return value


@contextlib.contextmanager
def explain_forward_mode_errors(function: Callable[..., Any], arguments: tuple, where: str) -> Iterator[None]:
    """Turn jax's refusal of forward mode through a custom_vjp into an error that names the operations.

    Raises:
        TraceError: an operation on the way has a derivative of its own that runs backwards only.
    """
    try:
        yield
    except TypeError as error:
        if "custom_vjp" not in str(error):
            raise
        found = sorted(set(_reverse_only(jax.make_jaxpr(function)(*arguments).jaxpr, "")))
        raise TraceError(
            "forward mode meets an operation whose derivative is written for reverse mode only",
            where=where,
            received=", ".join(found),
            allowed="operations without a derivative of their own",
            fix="use reverse mode (vjp, grad, jacobian, hessian); or, for convolutions and BatchNorm, their plain "
            "form, which is slower on a CPU: `with framework.nn.functional.lowering.platform_scope('other'):`",
        ) from error


def _reverse_only(jaxpr: Jaxpr, inside: str) -> Iterator[str]:
    """The functionals, or else the functions, that carry a custom vjp; `inside` is the innermost named jit."""
    for equation in jaxpr.eqns:
        name = str(equation.params.get("name", ""))
        if equation.primitive.name.startswith("custom_vjp"):
            described = getattr(equation.params["call_jaxpr"].jaxpr, "debug_info", None)
            yield inside.removeprefix("_") or getattr(described, "func_name", "") or "a custom_vjp function"
            continue
        at = name if name.startswith("_") else inside  # our jits are named after the functional: _conv2d
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(part, ClosedJaxpr):
                    yield from _reverse_only(part.jaxpr, at)
                elif isinstance(part, Jaxpr):
                    yield from _reverse_only(part, at)
